#!/usr/bin/env python3
"""validation/gpu_campaign.sh with stand-ins for the program, the GPU and PyTorch, and validation/allocator_checks.py on a
history made by hand.

usage: campaign_test.py SPILLWAY SOURCE_ROOT
"""
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

# In place of the program: writes what it is asked to write, and logs what it was asked. FAKE_FAILS names a word of the
# arguments that make it fail, FAKE_SLOW one that makes it take long, FAKE_LARGE one whose output is 3 MiB.
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "${FAKE_VERSION:-spillway 0.2.0 (commit 0123456789ab)}"; exit "${FAKE_BROKEN:-0}"; }
echo "spillway $*" >>"$FAKE_LOG"
case "$*" in *"${FAKE_FAILS:-nothing at all}"*) echo "spillway: the drive was pulled out" >&2; exit 2 ;; esac
case "$*" in *"${FAKE_SLOW:-nothing at all}"*) echo "half a result"; exec sleep 600 ;; esac
case "$*" in *"${FAKE_LARGE:-nothing at all}"*) head -c 3145728 /dev/urandom ;; esac
case "$1 $2" in record*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;; "trace convert") echo >"$4" ;; esac
case "$1 $2" in "validate kernels") kernels=1 ;; esac
while [ $# -gt 0 ]; do
  case "$1" in --output | --plot) echo '{"pcie": []}' >"$2" ;; esac
  shift
done
[ "$kernels" ] && { echo '{"rows": [{"metric": "host_written", "source": "plan", "measured": 5, "predicted": 5},
  {"metric": "step_time", "source": "blind", "measured": 0.2, "predicted": 0.25},
  {"metric": "step_time", "source": "from_trace", "measured": 0.2, "predicted": 0.21}],
  "runs": [{"measured_share_of_blind": 0.9, "overlap": {"verdict_is_right": false}}]}'; exit 0; }
echo '{"step_time_ns": 110, "peak_allocated_bytes": 900, "peak_reserved_bytes": 1000, "verdict": "fits",
  "addresses": {"matched": 7, "total": 8}, "segments": {"matched": 2, "total": 2}, "final_blocks": {"matched": 3, "total": 3}}'
"""

# In place of PyTorch and of spillway.torch: a step of 100 ns that takes 1,000 bytes.
TORCH = """
from types import SimpleNamespace
__version__ = "2.11.0"
version = SimpleNamespace(cuda="13.0")
cuda = SimpleNamespace(is_available=lambda: True, get_device_properties=lambda device: SimpleNamespace(
    name="NVIDIA H100 80GB HBM3", total_memory=85 << 30, multi_processor_count=132))
backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 91900))


class Tensor:
    __matmul__ = lambda self, other: self
    sum = lambda self: self
    item = lambda self: 1.0


randn = lambda *shape, device: Tensor()
"""
TORCH_COMMAND = """
import json, os, sys
words = sys.argv[1:]
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write("torch " + " ".join(words) + "\\n")
option = lambda name: words[words.index(name) + 1]
os.makedirs(option("--out"))
write = lambda name, value: json.dump(value, open(os.path.join(option("--out"), name), "w"))
memory = {"peak_allocated_bytes": 1000, "peak_reserved_bytes": 1000}
if words[0] == "record":
    write("steps.json.gz", {})
    write("memory.pickle", {})
    write("manifest.json", {"phases": {"unprofiled": {"median_ns": 100, "memory": memory}}})
else:
    write("steps.json", {"rows": [
        {"technique": word, "error": "out of memory"} if word == os.environ.get("FAKE_TECHNIQUE")
        else {"technique": word, "median_ns": 100, "step_times_ns": [100], **memory}
        for word in option("--techniques").split(",")]})
"""
NVIDIA_SMI = """#!/bin/sh
case "$*" in *query-gpu=name*) echo "${FAKE_GPU:-NVIDIA H100 80GB HBM3}, 580.65, 81559 MiB" ;; *) echo "no more is known" ;; esac
"""


class CampaignTest(unittest.TestCase):
    """gpu_campaign.sh as a release has it, with stand-ins for the program, nvidia-smi and PyTorch."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        root = self.path("release")
        shutil.copytree(os.path.join(ROOT, "validation"), os.path.join(root, "validation"),
                        ignore=shutil.ignore_patterns("__pycache__", "results", "published", "trainer", "recorder"))
        self.write("release/bin/spillway", STAND_IN)
        self.write("release/python/spillway/__init__.py", "")
        self.write("release/python/spillway/torch/__init__.py", "")
        self.write("release/python/spillway/torch/__main__.py", TORCH_COMMAND)
        self.write("packages/torch/__init__.py", TORCH)
        for name in ("nvidia-smi", "compute-sanitizer"):
            self.write("tools/" + name, NVIDIA_SMI)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)

    def environment(self, **variables):
        return {**os.environ, "PATH": self.path("tools") + ":/usr/bin:/bin", "PYTHON": sys.executable, "FAKE_LOG":
                self.path("log"), "PYTHONPATH": self.path("packages"), "CUDA_HOME": self.path("tools"), **variables}

    def command(self, phases, *options, out="out", minutes="5"):
        return [self.path("release/validation/gpu_campaign.sh"), phases, "--minutes", minutes, "--work", self.path("work"),
                "--out", self.path(out), *options]

    def campaign(self, phases, *options, out="out", minutes="5", **variables):
        """The result and what was asked of the stand-ins."""
        open(self.path("log"), "w", encoding="utf-8").close()
        result = subprocess.run(self.command(phases, *options, out=out, minutes=minutes), capture_output=True, text=True,
                                check=False, timeout=300, env=self.environment(**variables))
        with open(self.path("log"), encoding="utf-8") as file:
            return result, file.read().splitlines()

    def manifest(self, out="out"):
        with open(self.path(out + "/campaign.json"), encoding="utf-8") as file:
            return json.load(file)

    def statuses(self, out="out"):
        return {step["name"]: step["status"] for step in self.manifest(out)["steps"]}

    def unpacked(self, out="out"):
        """Names of the files in the packs, unpacked as the guide says."""
        os.makedirs(self.path("unpacked"), exist_ok=True)
        subprocess.run(f"cat {self.path(out)}/campaign.tar.gz.* | tar -xzf - -C {self.path('unpacked')}", shell=True, check=True)
        return [os.path.relpath(os.path.join(where, name), self.path("unpacked"))
                for where, _, names in os.walk(self.path("unpacked")) for name in names]

    def read_back(self, out="out", code=0):
        result = subprocess.run([PROGRAM, "validate", "results", self.path(out), "--format", "json"], capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def test_all_of_it_runs_and_is_read_back(self):
        result, calls = self.campaign("all")
        # What needs PyTorch itself fails, and says so.
        self.assertEqual({name: status for name, status in self.statuses().items() if status != "done"},
                         {"load": "failed", "production-kernels": "failed", "calibrate-production": "skipped",
                          "allocator-record": "failed", "allocator-compare": "skipped"}, result.stderr)
        self.assertEqual(result.returncode, 1)
        answer = self.read_back(code=1)
        self.assertEqual(answer["machine"]["gpu"], "NVIDIA H100 80GB HBM3")
        blind = [row for row in answer["rows"] if row["source"] == "blind" and row["relative_error"] is not None]
        cases = {row["case"] for row in blind}
        self.assertGreaterEqual(len(cases), 32 + 6)
        self.assertEqual({row["metric"]: round(row["relative_error"], 6) for row in blind},
                         {"step_time": 0.1, "peak_allocated": -0.1, "peak_reserved": 0, "trainer_step_time": 0.25})
        traced = {row["relative_error"] for row in answer["rows"] if row["metric"] == "trainer_step_time"
                  and row["source"] == "from_trace"}
        self.assertEqual({round(error, 6) for error in traced}, {0.05})
        self.assertEqual((answer["trainer"]["least_measured_share"], answer["trainer"]["transfer_verdicts_right"]), (0.9, 0))
        self.assertEqual(answer["trainer"]["transfer_verdicts"], len({row["case"] for row in answer["rows"]
                                                                      if row["metric"] == "trainer_step_time"}))
        self.assertGreater(sum(row["source"] == "from_trace" for row in answer["summary"]), 0)
        # Memory is PyTorch's own allocator's: of recorded steps, block by block.
        self.assertEqual({row["check"]: row["differences"] for row in answer["allocator"]}["gpt2-124m b8 keep, recorded"],
                         ["addresses: 7 of 8 as recorded"])
        # Blind: every prediction was asked for before the first run that it is about.
        predictions = [at for at, call in enumerate(calls) if call.startswith("spillway run") and "machine/" in call]
        first_plan = next(at for at, call in enumerate(calls) if "steps --model gpt2-774m" in call)
        first_record = next(at for at, call in enumerate(calls) if call.startswith("torch record"))
        self.assertGreaterEqual(sum(at < first_plan for at in predictions), 32 + 6)
        self.assertEqual(max(predictions) < first_plan, True)
        self.assertGreaterEqual(sum(at < first_record for at in predictions), 6)
        profiles = {row["case"]: row["blind_profile"] for row in self.manifest()["comparisons"]}
        self.assertEqual(profiles["gpt2-774m b4 full"], "measured")
        self.assertEqual(profiles["gpt2-774m b4 keep, recorded"], "h100-sxm5-80gb")
        names = self.unpacked()
        for name in ("environment/nvidia-smi.out", "predictions/predictions.jsonl", "calibrate-gpu/gpu.json",
                     "record-gpt2-124m-b8/recording/manifest.json", "recorder-overhead/overhead.json"):
            self.assertIn(name, names)

    def test_without_a_gpu_everything_says_why_not(self):
        os.remove(self.path("tools/nvidia-smi"))
        self.write("packages/torch/__init__.py", TORCH.replace("lambda: True", "lambda: False"))
        result = subprocess.run(self.command("environment,smoke,calibration,plans", "--spillway", PROGRAM),
                                capture_output=True, text=True, check=False, timeout=300, env=self.environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = self.read_back()
        by_status = {}
        for step in answer["steps"]:
            by_status.setdefault(step["status"], []).append(step["name"])
            self.assertEqual(step["reason"] == "", step["status"] == "done", step)
        self.assertEqual(sorted(by_status), ["done", "skipped"])
        self.assertIn("smoke-run", by_status["done"])
        self.assertIn("calibrate-gpu", by_status["skipped"])
        predicted = [row for row in answer["rows"] if row["source"] == "blind" and row["predicted"]]
        self.assertGreaterEqual(len({row["case"] for row in predicted}), 24)
        self.assertTrue(all(row["measured"] is None for row in predicted))

    def test_a_failure_is_told_and_the_rest_goes_on_and_is_resumed(self):
        result, calls = self.campaign("environment,smoke,calibration", FAKE_FAILS="calibrate nvme")
        self.assertEqual(result.returncode, 1)
        self.assertIn("calibrate-nvme: failed: spillway: the drive was pulled out", result.stderr)
        self.assertEqual(self.statuses()["calibrate-gpu"], "done")
        self.read_back(code=1)
        # The next call goes on with what is missing; the manifest alone is enough for it.
        os.makedirs(self.path("carried"))
        shutil.copy(self.path("out/campaign.json"), self.path("carried"))
        result, calls = self.campaign("smoke,calibration,plans", "--resume", self.path("carried"), out="second")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([call.split()[1:3] for call in calls if "calibrate" in call], [["calibrate", "nvme"]])
        steps = {step["name"]: step for step in self.read_back("second")["steps"]}
        self.assertTrue(steps["calibrate-gpu"]["earlier"])
        self.assertFalse(steps["calibrate-nvme"]["earlier"])
        rows = self.manifest("second")["comparisons"]
        self.assertEqual({row["blind_profile"] for row in rows}, {"measured"})  # by the first call
        result, calls = self.campaign("plans", "--resume", self.path("second"), out="third")
        self.assertEqual((result.returncode, calls), (0, []), result.stderr)
        self.assertEqual(self.manifest("third")["comparisons"], rows)

    def test_what_has_run_is_predicted_no_more(self):
        self.campaign("models", FAKE_FAILS="spillway-run-fails", FAKE_TECHNIQUE="")
        result, _ = self.campaign("plans", out="second", FAKE_FAILS="machine/")
        self.assertEqual(result.returncode, 0, result.stderr)
        result, _ = self.campaign("plans", "--resume", self.path("second"), out="third")
        self.assertTrue(all("blind" not in row for row in self.manifest("third")["comparisons"]))
        self.assertTrue(all("measured" in row for row in self.manifest("third")["comparisons"]))

    def test_a_technique_that_fails_leaves_the_others(self):
        result, _ = self.campaign("plans", FAKE_TECHNIQUE="selective")
        self.assertEqual(result.returncode, 1)
        self.assertIn("plans-gpt2-774m-b4-1: failed: what it left can't be used: selective: out of memory", result.stderr)
        rows = {(row["case"], row["metric"]): row for row in self.manifest()["comparisons"]}
        self.assertIn("measured", rows["gpt2-774m b4 full", "step_time"])
        self.assertNotIn("measured", rows["gpt2-774m b4 selective", "step_time"])

    def test_an_interrupt_ends_it_with_what_is_done(self):
        for sign in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sign):
                for name in ("out", "work"):
                    shutil.rmtree(self.path(name), ignore_errors=True)
                campaign = subprocess.Popen(self.command("environment,smoke,calibration"), stderr=subprocess.PIPE, text=True,
                                            env=self.environment(FAKE_SLOW="calibrate gpu --quick"))
                lines = []
                while "calibrate-pcie" not in (lines or [""])[-1]:
                    lines.append(campaign.stderr.readline())
                    self.assertNotEqual(lines[-1], "", lines)
                # In the step behind it now, or just before.
                while not os.path.exists(self.path("work/results/calibrate-gpu/out.out")):
                    time.sleep(0.01)
                campaign.send_signal(sign)
                _, error = campaign.communicate(timeout=60)  # the step takes ten minutes
                self.assertEqual(campaign.returncode, 130, error)
                statuses = self.statuses()
                self.assertEqual((statuses["calibrate-pcie"], statuses["calibrate-gpu"], statuses["calibrate-nvme"]),
                                 ("done", "stopped", "left"))
                self.assertFalse(self.read_back()["finished"])
                self.assertEqual(subprocess.run(["pgrep", "-f", self.path("work")], capture_output=True, check=False).stdout, b"")

    def test_a_step_whose_time_is_over_leaves_what_it_has(self):
        result, _ = self.campaign("smoke", minutes="0.35", FAKE_SLOW="run ")
        self.assertEqual(result.returncode, 1)
        statuses = self.statuses()
        self.assertEqual(statuses["smoke-run"], "stopped")
        self.assertEqual(statuses["smoke-sanitizer"], "left")
        self.assertIn("smoke-run/out.out", self.unpacked())
        with open(self.path("unpacked/smoke-run/out.out"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "half a result\n")

    def test_without_time_all_is_left(self):
        result, calls = self.campaign("all", minutes="0.1")
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertEqual(set(self.statuses().values()), {"left", "skipped"} & set(self.statuses().values()))
        self.assertIn("left", self.statuses().values())
        self.read_back()

    def test_files_are_few_and_small(self):
        for files, mebibytes, finds_room in ((3, 1, False), (8, 15, True), (8, 1, True)):
            out = f"out-{files}-{mebibytes}"
            result, _ = self.campaign("environment,smoke", "--max-files", str(files), "--max-file-mib", str(mebibytes),
                                      out=out, FAKE_LARGE="--backend cpu")
            self.assertEqual(result.returncode, 0, result.stderr)
            sizes = [entry.stat().st_size for entry in os.scandir(self.path(out))]
            self.assertLessEqual(len(sizes), files)
            self.assertLessEqual(max(sizes), mebibytes << 20)
            left_out = [row["name"] for row in self.read_back(out)["left_out"]]
            self.assertEqual(left_out, [] if finds_room else ["smoke-cpu/out.out"])
            names = self.unpacked(out)
            self.assertEqual("smoke-cpu/out.out" in names, finds_room)
            self.assertIn("environment/lscpu.out", names)
            if finds_room:
                with open(self.path("work/results/smoke-cpu/out.out"), "rb") as made, \
                        open(self.path("unpacked/smoke-cpu/out.out"), "rb") as read:
                    self.assertEqual(made.read(), read.read())
            shutil.rmtree(self.path("unpacked"))

    def test_a_program_that_does_not_run_is_told_first(self):
        result, calls = self.campaign("smoke,models", FAKE_BROKEN="1", FAKE_VERSION="")
        self.assertIn("doesn't run here", result.stderr.splitlines()[0])
        self.assertIn("going on with the Python parts", result.stderr.splitlines()[0])
        self.assertTrue(calls and all(call.startswith("torch") for call in calls), calls)
        statuses = self.statuses()
        self.assertEqual((statuses["smoke-run"], statuses["record-gpt2-124m-b8"]), ("skipped", "done"))
        self.assertEqual(self.read_back()["spillway"], "")

    def test_wrong_arguments_are_refused(self):
        for phases, options, words in (("fast", [], "no phase is called fast"), ("all", ["--minutes", "soon"], "soon"),
                                       ("all", ["--minutes", "0"], "above zero"), ("all", ["--max-files", "2"], "at least 3"),
                                       ("all", ["--resume", self.path("none")], "campaign.json")):
            result, calls = self.campaign(phases, *options)
            self.assertEqual((result.returncode, calls), (2, []), result.stderr)
            self.assertIn(words, result.stderr)
        self.campaign("environment")
        result, _ = self.campaign("environment")
        self.assertEqual(result.returncode, 2)
        self.assertIn("is not empty; pass it by --resume", result.stderr)
        result, _ = self.campaign("environment", "--resume", self.path("out"), out="other", FAKE_GPU="NVIDIA H200")
        self.assertEqual(result.returncode, 2)
        self.assertIn("was measured on NVIDIA H100 80GB HBM3, this is NVIDIA H200", result.stderr)
        with open(self.path("out/campaign.json"), "r+", encoding="utf-8") as file:
            file.truncate(100)
        result, _ = self.campaign("environment", "--resume", self.path("out"), out="another")
        self.assertEqual(result.returncode, 2)
        self.assertIn("is cut off", result.stderr)


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
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
