#!/usr/bin/env python3
"""No command writes over what it reads, nor two results into one file: every name that is written against every other
word of the command line, as its own table of options has them.

Usage: written_files_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import itertools
import json
import os
import shutil
import subprocess
import sys
import unittest

from folder_case import FolderCase

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
STEP = {"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 2, "sequence": 128},
        "hardware": {"profile": "dgx-a100"}}
# In the placeholder of a value that can be a file's name.
NAMES_A_FILE = ("FILE", "STORE", "PATH", "PROFILE", "SCENARIO", "KEY=VALUE", "NAME=VALUE")


def spillway(*arguments, cwd=None):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def is_flag(option):
    return not option["value"] and option["names"][0].startswith("-")


class WrittenFilesTest(FolderCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = json.loads(spillway("manual", "--format", "json").stdout)["commands"]

    def setUp(self):
        super().setUp()
        self.original = self.path("file.json", STEP)
        with open(self.original, "rb") as file:
            self.bytes = file.read()
        os.symlink("file.json", self.path("link.json"))
        os.link(self.original, self.path("hard.json"))
        os.symlink(".", self.path("folder"))
        self.names = ["file.json", "./file.json", "link.json", "hard.json", self.original, "folder/file.json"]

    def untouched(self):
        with open(self.original, "rb") as file:
            self.assertEqual(file.read(), self.bytes)

    @staticmethod
    def words(option, name):
        """The option with a file's name as it takes one."""
        before = {"KIND=FILE": "front=", "KEY=VALUE": "plan=", "NAME=VALUE": "X="}.get(option["value"], "")
        flag = option["names"][-1]
        return [before + name] if not flag.startswith("-") else [f"{flag}={before}{name}"]

    @staticmethod
    def filler(option):
        value = option["choices"][0] if option["choices"] else "none.json"
        flag = option["names"][-1]
        return [value] if not flag.startswith("-") else [f"{flag}={value}"]

    def pairs(self):
        """(command, option that is written, other word of the same command)."""
        for command in self.commands:
            every = [option for option in command["arguments"] + command["options"] if not is_flag(option)]
            for written in every:
                if not written["is_written"]:
                    continue
                for other in every:
                    yield command, every, written, other

    def test_every_written_name_against_every_other_word(self):
        aliases = itertools.cycle(itertools.permutations(self.names, 2))
        refused = 0
        for command, every, written, other in self.pairs():
            names_a_file = other["names"][0].isupper() or any(word in other["value"] for word in NAMES_A_FILE)
            for _ in range(3 if names_a_file else 1):
                first, second = next(aliases)
                words = {id(written): self.words(written, first)}
                if other is not written:
                    words[id(other)] = self.words(other, second)
                elif "KIND" in written["value"]:
                    words[id(other)] += self.words(other, second)  # given twice
                else:
                    continue
                given = [words.get(id(option)) or (self.filler(option) if option["required"] else []) for option in every]
                flags = [word for each in given for word in each if word.startswith("-")]
                arguments = [word for each in given for word in each if not word.startswith("-")]
                result = spillway(*command["path"].split(), *flags, *arguments, cwd=self.folder)
                said = f"{command['path']} {flags} {arguments}: {result.stderr}"
                self.assertEqual(result.returncode, 2, said)
                self.untouched()
                if names_a_file and not other["choices"]:
                    self.assertRegex(result.stderr, "named twice|exists already", said)
                refused += "named twice" in result.stderr
        self.assertGreater(refused, 200)
        self.assertEqual(sorted(os.listdir(self.folder)), ["file.json", "folder", "hard.json", "link.json"])

    def test_what_was_written_is_told(self):
        told = spillway("run", "file.json", "--output", "answer.json", "--timeline", "lanes.svg", cwd=self.folder)
        self.assertRegex(told.stderr, r"(?m)^wrote answer\.json, [0-9.]+ KiB$")
        self.assertRegex(told.stderr, r"(?m)^wrote lanes\.svg, [0-9.]+ KiB$")
        self.assertNotIn("wrote", told.stdout)
        self.assertNotIn("wrote", spillway("run", "file.json", "-q", "--output", "answer.json", cwd=self.folder).stderr)
        self.assertNotIn("wrote", spillway("run", "file.json", "--output", "-", cwd=self.folder).stderr)
        # Nothing fits: the older file stays, and is not said to be new.
        small = ["--set", "memory.capacity_bytes=1000000", "--replays", "1", "--output", "answer.json"]
        self.assertNotIn("wrote", spillway("fit", "file.json", *small, cwd=self.folder).stderr)

    def test_what_says_that_it_writes_is_in_the_table(self):
        for command in self.commands:
            for option in command["arguments"] + command["options"]:
                said = option["about"].startswith(("write ", "keep ", "file to write"))
                if said and (option["value"] or option["names"][0].isupper()):
                    self.assertTrue(option["is_written"], f"{command['path']} {option['names']}")

    def test_two_results_do_not_go_into_one_file(self):
        for first, second in (("x.svg", "x.svg"), ("x.svg", "./x.svg"), ("x.svg", "folder/x.svg")):
            result = spillway("run", "file.json", "--timeline", first, "--curve", second, cwd=self.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("named twice", result.stderr)
        result = spillway("sweep", "file.json", "--output", "a", "--database", "a", cwd=self.folder)
        self.assertIn("named twice", result.stderr)
        self.assertFalse(os.path.exists(self.path("a")))
        self.assertFalse(os.path.exists(self.path("x.svg")))

    def test_a_word_that_is_no_file_is_not_taken_for_one(self):
        result = spillway("export", "file.json", "--for", "megatron", "--output", "megatron", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_files_that_files_name_are_not_overwritten(self):
        """A sweep's base, a scenario's trace and plan: their names stand in no word of the command."""
        trace = self.path("trace.json.gz")
        shutil.copyfile(os.path.join(ROOT, "traces/data/gpt2-tiny-cpu/steps.json.gz"), trace)
        self.path("captured.json", {"schema": "spillway-scenario", "version": 1, "trace": "trace.json.gz"})
        plan = self.path("plan.json")
        self.assertEqual(spillway("run", "file.json", "--set", "offload.technique=ssdtrain", "--set", "offload.tier=host",
                                  "--plan-output", plan, cwd=self.folder).returncode, 0)
        self.path("planned.json", {**STEP, "plan": "plan.json"})
        self.path("sweep.json", {"schema": "spillway-sweep", "version": 1, "base": "file.json",
                                 "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]}]})
        for command, read in ((["run", "captured.json", "--timeline"], trace), (["run", "planned.json", "--curve"], plan),
                              (["run", "planned.json", "--plan-output"], plan),
                              (["sweep", "sweep.json", "--database"], self.original)):
            with open(read, "rb") as file:
                before = file.read()
            os.link(read, self.path("other.svg"))
            result = spillway(*command, "other.svg", cwd=self.folder)
            self.assertEqual(result.returncode, 2, f"{command}: {result.stderr}")
            with open(read, "rb") as file:
                self.assertEqual(file.read(), before, command)
            os.remove(self.path("other.svg"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
