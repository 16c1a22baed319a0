#!/usr/bin/env python3
"""The package spillway over the program: runs, sweeps, exports, errors; with the standard library alone.

usage: program_test.py SPILLWAY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fixture
import spillway

PROGRAM = os.path.abspath(sys.argv[1])
SCENARIO = os.path.join(fixture.ROOT, "cli/scenarios/gpt2-xl-1k-h100.json")


def printed(*arguments):
    done = subprocess.run([PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


class ProgramTest(unittest.TestCase):
    def test_a_run_is_what_the_program_prints(self):
        result = spillway.run(SCENARIO, program=PROGRAM, model__micro_batch=2)
        self.assertEqual(dict(result), printed("run", SCENARIO, "--set", "model.micro_batch=2"))
        self.assertIs(result.fits, True)
        self.assertEqual(result.step_time_s, result.step_time_ns / 1e9)
        self.assertEqual(result.memory.allocator, "torch")
        self.assertEqual(result.code, 0)
        with self.assertRaisesRegex(AttributeError, "no step_tme; it has"):
            result.step_tme

    def test_no_is_an_answer(self):
        result = spillway.run(SCENARIO, program=PROGRAM, model__micro_batch=64)
        self.assertIs(result.fits, False)
        self.assertEqual(result.code, 1)
        self.assertGreater(result.short_of_bytes, 0)

    # Of a record whose memory is in doubt the answer is that nobody knows.
    def test_not_known_is_an_answer(self):
        def memory(at, size):
            return {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": {
                "Device Type": 1, "Device Id": 0, "Addr": 4096 * at, "Bytes": size, "Total Allocated": 1 << 20}}
        events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 50,
                   "args": {"stream": 7, "device": 0}}, memory(11, 1 << 20), memory(12, "many")]
        device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85031714816}
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "doubt.json")
            with open(trace, "w", encoding="utf-8") as file:
                json.dump({"deviceProperties": [device], "traceEvents": events}, file)
            result = spillway.run(trace, program=PROGRAM)
        self.assertIsNone(result.fits)
        self.assertEqual((result.verdict, result.code), ("unknown", 4))
        self.assertIn("without a usable size", result.why_unknown)

    def test_a_dict_is_a_scenario_and_relative_paths_are_seen_from_beside(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(fixture.ROOT, "models/data/gpt2-small.json"), encoding="utf-8") as model:
                said = model.read()
            with open(os.path.join(folder, "mine.json"), "w", encoding="utf-8") as model:
                model.write(said)
            document = {"schema": "spillway-scenario", "version": 1, "title": "mine",
                        "model": {"name": "./mine.json", "layers": 2, "sequence": 64},
                        "hardware": {"profile": "h100-80gb-1gpu"}}
            result = spillway.run(document, program=PROGRAM, beside=folder)
            self.assertEqual(result.title, "mine")
            self.assertEqual(os.listdir(folder), ["mine.json"])
            del document["hardware"]
            with self.assertRaisesRegex(spillway.InputError, "^the scenario: /hardware.*; remedy: "):
                spillway.run(document, program=PROGRAM, beside=folder)
            self.assertEqual(os.listdir(folder), ["mine.json"])

    def test_errors_are_the_programs_own_sentence(self):
        with self.assertRaisesRegex(spillway.InputError, "^nowhere.json: can't be opened.*; remedy: check the path$"):
            spillway.run("nowhere.json", program=PROGRAM)
        with self.assertRaisesRegex(spillway.InputError, "model.micro_batch"):
            spillway.run(SCENARIO, program=PROGRAM, model__micro_batch=0)
        with self.assertRaises(spillway.InputError):
            spillway.run({"schema": {1, 2}}, program=PROGRAM)

    def test_what_no_command_line_holds_is_bad_input(self):
        for scenario in ("a\0b.json", b"a\0b.json", 7, None):
            with self.assertRaises(spillway.InputError):
                spillway.run(scenario, program=PROGRAM)
        for keywords in ({"model__name": "a\0b"}, {"reserve": "\0"}, {"note": "x" * (1 << 22)}):
            with self.assertRaises(spillway.InputError):
                spillway.run(SCENARIO, program=PROGRAM, **keywords)
        for beside in ("a\0b", "nowhere/at/all", SCENARIO):
            with self.assertRaisesRegex(spillway.InputError, "beside="):
                spillway.run({}, program=PROGRAM, beside=beside)
        with self.assertRaises(spillway.InputError):
            spillway.sweep({}, program=PROGRAM, database="a\0b")

    def test_a_path_is_never_an_option(self):
        for path in ("--help", "--version", "-q", "--set=model.layers=1", "-"):
            for function in (spillway.run, spillway.sweep, spillway.export):
                with self.assertRaisesRegex(spillway.InputError, "can't be opened"):
                    function(path, program=PROGRAM)
        with self.assertRaises(spillway.InputError):
            spillway.export(SCENARIO, "--help", program=PROGRAM)
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            try:
                os.chdir(folder)
                with open("--help", "w", encoding="utf-8") as file, open(SCENARIO, encoding="utf-8") as scenario:
                    file.write(scenario.read())
                self.assertIs(spillway.run("--help", program=PROGRAM).fits, True)
            finally:
                os.chdir(here)

    def test_a_program_that_dies_is_an_error_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            dies = os.path.join(folder, "dies")
            with open(dies, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho 'error: the house fell' >&2\nexit 3\n")
            os.chmod(dies, 0o755)
            with self.assertRaisesRegex(spillway.ProgramError, "status 3: the house fell") as caught:
                spillway.run(SCENARIO, program=dies)
            self.assertEqual(caught.exception.code, 3)

    def test_a_sweep(self):
        space = {"schema": "spillway-sweep", "version": 1, "title": "two batches",
                 "base": {"model": {"name": "gpt2-small"}, "hardware": {"profile": "h100-80gb-1gpu"}},
                 "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]}],
                 "objectives": ["step_time", "peak_memory"]}
        with tempfile.TemporaryDirectory() as folder:
            found = spillway.sweep(space, program=PROGRAM, jobs=1, beside=folder, all_points=True)
            spillway.sweep(space, program=PROGRAM, output=os.path.join(folder, "store"), beside=folder)
            again = spillway.sweep(space, program=PROGRAM, output=os.path.join(folder, "store"), resume=True,
                                   beside=folder, all_points=True)
            self.assertEqual(os.listdir(folder), ["store"])
        self.assertEqual((found.points, len(found["rows"])), (2, 2))
        self.assertEqual(found["rows"], again["rows"])
        with self.assertRaisesRegex(spillway.InputError, "^the sweep: "):
            spillway.sweep({**space, "objectives": ["beauty"]}, program=PROGRAM)

    def test_an_export(self):
        plan = spillway.export(SCENARIO, program=PROGRAM, model__layers=3)
        self.assertEqual((plan["schema"], len(plan["layers"])), ("spillway-module-plan", 3))
        self.assertIn("accelerate launch", spillway.export(SCENARIO, "torch", program=PROGRAM))

    def test_where_the_program_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, {"PATH": folder}):
                os.environ.pop("SPILLWAY", None)
                os.environ["SPILLWAY"] = PROGRAM
                self.assertEqual(spillway.find_program(), PROGRAM)
                with self.assertRaisesRegex(spillway.NotFound, "none/such .the argument. is no program"):
                    spillway.find_program("none/such")
                del os.environ["SPILLWAY"]
                os.symlink(PROGRAM, os.path.join(folder, "spillway"))
                self.assertEqual(spillway.find_program(), os.path.join(folder, "spillway"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
