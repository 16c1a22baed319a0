#!/usr/bin/env python3
"""One text, one machine: what names a machine means the same in every command that takes one.

Usage: machines_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import json
import subprocess
import sys
import unittest

import folder_case

PROGRAM, ROOT = sys.argv[1:3]
# A machine as it is typed, and as something else means the same.
ALIKE = {"8xh100": "dgx-h100", "16 x H100": "2xdgx-h100", "2x8xh100": "dgx-h100x2", "A100 80GB": "1xa100",
         "4xrtx4090": "4 x NVIDIA GeForce RTX 4090", "p5": "p5.48xlarge", "8xh100+roce-400": "dgx-h100+roce-400"}
MEGATRON = """#!/bin/bash
torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size 768 --num-attention-heads 12 \\
  --seq-length 256 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 50257 --bf16
"""


class Machines(folder_case.FolderCase):
    def setUp(self):
        super().setUp()
        self.scenario = self.path("s.json", self.step("h100-80gb-1gpu"))

    def step(self, machine):
        return {"schema": "spillway-scenario", "version": 1, "title": "step",
                "model": {"name": "gpt2-small", "layers": 2, "sequence": 256, "micro_batch": 1},
                "hardware": {"profile": machine}}

    def written(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def ask(self, *arguments, codes=(0, 1)):
        result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=240, check=False)
        self.assertIn(result.returncode, codes, f"{arguments}\n{result.stderr}")
        return result.stdout

    def answer(self, *arguments):
        return json.loads(self.ask(*arguments, "--format", "json"))

    def shown(self, machine):
        """Every value of the machine as it is resolved, but for where it comes from."""
        return [(leaf["path"], leaf["value"], leaf["unit"])
                for leaf in self.answer("profile", "show", machine)["values"]]

    def test_spellings_are_one_machine(self):
        for typed, same in ALIKE.items():
            self.assertEqual(self.shown(typed), self.shown(same), typed)

    def test_a_name_of_digits_alone_is_a_name(self):
        figures = [self.answer("run", self.scenario, "--on", machine)["step_time_ns"] for machine in ("4090", "rtx4090")]
        self.assertEqual(*figures)

    def test_every_command_takes_it(self):
        for machine in ("8xh100", "4xrtx4090", "a3-mega", "A100 80GB", "2x8xh100"):
            asked = self.answer("run", self.scenario, "--on", machine)
            self.assertTrue(asked["machine"]["assumed"], machine)
            figures = (asked["step_time_ns"], asked["peak_reserved_bytes"])

            def same(answer, what):
                self.assertEqual((answer["step_time_ns"], answer["peak_reserved_bytes"]), figures, f"{what}: {machine}")
                self.assertEqual(answer["machine"], asked["machine"], f"{what}: {machine}")

            same(self.answer("run", self.scenario, "--set", f"hardware.profile={machine}"), "--set")
            same(self.answer("run", self.path("m.json", self.step(machine))), "scenario")
            same(self.answer("compare", self.scenario, "--on", machine)["b"], "compare")
            same(self.answer("explain", self.scenario, "--on", machine), "explain")
            swept = self.answer("sweep", self.path("w.json", {
                "schema": "spillway-sweep", "version": 1,
                "base": {key: self.step("a10")[key] for key in ("model", "hardware")},
                "axes": [{"name": "m", "key": "hardware.profile", "values": [machine, "a10"]}],
                "objectives": ["step_time", "peak_memory"]}), "--all")
            self.assertEqual([(row["step_time_ns"], row["peak_reserved_bytes"]) for row in swept["rows"]
                              if row["settings"]["hardware.profile"] == machine], [figures], f"sweep: {machine}")
            wrote = self.ask("new", "gpt2-small", machine)
            self.assertIn(f'"profile": "{machine}"', wrote)
            self.ask("run", self.written("n.json", wrote), "--set", "model.layers=2", "--set", "model.sequence=256")
            script = self.written("pretrain.sh", MEGATRON)
            self.ask("import", script, "--model", "gpt2-small", "--on", machine, "--output", self.path("i.json"))
            with open(self.path("i.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["hardware"]["profile"], machine)
            self.answer("capacity", self.scenario, "--axis", "micro_batch", "--machines", machine)

    def test_a_named_profile_assumes_nothing(self):
        self.assertNotIn("machine", self.answer("run", self.scenario))
        self.assertEqual(self.answer("run", self.scenario, "--on", "dgx-h100")["machine"],
                         {"title": "DGX H100: 8x H100 SXM5 80 GB; 1 of its 8 GPUs used", "assumed": []})
        self.assertEqual(self.answer("run", self.scenario, "--on", "a10")["machine"]["assumed"],
                         ["host: One-socket server, PCIe 5", "drives: none"])
        self.assertIn("machine DGX H100: 8x H100 SXM5 80 GB; 1 of its 8 GPUs used; assumed: GPU: NVIDIA H100 SXM5",
                      " ".join(self.ask("run", self.scenario, "--on", "8xh100").split()))

    def test_what_is_no_machine_is_refused_with_what_is_near(self):
        for arguments in (("run", self.scenario, "--on", "8xh10"), ("profile", "show", "8xh10"),
                          ("new", "gpt2-small", "8xh10"), ("fit", "gpt2-small", "--on", "8xh10"),
                          ("import", self.written("p.sh", MEGATRON), "--model", "gpt2-small", "--on", "8xh10")):
            result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("did you mean", result.stderr)
            self.assertIn("h100", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
