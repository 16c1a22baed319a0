#!/usr/bin/env python3
"""What the GPU's parts of the program say where there is no GPU, an old driver, or no leave to profile; and a recording
from one end to the other with stand-ins for the driver and for CUPTI.

usage: gpu_absent_test.py SPILLWAY CUDA_STAND_IN FOLDER_OF_FAKE_CUPTI FOLDER_OF_FAKE_DRIVER
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, STAND_IN, CUPTI, DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:5])


class GpuAbsentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def spillway(self, *arguments, **environment):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=120,
                              cwd=self.folder, env={**os.environ, **environment})

    def left(self):
        return sorted(os.listdir(self.folder))

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "a GPU is here")
    def test_without_a_driver_or_with_an_old_one(self):
        for environment in ({}, {"LD_LIBRARY_PATH": DRIVER}):
            for command in (["calibrate", "gpu", "--quick", "--output", "gpu.json"],
                            ["validate", "kernels", "--backend", "cuda", "--output", "k.csv", "--plot", "k.svg"]):
                result = self.spillway(*command, **environment)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("driver", result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(self.left(), [])

    def test_a_program_is_recorded(self):
        result = self.spillway("record", "--output", "t.json", "--", STAND_IN, LD_LIBRARY_PATH=CUPTI)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 works of the GPU", result.stderr)
        self.assertEqual(self.left(), ["t.json"])
        with open(os.path.join(self.folder, "t.json"), encoding="utf-8") as file:
            kernels = [row for row in json.load(file)["traceEvents"] if row.get("cat") == "kernel"]
        self.assertEqual([(row["name"], row["dur"]) for row in kernels], [("stand_in_kernel", 5.0)])

    def test_a_program_that_dies_keeps_its_recording(self):
        result = self.spillway("record", "--output", "t.json", "--", STAND_IN, "die", LD_LIBRARY_PATH=CUPTI)
        self.assertIn("did not end in order", result.stderr)
        self.assertEqual(result.returncode, 137)
        self.assertEqual(self.left(), ["t.json"])
        self.assertEqual(self.spillway("trace", "info", "t.json").returncode, 0)

    def test_no_leave_to_profile(self):
        result = self.spillway("record", "--output", "t.json", "--", STAND_IN, LD_LIBRARY_PATH=CUPTI,
                               FAKE_CUPTI="refuses")
        self.assertIn("CUPTI refuses CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", result.stderr)
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", result.stderr)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(self.left(), [])

    def recorded_behind(self, script):
        """Records a program that runs a line of shell before it uses CUDA; $$ is its process."""
        return self.spillway("record", "--output", "t.json", "--", "sh", "-c", script + '; exec "$0"', STAND_IN,
                             LD_LIBRARY_PATH=CUPTI)

    def test_a_recording_is_a_new_file(self):
        victim = os.path.join(self.folder, "victim")
        with open(victim, "w", encoding="utf-8") as file:
            file.write("theirs")
        for script in ('echo theirs >"$SPILLWAY_RECORD_FILE.$$"', f'ln -s {victim} "$SPILLWAY_RECORD_FILE.$$"',
                       f'ln {victim} "$SPILLWAY_RECORD_FILE.$$"', f'ln -s {self.folder}/none "$SPILLWAY_RECORD_FILE.$$"',
                       'mkdir "$SPILLWAY_RECORD_FILE.$$"'):
            result = self.recorded_behind(script)
            self.assertEqual(result.returncode, 2, script + result.stderr)
            self.assertIn("spillway record: can't write ", result.stderr)
            self.assertIn("the program runs unrecorded", result.stderr)
            self.assertEqual(self.left(), ["victim"], script)
            with open(victim, encoding="utf-8") as file:
                self.assertEqual(file.read(), "theirs", script)

    def test_an_output_that_came_meanwhile_stays(self):
        result = self.recorded_behind("echo theirs >t.json")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("t.json: came there while the program ran", result.stderr)
        with open(os.path.join(self.folder, "t.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "theirs\n")
        kept = result.stderr.split("the recording is ")[1].split()[0].rstrip(".")
        with open(os.path.join(self.folder, kept), encoding="utf-8") as file:
            self.assertIn("stand_in_kernel", file.read())
        os.symlink("nowhere", os.path.join(self.folder, "link.json"))
        result = self.spillway("record", "--output", "link.json", "--", STAND_IN, LD_LIBRARY_PATH=CUPTI)
        self.assertIn("link.json: exists already", result.stderr)

    def on_a_full_disk(self, command, **environment):
        """Runs it with $D on a disk of 64 KiB that is full; what it said, its exit code, what lies on the disk."""
        script = ("mount -t tmpfs -o size=64k none full || exit 77; head -c 65536 /dev/zero >full/fill; export D=full; "
                  + command + '; code=$?; echo "left: $(ls -A full | tr "\\n" " ")" >&2; exit $code')
        os.makedirs(os.path.join(self.folder, "full"), exist_ok=True)
        result = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False,
                                cwd=self.folder, timeout=120, env={**os.environ, **environment})
        if result.returncode == 77 or "unshare" in result.stderr:
            self.skipTest("no file system of one's own here: " + result.stderr)
        return result

    def test_a_full_disk(self):
        for command in ("validate kernels --technique keep --output $D/k.csv --plot $D/k.svg",
                        "validate kernels --technique keep --results $D/results",
                        "calibrate pcie --output $D/host.json"):
            result = self.on_a_full_disk(f"{PROGRAM} {command}")
            self.assertEqual(result.returncode, 2, command + result.stderr)
            if "shows no PCI device" not in result.stderr:
                self.assertIn("free some space", result.stderr)
            self.assertIn(result.stderr.splitlines()[-1], ("left: fill ", "left: fill results "))

    def test_a_recording_on_a_full_disk(self):
        result = self.on_a_full_disk(f"LD_LIBRARY_PATH={CUPTI} {PROGRAM} record --output $D/t.json -- {STAND_IN}")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("can't be written on (No space left on device)", result.stderr)
        self.assertIn("nothing of the program could be recorded", result.stderr)
        self.assertEqual(result.stderr.splitlines()[-1], "left: fill ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
