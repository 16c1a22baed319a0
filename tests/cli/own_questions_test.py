#!/usr/bin/env python3
"""Questions of somebody who plans with models and machines of his own, as asked on a first day.

Usage: own_questions_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import folder_case

PROGRAM = sys.argv[1]


class OwnQuestions(folder_case.FolderCase):
    def scenario(self, name, **parts):
        return self.path(name, {"schema": "spillway-scenario", "version": 1, "title": name, **parts})

    def call(self, *arguments, timeout=240):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout, check=False)

    def ask(self, *arguments):
        result = self.call(*arguments, "--format", "json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout)

    def refused(self, *arguments, says):
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        for word in says:
            self.assertIn(word, result.stderr)
        return result.stderr


class Interrupts(OwnQuestions):
    # Plans for minutes; within seconds of Ctrl-C it has ended, with nothing printed and nothing written.
    def test_a_plan_under_way_is_given_up(self):
        scenario = self.scenario("long.json", model={"name": "gpt2-xl", "micro_batch": 4, "gradient_accumulation": 32},
                                 hardware={"profile": "workstation-4090"}, order={"technique": "roam"})
        picture = self.path("picture.svg")
        with subprocess.Popen([PROGRAM, "run", scenario, "--timeline", picture], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as running:
            time.sleep(2)
            self.assertIsNone(running.poll(), "it was to take longer")
            running.send_signal(signal.SIGINT)
            output, errors = running.communicate(timeout=300)
        self.assertEqual((running.returncode, output), (130, ""), errors)
        self.assertIn("interrupted", errors)
        self.assertFalse(os.path.exists(picture))

    # Before the replay, not behind it.
    def test_a_picture_of_no_kind_is_refused_first(self):
        self.refused("run", self.path("missing.json"), "--timeline", self.path("picture.bmp"), says=[".svg", ".json"])

    # So is a file that can't be written; no search is done in vain.
    def test_a_file_that_cannot_be_written_is_refused_first(self):
        nowhere = self.path("nowhere/file.svg")
        for command in [("fit", "--output"), ("techniques", "--output"), ("run", "--timeline"), ("run", "--curve"),
                        ("run", "--memory-snapshot"), ("report", "step", "--output"), ("plan", "offload", "--output"),
                        ("report", "procurement", "--output"), ("memory", "--treemap")]:
            with self.subTest(command):
                said = self.refused(*command[:-1], self.path("missing.json"), command[-1], nowhere, says=[nowhere])
                self.assertNotIn("missing.json", said)


class Drives(OwnQuestions):
    # Four stages of two GPUs each: what one GPU writes, not what one GPU of each stage writes together; the set they
    # share takes the sum over the GPUs of all stages.
    def test_a_report_tells_the_bytes_of_one_gpu(self):
        scenario = self.scenario(
            "drives.json",
            model={"name": "gpt2-small", "layers": 8, "sequence": 1024, "micro_batch": 2, "gradient_accumulation": 4,
                   "tensor_parallel": 2, "pipeline_parallel": 4},
            hardware={"profile": "dgx-a100"},
            offload={"technique": "ssdtrain", "least_elements": 100000, "adaptive": False})
        run = self.ask("run", scenario)
        (drive,) = run["drives"]
        stages = drive["written_by"]
        self.assertEqual(drive["gpus"], 8)
        self.assertEqual([(stage["rank"], stage["gpus"]) for stage in stages], [(rank, 2) for rank in range(4)])
        self.assertEqual(sum(stage["gpus"] * stage["bytes_written"] for stage in stages), drive["bytes_written"])
        self.assertEqual(drive["bytes_written"], run["ssd"]["bytes_written_per_step"])
        most = max(stage["bytes_written"] for stage in stages)
        self.assertRegex(" ".join(self.call("run", scenario).stdout.split()), r"a step by \d+ drives per machine, of 8 GPUs")
        # On a set of all GPUs, and on one for each.
        for drives in [(), ("--drives", "samsung-990-pro-2tb", "--drives-per-gpu", "2")]:
            report = self.call("report", "ssd", scenario, *drives, "--format", "csv").stdout.splitlines()
            rows = list(csv.reader(report))
            head = next(row for row in rows if "written GB per GPU" in row)
            row = rows[rows.index(head) + 1]
            self.assertAlmostEqual(float(row[head.index("written GB per GPU")]) * 1e9 / most, 1, delta=0.02, msg=drives)
        self.assertIn("may be off by", "".join(report))


class Machines(OwnQuestions):
    # What is listed can be asked about.
    def test_every_listed_machine_and_gpu_runs_a_step(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 1, "sequence": 256})
        for kind in ("machines", "gpus"):
            names = [row["name"] for row in self.ask("list", kind)["items"]]
            self.assertGreater(len(names), 20)
            for name in names:
                with self.subTest(name):
                    run = self.ask("run", scenario, "--set", f"hardware.profile={name}")
                    self.assertGreater(run["step_time_ns"], 0)
                    self.assertLess(run["mfu"], 1)

    def test_sizes_are_no_powers_of_ten(self):
        models = self.call("list", "models").stdout
        self.assertNotRegex(models, r"\de\+\d")
        self.assertRegex(models, r"kimi-k2 +10\d\d B")

    def test_arithmetic_that_a_gpu_lacks_is_told(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 1, "sequence": 256})
        for gpu, precision, told in (("t4", "bf16_mixed", True), ("v100-sxm2-32gb", "bf16", True),
                                     ("t4", "fp16_mixed", False), ("t4", "fp32", False), ("rtx-a6000", "bf16", False)):
            words = self.call("run", scenario, "--set", f"hardware.profile={gpu}", "--set",
                              f"model.precision={precision}").stderr
            self.assertEqual("no rate of bf16" in words, told, (gpu, precision, words))

    def profile(self, name, **parts):
        return self.path(name + ".json", {"schema": "spillway-hardware-profile/1", "kind": "system", "name": name,
                                          "title": name, **parts})

    def test_machines_without_a_network_say_how_to_give_them_one(self):
        for machines in ("16x4090", "workstation-2x4090x4", "16xl40s"):
            self.refused("fit", "gpt2-small", "--on", machines,
                         says=["a network between them", machines + "+roce-100"])
        alone = self.profile("alone", base="workstation-2x4090")
        self.refused("fit", "gpt2-small", "--on", self.several(4, alone), says=["a network between"])

    @staticmethod
    def several(count, path):
        return f"{count}x{path}"

    def test_several_of_a_file(self):
        ours = self.profile("ours", base="workstation-2x4090", scale_out="roce-100")
        fit = self.call("fit", "gpt2-small", "--on", self.several(4, ours), "--replays", "2", "--budget", "60")
        self.assertIn(fit.returncode, (0, 1), fit.stderr)
        self.assertIn("4 x ours", fit.stdout + fit.stderr)
        self.refused("fit", "gpt2-small", "--on", self.several(0, ours), says=["out of range"])


class Techniques(OwnQuestions):
    # Two of one part: the row would be that of the last alone, under both names.
    def test_what_does_not_go_together_is_refused(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 2, "sequence": 256},
                                 hardware={"profile": "h100-80gb-1gpu"})
        for names, key in (("full+selective", "model.recompute"), ("mix+ssdtrain", "offload.technique"),
                           ("chronos+1f1b", "model.pipeline_schedule"), ("stalloc+layout", "memory.allocator")):
            self.refused("techniques", scenario, "--technique", names, says=[key, *names.split("+")])
            self.refused("capacity", scenario, "--axis", "micro_batch", "--technique", names, says=[key])
            sweep = self.path("sweep.json", {
                "schema": "spillway-sweep", "version": 1,
                "base": {"model": {"name": "gpt2-small"}, "hardware": {"profile": "h100-80gb-1gpu"}},
                "axes": [{"name": "technique", "techniques": ["plain", names]}]})
            self.refused("sweep", sweep, says=[key])
        rows = self.ask("techniques", scenario, "--technique", "full+ssdtrain-host+layout")["rows"]
        self.assertEqual(len(rows), 2)

    # What `explain --technique` finds, `techniques` says of the scenario with its edits.
    def test_where_a_technique_pays(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 2, "sequence": 256},
                                 hardware={"profile": "h100-80gb-1gpu"})
        picture = os.path.join(os.path.dirname(scenario), "where.svg")
        question = ("explain", scenario, "--technique", "full", "--slower", "60", "--saves", "3", "--axis", "micro-batch")
        answer = self.ask(*question, "--output", picture)
        self.assertFalse(answer["here"]["pays"])
        least = answer["axes"][0]["least"]
        self.assertEqual(list(least["edits"]), ["model.micro_batch"])
        edit = f"model.micro_batch={least['edits']['model.micro_batch']}"
        plain, full = self.ask("techniques", scenario, "--set", edit, "--technique", "full")["rows"]
        self.assertEqual(least["plain"]["peak_reserved_bytes"], plain["peak_reserved_bytes"])
        self.assertEqual(least["with"]["step_time_ns"], full["step_time_ns"])
        self.assertGreaterEqual(1 - full["peak_reserved_bytes"] / plain["peak_reserved_bytes"], 0.03)
        with open(picture, encoding="utf-8") as file:
            self.assertIn("micro-batch", file.read())
        never = self.call("explain", scenario, "--technique", "full", "--saves", "99", "--axis", "layers")
        self.assertEqual(never.returncode, 1, never.stderr)
        early = self.call("explain", scenario, "--technique", "full", "--saves", "99", "--axis", "layers", "--effort", "0.001")
        self.assertEqual(early.returncode, 4, early.stderr)
        self.assertIn("not known", early.stdout)
        # Where the work was used up on the way: no as far as was tried.
        some = self.call("explain", scenario, "--technique", "full", "--saves", "99", "--axis", "layers", "--effort", "0.003")
        self.assertRegex(" ".join(some.stdout.split()), r"not from 1 to \d+, not known ")
        self.refused("explain", scenario, "--output", picture, says=["--technique"])
        self.refused("explain", scenario, "--technique", "full", "--axis", "width", says=["--axis"])

    def test_the_plain_row_has_a_name(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 2, "sequence": 256},
                                 hardware={"profile": "h100-80gb-1gpu"})
        rows = self.ask("techniques", scenario, "--technique", "plain", "--technique", "full")["rows"]
        self.assertEqual([row["name"] for row in rows], ["plain", "full"])

    def test_what_moves_nothing_is_named(self):
        scenario = self.scenario("small.json", model={"name": "gpt2-small", "layers": 2, "sequence": 256},
                                 hardware={"profile": "h100-80gb-1gpu"}, offload={"technique": "mix"})
        for line in self.call("run", scenario).stderr.splitlines():
            self.assertNotRegex(line, r"(: |^)\s*moves nothing")

    def test_what_needs_not_move_is_told_so(self):
        small = {"model": {"name": "gpt2-small", "layers": 2, "sequence": 256}, "hardware": {"profile": "h100-80gb-1gpu"}}
        for technique in ("mix", "lifetimes"):
            fits = self.scenario("small.json", **small, offload={"technique": technique})
            self.assertIn(f"{technique} moves nothing, as nothing needs to move", self.call("run", fits).stderr)
            short = self.call("run", fits, "--set", "memory.capacity=10MiB").stderr
            self.assertNotIn("nothing needs to move", short)

    def test_recomputation_that_saves_nothing_is_told_so(self):
        def warned(flash, *technique):
            scenario = self.scenario("step.json", model={"name": "gpt2-medium", "sequence": 1024, "micro_batch": 8,
                                                         "flash_attention": flash},
                                     hardware={"profile": "h100-80gb-1gpu"})
            return [line for line in self.call(*technique, scenario).stderr.splitlines() if "saves nothing" in line]
        run, techniques = ("run", "--set", "model.recompute=selective"), ("techniques", "--technique", "selective")
        for command in (run, techniques):
            lines = warned(True, *command)
            self.assertEqual(len(lines), 1, command)
            self.assertRegex(lines[0], r"selective recomputation makes the step [0-9.]+ % longer and saves nothing: the peak is "
                                       r"\S+ GiB allocated, and \S+ GiB without it")
            self.assertEqual(warned(False, *command), [])
        self.assertEqual(warned(True, "run", "--set", "model.recompute=full"), [])

    def test_a_title_tells_what_was_set(self):
        scenario = self.scenario("on one H100", model={"name": "gpt2-small", "layers": 2},
                                 hardware={"profile": "h100-80gb-1gpu"})
        self.assertEqual(self.ask("run", scenario)["title"], "on one H100")
        changed = ("run", scenario, "--set", "hardware.profile=h200-141gb-1gpu", "--set", "model.micro_batch=2")
        self.assertEqual(self.ask(*changed)["title"],
                         "on one H100 with hardware.profile=h200-141gb-1gpu, model.micro_batch=2")
        self.assertEqual(self.ask(*changed, "--set", "title=on one H200")["title"], "on one H200")


class Launches(OwnQuestions):
    # Named by the first and given behind it: read once, where it was given.
    def test_a_file_given_and_named_is_read_once(self):
        self.path("ds.json", {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
                              "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}})
        with open(self.path("hf.yaml"), "w", encoding="utf-8") as out:
            out.write("model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\n"
                      "gradient_accumulation_steps: 4\nbf16: true\ndeepspeed: ds.json\n")
        given = self.call("import", self.path("hf.yaml"), self.path("ds.json"), "--on", "dgx-a100")
        self.assertEqual(given.returncode, 0, given.stderr)
        self.assertEqual(json.loads(given.stdout)["model"]["micro_batch"], 2)
        ignored = given.stderr.split("\nignored", 1)[1]
        self.assertEqual(len(re.findall(r"(?m)^train_micro_batch_size_per_gpu ", ignored)), 0, ignored)
        self.assertIn("train_micro_batch_size_per_gpu says 2", ignored)
        named = self.call("import", self.path("hf.yaml"), "--on", "dgx-a100")
        self.assertEqual(json.loads(named.stdout)["model"]["micro_batch"], 1)


def without_planning_times(value):
    if isinstance(value, dict):
        return {key: without_planning_times(part) for key, part in value.items() if key != "planning_cpu_seconds"}
    return [without_planning_times(part) for part in value] if isinstance(value, list) else value


class SharedStore(OwnQuestions):
    # "34 of 40 simulations from FILE"
    def stored(self, *arguments):
        result = self.call(*arguments, "--format", "json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        found = re.search(r"(\d+) of (\d+) simulations from ", result.stderr)
        return without_planning_times(json.loads(result.stdout)), int(found[1]) if found else 0, int(found[2]) if found else 0

    # The ways, the layouts and the points of three commands overlap: each takes from the store what those before it
    # have replayed, and answers as it would without.
    def test_commands_take_each_others_replays(self):
        model = {"name": "gpt2-small", "layers": 4, "sequence": 512, "global_batch": 64, "micro_batch": 4}
        parts = {"model": {**model, "data_parallel": 8}, "hardware": {"profile": "dgx-a100"}}
        scenario = self.scenario("one.json", **parts, procurement={
            "tokens": 1e10, "gpus": [8], "techniques": ["keep", "full"], "tensor_parallel": [1],
            "pipeline_parallel": [1], "micro_batch": [2, 4]})
        sweep = self.path("sweep.json", {
            "schema": "spillway-sweep", "version": 1, "base": parts, "require": {"fits": False},
            "axes": [{"name": "b", "key": "model.micro_batch", "values": [2, 4, 8]},
                     {"name": "technique", "techniques": ["keep", "full"]}]})
        questions = (("fit", scenario, "--replays", "12", "--budget", "600"), ("report", "procurement", scenario),
                     ("sweep", sweep, "--all"))
        alone = [without_planning_times(self.ask(*question)) for question in questions]
        store = self.path("replays.sqlite")
        taken = []
        for question, expected in zip(questions, alone):
            answer, found, asked = self.stored(*question, "--store", store)
            self.assertEqual(answer, expected, question)
            taken.append((found, asked))
        self.assertEqual(taken[0][0], 0, taken)  # nobody asked before
        for found, asked in taken[1:]:
            self.assertGreater(found, 0, taken)
            self.assertGreaterEqual(asked, found, taken)
        for question, expected in zip(questions, alone):  # and once more: nothing is left to replay
            answer, found, asked = self.stored(*question, "--store", store)
            self.assertEqual(answer, expected, question)
            self.assertEqual(found, asked, question)
            self.assertGreater(found, 0, question)


class Grounds(OwnQuestions):
    # Beside the figures: inputs by where they are from, and how far off they may be, where that is known.
    def test_first_pages_say_what_they_rest_on(self):
        parts = {"model": {"name": "gpt2-small", "layers": 2, "sequence": 256, "global_batch": 64},
                 "hardware": {"profile": "dgx-h100"}}
        step = self.scenario("step.json", **parts)
        run = self.ask("run", step)
        page = self.call("report", "step", step).stdout.split("\nMemory\n")[0]
        for kind in {row["provenance"] for row in run["provenance"]}:
            self.assertRegex(page, rf"(?m)^.*{run['provenance'][0]['name'].split('.')[0]}.* {kind} +not ")
        off = (run["step_time_range"]["low"] - 1) * 100, (run["step_time_range"]["high"] - 1) * 100
        self.assertIn(f"{off[0]:+.0f} to {off[1]:+.0f} % in 80 % of steps like it", page)
        programme = self.scenario("programme.json", **parts, procurement={
            "tokens": 1e10, "gpus": [8], "techniques": ["keep"], "tensor_parallel": [1], "pipeline_parallel": [1],
            "micro_batch": [4]})
        page = self.call("report", "procurement", programme).stdout.split("\nIn short\n")[0]
        self.assertRegex(page, r"(?m)^price of dgx-h100.* assumed +-\d+ to \+\d+ %$")
        self.assertIn("% in 80 % of steps like it", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
