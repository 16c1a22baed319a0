#!/usr/bin/env python3
"""spillway.fits: a module's own step on a GPU that isn't there.

usage: fits_test.py SPILLWAY
"""
import contextlib
import copy
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fixture

fixture.need_torch()
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import spillway  # noqa: E402
from spillway.torch import gpu_ways, plain_models  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
GIB = 1 << 30


def loss_of(logits, ids):
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())


def fits(model, batch, on="h100", **keywords):
    return spillway.fits(model, batch, on=on, program=PROGRAM, **keywords)


def listed(model, batch, **keywords):
    """The operators that were noted of the step."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "operators.json")
        fits(model, batch, keep=path, **keywords)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def names(document):
    return [row["name"] for row in document["operators"][document["first"]:] if "name" in row]


def live_bytes(document):
    """(most, last) of what the step has beyond what was there when it began."""
    live = most = begin = 0
    for place, row in enumerate(document["operators"]):
        if place == document["first"]:
            most = begin = live
        live += sum(document["tensors"][number][1] for number in row.get("allocates", ()))
        most = max(most, live)
        live -= sum(document["tensors"][number][1] for number in row.get("frees", ()))
    return most - begin, live - begin


def walk(events):
    for event in events:
        yield event
        yield from walk(event.children)


def measured_live_bytes(step):
    """The same of a step that runs on the CPU, as PyTorch's profiler sees its allocator."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    changes = [event for event in walk(profiler.profiler.kineto_results.experimental_event_tree())
               if type(event.extra_fields).__name__ == "_ExtraFields_Allocation"]
    live = most = 0
    for event in sorted(changes, key=lambda event: event.start_time_ns):
        live += event.extra_fields.alloc_size
        most = max(most, live)
    return most, live


class Layers(nn.Module):
    """Blocks of which each may be made again backwards."""

    def __init__(self, count=3, width=32, again=False, device=None):
        super().__init__()
        self.again = again
        self.layers = nn.ModuleList([nn.Sequential(
            nn.Linear(width, 4 * width, device=device), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(4 * width, width, device=device)) for _ in range(count)])
        self.register_buffer("seen", torch.zeros(width, device=device))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        self.seen.mul_(0.9).add_(x.detach().mean((0, 1)))
        self.last = x
        return x


class MemoryTest(unittest.TestCase):
    # Attention of the CPU in both, as that of a GPU can't run here.
    def compare(self, like, optimizer):
        model, ids = fixture.model_of(like), torch.randint(fixture.VOCABULARY, (2, 24))
        with mock.patch.object(gpu_ways, "_ATTENTION", ()):
            noted = live_bytes(listed(model, ids, loss=loss_of, optimizer=optimizer))
            update = torch.optim.AdamW(model.parameters(), foreach=True)

            def step():
                with gpu_ways.GpuWays():
                    batch = ids.clone()
                    loss = loss_of(model(batch), batch)
                    loss.backward()
                    del batch
                if optimizer is not None:
                    update.step()
                for parameter in model.parameters():
                    parameter.grad = None
                del loss

            step()
            measured = measured_live_bytes(step)
        self.assertEqual(noted[1], 0)
        self.assertEqual(measured[1], 0)
        self.assertLess(abs(noted[0] - measured[0]), 64, f"{like}: noted {noted[0]}, measured {measured[0]}")

    def test_a_steps_live_bytes_are_those_of_the_step_on_the_cpu(self):
        for like in ("gpt2", "llama", "bert"):
            for optimizer in ("adamw", None):
                with self.subTest(like=like, optimizer=optimizer):
                    self.compare(like, optimizer)

    # The module is the one that spillway's own generated step is of, written down once more in PyTorch.
    def test_it_agrees_with_the_bundled_model(self):
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            model = plain_models.Transformer(plain_models.MODELS["gpt2-124m"][0])
        finally:
            torch.set_default_dtype(usual)
        ids = torch.zeros(4, 512, dtype=torch.long)
        answer = fits(model, ids, loss=loss_of)
        has_fused_attention = hasattr(nn.functional, "scaled_dot_product_attention")
        scenario = {"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100"},
                    "model": {"name": "gpt2-small", "sequence": 512, "micro_batch": 4, "precision": "bf16",
                              "framework": "eager", "loss": "fp32", "optimizer_form": "foreach",
                              "flash_attention": has_fused_attention, "attention_kernel": "flash2"}}
        bundled = spillway.run(scenario, program=PROGRAM)
        print(f"gpt2-124m on an H100: {answer.peak_allocated_bytes / GIB:.3f} GiB allocated, "
              f"{bundled.peak_allocated_bytes / GIB:.3f} of the bundled model; reserved {answer.peak_bytes / GIB:.3f}, "
              f"{bundled.peak_reserved_bytes / GIB:.3f}; "
              f"{answer.step_seconds * 1e3:.2f} ms, {bundled.step_time_s * 1e3:.2f}")
        # Before PyTorch 2 attention is four products, a mask and a softmax, of which a generated step has one kernel.
        peak, time = 0.03, 0.05 if has_fused_attention else 0.2
        self.assertLess(abs(answer.peak_allocated_bytes / bundled.peak_allocated_bytes - 1), peak)
        self.assertLess(abs(answer.step_seconds / bundled.step_time_s - 1), time)

    def test_a_module_of_billions_on_the_device_meta_takes_no_memory(self):
        model = Layers(32, 8192, device="meta")
        parameters = sum(parameter.numel() for parameter in model.parameters())
        self.assertGreater(parameters, 17e9)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = fits(model, torch.zeros(1, 128, 8192, device="meta"), on="4090")
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 300 << 10)
        self.assertEqual((answer.fits, answer.code), (False, 1))
        self.assertGreater(answer.peak_allocated_bytes, 16 * parameters)
        self.assertRegex(str(answer), "does not fit: .* GiB short on the GPU's ")

    def test_what_is_frozen_has_neither_gradient_nor_state(self):
        model, x = Layers(), torch.randn(2, 8, 32)
        whole = listed(model, x)
        for parameter in model.layers[0].parameters():
            parameter.requires_grad_(False)
        part = listed(model, x)
        of_role = [sum(tensor[1] for tensor in document["tensors"] if tensor[2] == "optimizer_state")
                   for document in (whole, part)]
        self.assertAlmostEqual(of_role[1] / of_role[0], 2 / 3, places=2)
        self.assertEqual(part["tensors"][0][2], "weight")

    def test_what_is_made_again_is_not_held(self):
        x = torch.randn(8, 64, 32, requires_grad=True)
        kept, again = (listed(Layers(again=each), x, optimizer=None) for each in (False, True))
        self.assertLess(live_bytes(again)[0], 0.7 * live_bytes(kept)[0])
        self.assertIn("recompute", {row["phase"] for row in again["operators"]})
        self.assertNotIn("recompute", {row["phase"] for row in kept["operators"]})

    def test_autocast_keeps_what_it_keeps_on_a_gpu(self):
        model = nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.Linear(32, 32))
        document = listed(model, torch.randn(4, 32), precision="bf16_mixed")
        kinds = [row["type"] for row in document["operators"] if row.get("kind") == "gemm"]
        self.assertEqual(set(kinds), {"bf16"})
        norm = [row for row in document["operators"] if row.get("name") == "native_layer_norm"][-1]
        sizes = {document["tensors"][number][1] for number in norm["reads"]}
        self.assertIn(4 * 32 * 4, sizes)  # read in fp32: on the CPU it would stay in bf16


class StepTest(unittest.TestCase):
    def test_an_answer_has_its_figures_and_says_them(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "operators.json")
            answer = fits(Layers(), torch.randn(2, 8, 32), on="4090", keep=kept)
            out, _, code = spillway.call("run", kept, "--on", "4090", "--format", "json", program=PROGRAM)
        again = json.loads(out)
        self.assertEqual((again["fingerprint"], again["step_time_ns"], code), (answer.fingerprint, answer.step_time_ns, 0))
        self.assertEqual((answer.verdict, answer.title), ("fits", "Layers on 4090"))
        self.assertEqual(answer.peak_bytes, answer.peak_reserved_bytes)
        self.assertEqual(json.loads(answer.to_json())["step_time_ns"], round(answer.step_seconds * 1e9))
        for words in ("Layers on 4090: fits with", "GiB reserved at most", "ms a step", "binds", "its sum in fp32",
                      "one GPU: no gradients"):
            self.assertIn(words, str(answer))
        expandable = fits(Layers(), torch.randn(2, 8, 32), on="4090", memory__allocator="torch-expandable")
        self.assertEqual(expandable.memory.allocator, "torch-expandable")

    def test_nothing_of_the_module_is_changed(self):
        model = Layers()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        model(torch.randn(2, 8, 32)).sum().backward()
        optimizer.step()
        seen = []
        model.layers[0].register_forward_hook(lambda *_: seen.append(1))
        model.eval()
        random.seed(3)
        torch.manual_seed(3)
        numbers = random.getstate()
        before = copy.deepcopy([model.state_dict(), optimizer.state_dict(), scheduler.state_dict(), torch.get_rng_state(),
                                [parameter.grad for parameter in model.parameters()]])
        last, hooks = model.last, len(model.layers[1]._forward_hooks)
        fits(model, torch.zeros(2, 8, 32), optimizer=optimizer, accumulate=2, precision="bf16_mixed")
        after = [model.state_dict(), optimizer.state_dict(), scheduler.state_dict(), torch.get_rng_state(),
                 [parameter.grad for parameter in model.parameters()]]
        self.assertEqual(str(before), str(after))
        for mine, theirs in zip(before[4], after[4]):
            self.assertTrue(torch.equal(mine, theirs))
        self.assertTrue(torch.equal(before[3], after[3]))
        self.assertEqual(random.getstate(), numbers)
        self.assertIs(model.last, last)
        self.assertEqual(len(model.layers[1]._forward_hooks), hooks)
        self.assertFalse(model.training)
        self.assertTrue(all(type(tensor) in (torch.Tensor, nn.Parameter) for tensor in (
            *model.parameters(), *model.buffers())))

    def test_batches_of_every_form(self):
        class Three(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(8, 8)

            def forward(self, x, scale=None, labels=None):
                y = self.inner(x) * (1 if scale is None else scale)
                return {"logits": y, "loss": None if labels is None else (y - labels).square().mean()}

        x = torch.randn(4, 8)
        given = [names(listed(Three(), batch)) for batch in (
            x, (x, torch.randn(8)), {"x": x, "labels": torch.randn(4, 8)}, [x, 2.0])]
        self.assertEqual([each.count("Memcpy HtoD") for each in given], [1, 2, 2, 1])
        self.assertIn("mean", given[2])

    def test_micro_batches_add_up(self):
        one, two = (names(listed(Layers(), torch.randn(2, 8, 32), accumulate=count)) for count in (1, 2))
        self.assertEqual(two.count("addmm"), 2 * one.count("addmm"))
        self.assertEqual(two.count("Memcpy HtoD"), 2)

    def test_an_optimizer_of_ones_own(self):
        model, x = Layers(), torch.randn(2, 8, 32)
        plain = names(listed(model, x, optimizer=None))
        self.assertFalse([name for name in plain if name.startswith("_foreach")])
        momentum = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for optimizer in (momentum, lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), "sgd"):
            document = listed(model, x, optimizer=optimizer)
            states = [tensor for tensor in document["tensors"] if tensor[2] == "optimizer_state"]
            self.assertEqual(len(states), len(list(model.parameters())))

    def test_convolutions_are_products(self):
        model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 4))
        document = listed(model, torch.randn(2, 3, 8, 8))
        products = [row["product"] for row in document["operators"][document["first"]:] if row.get("name") == "convolution"]
        self.assertEqual([(each["m"], each["n"], each["k"]) for each in products], [(128, 16, 27)])

    @unittest.skipUnless(hasattr(nn.functional, "scaled_dot_product_attention"), "PyTorch before 2.0 has no fused attention")
    def test_attention_is_that_of_a_gpu(self):
        for like, is_causal in (("gpt2", True), ("bert", False)):  # in fp32 by the memory-efficient kernel
            document = listed(fixture.model_of(like), torch.zeros(2, 24, dtype=torch.long), loss=loss_of)
            self.assertEqual({row["attention"]["causal"] for row in document["operators"] if "attention" in row}, {is_causal})
        document = listed(fixture.model_of("gpt2").bfloat16(), torch.zeros(2, 24, dtype=torch.long), loss=loss_of)
        shapes = [row for row in document["operators"][document["first"]:] if "attention" in row]
        self.assertEqual([row["kind"] for row in shapes],
                         fixture.LAYERS * ["attention_forward"] + fixture.LAYERS * ["attention_backward"])
        for row in shapes:
            self.assertEqual((row["attention"]["causal"], row["attention"]["sequence"], row["attention"]["dropout"]),
                             (True, 24, True))


class RefusalTest(unittest.TestCase):
    def refused(self, words, model, batch, **keywords):
        with self.assertRaisesRegex(spillway.InputError, words):
            fits(model, batch, **keywords)

    def test_what_depends_on_values_is_named(self):
        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(8, 8)

            def forward(self, x):
                return self.inner(x) if x.sum() > 0 else x

        self.refused("^module Branches, in its forward, reads a number.*; give a module", Branches(), torch.randn(4, 8))
        self.refused("^module layers.0.mlp, in its forward, calls aten.nonzero.*register_fake", fixture.model_of("mixtral"),
                     torch.zeros(2, 24, dtype=torch.long))

    def test_what_fails_says_where(self):
        self.refused("^module 0, in its forward, fails.*; it must run", nn.Sequential(nn.Linear(8, 8)), torch.randn(4, 9))
        self.refused("the loss isn't one number.*give loss=", nn.Linear(8, 8), torch.randn(4, 8), loss=lambda output: output)

    def test_requests_that_have_no_answer(self):
        model, x = nn.Linear(8, 8), torch.randn(4, 8)
        self.refused("Linear on 8xh100: its operators are those of one GPU, .* has 8; remedy: name a machine of one", model,
                     x, on="8xh100")
        self.refused("takes a torch.nn.Module", "gpt2", x)
        self.refused("precision='fp8'", model, x, precision="fp8")
        self.refused("accumulate=0", model, x, accumulate=0)
        self.refused("optimizer='lion'", model, x, optimizer="lion")
        self.refused("doesn't have; make it of", model, x, optimizer=torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1))
        self.refused("requires a gradient", nn.Linear(8, 8).requires_grad_(False), x)
        self.refused("keep= another file", model, x, keep="/proc/none/such")
        self.refused("picked is a Tensor of layout torch.sparse", _with_sparse_buffer(), x)
        model.lock = open(os.devnull, encoding="utf-8")  # noqa: SIM115
        self.addCleanup(model.lock.close)
        self.refused("can't be copied", model, x)


def _with_sparse_buffer():
    model = nn.Linear(8, 8)
    model.register_buffer("picked", torch.eye(8).to_sparse())
    return model


class DocumentationTest(unittest.TestCase):
    # The examples of the pages, run as they stand there.
    def test_the_examples_of_the_pages(self):
        for path, heading in (("docs/internals/pytorch.md", "A module of your own"),
                              ("docs/how-to/use-from-python.md", "Ask about your own module")):
            with open(os.path.join(fixture.ROOT, path), encoding="utf-8") as page:
                section = page.read().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
            code = re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)
            said = io.StringIO()
            with mock.patch.dict(os.environ, {"SPILLWAY": PROGRAM}), contextlib.redirect_stdout(said):
                exec(compile(code, path, "exec"), {})
            self.assertRegex(said.getvalue(), r"^Sequential on 4090: (fits|does not fit|tight)", path)

    def test_the_package_alone_needs_no_torch(self):
        code = "import sys, spillway; sys.exit('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], check=False,
                              env={**os.environ, "PYTHONPATH": os.path.join(fixture.ROOT, "python")})
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
