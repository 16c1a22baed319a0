#!/usr/bin/env python3
"""spillway.torch.record and `python -m spillway.torch`: what they write is what the program reads.

usage: record_test.py SPILLWAY
"""
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

import fixture

fixture.need_torch()
import torch  # noqa: E402

import spillway  # noqa: E402
import spillway.torch as recorded  # noqa: E402
from spillway.torch import __main__ as command  # noqa: E402
from spillway.torch.recording import phase  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
PARTS = ("warm_up", "unprofiled", "light", "full")


class RecordTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "recorded")
        self.steps = 0

    def setup_model(self):
        model = fixture.model_of("gpt2")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ids = torch.arange(32).view(2, 16)

        def step():
            self.steps += 1
            with phase("forward"):
                loss = model(ids).square().mean()
            with phase("backward"):
                loss.backward()
            with phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
        return step, model

    def info(self, name):
        out, _, code = spillway.call("trace", "info", os.path.join(self.folder, name), "--format", "json",
                                     program=PROGRAM)
        self.assertEqual(code, 0)
        return json.loads(out)

    def test_the_program_reads_what_was_recorded(self):
        manifest = recorded.record(folder=self.folder, setup=self.setup_model, device="cpu", warm_up=1, unprofiled=3,
                                   light=1, full=2, about={"mine": 1})
        with open(os.path.join(self.folder, "manifest.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), manifest)
        self.assertTrue(manifest["complete"])
        self.assertEqual(manifest["about"], {"mine": 1})
        self.assertEqual([len(manifest["phases"][each]["step_times_ns"]) for each in PARTS], [1, 3, 1, 2])
        self.assertEqual({each["name"] for each in manifest["files"].values()} | {"manifest.json"},
                         set(os.listdir(self.folder)))
        for name, reason in manifest["missing"].items():
            self.assertGreater(len(reason), 20, name)
        self.assertIn("memory_snapshot", manifest["missing"])
        steps = self.info("steps.json.gz")
        self.assertEqual(steps["format"], "kineto")
        self.assertEqual([step["name"] for step in steps["steps"]], ["ProfilerStep#5", "ProfilerStep#6"])
        self.assertIn("times", steps["capabilities"])
        self.assertGreater(steps["memory_events"], 100)
        out, _, _ = spillway.call("run", os.path.join(self.folder, "steps.json.gz"), "--format", "json", program=PROGRAM)
        whole = sum(manifest["phases"]["full"]["step_times_ns"]) / 2
        self.assertLess(json.loads(out)["step_time_ns"], 1.5 * whole)  # of the same steps
        if "execution_trace" in manifest["files"]:
            graph = self.info("graph.json.gz")
            self.assertEqual(graph["format"], "execution-trace")
            self.assertGreater(graph["ops"], 100)

    def test_layers_and_phases_are_named(self):
        recorded.record(folder=self.folder, setup=self.setup_model, device="cpu", warm_up=1, unprofiled=0, light=0, full=1)
        spillway.call("trace", "convert", os.path.join(self.folder, "steps.json.gz"),
                      os.path.join(self.folder, "steps.spillway.json"), program=PROGRAM)
        with open(os.path.join(self.folder, "steps.spillway.json"), encoding="utf-8") as file:
            text = file.read()
        for name in ("forward", "backward", "optimizer"):
            self.assertIn(name, text)
        with gzip.open(os.path.join(self.folder, "steps.json.gz"), "rt", encoding="utf-8") as file:
            names = {row["name"] for row in json.load(file)["traceEvents"]}
        self.assertLessEqual({f"## layer {index} ##" for index in range(fixture.LAYERS)}, names)

    def test_what_a_step_raises_goes_through_and_what_was_recorded_stays(self):
        def step():
            self.steps += 1
            if self.steps == 4:
                raise KeyError("mine")

        with self.assertRaises(KeyError):
            recorded.record(step, self.folder, device="cpu", warm_up=1, unprofiled=2, light=1, full=1)
        with open(os.path.join(self.folder, "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertFalse(manifest["complete"])
        self.assertEqual(list(manifest["phases"]), ["warm_up", "unprofiled"])

    def test_bad_requests(self):
        os.makedirs(self.folder)
        with open(os.path.join(self.folder, "mine"), "w", encoding="utf-8"):
            pass
        for keywords, words in (({"folder": self.folder}, "exists already"), ({"folder": None}, "a folder"),
                                ({"folder": self.folder, "warm_up": 0}, "at least one"),
                                ({"folder": "/proc/none/such"}, "can't be made")):
            with self.assertRaisesRegex(spillway.InputError, words):
                recorded.record(lambda: None, **keywords)
        self.assertEqual(os.listdir(self.folder), ["mine"])


class CommandTest(unittest.TestCase):
    def run_command(self, *arguments):
        return subprocess.run([sys.executable, "-m", "spillway.torch", *arguments], capture_output=True, text=True,
                              check=False, timeout=300, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": os.path.join(fixture.ROOT, "python")})

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_steps_under_techniques(self):
        words = "keep,full,selective,ssdtrain,host,selective+host"
        done = self.run_command("steps", "--model", "tiny", "--batch", "2", "--sequence", "16", "--precision", "fp32",
                                "--implementation", "plain", "--warm-up", "1", "--steps", "2", "--least-bytes", "0",
                                "--folder", ".", "--techniques", words, "--out", "found")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "found/steps.json"), encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        self.assertEqual([row["technique"] for row in rows], words.split(","))
        for row in rows:
            self.assertTrue(row["losses_equal_first"], row["technique"])
            self.assertEqual((len(row["step_times_ns"]), len(row["losses"])), (2, 3))
        self.assertGreater(rows[3]["statistics"]["stored_bytes"], 0)
        self.assertEqual(os.listdir(self.folder), ["found"])

    def test_record_of_a_model(self):
        done = self.run_command("record", "--model", "tiny", "--batch", "2", "--sequence", "16", "--precision", "fp32",
                                "--warm-up", "1", "--steps", "2", "--profiled", "1", "--out", "found")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "found/manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertTrue(manifest["complete"])
        self.assertEqual(manifest["about"]["model"], "tiny")
        self.assertIn("kineto", manifest["files"])

    def test_bad_usage_is_one_sentence(self):
        for arguments, words in ((("--techniques", "nope"), "techniques are keep"),
                                 (("--techniques", "ssdtrain"), "folder="), (("--batch", "0"), "at least 1"),
                                 (("--device", "cuda"), "no CUDA device")):
            if "cuda" in arguments and torch.cuda.is_available():
                continue
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                code = command.main(["steps", "--model", "tiny", "--batch", "1", "--sequence", "8", "--out",
                                     os.path.join(self.folder, "found"), *arguments])
            self.assertEqual(code, 2)
            self.assertRegex(said.getvalue(), f"^error: .*{words}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
