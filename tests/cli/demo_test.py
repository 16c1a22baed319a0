#!/usr/bin/env python3
"""What `./spill demo` prints to go on with can be gone on with.

Usage: demo_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import os
import re
import shlex
import subprocess
import sys
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]


class DemoTest(unittest.TestCase):
    def test_its_last_lines_work(self):
        with open(os.path.join(ROOT, "spill"), encoding="utf-8") as script:
            lines = re.search(r"^to go on:\n(.*?)^TEXT$", script.read(), re.M | re.S)[1].splitlines()
        commands = [shlex.split(line, comments=True) for line in lines]
        self.assertGreaterEqual(len(commands), 4)
        for name, *arguments in commands:
            if name != "build/cli/spillway":
                self.assertTrue(os.path.exists(os.path.join(ROOT, name)), name)
            elif arguments != ["gui"]:  # which opens a window
                done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
                self.assertIn(done.returncode, (0, 1), f"{arguments}: {done.stderr}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
