#!/usr/bin/env python3
"""The campaign's production kernels (validation/campaign/pytorch_kernels.py) as PyTorch runs them on the CPU: each runner
does what its case says, what this version lacks is told, and the lines are points that `spillway calibrate gpu` takes.

usage: kernels_test.py SPILLWAY
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import torch
except ImportError:
    print("no PyTorch here")
    sys.exit(77)

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "validation/campaign"))
import pytorch_kernels as kernels  # noqa: E402


class HostClock:
    def __init__(self):
        self.results = []

    def times(self, run):
        self.results.append(run())
        begin = time.perf_counter()
        run()
        return [0.99 * (time.perf_counter() - begin + 1e-7), time.perf_counter() - begin + 1e-7, 1.5 * (time.perf_counter() - begin + 1e-7)]


class H100:
    name, total_memory, multi_processor_count = "NVIDIA H100 80GB HBM3", 85_017_755_648, 132


SMALL = [{"what": "norm_forward", "source": "pytorch", "m": 32, "n": 64, "bytes": 2 * 32 * 64 * 2},
         {"what": "norm_backward", "source": "pytorch", "m": 32, "n": 64, "bytes": 3 * 32 * 64 * 2},
         {"what": "cross_entropy", "source": "pytorch", "m": 32, "n": 100, "bytes": 2 * 4 * 32 * 100},
         {"what": "attention_forward", "source": "flash-attention", "precision": "bf16", "batch": 1, "heads": 2,
          "sequence": 16, "head_dim": 8, "causal": True},
         {"what": "attention_backward", "source": "flash-attention", "precision": "bf16", "batch": 1, "heads": 2,
          "sequence": 16, "head_dim": 8, "causal": True},
         {"what": "optimizer", "source": "pytorch", "n": 4096, "bytes": 7 * 4096 * 2}]


class KernelsTest(unittest.TestCase):
    def lines(self, cases, clock):
        return [json.loads(text) for text in kernels.measured_lines(torch, cases, clock, device="cpu")]

    def test_runners_do_what_their_cases_say(self):
        clock = HostClock()
        lines = self.lines(SMALL[:3], clock)
        self.assertEqual([line["point"]["what"] for line in lines[:-1]], ["norm_forward", "norm_backward", "cross_entropy"])
        self.assertEqual(lines[-1], {"end": True})
        forward, backward, loss = clock.results
        self.assertEqual((tuple(forward.shape), forward.dtype), ((32, 64), torch.bfloat16))
        self.assertEqual([tuple(gradient.shape) for gradient in backward], [(32, 64), (64,), (64,)])
        self.assertEqual(tuple(loss.shape), ())

    def test_what_this_version_lacks_is_told_once(self):
        lines = self.lines(SMALL[3:] * 2, HostClock())
        told = [line["note"] for line in lines if "note" in line]
        self.assertEqual(len(told), len(set(told)), told)
        for line in lines[:-1]:
            self.assertTrue("note" in line or line["point"]["value"] > 0, line)

    def test_the_whole_list_is_in_range(self):
        cases = kernels.all_cases()
        self.assertEqual(cases, kernels.all_cases())
        families = {}
        for case in cases:
            families.setdefault((case["what"], case["source"]), []).append(case)
            if case["what"].startswith("norm"):
                self.assertEqual(case["bytes"], (2 if case["what"] == "norm_forward" else 3) * case["m"] * case["n"] * 2)
        # A fifth is held out, and a verdict takes eight of those.
        self.assertTrue(all(len(of) >= 37 for of in families.values()), {key: len(of) for key, of in families.items()})
        self.assertEqual({what for what, _ in families}, set(kernels.RUNNERS))
        # Cut short anywhere, all kinds are there.
        self.assertEqual({(case["what"], case["source"]) for case in cases[:80]}, set(families))

    def test_lines_are_points_that_the_program_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                print(kernels.device_line(H100), file=file)
                for text in kernels.measured_lines(torch, SMALL * 3, HostClock(), device="cpu"):
                    print(text, file=file)
            result = subprocess.run([PROGRAM, "calibrate", "gpu", "--from", path, "--format", "json"], capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            self.assertEqual(document["device"], H100.name)
            self.assertGreaterEqual(document["points"], 9)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
