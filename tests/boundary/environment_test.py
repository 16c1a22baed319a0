#!/usr/bin/env python3
"""Places where a program may find itself: without a home, without room, without rights, in another locale, told to end.

Usage: environment_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import gzip
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NOBODY = 65534
STEP = {"schema": "spillway-scenario", "version": 1, "title": "step",
        "model": {"name": "gpt2-small", "sequence": 128, "micro_batch": 1}, "hardware": {"profile": "h100-80gb-1gpu"}}
# Minutes of work.
LONG = {"schema": "spillway-sweep", "version": 1, "replays": 5000,
        "base": {"model": {"name": "gpt3-175b", "sequence": 2048, "global_batch": 1536}, "hardware": {"profile": "dgx-a100"}},
        "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2, 4, 8]},
                 {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 4, 8, 16]},
                 {"name": "b", "key": "model.micro_batch", "values": [1, 2, 4, 8]},
                 {"name": "r", "key": "model.recompute", "values": ["none", "selective", "full"]}],
        "derived": [{"name": "d", "key": "model.data_parallel", "value": "512 / (t * p)"}]}


def limited(**limits):
    def apply():
        for name, value in limits.items():
            kind = getattr(resource, "RLIMIT_" + name.upper())
            resource.setrlimit(kind, (value, value))
    return apply


# A sanitizer's own memory counts against the limits that these set.
without_sanitizers = unittest.skipUnless(os.environ.get("SPILLWAY_SANITIZER", "none") == "none", "limits memory")


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.step = self.path("step.json", STEP)

    def path(self, name, document=None):
        path = os.path.join(self.folder, name)
        if document is not None:
            with open(path, "w", encoding="utf-8") as out:
                json.dump(document, out)
        return path

    def spillway(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, timeout=300, check=False, **{
            "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, "text": True, **more})

    def refused(self, result, *words):
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
        self.assertNotIn("internal", result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def works_or_is_refused(self, result):
        if result.returncode == 0:
            return
        self.refused(result)
        self.assertNotIn("did you mean", result.stderr)
        self.assertNotIn("no model of this name", result.stderr)

    def test_without_a_home(self):
        for environment in ({}, {"HOME": "/nonexistent"}):
            self.assertEqual(self.spillway("run", self.step, env=environment).returncode, 0)

    def test_without_a_temporary_folder(self):
        environment = {**os.environ, "TMPDIR": self.path("none")}
        self.assertEqual(self.spillway("run", self.step, env=environment).returncode, 0)
        self.refused(self.spillway("report", "step", self.step, "--output", "x.xlsx", env=environment), "none", "TMPDIR")
        self.assertEqual(os.listdir(self.folder), ["step.json"])

    def test_another_locale(self):
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.path("de_DE.UTF-8")],
                              capture_output=True, check=False) if shutil.which("localedef") else None
        if made is None or not os.path.isdir(self.path("de_DE.UTF-8")):
            self.skipTest("localedef has no de_DE here")
        german = {**os.environ, "LOCPATH": self.folder, "LC_ALL": "de_DE.UTF-8"}
        plain = {**os.environ, "LC_ALL": "C"}
        for arguments in (["run", self.step], ["run", self.step, "--format", "json"], ["run", self.step, "--format", "csv"],
                          ["memory", "--help"], ["list", "machines"]):
            self.assertEqual(self.spillway(*arguments, env=german).stdout, self.spillway(*arguments, env=plain).stdout)
        books = []
        for environment in (german, plain):
            self.assertEqual(self.spillway("report", "step", self.step, "--output", "x.xlsx", env=environment).returncode, 0)
            with zipfile.ZipFile(self.path("x.xlsx")) as book:
                books.append({name: book.read(name) for name in book.namelist()})
        self.assertEqual(*books)
        numbers = re.findall(rb"<v>([^<]*)</v>", b"".join(books[0].values()))
        self.assertTrue(any(b"." in number for number in numbers))
        self.assertFalse(any(b"," in number for number in numbers))

    def test_few_open_files(self):
        self.works_or_is_refused(self.spillway("run", self.step, preexec_fn=limited(nofile=8)))
        self.assertEqual(self.spillway("run", self.step, preexec_fn=limited(nofile=64)).returncode, 0)

    def test_a_small_stack_and_little_memory(self):
        self.works_or_is_refused(self.spillway("run", self.step, preexec_fn=limited(stack=256 << 10)))
        with open(PROGRAM, "rb") as program:
            if b"__asan_init" in program.read():
                return
        large = self.path("large.json", {**STEP, "model": {**STEP["model"], "name": "gpt2-xl", "gradient_accumulation": 64}})
        for bytes_there in (64 << 20, 128 << 20, 256 << 20):
            result = self.spillway("run", large, preexec_fn=limited(**{"as": bytes_there}))
            if result.returncode not in (127, -signal.SIGSEGV):  # the loader itself found no room
                self.works_or_is_refused(result)

    @without_sanitizers
    def test_what_a_file_unfolds_to_is_no_matter_but_what_is_kept(self):
        large = 60 << 20
        with gzip.open(self.path("nothing.json.gz"), "wb") as file:
            file.write(b'{"traceEvents":[' + b"{}," * (large // 3) + b"{}]}")
        with gzip.open(self.path("rows.json.gz"), "wb") as file:
            row = b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"pid":0,"tid":7,"args":{"stream":7}}'
            file.write(b'{"traceEvents":[' + (row + b",") * (large // len(row)) + row + b"]}")
        self.assertLess(os.path.getsize(self.path("nothing.json.gz")), large // 500)
        few = ("--memory-limit", "56MiB", "trace", "info")
        kept = self.spillway(*few, "nothing.json.gz")
        self.assertEqual(kept.returncode, 0, kept.stderr)
        self.refused(self.spillway(*few, "rows.json.gz"), "rows.json.gz", "56.00 MiB", "--memory-limit")
        small = self.path("small.json", {"traceEvents": []})
        self.refused(self.spillway("--memory-limit", "1KiB", "trace", "info", small), "small.json", "--memory-limit")

    def test_a_folder_that_may_not_be_written(self):
        if os.geteuid() != 0:
            locked, as_nobody = self.path("locked"), {}
        else:
            try:
                subprocess.run([PROGRAM, "--version"], user=NOBODY, capture_output=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("another user can't run the program here")
            locked, as_nobody = self.path("locked"), {"user": NOBODY, "extra_groups": []}
            os.chmod(self.folder, 0o755)
        os.mkdir(locked)
        os.chmod(locked, 0o555)
        for arguments in (["run", self.step, "--timeline", "locked/x.svg"], ["report", "step", self.step, "--output", "locked/x.html"],
                          ["sweep", self.path("sweep.json", LONG), "--output", "locked/x.store"],
                          ["trace", "convert", os.path.join(ROOT, "traces/data/gpt2-tiny-cpu/steps.json.gz"), "locked/x.json"]):
            self.refused(self.spillway(*arguments, **as_nobody), "locked/x", "ermission")
        os.chmod(locked, 0)
        for arguments in (["run", "locked/x.json"], ["fit", "locked/x.json"], ["trace", "info", "locked/x.json"],
                          ["run", self.step, "--set", "model.name=locked/x.json"],
                          ["run", self.step, "--set", "hardware.profile=locked/x.json"], ["sweep", "locked/x.json"]):
            self.refused(self.spillway(*arguments, **as_nobody), "locked/x.json", "ermission")
        own = {**os.environ, "SPILLWAY_PROFILE_PATH": locked}
        changed = self.path("own.json", {**STEP, "hardware": {"profile": "my-machine"}})
        self.refused(self.spillway("run", changed, env=own, **as_nobody), "locked", "ermission")
        os.chmod(locked, 0o755)
        self.assertEqual(os.listdir(locked), [])

    def test_a_full_disk(self):
        self.refused(self.spillway("sweep", self.path("sweep.json", LONG), "--point", "0", "--output", "/dev/full"),
                     "/dev/full", "No space")
        # A limit on the size of files does what a full disk does, in the middle of a file.
        result = self.spillway("run", self.step, "--timeline", "x.json", preexec_fn=limited(fsize=20_000))
        self.refused(result, "x.json")
        self.assertEqual(sorted(os.listdir(self.folder)), ["step.json", "sweep.json"])

    def test_nobody_reads_what_is_printed(self):
        closed = self.spillway("profile", "list", preexec_fn=lambda: os.close(1), stdout=None)
        self.assertEqual((closed.returncode, closed.stderr), (0, ""))
        out = self.path("x.svg")  # takes no number of a closed stream
        closed = self.spillway("-q", "run", self.step, "--timeline", out, stdout=None, stderr=None,
                               preexec_fn=lambda: (os.close(1), os.close(2)))
        self.assertEqual(closed.returncode, 0)
        with open(out, encoding="utf-8") as picture:
            self.assertTrue(picture.read().rstrip().endswith("</svg>"))
        for arguments in (("profile", "list"), ("profile", "list", "--format", "json"),
                          ("new", "gpt2-small", "h100-80gb-1gpu")):
            reading, writing = os.pipe()
            os.close(reading)
            result = self.spillway(*arguments, stdout=writing)
            os.close(writing)
            self.assertEqual((result.returncode, result.stderr), (141, ""))

    def test_asked_to_end(self):
        """Like Ctrl-C: what is stored stays, nothing is left half-written; nohup's choice is kept."""
        sweep = self.path("sweep.json", LONG)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([PROGRAM, "sweep", sweep, "--output", "x.store"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True,  # the tests themselves may run under nohup
                                  preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as run:
                while not os.path.exists(self.path("x.store")):  # the handlers are there before the store
                    time.sleep(0.01)
                run.send_signal(number)
                said = run.stderr.read()
                self.assertEqual(run.wait(60), 130, said)
            self.assertIn("interrupted", said)
            self.assertEqual(sorted(os.listdir(self.folder)), ["step.json", "sweep.json", "x.store"])
            os.remove(self.path("x.store"))
        ignoring = subprocess.Popen([PROGRAM, "sweep", sweep, "--output", "x.store"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        with ignoring:
            while not os.path.exists(self.path("x.store")):
                time.sleep(0.01)
            ignoring.send_signal(signal.SIGHUP)
            with self.assertRaises(subprocess.TimeoutExpired):
                ignoring.wait(0.3)
            ignoring.send_signal(signal.SIGTERM)
            self.assertEqual(ignoring.wait(60), 130)

    def test_paths_that_lead_nowhere(self):
        os.symlink("loop", self.path("loop"))
        for place in ("loop", "loop/x.json", "a" * 300 + ".json", "a/" * 2500 + "x.json", "step.json/x.json"):
            for arguments in (["run", place], ["fit", place], ["explain", place], ["techniques", place], ["sweep", place],
                              ["plan", "order", place], ["plan", "layout", place], ["plan", "stalloc", place], ["memory", place],
                              ["import", place], ["merge", place], ["capacity", place], ["trace", "info", place],
                              ["trace", "convert", place, "out.json"], ["validate", place],
                              ["run", self.step, "--set", "plan=" + place], ["run", self.step, "--set", "model.name=" + place],
                              ["report", "step", place, "--output", "x.html"],
                              ["report", "step", self.step, "--output", place.replace("x.json", "x") + "/x.html"]):
                self.refused(self.spillway(*arguments), place.split("/")[0][:50])
        self.assertEqual(sorted(os.listdir(self.folder)), ["loop", "step.json"])

    def test_what_a_command_reads_is_not_overwritten(self):
        """Under its own name, another one, or behind a "="."""
        with open(self.step, "rb") as file:
            before = file.read()
        os.symlink("step.json", self.path("link"))
        os.link(self.step, self.path("hard"))
        for output in (["--output", self.step], ["--output=" + self.step], ["--output", "./step.json"], ["--output", "link"],
                       ["--output", "hard"]):
            for command in (["plan", "recompute"], ["export", "--for", "megatron"], ["fit"], ["import", "--model", "gpt2-small"]):
                self.refused(self.spillway(*command, self.step, *output), "named twice")
        self.refused(self.spillway("run", self.step, "--timeline", self.step), "named twice")
        self.refused(self.spillway("run", self.step, "--set", "plan=" + self.step, "--curve", "step.json"), "named twice")
        with open(self.step, "rb") as file:
            self.assertEqual(file.read(), before)

    @without_sanitizers
    def test_files_that_never_end(self):
        """A pipe that nobody writes to, and 3 GiB of zero bytes: neither is read."""
        os.mkfifo(self.path("pipe"))
        with open(self.path("zeros"), "wb") as file:
            file.truncate(3 << 30)
        for command in (["merge"], ["plan", "layout"], ["plan", "order"], ["plan", "stalloc"], ["import"], ["sweep"], ["fit"]):
            self.refused(self.spillway(*command, "pipe"), "pipe")
            self.refused(self.spillway(*command, "zeros", preexec_fn=limited(**{"as": 2 << 30})), "zeros")

    def test_an_output_without_a_name(self):
        for option in ("--timeline", "--curve", "--memory-snapshot"):
            self.refused(self.spillway("run", self.step, option, ""), option)

    def test_links_in_the_place_of_outputs(self):
        os.symlink("b", self.path("a"))
        os.symlink("a", self.path("b"))
        os.symlink("nothing", self.path("dangling"))
        for name in ("a", "dangling"):
            self.refused(self.spillway("run", self.step, "--memory-snapshot", name), name, "link")
            self.assertTrue(os.path.islink(self.path(name)))
        self.assertFalse(os.path.lexists(self.path("nothing")))

    def test_control_characters_do_not_reach_the_terminal(self):
        name = "a\x1b[2Jb\x9b31m\x07"
        scenario = self.path("s.json", {**STEP, "title": name})
        for arguments in (["run", scenario], ["compare", scenario, scenario], ["run", name], ["run", scenario, "--set", name]):
            text = self.seen_on_a_terminal(*arguments)
            self.assertIn("a?[2Jb?31m?", text)
            self.assertFalse(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), repr(text[:200]))

    def seen_on_a_terminal(self, *arguments):
        terminal, end = pty.openpty()
        with subprocess.Popen([PROGRAM, "-q", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=end, stderr=end,
                              env={**os.environ, "NO_COLOR": "1"}) as run:
            os.close(end)
            seen = b""
            try:
                while piece := os.read(terminal, 65536):
                    seen += piece
            except OSError:  # as Linux says that the other end is closed
                pass
            run.wait()
        os.close(terminal)
        return seen.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")

    def test_cells_are_no_formulas(self):
        scenario = self.path("s.json", {**STEP, "title": "=1+cmd|' /C calc'!A1"})
        self.spillway("report", "step", scenario, "--output", "x.csv")
        with open(self.path("x.csv"), encoding="utf-8") as report:
            self.assertTrue(report.read().startswith("'=1+cmd"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
