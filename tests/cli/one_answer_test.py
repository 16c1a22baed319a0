#!/usr/bin/env python3
"""One question, one answer: a scenario asked through every command that can answer it gives the same figures.

Usage: one_answer_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import csv
import html
import io
import json
import os
import re
import subprocess
import sys
import unittest

import folder_case

PROGRAM, ROOT = sys.argv[1:3]
FIGURES = ["verdict", "fits", "step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes", "binding_resource",
           "fingerprint"]
SCENARIOS = {
    "one GPU, offloading": {
        "model": {"name": "gpt2-small", "layers": 4, "sequence": 512, "micro_batch": 4},
        "hardware": {"profile": "ssdtrain-testbed"},
        "offload": {"technique": "ssdtrain", "least_elements": 100000, "drives": "samsung-990-pro-2tb",
                    "drives_per_machine": 4, "adaptive": False}},
    "a pipeline, all four parts": {
        "model": {"name": "gpt2-small", "layers": 8, "sequence": 256, "micro_batch": 1, "gradient_accumulation": 4,
                  "pipeline_parallel": 2, "pipeline_schedule": "chronos", "pipeline_chunks": 2},
        "hardware": {"profile": "dgx-a100-40gb"},
        "offload": {"technique": "ssdtrain", "least_elements": 10000, "drives": "samsung-990-pro-2tb",
                    "drives_per_machine": 4},
        "order": {"technique": "roam"}, "memory": {"allocator": "stalloc"}},
    "too little memory": {
        "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 16},
        "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 8 << 30}},
    "tight": {
        "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 4},
        "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 6 << 30, "reserve": "1GiB"}},
}


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}" if path else key)
    else:
        yield path, value


def shown(path):
    """What a picture or a page says, in one line."""
    with open(path, encoding="utf-8") as file:
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", file.read())).split())


class OneAnswer(folder_case.FolderCase):
    def ask(self, *arguments):
        result = subprocess.run([PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True, timeout=240,
                                check=False)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout)

    def same(self, answer, expected, asked):
        for figure in FIGURES:
            self.assertEqual(answer[figure], expected[figure], f"{asked}: {figure}")

    def test_every_command_says_what_run_says(self):
        for name, parts in SCENARIOS.items():
            with self.subTest(name):
                self.check({"schema": "spillway-scenario", "version": 1, "title": name, **parts})

    def test_every_face_says_the_verdict_alike(self):
        for name, parts in SCENARIOS.items():
            with self.subTest(name):
                scenario = self.path("face.json", {"schema": "spillway-scenario", "version": 1, "title": name, **parts})
                picture, page = self.path("face.svg"), self.path("face.html")
                answer = self.ask("run", scenario, "--timeline", picture)
                sentence = answer["verdict_words"]
                self.assertTrue(sentence.startswith(answer["verdict"]), sentence)
                self.assertIn(sentence[1:], " ".join(self.words("run", scenario).split()))  # over lines
                row = next(csv.DictReader(io.StringIO(self.words("run", scenario, "--format", "csv"))))
                self.assertEqual(row["verdict"], answer["verdict"])
                self.words("report", "step", scenario, "--output", page)
                for path in (picture, page):  # with its first letter large
                    self.assertIn(sentence[1:], shown(path), path)

    def words(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=240, check=False).stdout

    def test_a_schedule_is_followed_as_it_was_run(self):
        """Schedules that order by what stages take, and those that move activations: their plan is the step's."""
        for schedule, chunks in (("zb-1p", 1), ("zb-v", 2), ("po-h", 2), ("chronos", 2)):
            with self.subTest(schedule):
                model = {"name": "gpt2-small", "layers": 8, "sequence": 256, "micro_batch": 1,
                         "gradient_accumulation": 8, "framework": "megatron", "pipeline_parallel": 4,
                         "pipeline_schedule": schedule, **({"pipeline_chunks": chunks} if schedule != "zb-1p" else {})}
                scenario = self.path("schedule.json", {"schema": "spillway-scenario", "version": 1, "model": model,
                                                       "hardware": {"profile": "dgx-a100-40gb"}})
                run = self.ask("run", scenario, "--plan-output", self.path("schedule-plan.json"))
                followed = self.ask("run", scenario, "--set", "plan=" + self.path("schedule-plan.json"))
                self.same(followed, run, schedule)
        # What another stage's GPU holds is in no plan: refused, not forgotten.
        model = {**model, "pipeline_schedule": "bpipe", "pipeline_chunks": 1}
        scenario = self.path("schedule.json", {"schema": "spillway-scenario", "version": 1, "model": model,
                                               "hardware": {"profile": "dgx-a100-40gb"}})
        self.ask("run", scenario, "--plan-output", self.path("schedule-plan.json"))
        refused = subprocess.run([PROGRAM, "run", scenario, "--set", "plan=" + self.path("schedule-plan.json")],
                                 capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("another stage's GPU", refused.stderr)

    def test_of_equal_ways_the_one_that_writes_nothing_comes_first(self):
        model = {"name": "llama-2-7b", "layers": 16, "sequence": 4096, "micro_batch": 1, "gradient_accumulation": 16,
                 "framework": "megatron", "tensor_parallel": 2, "sequence_parallel": True, "pipeline_parallel": 4}
        scenario = self.path("written.json", {"schema": "spillway-scenario", "version": 1, "model": model,
                                              "hardware": {"profile": "dgx-h100"}, "offload": {"technique": "ssdtrain"}})
        ways = self.ask("fit", scenario, "--replays", "1", "--budget", "300", "--all")["ways"]
        equal = [(one, other) for one, other in zip(ways, ways[1:])
                 if one["fits"] and other["fits"] and one["step_time_ns"] == other["step_time_ns"]
                 and (one["life_years"] is None) != (other["life_years"] is None)]
        self.assertTrue(equal, "what this is about")
        for one, other in equal:
            self.assertIsNone(one["life_years"], f"{one['name']} before {other['name']}")

    def check(self, document):
        scenario = self.path("scenario.json", document)
        run = self.ask("run", scenario, "--plan-output", self.path("plan.json"))
        self.same(self.ask("run", scenario), run, "run again")
        self.same(self.ask("explain", scenario), run, "explain")
        compared = self.ask("compare", scenario, "--set", "what_if.gpu=1")
        self.same(compared["a"], run, "compare, A")
        self.same(compared["b"], run, "compare, what-if of nothing")

        # What was planned, followed without the techniques.
        followed = {key: value for key, value in document.items() if key not in ("order", "memory")}
        if "capacity_bytes" in document.get("memory", {}):
            followed["memory"] = document["memory"]
        followed["offload"] = {**document.get("offload", {}), "technique": "none"}
        followed["plan"] = "plan.json"
        self.same(self.ask("run", self.path("followed.json", followed)), run, "its plan, followed")

        # Without the techniques of the file, each with its own again.
        rows = self.ask("techniques", scenario, "--technique", "full", "--technique", "ssdtrain-host")["rows"]
        self.assertEqual([row["technique"] for row in rows], [[], ["full"], ["ssdtrain-host"]])
        for row in rows:
            edits = [f"--set={key}={json.dumps(value).strip(chr(34))}" for key, value in row["edits"].items()]
            self.same(row, self.ask("run", scenario, *edits), f"techniques, {row['name']}")

        # The one point of a sweep, replayed; and written as a scenario.
        base = {key: value for key, value in document.items() if key not in ("schema", "version", "title")}
        sweep = self.path("sweep.json", {
            "schema": "spillway-sweep", "version": 1, "base": base, "require": {"fits": False},
            "axes": [{"name": "b", "key": "model.micro_batch", "values": [document["model"]["micro_batch"]]}]})
        point = self.ask("sweep", sweep, "--all")["rows"][0]
        self.same(point, run, "sweep")
        with open(sweep, encoding="utf-8") as file:
            required = {key: value for key, value in json.load(file).items() if key != "require"}
        answer = self.ask("sweep", self.path("required.json", required))
        front = [row for row in answer["rows"] if row["on_front"]]
        self.assertEqual(len(front), 1 if run["fits"] else 0, "sweep: meets what is required")
        self.assertEqual(answer["nearest"] is None, bool(front), "sweep: the nearest, where none meets it")
        subprocess.run([PROGRAM, "sweep", sweep, "--point", str(point["point"]), "--output", self.path("point.json")],
                       check=True, timeout=120)
        self.same(self.ask("run", self.path("point.json")), run, "a sweep's point as a scenario")

        # The one value of an axis, under a technique that changes nothing.
        batch = str(document["model"]["micro_batch"])
        answers = self.ask("capacity", scenario, "--axis", "micro_batch", "--from", batch, "--to", batch,
                           "--technique", "as given:what_if.gpu=1")["answers"]
        self.assertEqual(len(answers), 1)
        self.assertEqual("at" in answers[0], run["fits"], "capacity: fits")
        self.same(answers[0]["at" if run["fits"] else "beyond"], run, "capacity")

    def test_every_row_is_what_run_says_of_its_edits(self):
        """Whichever command found it: a row's edits, given to `run`, come to its figures to the last digit."""
        stride = 1 if os.environ.get("SPILLWAY_TEST_SIZE") == "full" else 6
        pipeline = {key: value for key, value in SCENARIOS["a pipeline, all four parts"].items()
                    if key in ("model", "hardware")}
        for name, parts in {**SCENARIOS, "a pipeline, all four parts": pipeline}.items():
            with self.subTest(name):
                document = {"schema": "spillway-scenario", "version": 1, "title": name, **parts}
                scenario = self.path("row.json", document)
                for command, rows in self.rows(scenario, document):
                    self.assertTrue(rows, command)
                    for row, edits in rows[::stride] if len(rows) > 2 * stride else rows:
                        run = self.ask("run", scenario, *[f"--set={edit}" for edit in edits])
                        for figure in FIGURES:
                            if figure in row:
                                self.assertEqual(row[figure], run[figure], f"{command}: {edits}: {figure}")

    def rows(self, scenario, document):
        """Of every command, its rows that were replayed, with their edits."""
        def listed(edits):
            return [f"{key}={json.dumps(value).strip(chr(34))}" for key, value in edits.items()]

        for command, *options in (("techniques",), ("fit", "--replays", "12", "--budget", "300", "--all")):
            answer = self.ask(command, scenario, *options)
            yield command, [(row, listed(row["edits"])) for row in answer["rows" if command == "techniques" else "ways"]
                            if "error" not in row]
        base = {key: value for key, value in document.items() if key not in ("schema", "version", "title")}
        sweep = self.path("rows.json", {
            "schema": "spillway-sweep", "version": 1, "base": base, "require": {"fits": False},
            "objectives": ["step_time", "peak_memory"],
            "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]},
                     {"name": "r", "key": "model.recompute", "values": ["none", "full"]}]})
        yield "sweep", [(row, listed(row["settings"])) for row in self.ask("sweep", sweep, "--all")["rows"]]
        answers = self.ask("capacity", scenario, "--axis", "micro_batch", "--to", "16", "--technique", "keep",
                           "--technique", "full")["answers"]
        yield "capacity", [(edge, edge["settings"]) for answer in answers for edge in (answer.get("at"), answer.get("beyond"))
                           if edge and edge["replayed"]]
        plan = self.path("row-plan.json")
        answer = self.ask("plan", "offload", scenario, "--replays", "20", "--output", plan)
        edits = answer["settings"]
        if not any(edit.startswith("offload.technique=") for edit in edits):
            edits = [*edits, "offload.technique=none", "plan=" + plan]
        yield "plan offload", [({**answer["best"], "fingerprint": answer["fingerprint"]}, edits)]
        recompute = {"recompute": "full"}
        technique = {"offload": "ssdtrain"}
        yield "plan rok", [(point, [f"model.micro_batch={point['micro_batch']}",
                                    "model.recompute=" + recompute.get(point["family"], "none"),
                                    "offload.technique=" + technique.get(point["family"], "none")])
                           for point in self.ask("plan", "rok", scenario, "--batches", "1,2")["points"]]

    def test_drives_of_a_step_that_moves_nothing_are_ssdtrains(self):
        scenario = self.path("moves-nothing.json", {
            "schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-xl", "sequence": 1024, "micro_batch": 8},
            "hardware": {"profile": "h100-80gb-1gpu"}})
        for kind in ("ssd", "pcie"):
            self.assertEqual(self.ask("report", kind, scenario),
                             self.ask("report", kind, scenario, "--set", "offload.technique=ssdtrain"))

    def test_what_is_bought_runs_as_run_says(self):
        scenario = self.path("programme.json", {
            "schema": "spillway-scenario", "version": 1, "title": "a programme",
            "model": {"name": "gpt2-small", "sequence": 1024, "global_batch": 256},
            "hardware": {"profile": "dgx-a100"}, "offload": {"least_elements": 1048576},
            "procurement": {"tokens": 1e11, "gpus": [8], "techniques": ["keep", "full", "ssdtrain"],
                            "drives": ["micron-9550-max-6.4tb", "samsung-pm9a3-3.84tb"], "drives_per_gpu": 4,
                            "tensor_parallel": [1], "pipeline_parallel": [1], "micro_batch": [16]}})
        options = self.ask("report", "procurement", scenario)["options"]
        self.assertEqual(len(options), 3)
        for option in options:
            plan = option["plans"][0]
            run = self.ask("run", scenario, *[f"--set={setting}" for setting in plan["settings"]])
            self.same(plan, run, option["name"])
            self.assertEqual(plan["written_bytes_per_step"] > 0, "drives" in option)
            if "drives" in option:
                life = option["figures"]["drive_life_years"]
                self.assertAlmostEqual(life / run["ssd"]["life_years"], 1, delta=1e-6, msg="life")
                self.assertEqual(plan["written_bytes_per_step"] * option["gpus"], run["ssd"]["bytes_written_per_step"])


    # One footing: so many drives of a machine live as long whoever is asked; eight GPUs on four drives wear each of them
    # eight times as fast as on four each.
    def test_the_same_drives_live_as_long_in_every_answer(self):
        document = {
            "schema": "spillway-scenario", "version": 1, "title": "drives",
            "model": {"name": "gpt2-small", "layers": 2, "sequence": 1024, "micro_batch": 16, "data_parallel": 8,
                      "global_batch": 128},
            "hardware": {"profile": "dgx-a100"},
            "offload": {"technique": "ssdtrain", "least_elements": 1048576, "adaptive": False,
                        "drives": "micron-9550-max-6.4tb", "drives_per_machine": 4}}
        scenario = self.path("drives.json", document)
        run = self.ask("run", scenario)["ssd"]
        named = ("report", "ssd", scenario, "--drives", "micron-9550-max-6.4tb")

        def drives(*options):
            return self.ask(*named, *options)["drives"][0]

        asked = {"own": self.ask("report", "ssd", scenario)["drives"][0], "by the scenario's number": drives(),
                 "per machine": drives("--drives-per-machine", "4")}
        for name, drive in asked.items():
            self.assertEqual(drive["drives_per_machine"], 4, name)
            self.assertEqual(drive["drives_per_gpu"], 0.5, name)
            for life in ("life_years", "life_low_years", "life_high_years"):
                self.assertAlmostEqual(drive[life] / run[life], 1, delta=1e-9, msg=f"{name}: {life}")
        per_gpu = drives("--drives-per-gpu", "4")
        self.assertEqual(per_gpu["drives_per_machine"], 32)
        more = self.ask("run", scenario, "--set", "offload.drives_per_machine=32")["ssd"]
        self.assertAlmostEqual(per_gpu["life_years"] / more["life_years"], 1, delta=1e-3)
        pace = per_gpu["step_with_drives"]["step_time_ns"] / drives()["step_with_drives"]["step_time_ns"]
        self.assertAlmostEqual(per_gpu["life_years"] / (8 * run["life_years"]) / pace, 1, delta=1e-6)
        ways = self.ask("fit", scenario)["ways"]
        kept = [way for way in ways if way["life_years"] is not None]
        self.assertTrue(kept)
        for way in kept[:3]:
            edits = [f"--set={key}={json.dumps(value).strip(chr(34))}" for key, value in way["edits"].items()]
            life = self.ask("run", scenario, *edits)["ssd"]["life_years"]
            self.assertAlmostEqual(way["life_years"] / life, 1, delta=1e-9, msg=way["name"])

    # The bound asked for: by default the rating as it stands, so that what is expected alone is no yes.
    def test_a_life_is_judged_by_the_bound_asked_for(self):
        scenario = self.path("bound.json", {
            "schema": "spillway-scenario", "version": 1, "title": "bound",
            "model": {"name": "gpt2-small", "sequence": 1024, "micro_batch": 16},
            "hardware": {"profile": "h100-80gb-1gpu"},
            "offload": {"technique": "ssdtrain", "least_elements": 1048576, "adaptive": False,
                        "drives": "micron-9550-max-6.4tb", "drives_per_machine": 4}})
        life = self.ask("run", scenario)["ssd"]
        self.assertLess(life["life_low_years"], life["life_years"])
        between = str((life["life_low_years"] + life["life_years"]) / 2)
        for bound, lasts in (((), False), (("rated",), False), (("expected",), True), (("high",), True)):
            words = [f"--set=offload.life_bound={word}" for word in bound]
            verdict = self.ask("run", scenario, f"--set=offload.least_life_years={between}", *words)["ssd"]
            self.assertEqual(verdict["answer"], lasts, bound)
            options = ["--life-bound", *bound] if bound else []
            drive = self.ask("report", "ssd", scenario, "--drives", "micron-9550-max-6.4tb", "--life-years", between,
                             *options)["drives"][0]
            self.assertEqual("worn out" in drive["verdict"], not lasts, drive["verdict"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
