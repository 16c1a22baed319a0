#!/usr/bin/env python3
"""A plan with one number changed runs, or is refused with its place: it is a file, and no fault of the program.

Usage: changed_plans_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import copy
import json
import os
import random
import subprocess
import sys
import unittest

from folder_case import FolderCase

PROGRAM = os.path.abspath(sys.argv[1])
FULL = os.environ.get("SPILLWAY_TEST_SIZE") == "full"
MODEL = {"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 2}
PIPELINE = {**MODEL, "layers": 4, "pipeline_parallel": 2, "gradient_accumulation": 4}
ONE, MANY = {"profile": "h100-80gb-1gpu"}, {"profile": "dgx-h100"}
# By what makes it: the scenario's parts and the settings that plan.
PLANS = {
    "lifetimes": (MODEL, ONE, ["offload.technique=lifetimes", "offload.tier=host", "memory.capacity=1100MiB", "memory.reserve=0"]),
    "mix": (MODEL, ONE, ["offload.technique=mix", "memory.capacity=1100MiB", "memory.reserve=0"]),
    "ssdtrain": (MODEL, ONE, ["offload.technique=ssdtrain", "offload.tier=host", "offload.least_elements=1"]),
    "checkpoints": (MODEL, ONE, ["offload.technique=checkpoints", "offload.tier=host"]),
    "order": (MODEL, ONE, ["order.technique=roam"]),
    "order and fates": (MODEL, ONE, ["order.technique=roam", "offload.technique=ssdtrain", "offload.tier=host"]),
    "memory": (MODEL, ONE, ["memory.allocator=layout"]),
    "schedule": (PIPELINE, MANY, ["model.pipeline_schedule=1f1b"]),
    "schedule, memory": (PIPELINE, MANY, ["model.pipeline_schedule=zb-h1", "memory.allocator=layout"]),
}


def numbers_in(document, path=()):
    """Places of all numbers."""
    if isinstance(document, bool):
        return
    if isinstance(document, (int, float)):
        yield path
    for key, value in (document.items() if isinstance(document, dict) else
                       enumerate(document) if isinstance(document, list) else ()):
        yield from numbers_in(value, (*path, key))


def changed(document, path, value):
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


class ChangedPlansTest(FolderCase):
    def run_with(self, scenario, settings):
        return subprocess.run([PROGRAM, "run", scenario, *(f"--set={setting}" for setting in settings)], capture_output=True,
                              text=True, check=False, timeout=120)

    def test_every_number_changed_alone(self):
        seed = int(os.environ.get("SPILLWAY_TEST_SEED", "1"))
        draw = random.Random(seed)
        refused = 0
        for name, (model, hardware, settings) in PLANS.items():
            scenario = self.path("step.json", {"schema": "spillway-scenario", "version": 1, "model": model, "hardware": hardware})
            plan = self.path("plan.json")
            made = subprocess.run([PROGRAM, "run", scenario, *(f"--set={setting}" for setting in settings), "--plan-output", plan],
                                  capture_output=True, text=True, check=False, timeout=120)
            self.assertIn(made.returncode, (0, 1), f"{name}: {made.stderr}")
            with open(plan, encoding="utf-8") as file:
                document = json.load(file)
            kept = [setting for setting in settings if "technique" not in setting and "allocator" not in setting]
            self.assertIn(self.run_with(scenario, [*kept, f"plan={plan}"]).returncode, (0, 1), name)
            places = list(numbers_in(document))
            self.assertGreater(len(places), 3, name)
            for path in places if FULL else draw.sample(places, min(len(places), 40)):
                inner = document
                for key in path:
                    inner = inner[key]
                for value in draw.sample([-1, 0, 5, inner + 1, inner - 1, inner + 40, 2 * inner + 7, 1 << 40], 3):
                    self.path("plan.json", changed(document, path, value))
                    result = self.run_with(scenario, [*kept, f"plan={plan}"])
                    said = f"seed {seed}, {name} {path}: {inner} -> {value}: {result.stderr}"
                    self.assertIn(result.returncode, (0, 1, 2), said)
                    if result.returncode == 2:
                        refused += 1
                        self.assertIn("remedy:", result.stderr, said)
        self.assertGreater(refused, 50)

    def test_a_step_that_can_not_run_so_is_told_with_its_place(self):
        """A tensor leaves before the last op that uses it."""
        model, hardware, settings = PLANS["checkpoints"]
        scenario = self.path("step.json", {"schema": "spillway-scenario", "version": 1, "model": model, "hardware": hardware})
        plan = self.path("plan.json")
        subprocess.run([PROGRAM, "run", scenario, *(f"--set={setting}" for setting in settings), "--plan-output", plan],
                       capture_output=True, check=False)
        with open(plan, encoding="utf-8") as file:
            document = json.load(file)
        told = 0
        for k, absence in enumerate(document["fates"]["absences"]):
            if absence[3] < 2:
                continue
            self.path("plan.json", changed(document, ("fates", "absences", k, 3), absence[3] - 2))
            result = self.run_with(scenario, [f"plan={plan}"])
            self.assertIn(result.returncode, (0, 1, 2), result.stderr)
            if "can't run so" in result.stderr:
                told += 1
                self.assertIn(f"{plan}: /fates/absences/", result.stderr)
        self.assertGreater(told, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
