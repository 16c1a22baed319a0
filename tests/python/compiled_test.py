#!/usr/bin/env python3
"""spillway.torch.apply(compiled=True): recomputation by policies, plain, under torch.compile and under FSDP2.

usage: compiled_test.py SPILLWAY
"""
import os
import sys
import tempfile
import unittest
from unittest import mock

import fixture

fixture.need_torch()
import torch  # noqa: E402

import spillway  # noqa: E402
import spillway.torch as carried  # noqa: E402
from spillway.torch import compiled  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
BATCH = torch.zeros(fixture.BATCH, fixture.SEQUENCE, dtype=torch.long)
NO_POLICIES = None if compiled.has_policies() else f"PyTorch {torch.__version__} has no selective checkpointing (2.4)"


def compiles():
    """None, or why torch.compile doesn't work here."""
    if not hasattr(torch, "compile"):
        return f"PyTorch {torch.__version__} has no torch.compile (2.0)"
    try:
        torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(1))
    except Exception as error:  # pylint: disable=broad-except
        return f"torch.compile doesn't work here: {error}"
    return None


NO_COMPILER = NO_POLICIES or compiles()


def saved_bytes(model):
    """What the model's forward holds for its backward, without the parameters."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    held = {}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() not in parameters:
            held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        made = model(BATCH)
    del made
    return sum(held.values())


def module_plan(layers, fate_of, **more):
    """A module plan of a GPT-2-like layer: each tensor's fate by the module that makes it."""
    made = [("attention.norm.out", "attention.qkv", "attention.norm"),
            ("attention.qkv.out", "attention.core.q", "attention.qkv"),
            ("attention.core.context", "attention.out", "attention.core"),
            ("attention.out.out", "mlp.norm", "attention.out"), ("mlp.norm.out", "mlp.up", "mlp.norm"),
            ("mlp.up.out", "mlp.activation", "mlp.up"), ("mlp.activation.out", "mlp.down", "mlp.activation")]
    return {"schema": "spillway-module-plan", "version": 1, "model": "like", "technique": "recompute",
            "layers": [{"layer": at, **more, "saved": [
                {"tensor": tensor, "module": module, "made_by": maker, "bytes": 0, "fate": fate_of(maker)}
                for tensor, module, maker in made]} for at in range(layers)]}


def tensors_plan():
    """The products' results stay, what is cheap is made again."""
    return module_plan(fixture.LAYERS, lambda maker: "keep" if maker in (
        "attention.qkv", "attention.core", "mlp.up") else "recompute")


PLAIN = {like: fixture.Trained(fixture.model_of(like)) for like in fixture.LIKE}


class AsItIs(unittest.TestCase):
    """Without a compiler the same wrappers are ordinary checkpoints."""

    def test_losses_and_weights_are_those_of_the_plain_step(self):
        for like in fixture.LIKE:
            for technique in ("keep", "full", "selective", "every:2"):
                with self.subTest(like=like, technique=technique):
                    model = fixture.model_of(like)
                    with carried.apply(model, technique, compiled=True, program=PROGRAM):
                        under = fixture.Trained(model)
                    self.assertTrue(under.equals(PLAIN[like]))

    def test_forwards_come_back(self):
        model = fixture.model_of("gpt2")
        before = [module.__dict__.get("forward") for module in model.modules()]
        with carried.apply(model, "full", compiled=True):
            self.assertNotEqual(before, [module.__dict__.get("forward") for module in model.modules()])
        self.assertEqual(before, [module.__dict__.get("forward") for module in model.modules()])

    @unittest.skipIf(NO_POLICIES, NO_POLICIES)
    def test_a_policy_saves_what_the_plan_keeps(self):
        model = fixture.model_of("gpt2")
        whole = saved_bytes(model)
        with carried.apply(model, "full", compiled=True):
            least = saved_bytes(model)
        with carried.apply(model, tensors_plan(), compiled=True, example=BATCH) as handle:
            # Dropout within attention has no fused kernel on a CPU: its two products are the second and third.
            self.assertEqual(set(handle.saved.values()), {frozenset({("product", 0), ("product", 2), ("product", 4)})})
            some = saved_bytes(model)
            under = fixture.Trained(model)
        self.assertTrue(under.equals(PLAIN["gpt2"]))
        # What a policy saves it holds itself: autograd's hooks don't see it.
        self.assertLess(least, whole)
        self.assertLess(some, whole)

    @unittest.skipIf(NO_POLICIES, NO_POLICIES)
    def test_the_example_leaves_random_numbers_and_modules_alone(self):
        model = fixture.model_of("gpt2")
        torch.manual_seed(3)
        before = torch.get_rng_state()
        for example in (BATCH, (BATCH,), lambda: model(BATCH)):
            carried.apply(model, tensors_plan(), compiled=True, example=example).remove()
        self.assertTrue(torch.equal(before, torch.get_rng_state()))
        self.assertFalse(any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()))


class Refusals(unittest.TestCase):
    def test_what_hooks_would_do_is_refused_by_a_sentence(self):
        for technique in ("host", "ssdtrain", "checkpoints-host", "selective+host"):
            with self.subTest(technique):
                model = fixture.model_of("gpt2")
                with self.assertRaises(spillway.Refused) as raised:
                    carried.apply(model, technique, compiled=True)
                self.assertIn("a compiled graph runs no hooks on what it saves", str(raised.exception))
                self.assertFalse(any("forward" in module.__dict__ for module in model.modules()))
        model = fixture.model_of("gpt2")
        with carried.apply(model, "selective+host", compiled=True, strict=False) as handle:
            self.assertEqual(len(handle.refused), fixture.LAYERS - 1)
            self.assertTrue(fixture.Trained(model).equals(PLAIN["gpt2"]))

    def test_operators_are_numbered_by_an_example(self):
        with self.assertRaises(spillway.InputError) as raised:
            carried.apply(fixture.model_of("gpt2"), tensors_plan(), compiled=True)
        self.assertIn("example=" if NO_POLICIES is None else "PyTorch 2.4", str(raised.exception))


@unittest.skipIf(NO_COMPILER, NO_COMPILER)
class Compiled(unittest.TestCase):
    def compiled(self, model):
        torch._dynamo.reset()
        return torch.compile(model, backend="aot_eager_decomp_partition", fullgraph=True)

    def test_graphs_save_what_the_plan_keeps(self):
        plain = self.compiled(fixture.model_of("gpt2"))
        whole = saved_bytes(plain)
        held = {}
        for name, plan in (("full", "full"), ("tensors", tensors_plan()), ("every:2", "every:2")):
            model = fixture.model_of("gpt2")
            with carried.apply(model, plan, compiled=True, example=BATCH):
                held[name] = saved_bytes(self.compiled(model))
        self.assertLess(held["full"], held["tensors"])
        self.assertLess(held["tensors"], whole)
        self.assertLess(held["full"], held["every:2"])
        self.assertLess(held["every:2"], whole)

    def test_losses_are_those_of_the_compiled_step(self):
        def losses(plan):
            model = fixture.model_of("gpt2").eval()  # a compiler draws dropout's numbers in its own order
            handle = carried.apply(model, plan, compiled=True, example=BATCH) if plan else None
            found = fixture.Trained(self.compiled(model)).losses
            if handle:
                handle.remove()
            return found

        plain = losses(None)
        for plan in ("full", "selective", tensors_plan()):
            for one, other in zip(losses(plan), plain):
                self.assertAlmostEqual(one, other, places=5)

    def test_a_plan_of_hooks_refuses_a_compiler(self):
        model = fixture.model_of("gpt2")
        with tempfile.TemporaryDirectory() as folder, carried.apply(model, "host", folder=folder):
            with self.assertRaises(Exception) as raised:
                torch.compile(model, backend="aot_eager")(BATCH)
        self.assertIn("apply the plan with compiled=True", str(raised.exception))

    def test_a_scenarios_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scenario.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-80gb-1gpu"}, '
                           '"model": {"name": "gpt2-small", "layers": %d, "recompute": "full"}}' % fixture.LAYERS)
            model = fixture.model_of("gpt2")
            plain = saved_bytes(self.compiled(fixture.model_of("gpt2")))
            with carried.apply(model, path, compiled=True, program=PROGRAM):
                self.assertLess(saved_bytes(self.compiled(model)), plain)


@unittest.skipIf(NO_COMPILER, NO_COMPILER)
class UnderFsdp(unittest.TestCase):
    def setUp(self):
        import torch.distributed as dist
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # FSDP2 of 2.6 asks a CPU's stream for what only a GPU's has.
        for name in ("record_event", "wait_event", "wait_stream"):
            if not hasattr(torch.cpu.Stream, name):
                patch = mock.patch.object(torch.cpu.Stream, name, lambda *_: None, create=True)
                patch.start()
                self.addCleanup(patch.stop)
        dist.init_process_group("gloo", init_method=f"file://{folder.name}/store", rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)

    def test_layers_are_sharded_with_their_policies(self):
        try:
            from torch.distributed.fsdp import fully_shard
        except ImportError:
            from torch.distributed._composable.fsdp import fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (1,))
        for plan in ("full", tensors_plan()):
            for is_compiled in (False, True):
                with self.subTest(plan=plan if isinstance(plan, str) else "tensors", compiled=is_compiled):
                    model = fixture.model_of("gpt2").eval()
                    handle = carried.apply(model, plan, compiled=True, example=BATCH)
                    for path, block in carried.applying.find_layers(model):
                        if is_compiled:  # as torchtitan does it: FSDP's hooks lie outside of the graph
                            block = torch.compile(block, backend="aot_eager_decomp_partition", fullgraph=True)
                            parent, _, name = path.rpartition(".")
                            model.get_submodule(parent).register_module(name, block)
                        # On a CPU a second gathering fails in 2.6, also without any plan.
                        fully_shard(block, mesh=mesh, reshard_after_forward=False)
                    fully_shard(model, mesh=mesh)
                    losses = fixture.Trained(model).losses
                    plain = fixture.Trained(fixture.model_of("gpt2").eval()).losses
                    for one, other in zip(losses, plain):
                        self.assertAlmostEqual(one, other, places=5)
                    handle.remove()


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
