#!/usr/bin/env python3
"""spillway.torch.apply: losses, gradients and weights to the bit under every technique and plan; what leaves and what
comes back; what is refused.

usage: apply_test.py SPILLWAY
"""
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import fixture

fixture.need_torch()
import torch  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402

import spillway  # noqa: E402
import spillway.torch as carried  # noqa: E402
from spillway.torch import again, allocator, roles, tiers  # noqa: E402
from spillway.torch.layers import find_layers  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
TECHNIQUES = ("keep", "full", "selective", "every:2", "ssdtrain", "host", "checkpoints", "checkpoints-host",
              "selective+ssdtrain", "every:3+host")


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def apply(self, model, plan, **keywords):
        return carried.apply(model, plan, **{"folder": self.tiers(), "least_bytes": 0, "program": PROGRAM, **keywords})

    def tiers(self):
        path = os.path.join(self.folder, "tiers")
        os.makedirs(path, exist_ok=True)
        return path

    def assert_soon(self, value, like):
        """Of what goes with a graph. Another thread may have a store in hand, or be collecting: gc.collect() then does
        nothing."""
        for _ in range(500):
            if value() == like:
                return
            time.sleep(0.01)
            gc.collect()
        self.assertEqual(value(), like)

    def assert_nothing_left(self):
        self.assert_soon(lambda: os.listdir(self.tiers()), [])

    def assert_same(self, like, plan, **keywords):
        """Trains under the plan and compares; returns what the handle counted."""
        model = fixture.model_of(like)
        with self.apply(model, plan, **keywords) as handle:
            under = fixture.Trained(model, inside=handle.settle)
            found = handle.statistics
        self.assertTrue(under.equals(PLAIN[like]), f"{like} under {plan}")
        self.assertEqual(found["away_bytes"], 0)
        self.assert_nothing_left()
        return found


PLAIN = {like: fixture.Trained(fixture.model_of(like)) for like in fixture.LIKE}


class NamedTest(InFolder):
    def test_every_technique_on_every_model_is_the_plain_step_to_the_bit(self):
        for like in fixture.LIKE:
            for technique in TECHNIQUES:
                with self.subTest(like=like, technique=technique):
                    found = self.assert_same(like, technique)
                    moves = any(word in technique for word in ("ssdtrain", "host", "checkpoints"))
                    repeats = any(word in technique for word in ("full", "selective", "every", "checkpoints"))
                    self.assertEqual(found["stored_bytes"] > 0, moves)
                    self.assertEqual(found["loaded_bytes"], found["stored_bytes"])
                    self.assertEqual(found["recomputed_tensors"] > 0, repeats)

    def test_without_the_random_numbers_of_the_first_run_it_is_another_step(self):
        model, set_state = fixture.model_of("gpt2"), torch.set_rng_state
        with self.apply(model, "full"):
            again.torch.set_rng_state = lambda state: torch.manual_seed(99)
            try:
                other = fixture.Trained(model)
            finally:
                again.torch.set_rng_state = set_state
        self.assertFalse(other.equals(PLAIN["gpt2"]))

    def test_gradients_accumulate_over_micro_batches_that_are_all_in_flight(self):
        gradients = {}
        for technique in ("keep", "ssdtrain", "full", "checkpoints"):
            model = fixture.model_of("llama")
            torch.manual_seed(3)
            with self.apply(model, technique):
                losses = [model(torch.randint(fixture.VOCABULARY, (2, 8))).float().square().mean() for _ in range(3)]
                for loss in losses:  # first in, first out, as pipelines have it
                    loss.backward()
            gradients[technique] = [parameter.grad for parameter in model.parameters()]
        for technique, found in gradients.items():
            self.assertTrue(all(map(torch.equal, found, gradients["keep"])), technique)

    def test_autocast_is_that_of_the_first_run(self):
        gradients = {}
        for technique in ("keep", "full", "host"):
            model = fixture.model_of("llama")
            torch.manual_seed(3)
            with self.apply(model, technique):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = model(torch.randint(fixture.VOCABULARY, (2, 8))).float().square().mean()
                loss.backward()
            gradients[technique] = [parameter.grad for parameter in model.parameters()]
        for technique, found in gradients.items():
            self.assertTrue(all(map(torch.equal, found, gradients["keep"])), technique)

    def test_a_graph_may_be_run_twice(self):
        for technique in ("full", "ssdtrain", "checkpoints"):
            model, ids = fixture.model_of("gpt2").eval(), torch.arange(16).view(2, 8)
            with self.apply(model, technique):
                loss = model(ids).square().mean()
                loss.backward(retain_graph=True)
                once = [parameter.grad.clone() for parameter in model.parameters()]
                loss.backward()
            self.assertTrue(all(torch.equal(parameter.grad, 2 * gradient)
                                for parameter, gradient in zip(model.parameters(), once)), technique)


class MemoryTest(InFolder):
    def live_after_forward(self, technique):
        """Of the layers' feed-forwards' inner results: is the storage still there before the backward?"""
        model, watched = fixture.model_of("gpt2"), []
        for layer in model.layers:
            layer.mlp.act.register_forward_hook(lambda _, __, out: watched.append(StorageWeakRef(out.storage())))
        with self.apply(model, technique) as handle:
            loss = model(torch.arange(16).view(2, 8)).square().mean()
            handle.settle()
            gc.collect()
            there = [not each.expired() for each in watched]
            loss.backward()
        return there

    def test_what_leaves_is_gone_until_the_backward(self):
        self.assertEqual(self.live_after_forward("keep"), [True] * 4)
        self.assertEqual(self.live_after_forward("full"), [False] * 4)
        self.assertEqual(self.live_after_forward("selective"), [True] * 4)
        self.assertEqual(self.live_after_forward("every:2"), [False, True, False, True])
        self.assertEqual(self.live_after_forward("ssdtrain"), [False, False, False, True])
        self.assertEqual(self.live_after_forward("host"), [False, False, False, True])

    def test_what_is_saved_often_is_stored_once_and_parameters_never(self):
        class Often(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

            def forward(self, x):
                x = x * 2.0
                return self.one(x).tanh() + self.two(x).tanh() + x * x

        model = torch.nn.Sequential(*(Often() for _ in range(2)))
        with self.apply(model, "host", layers="") as handle:
            loss = model(torch.ones(4, 8)).sum()
            handle.settle()
            # Of the first of two layers: x, of both products and the square, and the two results of tanh.
            self.assertEqual(handle.statistics["stored_bytes"], 3 * 4 * 8 * 4)
            self.assertEqual(handle.statistics["stores"], 3)
            loss.backward()

    def test_small_storages_stay(self):
        found = self.assert_same("gpt2", "host", least_bytes=1 << 30)
        self.assertEqual(found["stored_bytes"], 0)
        self.assertGreater(found["kept_small_bytes"], 0)

    def test_files_are_in_the_folder_and_the_limit_makes_the_forward_wait(self):
        model = fixture.model_of("gpt2")
        with self.apply(model, "ssdtrain", in_flight_bytes=1, store_workers=1) as handle:
            loss = model(torch.arange(16).view(2, 8)).square().mean()
            handle.settle()
            self.assertEqual(os.path.dirname(handle.folder), self.tiers())
            size = sum(os.path.getsize(os.path.join(handle.folder, name)) for name in os.listdir(handle.folder))
            self.assertEqual(size, handle.statistics["stored_bytes"])
            self.assertEqual(size, handle.statistics["away_bytes"])
            self.assertGreater(handle.statistics["store_wait_seconds"], 0)
            loss.backward()
            self.assertEqual(handle.statistics["away_bytes"], 0)

    def test_a_graph_outlives_the_handle(self):
        model, plain = fixture.model_of("gpt2").eval(), fixture.model_of("gpt2").eval()
        ids = torch.arange(16).view(2, 8)
        with self.apply(model, "ssdtrain") as handle:
            loss = model(ids).square().mean()
            handle.settle()
        self.assertNotIn("forward", model.layers[0].__dict__)
        self.assertEqual(len(os.listdir(self.tiers())), 1)  # still needed
        loss.backward()
        plain(ids).square().mean().backward()
        self.assertTrue(all(torch.equal(one.grad, two.grad) for one, two in zip(model.parameters(), plain.parameters())))
        del loss
        gc.collect()
        self.assert_nothing_left()

    def test_a_graph_that_is_dropped_leaves_nothing(self):
        model = fixture.model_of("gpt2")
        with self.apply(model, "ssdtrain") as handle:
            model(torch.arange(16).view(2, 8))
            handle.settle()
            self.assert_soon(lambda: handle.statistics["away_bytes"], 0)
            self.assert_soon(lambda: os.listdir(handle.folder), [])

    def test_an_exception_in_the_forward_leaves_the_model_as_it_was(self):
        model = fixture.model_of("gpt2")
        model.layers[2].mlp.register_forward_hook(lambda *_: (_ for _ in ()).throw(KeyError("mine")))
        with self.assertRaises(KeyError):
            with self.apply(model, "ssdtrain"):
                model(torch.arange(16).view(2, 8))
        gc.collect()
        self.assert_nothing_left()
        self.assertNotIn("forward", model.layers[0].__dict__)


class FailureTest(InFolder):
    def test_a_folder_that_does_not_exist_is_one_sentence(self):
        with self.assertRaisesRegex(spillway.InputError, "nowhere: there is no such folder"):
            self.apply(fixture.model_of("gpt2"), "ssdtrain", folder=os.path.join(self.folder, "nowhere"))
        with self.assertRaisesRegex(spillway.InputError, "folder="):
            self.apply(fixture.model_of("gpt2"), "ssdtrain", folder=None)

    def test_a_full_disk_is_one_sentence_and_leaves_nothing(self):
        script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path[:1] + [os.path.dirname(os.path.abspath(__file__)), os.path.join(fixture.ROOT, "python")]!r}
import fixture, torch, spillway, spillway.torch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
model = fixture.model_of("gpt2")
try:
    with spillway.torch.apply(model, "ssdtrain", folder={self.tiers()!r}, least_bytes=0) as handle:
        loss = model(torch.arange(16).view(2, 8)).square().mean()
        handle.settle()
        loss.backward()
except (spillway.SpillwayError, RuntimeError) as error:
    print(str(error))
    sys.exit(3)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, "the disk tier failed: .*make room there or name another folder")
        self.assert_nothing_left()

    def test_the_folder_stays_until_the_last_store_in_hand_has_landed(self):
        removed, stood, remove = threading.Event(), [], tiers._remove
        with mock.patch.object(tiers, "_remove", lambda folder: (removed.set(), remove(folder))):
            place = tiers.Place(self.tiers(), 2, 1, 0, 0, tiers.Statistics())

        def write(path, flat):
            if flat.numel() == 8:
                raise OSError(28, "No space left on device")
            with place.landed:
                place.landed.wait_for(lambda: place.error is not None, timeout=60)
            stood.append(not removed.wait(0.2))

        large, small, of_pass = torch.ones(64), torch.ones(2), tiers.Pass(None)
        with mock.patch.object(tiers, "_write", write):
            saved = [place.put(each, tiers.DISK, of_pass) for each in (large, small)]
            place.settle()
        place.close()
        self.assertEqual(stood, [True])
        self.assertEqual(os.listdir(self.tiers()), [])
        with self.assertRaisesRegex(spillway.SpillwayError, "make room there"):
            place.get(saved[0])

    def test_a_forward_that_saves_other_tensors_the_second_time_is_told(self):
        class Counts(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.runs = torch.nn.Linear(8, 8), 0

            def forward(self, x):
                self.runs += 1
                return self.linear(x).tanh() if self.runs % 2 else self.linear(x)

        model = torch.nn.Sequential(Counts(), Counts())
        with self.apply(model, "full", layers=""):
            out = model(torch.ones(4, 8, requires_grad=True)).sum()
            with self.assertRaisesRegex((spillway.SpillwayError, RuntimeError), "saves other tensors than the first"):
                out.backward()

    def test_what_no_plan_is(self):
        model = fixture.model_of("gpt2")
        for plan, words in (("fulll", "techniques are keep, full"), ("every:0", "techniques are"),
                            ("ssdtrain+full", "comes first"), ("missing.json", "no such file")):
            with self.assertRaisesRegex(spillway.InputError, words):
                self.apply(model, plan)
        with self.assertRaisesRegex(spillway.InputError, "no list of equal blocks"):
            self.apply(torch.nn.Linear(2, 2), "full")
        with self.assertRaisesRegex(spillway.InputError, "no module"):
            self.apply(model, "full", layers="nothing.there")

    def test_one_plan_at_a_time(self):
        model = fixture.model_of("gpt2")
        with self.apply(model, "every:2"):
            with self.assertRaisesRegex(spillway.InputError, "layers.0 is under a plan already"):
                self.apply(model, "full")
        with self.apply(model, "full") as handle:
            handle.remove()
            handle.remove()
        self.assertEqual([name for name, module in model.named_modules() if "forward" in module.__dict__], [])
        self.assert_nothing_left()

    def test_layers_are_found_and_may_be_named(self):
        model = fixture.model_of("mixtral")  # as many experts as layers
        self.assertEqual([path for path, _ in find_layers(model)], [f"layers.{index}" for index in range(4)])
        two = torch.nn.Module()
        two.a, two.b = fixture.model_of("gpt2"), fixture.model_of("gpt2")
        with self.assertRaisesRegex(spillway.InputError, "a.layers and b.layers have 4 blocks each"):
            find_layers(two)
        self.assertEqual(find_layers(two, "b.layers")[3][0], "b.layers.3")
        self.assertEqual(find_layers(two, {1: "b.layers.0", 0: "a.layers.0"})[1][0], "b.layers.0")


def modules(paths):
    """A block with modules of these paths."""
    block = torch.nn.Module()
    for path in paths:
        at = block
        for part in path.split("."):
            if not hasattr(at, part):
                at.add_module(part, torch.nn.Module())
            at = getattr(at, part)
    return block


class RolesTest(unittest.TestCase):
    # Of Hugging Face's and torchtitan's blocks: the plan's name of a module -> its paths here.
    BLOCKS = {
        "GPT-2": (["ln_1", "attn.c_attn", "attn.c_proj", "attn.attn_dropout", "attn.resid_dropout", "ln_2", "mlp.c_fc",
                   "mlp.c_proj", "mlp.act", "mlp.dropout"],
                  {"attention.norm": ["ln_1"], "attention.qkv": ["attn.c_attn"],
                   "attention.core.q": ["attn", "attn.attn_dropout"], "attention.out": ["attn.c_proj"],
                   "attention.out.dropout.mask": ["attn.resid_dropout"], "attention.out.residual": [""],
                   "mlp.norm.statistics": ["ln_2"], "mlp.up": ["mlp.c_fc"], "mlp.gelu": ["mlp.act"],
                   "mlp.down": ["mlp.c_proj"], "mlp.down.dropout": ["mlp.dropout"]}),
        "Llama": (["input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                   "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.act_fn"],
                  {"attention.q": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
                   "attention.q_rotary": ["self_attn"], "attention.core.context": ["self_attn"],
                   "mlp.gate": ["mlp.gate_proj", "mlp.up_proj"], "mlp.silu": ["mlp.act_fn"],
                   "mlp.product.left": ["mlp"], "mlp.down": ["mlp.down_proj"], "mlp.norm": ["post_attention_layernorm"]}),
        "BERT": (["attention.self.query", "attention.self.key", "attention.self.value", "attention.self.dropout",
                  "attention.output.dense", "attention.output.LayerNorm", "attention.output.dropout",
                  "intermediate.dense", "intermediate.intermediate_act_fn", "output.dense", "output.LayerNorm",
                  "output.dropout"],
                 {"attention.v": ["attention.self.query", "attention.self.key", "attention.self.value"],
                  "attention.core.q": ["attention.self", "attention.self.dropout"],
                  "attention.out.dropout": ["attention.output.dropout"],
                  "attention.norm": ["attention.output.LayerNorm"], "mlp.up": ["intermediate.dense"],
                  "mlp.gelu": ["intermediate.intermediate_act_fn"], "mlp.down": ["output.dense"],
                  "mlp.down.dropout": ["output.dropout"], "mlp.norm": ["output.LayerNorm"]}),
        "Mixtral": (["input_layernorm", "self_attn.q_proj", "block_sparse_moe.gate", "block_sparse_moe.experts.0.w1",
                     "block_sparse_moe.experts.0.w2", "block_sparse_moe.experts.0.w3",
                     "block_sparse_moe.experts.0.act_fn"],
                    {"mlp.router.logits": ["block_sparse_moe.gate"],
                     "mlp.experts.gate": ["block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w3"],
                     "mlp.experts.gated": ["block_sparse_moe.experts.0.act_fn"],
                     "mlp.experts.product.right": ["block_sparse_moe.experts.0"],
                     "mlp.experts.down": ["block_sparse_moe.experts.0.w2"], "mlp.experts.rows": ["block_sparse_moe"],
                     "mlp.norm": [""]}),
        "torchtitan": (["attention_norm", "attention.wq", "attention.wk", "attention.wv", "attention.wo", "ffn_norm",
                        "feed_forward.w1", "feed_forward.w2", "feed_forward.w3"],
                       {"attention.q": ["attention.wq", "attention.wk", "attention.wv"],
                        "attention.core": ["attention"], "mlp.up": ["feed_forward.w1", "feed_forward.w3"],
                        "mlp.silu": ["feed_forward"], "mlp.down": ["feed_forward.w2"]}),
    }

    def test_modules_are_known_by_their_names(self):
        for name, (paths, wanted) in self.BLOCKS.items():
            found = roles.BlockRoles("layer", modules(paths), {})
            for module, where in wanted.items():
                self.assertEqual(found.paths(module), where, f"{name}: {module}")


class StandInGpu:
    """The calls that the tiers make where tensors are on a GPU, with the CPU's tensors: says in which order."""

    def __init__(self):
        self.calls, plain = [], torch.empty

        class Stream:
            def __init__(stream, name="side"):
                stream.name = name

            def wait_stream(stream, other):
                self.calls.append(f"{stream.name} waits for {other.name}")

            def wait_event(stream, event):
                self.calls.append(f"{stream.name} waits for what {event.of} had")

        class Event:
            of = None

            def record(event, stream):
                event.of = stream.name

            def synchronize(event):
                self.calls.append(f"host waits for {event.of}")

        names = iter(["stores", "loads"])
        compute = Stream("compute")
        self.patches = [
            mock.patch.object(torch.cuda, "Stream", lambda device: Stream(next(names))),
            mock.patch.object(torch.cuda, "Event", Event),
            mock.patch.object(torch.cuda, "stream", lambda stream: contextlib.nullcontext()),
            mock.patch.object(torch.cuda, "current_stream", lambda device: compute),
            mock.patch.object(torch.Tensor, "record_stream", lambda tensor, stream: None),
            mock.patch.object(torch, "empty", lambda *sizes, pin_memory=False, device=None, **others: plain(
                *sizes, **others)),
            mock.patch.object(tiers.Entry, "device", property(lambda entry: torch.device("cuda", 0),
                                                              lambda entry, value: None), create=True)]

    def __enter__(self):
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *what):
        for patch in self.patches:
            patch.stop()


class GpuCallsTest(InFolder):
    def test_copies_wait_for_what_they_need_and_bits_stay(self):
        for technique in ("ssdtrain", "host", "checkpoints", "selective+host"):
            with self.subTest(technique=technique), StandInGpu() as gpu:
                found = self.assert_same("gpt2", technique)
                self.assertEqual(gpu.calls.count("stores waits for compute"), found["stores"])
                self.assertEqual(gpu.calls.count("host waits for stores"), found["stores"])
                self.assertEqual(gpu.calls.count("loads waits for what compute had"), found["loads"])
                self.assertGreaterEqual(gpu.calls.count("compute waits for what loads had"), found["loads"])
                self.assertGreater(found["loads"], 0)


class AllocatorTest(unittest.TestCase):
    def setUp(self):
        before = os.environ.pop(allocator.VARIABLE, None)
        self.addCleanup(lambda: os.environ.pop(allocator.VARIABLE, None) if before is None else
                        os.environ.__setitem__(allocator.VARIABLE, before))

    def test_settings_are_set_before_the_allocator_begins_and_refused_after(self):
        self.assertEqual(allocator.set_allocator("expandable_segments:True"), [])
        self.assertEqual(os.environ[allocator.VARIABLE], "expandable_segments:True")
        taken = []
        with mock.patch.object(torch.cuda, "is_available", lambda: True), \
                mock.patch.object(torch.cuda, "is_initialized", lambda: True), \
                mock.patch.object(torch.cuda.memory, "_set_allocator_settings", taken.append, create=True):
            self.assertEqual(allocator.set_allocator("expandable_segments:True"), [])
            with mock.patch.object(torch.cuda, "memory_reserved", lambda: 1):
                refused = allocator.set_allocator("max_split_size_mb:128")
            self.assertEqual(taken, [])
            with mock.patch.object(torch.cuda, "memory_reserved", lambda: 0):
                self.assertEqual(allocator.set_allocator("max_split_size_mb:256"), [])
            self.assertEqual(taken, ["max_split_size_mb:256"])
        self.assertRegex(refused[0], "max_split_size_mb:128: the CUDA allocator has begun with expandable_segments:True")


class PlanTest(InFolder):
    def plan(self, *arguments):
        path = os.path.join(self.folder, "plan.json")
        spillway.call("plan", *arguments, "--output", path, program=PROGRAM)
        return path

    def scenario(self, like, **sections):
        return fixture.scenario_file(self.folder, like, **sections)

    def test_what_the_program_plans_is_the_plain_step_to_the_bit(self):
        stored = {"technique": "ssdtrain", "tier": "host", "least_elements": 0}
        drives = {"technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 4, "least_elements": 0,
                  "adaptive": False}
        checkpoints = {"technique": "checkpoints", "tier": "host", "least_elements": 0}
        for like in ("gpt2", "llama", "mixtral"):
            for sections, moves, repeats in (({"offload": stored}, True, False), ({"offload": drives}, True, False),
                                             ({"offload": checkpoints}, True, True),
                                             ({"model": {"recompute": "full"}}, False, True),
                                             ({"model": {"recompute": "selective"}}, False, True)):
                with self.subTest(like=like, sections=sections):
                    found = self.assert_same(like, self.scenario(like, **sections))
                    self.assertEqual(found["stored_bytes"] > 0, moves)
                    self.assertEqual(found["recomputed_tensors"] > 0, repeats)

    def test_a_plan_beside_its_scenario(self):
        scenario = self.scenario("gpt2")
        plan = self.plan("recompute", scenario, "--method", "every:2")
        found = self.assert_same("gpt2", plan, scenario=scenario)
        self.assertEqual(found["recomputations"], 2 * 2)  # of four layers, in two steps
        with self.assertRaisesRegex(spillway.InputError, "scenario=FILE"):
            self.apply(fixture.model_of("gpt2"), plan)
        with self.assertRaisesRegex(spillway.InputError, "made for another trace"):
            self.apply(fixture.model_of("llama"), plan, scenario=self.scenario("llama"))

    def edited(self, like, fates):
        """The exported plan that keeps all, with fates by the tensors' names."""
        document = spillway.export(self.scenario(like), program=PROGRAM)
        for layer in document["layers"]:
            names = [saved["tensor"] for saved in layer["saved"]]
            for tensor, fate in fates.items():
                layer["saved"][names.index(tensor)]["fate"] = fate
        return document

    def test_fates_of_single_tensors(self):
        model = fixture.model_of("gpt2")
        plan = self.edited("gpt2", {"mlp.gelu.out": "recompute", "attention.norm.out": "host", "mlp.up.out": "disk"})
        handle = self.apply(model, plan)
        fates = handle.fates[1]
        self.assertEqual({path: rule.usual for path, rule in fates.by_path.items() if rule.usual != "keep"},
                         {"mlp.c_proj": "recompute", "self_attn.c_attn": "host", "mlp.act": "disk"})
        self.assertEqual((fates.units, fates.remade), ((), ("mlp.act",)))
        handle.remove()
        found = self.assert_same("gpt2", plan)
        size = fixture.BATCH * fixture.SEQUENCE * 4
        self.assertEqual(found["stored_bytes"],
                         2 * fixture.LAYERS * size * (fixture.WIDTH + fixture.INNER))
        self.assertEqual(found["recomputed_tensors"], 2 * fixture.LAYERS)

    def test_only_what_dropped_tensors_need_runs_again(self):
        names = ("attention.norm.out", "mlp.norm.out", "mlp.up.out", "mlp.gelu.out")
        plan = self.edited("gpt2", dict.fromkeys(names, "recompute"))
        found = self.assert_same("gpt2", plan)
        # Of each layer in each step: two norms, a product and an activation, once each.
        self.assertEqual(found["recomputations"], 4 * fixture.LAYERS * 2)
        self.assertEqual(found["not_dropped_bytes"], 0)
        # Three products save what one norm made: it runs once for them all.
        found = self.assert_same("llama", self.edited("llama", {"attention.norm.out": "recompute"}))
        self.assertEqual(found["recomputations"], fixture.LAYERS * 2)
        model, watched, ran = fixture.model_of("gpt2"), [], []
        for layer in model.layers:
            for module in (layer.input_layernorm, layer.mlp.c_fc, layer.mlp.act):
                module.register_forward_hook(lambda _, __, out: watched.append(StorageWeakRef(out.storage())))
            forward = layer.self_attn.forward
            layer.self_attn.forward = lambda *x, forward=forward: ran.append(1) or forward(*x)
        with self.apply(model, plan):
            loss = model(torch.arange(16).view(2, 8)).square().mean()
            gc.collect()
            self.assertTrue(all(each.expired() for each in watched))
            loss.backward()
        self.assertEqual((len(watched), len(ran)), (3 * fixture.LAYERS, fixture.LAYERS))

    def test_two_tensors_of_one_module_and_size_are_told_by_who_made_them(self):
        for like, names in (("llama", ("mlp.silu.out", "mlp.up.out")),
                            ("mixtral", ("mlp.experts.gated.out", "mlp.experts.up.out"))):
            plan = self.edited(like, {names[0]: "recompute"})
            found = self.assert_same(like, plan)
            self.assertGreater(found["recomputed_tensors"], 0)
            one, other = self.edited(like, {names[0]: "host"}), self.edited(like, {names[1]: "host"})
            both = self.edited(like, dict.fromkeys(names, "host"))
            alone = [self.assert_same(like, each) for each in (one, other)]
            together = self.assert_same(like, both)
            total = [found["stored_bytes"] for found in (*alone, together)]
            self.assertEqual(total[0] + total[1], total[2])
            self.assertGreater(min(total[:2]), 0)

    def test_what_cannot_be_carried_out_is_refused_by_name(self):
        for sections, words in (({"order": {"technique": "order"}}, "the order order"),
                                ({"memory": {"allocator": "layout"}}, "the places of layout"),
                                ({"memory": {"allocator": "gmlake"}}, "the allocator gmlake"),
                                ({"model": {"name": "gpt2-small", "layers": 4}, "offload": {"technique": "stream"}},
                                 "aren't activations")):
            scenario = self.scenario("gpt2", **sections)
            model = fixture.model_of("gpt2")
            with self.assertRaisesRegex(spillway.Refused, words):
                self.apply(model, scenario)
            self.assertNotIn("forward", model.layers[0].__dict__)
            with self.apply(model, scenario, strict=False) as handle:
                self.assertRegex(" ".join(handle.refused), words)
        with self.assertRaisesRegex(spillway.Refused, "the layer before makes it"):
            self.apply(fixture.model_of("gpt2"), self.plan("recompute", self.scenario("gpt2"), "--method", "segments:2"),
                       scenario=self.scenario("gpt2"))

    def test_a_plan_of_another_shape_is_told(self):
        scenario = self.scenario("gpt2", model={"layers": 3})
        with self.assertRaisesRegex(spillway.InputError, "the plan is for 3 layers of .*, the model has 4"):
            self.apply(fixture.model_of("gpt2"), scenario)
        with self.assertRaisesRegex(spillway.InputError, "isn't JSON"):
            path = os.path.join(self.folder, "bad.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("{")
            self.apply(fixture.model_of("gpt2"), path)

    def test_modules_that_no_name_tells_can_be_named(self):
        class Renamed(torch.nn.Module):
            def __init__(self, block):
                super().__init__()
                self.first, self.mixes = block.input_layernorm, block.self_attn
                self.second, self.thinks = block.post_attention_layernorm, block.mlp

            def forward(self, x):
                x = x + self.mixes(self.first(x))
                return x + self.thinks(self.second(x))

        model = fixture.model_of("gpt2")
        model.layers = torch.nn.ModuleList(Renamed(layer) for layer in model.layers)
        plan = self.edited("gpt2", {"attention.qkv.out": "host", "attention.core.context": "host"})
        with self.apply(model, plan, modules={"attention": "mixes"}) as handle:
            self.assertEqual(handle.fates[0].by_path["mixes"].usual, "host")
            under = fixture.Trained(model)
            self.assertGreater(handle.statistics["stores"] + handle.statistics["forwarded_bytes"], 0)
        self.assertTrue(under.equals(PLAIN["gpt2"]))
        with self.assertRaisesRegex(spillway.InputError, "no module mixer"):
            self.apply(model, plan, modules={"attention": "mixer"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
