#!/usr/bin/env python3
"""spillway check: steps beside their prediction, and the profile that comes of it.

usage: check_test.py SPILLWAY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import fixture

fixture.need_torch()
import spillway  # noqa: E402
from spillway.torch.checking import WORST_NOISE, allowed_correction, corrected_gpu  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
SMALL = ("tiny", "--precision", "fp32", "--batch", "2", "--sequence", "64")


def check(*words, folder=None):
    return subprocess.run([PROGRAM, "check", *words, "--python", sys.executable], capture_output=True, text=True, cwd=folder,
                          check=False)


class Correction(unittest.TestCase):
    def test_is_no_larger_than_the_noise_leaves_certain(self):
        factor, noise = allowed_correction(1.0, [1.19, 1.2, 1.22])
        self.assertAlmostEqual(noise, 0.03 / 1.2)
        self.assertAlmostEqual(factor, 1.2 - noise)
        factor, noise = allowed_correction(1.0, [0.89, 0.9, 0.91])
        self.assertAlmostEqual(factor, 0.9 + noise)

    def test_is_none_within_the_noise_or_of_a_noisy_machine(self):
        self.assertEqual(allowed_correction(1.0, [1.0, 1.02, 1.04])[0], 1.0)
        factor, noise = allowed_correction(1.0, [2.0, 2.5, 3.0])
        self.assertGreater(noise, WORST_NOISE)
        self.assertEqual(factor, 1.0)


class OnTheProcessor(unittest.TestCase):
    def test_predicts_runs_and_writes_a_profile_that_commands_take(self):
        with tempfile.TemporaryDirectory() as folder:
            done = check(*SMALL, "--output", "mine.json", "--format", "json", folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("predicted: ", done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(len(found["measured"]["steps_s"]), 3)
            measured = sorted(found["measured"]["steps_s"])[1]
            self.assertAlmostEqual(found["time_error"], found["predicted"]["step_time_s"] / measured - 1)
            self.assertIsNotNone(found["predicted"]["peak_allocated_bytes"])
            if found["time_factor"] != 1:  # else the machine was too busy, or the prediction right
                self.assertLess(abs(found["corrected"]["time_error"]), abs(found["time_error"]))
            self.assertEqual(os.listdir(folder), ["mine.json"])
            path = os.path.join(folder, "mine.json")
            with open(path, encoding="utf-8") as file:
                self.assertIn(found["words"], json.load(file)["title"])
            answer = spillway.run({"schema": "spillway-scenario", "version": 1,
                                   "model": {"name": "gpt2-small", "layers": 1, "precision": "fp32"},
                                   "hardware": {"profile": path}}, program=PROGRAM)
            self.assertIn("checked here on", answer.machine.title)
            again = check(*SMALL, "--output", "mine.json", folder=folder)
            self.assertEqual(again.returncode, 2)
            self.assertIn("exists already", again.stderr)

    def test_bad_input_is_one_error(self):
        for words, said in (((*SMALL, "--steps", "2"), "three"), ((*SMALL, "--device", "cuda:9"), "no CUDA device"),
                            ((*SMALL, "--on", "8xh100"), "one GPU")):
            with self.subTest(words):
                done = check(*words)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, "")
        done = subprocess.run([PROGRAM, "check", "tiny", "--python", "/nowhere/python"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/python", done.stderr)


class OnAGpu(unittest.TestCase):
    """What a GPU's steps would make of its profile; no GPU is asked."""

    def step(self, profile):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gpu.json")
            if isinstance(profile, dict):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(profile, file)
            answer = spillway.run({"schema": "spillway-scenario", "version": 1,
                                   "model": {"name": "llama-3.2-1b", "sequence": 2048, "layers": 4},
                                   "hardware": {"profile": path if isinstance(profile, dict) else profile}}, program=PROGRAM)
            return answer.step_time_s

    def test_times_follow_the_factor(self):
        for machine, title in (("NVIDIA H100 80GB HBM3", "1x NVIDIA H100 SXM5 80GB"), ("rtx-4090", "1x NVIDIA RTX 4090"),
                               ("h100-sxm5-80gb-measured", "")):
            for factor in (1.25, 0.8):
                with self.subTest(machine=machine, factor=factor):
                    before = self.step(machine)
                    after = self.step(corrected_gpu(machine, title, factor, program=PROGRAM))
                    self.assertAlmostEqual(after / before, factor, delta=0.07)  # launches and the host keep theirs

    def test_memory_outside_the_allocator_is_the_profile_s(self):
        profile = corrected_gpu("rtx-4090", "", 1.0, 700 << 20, program=PROGRAM)
        self.assertAlmostEqual(profile["context_memory"]["value"], 700 / 1024)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
