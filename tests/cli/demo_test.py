#!/usr/bin/env python3
"""`./spill demo` tells one story (does not fit, a way that does, that way drawn), and what it prints to go on with works.

Usage: demo_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class DemoTest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "spill"), encoding="utf-8") as script:
            self.script = script.read()

    def lines_between(self, begin, end):
        return re.search(rf"^{begin}\n(.*?)^{end}$", self.script, re.M | re.S)[1].splitlines()

    def test_it_tells_its_story_and_its_last_lines_work(self):
        story = [shlex.split(line)[1:] for line in self.lines_between("  # story", "  # end")]
        hints = [shlex.split(line, comments=True) for line in self.lines_between("to go on:", "TEXT")]
        self.assertEqual(len(story), 3)
        self.assertGreaterEqual(len(hints), 4)
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(ROOT):
                if name not in ("build", "demo"):
                    os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
            os.mkdir(os.path.join(folder, "demo"))
            codes = []
            for name, *arguments in story + hints:
                if name != "build/cli/spillway":
                    self.assertTrue(os.path.exists(os.path.join(ROOT, name)), name)
                elif arguments != ["gui"]:  # which opens a window
                    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
                                          check=False)
                    self.assertIn(done.returncode, (0, 1), f"{arguments}: {done.stderr}")
                    codes.append(done.returncode)
            self.assertEqual(codes[:3], [1, 0, 0])  # does not fit, a way that does, which fits
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "demo"))), ["does-not-fit.svg", "fits.json", "fits.svg"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
