#!/usr/bin/env python3
"""The manual page and the completions name every command and option that --help names.

Usage: manual_test.py SPILLWAY [unittest arguments]
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 100
# What the examples of --help read: files of the tree, and small ones.
COPIES = {"trace.json.gz": "traces/data/gpt2-tiny-cpu/steps.json.gz", "snapshot.pickle": "traces/data/ran-out/snapshot.pickle",
          "launch.sh": "tests/launch/data/megatron-llama3-8b.sh", "buffers.csv": "tests/docs/stand-ins/buffers.csv",
          "purchase.json": "cli/scenarios/gpt2-small-procurement.json", "machine.json": "hwprofiles/data/systems/dgx-h100.json"}
MODEL = {"name": "gpt2-small", "layers": 2, "sequence": 256, "micro_batch": 4}
ON = {"profile": "h100-80gb-1gpu"}
FILES = {
    "step.json": {"schema": "spillway-scenario", "version": 1, "model": MODEL, "hardware": ON},
    "other.json": {"schema": "spillway-scenario", "version": 1, "model": {**MODEL, "micro_batch": 2}, "hardware": ON},
    "sweep.json": {"schema": "spillway-sweep", "version": 1, "base": {"model": MODEL, "hardware": ON},
                   "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]}], "objectives": ["step_time", "peak_memory"]},
    "mine.json": {"schema": "spillway-cases", "version": 1, "title": "Ours", "tolerance": {"median": 100},
                  "common": {"source": "ours", "metric": "iteration_time", "unit": "ms", "hardware.profile": "h100-80gb-1gpu",
                             "model.name": "gpt2-small", "model.layers": 2, "model.sequence": 256},
                  "cases": [{"id": "one", "value": 3, "model.micro_batch": 4}]},
}
# These measure this machine, or open a window: their words alone are checked.
NOT_RUN = ("gui", "record", "check", "calibrate gpu", "calibrate nvme", "calibrate pcie")
LESS = {"fit": ["--effort", "0.02"]}  # of what they do


def spillway(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


# Of lists of commands.
HEADINGS = r"\n(?:Subcommands|Start|Ask more|Bring in|Take away|Machines|For experts):\n"


def commands(*path):
    """Every command below `path`, as tuples of words, by what --help lists."""
    text = spillway(*path, "--help")
    listed = re.findall(HEADINGS + r"((?:  .*\n)*)", text)
    for name in re.findall(r"^  (\S+)", "".join(listed), re.M):
        yield (*path, name)
        yield from commands(*path, name)


def options(path):
    """Long options of a command; those with a list of values come with it."""
    text = re.split(HEADINGS, spillway(*path, "--help"))[0]
    return re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M)


def complete(*words):
    """What bash offers when the last of the words is completed; as bash splits them, = is a word of its own."""
    script = spillway("completion", "bash") + (
        'compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _spillway; printf "%s\\n" "${COMPREPLY[@]}"')
    run = subprocess.run(["bash", "-euc", script, "bash", "spillway", *words], capture_output=True, text=True,
                         timeout=60, check=True)
    return run.stdout.split()


def complete_zsh(*words):
    """What zsh's completion functions are given when the last of the words is completed, one a line."""
    script = ("_describe() { print -rl -- ${(P)2} }; _arguments() { print -rl -- $@ }; compadd() { }; "
              "words=(spillway \"$@\"); CURRENT=$#words; PREFIX=$words[-1]; " + spillway("completion", "zsh"))
    run = subprocess.run(["zsh", "-fc", script, "zsh", *words], capture_output=True, text=True, timeout=60, check=True)
    return run.stdout


def written(folder):
    return {path: path.stat().st_mtime_ns for path in folder.iterdir()}


class ManualTest(unittest.TestCase):
    def setUp(self):
        self.all = list(commands())
        self.assertGreaterEqual(len(self.all), 13)

    def test_manual_names_everything(self):
        page = spillway("manual").replace("\\-", "-")
        for path in [(), *self.all]:
            self.assertIn("spillway " + " ".join(path), page)
            for option in options(path):
                self.assertIn(f"\\fB{option}\\fR", page, path)

    def test_manual_is_sound_roff(self):
        try:
            checked = subprocess.run(["groff", "-man", "-ww", "-z", "-Tascii"], input=spillway("manual"), text=True,
                                     capture_output=True, timeout=60, check=True)
        except FileNotFoundError:
            self.skipTest("groff is not installed")
        self.assertEqual(checked.stderr, "")

    def test_each_command_has_a_page(self):
        for path in self.all:
            page = spillway("manual", path[0]).replace("\\-", "-")
            self.assertIn("spillway " + " ".join(path), page)
            for option in set(options(path)) - {"--help"}:
                self.assertIn(f"\\fB{option}\\fR", page, path)
        unknown = subprocess.run([PROGRAM, "manual", "nothing"], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("no command 'nothing'", unknown.stderr)

    def test_each_command_is_installed(self):
        listed = spillway("manual", "--format", "json")
        tops = {command["path"].split()[0] for command in json.loads(listed)["commands"] if command["path"]}
        text = (pathlib.Path(__file__).parents[2] / "cli/meson.build").read_text(encoding="utf-8")
        built = re.search(r"foreach command : \[(.*?)\]", text, re.S)[1]
        self.assertEqual(set(re.findall(r"'(\w+)'", built)), tops)

    def test_each_command_names_its_page(self):
        for command in json.loads(spillway("manual", "--format", "json"))["commands"]:
            if command["page"]:
                self.assertTrue((ROOT / command["page"]).is_file(), command["page"])
                self.assertTrue(spillway(*command["path"].split(), "--help").rstrip().endswith("More: " + command["page"]))
            else:  # those that others lie below, or above
                self.assertIn(command["path"].split(" ")[0],
                              ("", "report", "trace", "plan", "profile", "prices", "calibrate"))

    def test_help_is_no_wider_than_a_terminal(self):
        for path in [(), *self.all]:
            for line in spillway(*path, "--help").splitlines():
                self.assertLessEqual(len(line), WIDTH, line)

    def test_each_command_has_examples(self):
        listed = json.loads(spillway("manual", "--format", "json"))["commands"]
        paths = {command["path"] for command in listed}
        everywhere = {name for option in listed[0]["options"] for name in option["names"]}
        for command in listed:
            path, examples = command["path"], command["examples"]
            if any(other.startswith(path + " ") for other in paths) or not path:
                self.assertEqual(examples, [], path)
                continue
            self.assertTrue(any(example.startswith(f"spillway {path} ") or example == f"spillway {path}"
                                for example in examples), path)
            text = " ".join(spillway(*path.split(), "--help").split())
            known = everywhere | {name for option in command["options"] for name in option["names"]}
            for example in examples:
                self.assertIn(example, text)
                self.assertIn(example.replace("-", "\\-"), spillway("manual", path.split()[0]))
                if example.startswith(f"spillway {path}"):
                    self.assertLessEqual({word for word in example.split(" -- ")[0].split() if word.startswith("--")}, known, example)

    def test_examples_run(self):
        for command in json.loads(spillway("manual", "--format", "json"))["commands"]:
            if command["path"] in NOT_RUN:
                continue
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                for file, source in COPIES.items():
                    shutil.copyfile(ROOT / source, folder / file)
                for file, document in FILES.items():
                    (folder / file).write_text(json.dumps(document), encoding="utf-8")
                for example in command["examples"]:
                    words, before = shlex.split(example)[1:], written(folder)
                    done = subprocess.run([PROGRAM, *words, *LESS.get(words[0], [])], cwd=folder, capture_output=True, text=True,
                                          timeout=300, check=False)
                    self.assertIn(done.returncode, (0, 1), f"{example}: {done.stderr}")
                    self.assertTrue(done.stdout or written(folder) != before, example)

    def test_the_tutorial_has_its_files(self):
        tutorial = (ROOT / "docs/tutorial/first-hour.md").read_text(encoding="utf-8")
        named = set(re.findall(r"[\w.-]+\.(?:json\.gz|json|pickle|sh)\b", " ".join(re.findall(r"spillway (?!new)[^`\n]+", tutorial))))
        made = set(re.findall(r"(?:--output|--timeline) ([\w.-]+)", tutorial))
        with tempfile.TemporaryDirectory() as folder:
            hour = pathlib.Path(folder, "first-hour")
            spillway("new", "--examples", hour)
            self.assertEqual(named - made - {path.name for path in hour.iterdir()}, set())
            again = subprocess.run([PROGRAM, "new", "--examples", hour], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(again.returncode, 2)
            self.assertIn("is there already", again.stderr)

    def test_markdown_names_everything(self):
        page = spillway("manual", "--format", "markdown")
        for path in self.all:
            section = page.split(f"\n## spillway {' '.join(path)}\n")[1].split("\n## ")[0]
            for option in set(options(path)) - {"--help"}:
                self.assertRegex(section, rf"\n\| `[^`]*{option}\b", path)

    def test_zsh_offers_everything(self):
        try:
            subprocess.run(["zsh", "-fc", "true"], timeout=60, check=True)
        except FileNotFoundError:
            self.skipTest("zsh is not installed")
        for path in self.all:
            offered = complete_zsh(*path, "-")
            for option in options(path):
                self.assertRegex(offered, rf"(?m)^\*{option}\[", path)
            self.assertRegex(complete_zsh(*path[:-1], ""), rf"(?m)^{path[-1]}:")
        self.assertIn("*--format[how results are printed\\: table, json, csv or markdown]:FORMAT:(table json csv markdown)",
                      complete_zsh("run", "-"))

    def test_bash_offers_everything(self):
        for path in self.all:
            self.assertIn(path[-1], complete(*path[:-1], ""))
            for option in options(path):
                self.assertIn(option, complete(*path, option[:3]), path)
            self.assertIn("--format", complete(*path, "--f"))

    def test_bash_offers_values(self):
        self.assertEqual(complete("run", "x.json", "--format", ""), ["table", "json", "csv", "markdown"])
        self.assertEqual(complete("run", "--format", "=", "js"), ["json"])
        self.assertEqual(complete("memory", "--allocator", "to"), ["torch", "torch-expandable"])
        self.assertEqual(complete("run", "x.json", "--set", "model.seq"),
                         ["model.sequence=", "model.sequence_parallel=", "model.sequence_slices="])
        self.assertEqual(complete("run", "x.json", "--set", "hardware.s"), ["hardware.set."])

    def test_bash_leaves_files_to_the_shell(self):
        self.assertEqual(complete("run", "x"), [])
        self.assertEqual(complete("run", "x.json", "--timeline", ""), [])

    def test_fish_names_everything(self):
        script = spillway("completion", "fish")
        for path in self.all:
            self.assertRegex(script, rf"-a {path[-1]} -d ")
            for option in options(path):
                self.assertIn(f" -l {option[2:]} ", script)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
