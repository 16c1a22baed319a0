#!/usr/bin/env python3
"""validation/run_all.sh with a stand-in for the program, and validation/allocator_checks.py on a history made by hand.

usage: campaign_test.py SPILLWAY SOURCE_ROOT
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

# Writes what it is asked to write; FAKE_FAILS names a word of the arguments that make it fail, FAKE_SLOW one that makes
# it take long.
STAND_IN = """#!/bin/sh
echo "$*" >>"$FAKE_LOG"
case "$*" in *"${FAKE_FAILS:-nothing at all}"*) echo "spillway: the drive was pulled out" >&2; exit 2 ;; esac
case "$*" in *"${FAKE_SLOW:-nothing at all}"*) exec sleep 60 ;; esac
while [ $# -gt 0 ]; do
  case "$1" in --output | --plot) echo '{"pcie": []}' >"$2" ;; esac
  shift
done
echo '{}'
"""


class CampaignTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(self.folder, "out")
        os.makedirs(os.path.join(self.folder, "build/cli"))
        program = os.path.join(self.folder, "build/cli/spillway")
        with open(program, "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(program, 0o755)

    def run_all(self, *options, **environment):
        log = os.path.join(self.folder, "log")
        open(log, "w", encoding="utf-8").close()
        result = subprocess.run(
            [os.path.join(ROOT, "validation/run_all.sh"), "--output", self.output, "--build",
             os.path.join(self.folder, "build"), *options], capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "FAKE_LOG": log, **environment})
        with open(log, encoding="utf-8") as file:
            return result, file.read().splitlines()

    def test_every_step_runs_or_says_why_not_and_only_once(self):
        result, calls = self.run_all()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--quick", next(call for call in calls if call.startswith("calibrate nvme")))
        self.assertTrue(any(call.startswith("validate kernels --backend cpu") for call in calls))
        if not os.path.exists("/dev/nvidiactl"):
            self.assertIn("gpu: skipped: no NVIDIA driver", result.stderr)
            self.assertIn("kernels-cuda: skipped: no GPU was measured", result.stderr)
            self.assertIn("pytorch: skipped: no PyTorch that sees a GPU", result.stderr)
        for name in ("host.json", "drive.json", "system.json", "kernels-cpu.csv", "kernels-cpu.svg",
                     "kernels-cpu.json"):
            self.assertTrue(os.path.exists(os.path.join(self.output, name)), name)
        again, calls = self.run_all()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(calls, [])
        self.assertIn("nvme: done before", again.stderr)

    def test_a_failure_is_told_and_the_rest_goes_on(self):
        result, calls = self.run_all("--full", FAKE_FAILS="calibrate nvme")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nvme: FAILED with code 2: spillway: the drive was pulled out", result.stderr)
        self.assertTrue(any(call.startswith("validate kernels") for call in calls))
        # The next run goes on with what is missing, and with nothing else.
        result, calls = self.run_all("--full")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([call.split()[:2] for call in calls], [["calibrate", "nvme"]])

    def test_out_of_time_the_rest_is_left_for_the_next_run(self):
        result, calls = self.run_all("--minutes", "0")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(calls, [])
        self.assertIn("kernels-cpu: left for the next run", result.stderr)
        result, calls = self.run_all()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreaterEqual(len(calls), 3)

    def test_wrong_arguments_are_refused(self):
        self.assertEqual(self.run_all("--fast")[0].returncode, 2)
        self.assertEqual(self.run_all("--minutes", "soon")[0].returncode, 2)


class ShapesTest(unittest.TestCase):
    """What record.py builds is what spillway generates: the program refuses a file whose shape has another count."""

    def test_steps_of_every_recorded_model_can_be_predicted(self):
        sys.path.insert(0, os.path.join(ROOT, "traces/pytorch"))
        import shapes
        # GPT-2's checkpoint has 124,439,808; the head of its own has 50,257 x 768 more.
        self.assertEqual(shapes.parameter_count(shapes.SHAPES["gpt2-small"], 1024), 124439808 + 50257 * 768)
        with tempfile.TemporaryDirectory() as folder:
            model, scenario = os.path.join(folder, "model.json"), os.path.join(folder, "scenario.json")
            for name in shapes.SHAPES:
                with open(model, "w", encoding="utf-8") as file:
                    json.dump(shapes.model_file(name, 256), file)
                with open(scenario, "w", encoding="utf-8") as file:
                    json.dump(shapes.scenario(name, 256, 2, model, "h100-80gb-1gpu"), file)
                answer = subprocess.run([PROGRAM, "run", scenario, "--format", "json"], capture_output=True, text=True,
                                        check=False)
                self.assertTrue(answer.stdout.startswith("{"), f"{name}: {answer.stderr}")
                self.assertGreater(json.loads(answer.stdout)["step_time_ns"], 0)


class AllocatorChecksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def record(self, second_address):
        """Two requests of 1,000 bytes: 2 MiB of the small pool, the second right behind the first."""
        base = 0x7F0000000000
        events = [{"action": "segment_alloc", "addr": base, "size": 2 << 20, "stream": 0, "frames": []}]
        for address in (base, second_address):
            events.append({"action": "alloc", "addr": address, "size": 1024, "stream": 0, "frames": []})
        end, blocks = base, []
        for address in (base, second_address):
            if address > end:
                blocks.append({"address": end, "size": address - end, "requested_size": 0, "state": "inactive",
                               "frames": []})
            blocks.append({"address": address, "size": 1024, "requested_size": 1000, "state": "active_allocated",
                           "frames": []})
            end = address + 1024
        blocks.append({"address": end, "size": base + (2 << 20) - end, "requested_size": 0, "state": "inactive",
                       "frames": []})
        segment = {"device": 0, "address": base, "total_size": 2 << 20, "allocated_size": 2048, "active_size": 2048,
                   "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
                   "blocks": blocks}
        path = os.path.join(self.folder, "plain.pickle")
        with open(path, "wb") as file:
            pickle.dump({"segments": [segment], "device_traces": [events]}, file, protocol=4)
        answer = subprocess.run([PROGRAM, "memory", path, "--format", "json"], capture_output=True, text=True,
                                check=True)
        return json.loads(answer.stdout)["memory_stats"]

    def compare(self, stats):
        with open(os.path.join(self.folder, "plain.json"), "w", encoding="utf-8") as file:
            json.dump({"settings": "", "capacity": 0, "torch": "2.9", "stats": stats}, file)
        report = os.path.join(self.folder, "report.json")
        result = subprocess.run([sys.executable, os.path.join(ROOT, "validation/allocator_checks.py"), "compare",
                                 self.folder, "--spillway", PROGRAM, "--output", report], capture_output=True,
                                text=True, check=False)
        with open(report, encoding="utf-8") as file:
            return result, json.load(file)["plain"]

    def test_what_agrees_is_confirmed(self):
        stats = self.record(0x7F0000000000 + 1024)
        self.assertEqual(stats["reserved_bytes.all.peak"], 2 << 20)
        result, answer = self.compare(stats)
        self.assertEqual((result.returncode, answer["confirmed"]), (0, True), result.stdout)

    def test_what_differs_is_named(self):
        stats = self.record(0x7F0000000000 + 1024)
        result, answer = self.compare({**stats, "segment.all.peak": 2})
        self.assertEqual(result.returncode, 1)
        self.assertEqual(answer["differences"], ["segment.all.peak: 2 in PyTorch, 1 here"])
        stats = self.record(0x7F0000000000 + 4096)  # PyTorch would have put it elsewhere
        result, answer = self.compare(stats)
        self.assertEqual(result.returncode, 1)
        self.assertIn("addresses: 1 of 2 as recorded", answer["differences"])

    def test_nothing_recorded_is_told(self):
        result = subprocess.run([sys.executable, os.path.join(ROOT, "validation/allocator_checks.py"), "compare",
                                 self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing was recorded", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
