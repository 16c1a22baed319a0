#!/usr/bin/env python3
"""The answer as a page and as JSON: the same verdict, names and figures as the terminal and `--format json`, of the
published schema; names of files are data in it, whatever they are.

Usage: answer_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import unittest

import folder_case
import hostile

PROGRAM, ROOT = sys.argv[1:3]
SNAPSHOT = os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle")
RUNS = {
    "one GPU": {"model": {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 4},
                "hardware": {"profile": "h100-80gb-1gpu"}},
    "too little memory": {"model": {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 4},
                          "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": 300000000}},
    "a pipeline": {"model": {"name": "gpt2-small", "layers": 8, "sequence": 256, "micro_batch": 1,
                             "gradient_accumulation": 4, "pipeline_parallel": 4},
                   "hardware": {"profile": "dgx-a100-40gb"}},
    "offloading": {"model": {"name": "gpt2-small", "layers": 4, "sequence": 512, "micro_batch": 4},
                   "hardware": {"profile": "ssdtrain-testbed"},
                   "offload": {"technique": "ssdtrain", "least_elements": 100000, "drives": "samsung-990-pro-2tb",
                               "drives_per_machine": 4, "adaptive": False}},
}
FIGURES = ["step_time_ns", "tokens_per_second", "mfu", "peak_allocated_bytes", "peak_reserved_bytes", "fingerprint"]


def embedded(page):
    """The document in a page."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    blocks = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert len(blocks) == 1, blocks
    assert not re.search("[<>&]", blocks[0]), "a tag might end in the data"
    assert blocks[0].isascii()
    return json.loads(blocks[0])


def texts(value):
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif not isinstance(value, (int, float, type(None))):
        for part in value:
            yield from texts(part)


class AnswerTest(folder_case.FolderCase):
    def ask(self, *arguments):
        result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, errors="replace", timeout=240,
                                check=False)
        self.assertIn(result.returncode, (0, 1, 4), result.stderr)
        return result.stdout

    def scenario(self, name, parts, title=None):
        return self.path(name, {"schema": "spillway-scenario", "version": 1, "title": title or name, **parts})

    def sound(self, document):
        """Of the schema, and in itself."""
        try:
            import jsonschema  # pylint: disable=import-outside-toplevel
            with open(os.path.join(ROOT, "docs/schemas/answer.schema.json"), encoding="utf-8") as file:
                jsonschema.validate(document, json.load(file))
        except ImportError:
            pass  # the figures are compared all the same
        for stage in document["stages"]:
            self.assertEqual(len(stage["bins"]), len(stage["owners"]))
            self.assertEqual(len(stage["passes"]) % 4, 0)
            self.assertEqual(sum(stage["at_peak_bytes"]), stage["peak_allocated_bytes"])
            sums = [sum(column) * stage["bin_unit_bytes"] for column in zip(*stage["bins"])]
            self.assertAlmostEqual(max(sums), stage["peak_allocated_bytes"],
                                   delta=stage["bin_unit_bytes"] * len(stage["owners"]))
        for text in texts(document):
            self.assertNotRegex(text, "[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069\u2028\u2029]")

    def test_a_run_is_told_alike(self):
        for name, parts in RUNS.items():
            with self.subTest(name):
                scenario, page, data = self.scenario("run.json", parts), self.path("run.html"), self.path("answer.json")
                told = json.loads(self.ask("run", scenario, "--format", "json", "--output", page))
                answer = embedded(page)
                self.sound(answer)
                self.assertEqual(answer["verdict"]["word"], told["verdict"])
                self.assertEqual(answer["verdict"]["fits"], told["fits"])
                self.assertEqual(answer["verdict"]["heading"][3:], told["verdict_words"][1:])
                for figure in FIGURES:
                    self.assertEqual(answer["now"][figure], told[figure], figure)
                words = [re.sub(r"^\w+ \(1\): ", "", warning) for warning in told["warnings"]]
                rests = answer["rests_on"]
                self.assertCountEqual(rests["warnings"] + [rests["times"]] if rests["times"] else rests["warnings"],
                                      words)
                self.short_form(told, answer)
                if told["ranks"]:
                    for figure in ("name", "peak_allocated_bytes", "peak_reserved_bytes", "verdict"):
                        self.assertEqual([stage[figure] for stage in answer["stages"]],
                                         [rank[figure] for rank in told["ranks"]], figure)
                self.ask("run", scenario, "--output", data)
                with open(data, encoding="utf-8") as file:
                    self.assertEqual(json.load(file), answer)

    def test_the_terminal_lays_out_what_the_document_holds(self):
        """Verdict, sentence, names and figures of many steps: in the terminal, in --format json, in the page."""
        small = {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 4}
        steps = dict(RUNS)
        steps["tight"] = {"model": small, "hardware": {"profile": "h100-80gb-1gpu"},
                          "memory": {"capacity_bytes": 2_250_000_000, "reserve": "300MiB"}}
        steps["host memory too small"] = {"model": {"name": "llama-3-8b", "layers": 12, "sequence": 256,
                                                    "micro_batch": 1, "optimizer_device": "cpu"},
                                          "hardware": {"profile": "cloud-1xl4"}}
        steps["drives that wear out"] = {**RUNS["offloading"], "offload": {**RUNS["offloading"]["offload"],
                                                                          "least_life_years": 1000}}
        steps["on the CPU"] = {"trace": os.path.join(os.path.abspath(ROOT), "traces/data/gpt2-tiny-cpu/steps.json.gz")}
        for profile in ("rtx-4090", "dgx-a100", "dgx-h100"):
            for key, value in (("recompute", "full"), ("optimizer", "sgd"), ("precision", "fp32")):
                steps[f"{profile}, {key}"] = {"model": {**small, key: value}, "hardware": {"profile": profile}}
        words_seen = set()
        for name, parts in steps.items():
            with self.subTest(name):
                scenario, page = self.scenario("face.json", parts, name), self.path("face.html")
                answer = json.loads(self.ask("run", scenario, "--format", "json", "--output", page))["answer"]
                whole, told = embedded(page), " ".join(self.ask("run", scenario).split())
                words_seen.add(answer["verdict"]["word"])
                for key in ("verdict", "facts", "gpus", "now", "rests_on"):
                    self.assertEqual(whole[key], answer[key], key)
                self.assertIn(answer["verdict"]["heading"], told)
                for fact in answer["facts"]:
                    self.assertIn(f"{fact['label']} {fact['words']}".replace("  ", " "), told)
                if answer["verdict"]["fits"] is False:
                    self.assertIn(answer["why"]["sentence"], told)
                held = sum(owner["bytes"] for owner in answer["why"]["owners"])
                for owner in answer["why"]["owners"]:
                    if owner["bytes"] > held / 100:
                        self.assertRegex(told, re.escape(owner["owner"]) + r" [\d.]+ █")
                self.assertEqual([gpu["peak_reserved_bytes"] for gpu in answer["gpus"]],
                                 [stage["peak_reserved_bytes"] for stage in whole["stages"]] if answer["gpus"] else [])
                self.assertIn(answer["rests_on"]["times"], told)
        self.assertEqual(words_seen, {"fits", "tight", "does not fit", "unknown"})

    def short_form(self, told, whole):
        """The document in --format json is the page's without its pictures."""
        short = told["answer"]
        self.sound(short)
        self.assertEqual(short["stages"], [])
        for key in set(short) - {"stages", "timeline", "held", "drawn", "when", "why", "ways"}:
            self.assertEqual(short[key], whole[key], key)
        drawn = ("outlines", "launches")
        self.assertEqual([{key: way[key] for key in way if key not in drawn} for way in short["ways"]],
                         [{key: way[key] for key in way if key not in drawn} for way in whole["ways"]])
        self.assertLess(len(json.dumps(short)), 60_000)

    def test_explain_adds_what_would_help(self):
        scenario, page = self.scenario("run.json", RUNS["one GPU"]), self.path("explain.html")
        told = json.loads(self.ask("explain", scenario, "--format", "json", "--output", page))
        answer = embedded(page)
        self.sound(answer)
        self.short_form(told, answer)
        gains = {row["resource"].replace(" x2", " twice as fast"): row["gain_fraction"] for row in told["relaxations"]}
        self.assertTrue(answer["helps"])
        for help_ in answer["helps"]:
            self.assertEqual(help_["fraction"], gains.pop(help_["name"]))
        self.assertEqual(sorted(gains), sorted(answer["no_help"]))

    def test_ways_are_told_alike(self):
        scenario, page = self.scenario("fit.json", RUNS["too little memory"]), self.path("fit.html")
        arguments = ["fit", scenario, "--replays", "60"]
        told = json.loads(self.ask(*arguments, "--format", "json", "--output", page))
        terminal = self.ask(*arguments)
        answer = embedded(page)
        self.sound(answer)
        self.short_form(told, answer)
        numbered = [way for way in answer["ways"] if way["number"] is not None]
        # Adapters that fit are numbered behind those shown.
        others = [other for other in told["other_trainings"] if "step_time_ns" in other]
        self.assertEqual(len(numbered), len(told["shown"]) + len(others))
        self.assertEqual([way["figures"]["step_time_ns"] for way in numbered[len(told["shown"]):]],
                         [other["step_time_ns"] for other in others])
        self.assertGreaterEqual(len(numbered), 2)
        for way, shown in zip(numbered, told["shown"]):
            row = told["ways"][shown["way"]]
            self.assertEqual(way["name"], row["name"])
            self.assertEqual(way["group"], shown["group"])
            self.assertEqual({edit.split("=", 1)[0] for edit in way["edits"]}, set(row["edits"]))
            for figure in ("step_time_ns", "peak_allocated_bytes", "peak_reserved_bytes", "tokens_per_second"):
                self.assertEqual(way["figures"][figure], row[figure], figure)
            self.assertEqual(len(way["folded"]), len(shown["folded"]))
            outline = way["outlines"][0]
            self.assertEqual(outline["peak_allocated_bytes"], row["peak_allocated_bytes"])
            line = next(line for line in terminal.splitlines() if line.startswith(f"{way['number']:>2}  "))
            for cell in (way["figures"]["shown"]["step"], way["figures"]["shown"]["tokens"],
                         way["figures"]["shown"]["left"], way["runs_in"]):
                self.assertIn(cell, line)
        first = numbered[0]
        again = json.loads(self.ask("run", scenario, *sum((["--set", edit] for edit in first["edits"]), []),
                                    "--format", "json"))
        self.assertEqual(again["fingerprint"], first["figures"]["fingerprint"])
        self.assertIn(answer["verdict"]["heading"], " ".join(terminal.split()))
        self.assertIn(answer["search"]["sentence"], " ".join(terminal.split()))

    def test_techniques_are_told_alike(self):
        scenario, page = self.scenario("techniques.json", RUNS["one GPU"]), self.path("techniques.html")
        told = json.loads(self.ask("techniques", scenario, "--technique", "full", "--technique", "selective", "--format", "json",
                                   "--output", page))
        answer = embedded(page)
        self.sound(answer)
        self.short_form(told, answer)
        self.assertEqual(answer["now"]["step_time_ns"], told["rows"][0]["step_time_ns"])
        self.assertEqual(len(answer["ways"]), len(told["rows"]) - 1)
        self.assertGreaterEqual(len(answer["ways"]), 2)
        for way, row in zip(answer["ways"], told["rows"][1:]):
            self.assertEqual(way["name"], {"full": "Recompute whole layers",
                                           "selective": "Recompute attention"}["+".join(row["technique"])])
            for figure in ("step_time_ns", "peak_reserved_bytes", "tokens_per_second"):
                self.assertEqual(way["figures"][figure], row[figure], figure)

    def test_a_snapshot_is_told_alike(self):
        page = self.path("snapshot.html")
        told = json.loads(self.ask("explain", SNAPSHOT, "--format", "json", "--output", page))
        answer = embedded(page)
        self.sound(answer)
        self.assertEqual(answer["verdict"]["heading"],
                         "✖ Ran out: loss.py:9 cross_entropy asked for 1.00 GiB, 0.879 GiB were free")
        self.assertEqual(answer["stages"][0]["peak_reserved_bytes"], told["peak_reserved_bytes"])
        holders = answer["stages"][0]["tensors"]
        self.assertEqual(sum(holder["bytes"] for holder in holders), told["diagnosis"]["alive_bytes"])
        self.assertTrue(all(holder["frames"] for holder in holders))

    def test_a_snapshot_without_a_limit_asks_for_the_gpu(self):
        snapshot, page = self.path("kept.pickle"), self.path("kept.html")
        self.ask("run", self.scenario("run.json", RUNS["one GPU"]), "--memory-snapshot", snapshot)
        words = " ".join(self.ask("explain", snapshot).split())
        self.assertIn("▲ Nothing ran out while it was recorded", words)
        self.assertIn("name it, and the answer is whether it fits", words)
        self.assertIn("next: --set hardware.profile=NAME", words)
        for capacity, verdict, fits in ((80 << 30, "✔ Fits with ", True), (1 << 30, "✖ Does not fit: ", False)):
            named = ["--set", "hardware.profile=h100-sxm5-80gb", "--set", f"memory.capacity_bytes={capacity}"]
            words = self.ask("explain", snapshot, *named, "--output", page)
            answer = embedded(page)
            self.sound(answer)
            self.assertTrue(answer["verdict"]["heading"].startswith(verdict), answer["verdict"])
            self.assertEqual(answer["verdict"]["fits"], fits)
            self.assertTrue(words.startswith(verdict), words)
            self.assertNotIn("next: --set", words)
            self.assertIn("memory.capacity_bytes", answer["reproduce"]["command"])

    def test_a_scenario_with_a_snapshot_is_explained_by_its_memory(self):
        scenario = self.scenario("snapshot.json", {"trace": os.path.abspath(SNAPSHOT)})
        alone, told = self.ask("explain", SNAPSHOT), self.ask("explain", scenario)
        self.assertEqual(told, alone)
        page = self.path("snapshot.html")
        self.ask("explain", scenario, "--output", page)
        self.assertIn("explain " + scenario, embedded(page)["reproduce"]["command"])

    def test_an_allocation_that_failed_is_not_told_that_nothing_helps(self):
        """It would have been served with settings, though none reserves less of what was served."""
        told = " ".join(self.ask("explain", SNAPSHOT, "--verbose").split())
        self.assertIn("would have fitted", told)
        self.assertNotIn("would have reserved less", told)
        self.assertNotIn("none of the", told)

    def test_hostile_names_are_data(self):
        scenario, page = self.scenario("hostile.json", RUNS["one GPU"], hostile.NAME), self.path("hostile.html")
        self.ask("run", scenario, "--output", page)
        answer = embedded(page)
        self.sound(answer)
        self.assertIn("<img src=", answer["title"])
        self.assertIn("\\u{202E}", answer["title"])
        self.ask("explain", hostile.snapshot(ROOT, self.folder), "--output", page)
        self.sound(embedded(page))
        with open(page, encoding="utf-8") as file:
            self.assertNotIn("<img", file.read())

    def test_a_page_has_one_kind_of_name(self):
        scenario = self.scenario("run.json", RUNS["one GPU"])
        for command in ("run", "explain"):
            refused = subprocess.run([PROGRAM, command, scenario, "--output", self.path("answer.txt")],
                                     capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("answer.html", refused.stderr)
            self.assertFalse(os.path.exists(self.path("answer.txt")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
