#!/usr/bin/env python3
"""Every command ends within half a second of SIGTERM and SIGINT, whatever it is at, and leaves no file half-written.

Judged by the processor time that a command uses after the signal, on one core: other programs' work doesn't count.

Usage: stop_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import unittest

from folder_case import FolderCase

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORKED = 0.1  # seconds of a processor before the signal
PROMISED = 0.5
MEASURED = 0.1  # error of the clock of processes, and the system's own work of ending one with gigabytes
INTERRUPTED = 130
LONG = {"model": {"name": "gpt2-xl", "micro_batch": 4, "gradient_accumulation": 32},
        "hardware": {"profile": "workstation-4090"}}
WIDE = {"model": {"name": "gpt3-175b", "tensor_parallel": 8, "pipeline_parallel": 16, "micro_batch": 1,
                  "global_batch": 256, "data_parallel": 1, "framework": "megatron_2022"},
        "hardware": {"profile": "dgx-a100"}}

# By command: its arguments. S, W: long scenarios; M: a memory snapshot, T: a trace, of many events.
STOPPED = {
    "run": ["S", "--set", "order.technique=roam"],
    "compare": ["W", "--set", "model.micro_batch=2"],
    "explain": ["W"],
    "export": ["S", "--for", "pytorch", "--set", "offload.technique=mix"],
    "fit": ["W"],
    "trace info": ["T"],
    "trace check": ["T"],
    "trace convert": ["T", "out.json"],
    "memory": ["M", "--explain", "--treemap", "out.svg"],
    "plan layout": ["L"],
    "plan order": ["S"],
    "plan stalloc": ["M", "--output", "out.csv"],
    "plan offload": ["S", "--output", "out.json"],
    "plan rok": ["S", "--mix"],
    "plan pipeline": ["--schedule", "best", "--stages", "8", "--microbatches", "24", "--effort", "1000000000"],
    "plan recompute": ["S", "--method", "best"],
    "capacity": ["S"],
    "report ssd": ["S", "--drives", "crucial-t705-2tb"],
    "report pcie": ["S"],
    "report step": ["S", "--output", "out.html"],
    "report procurement": ["P"],
    "sweep": ["X", "--output", "kept.store"],
    "techniques": ["S"],
    "validate": ["published"],
}
# Print the best that they have found instead of a word on stderr.
BEST_SO_FAR = {"plan layout", "plan pipeline"}
# At their end before a signal could come, or another program's affair.
SHORT = {"import", "merge", "new", "list", "profile list", "profile show", "profile check", "profile diff", "prices check",
         "calibrate gpu", "calibrate nvme", "calibrate pcie", "record", "check", "schema", "gui"}
KEEPS = {"sweep", "memory"}  # what was found so far, a picture that was done before the search


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class StopTest(FolderCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = json.loads(subprocess.run([PROGRAM, "manual", "--format", "json"], capture_output=True, text=True,
                                                 check=True).stdout)["commands"]

    def setUp(self):
        super().setUp()
        head = {"schema": "spillway-scenario", "version": 1}
        self.path("S", {**head, **LONG})
        self.path("W", {**head, **WIDE})
        for name, source in (("P", "cli/scenarios/llama2-70b-procurement.json"),
                             ("X", "cli/sweeps/gpt3-175b-512xa100-wide.json")):
            os.symlink(os.path.join(ROOT, source), self.path(name))
        self.snapshot()
        with open(self.path("L"), "w", encoding="utf-8") as table:
            table.write("id,lower,upper,size\n")
            for i in range(3000):
                table.write(f"{i},{i * 7919 % 1000},{i * 7919 % 1000 + 1 + i * 31 % 97},{1 + i * 104729 % 65521}\n")
        self.before = sorted(os.listdir(self.folder))

    def snapshot(self):
        """As PyTorch's memory_viz writes one, and a trace of as many kernels."""
        events, address = [], 0x7f0000000000
        for i in range(60_000):
            events.append({"action": "alloc", "addr": address + i * 4096, "size": 512 * (1 + i % 8), "stream": 0, "frames": []})
            if i >= 400:
                size = 512 * (1 + (i - 400) % 8)
                for action in ("free_requested", "free_completed"):
                    events.append({"action": action, "addr": address + (i - 400) * 4096, "size": size, "stream": 0,
                                   "frames": []})
        with open(self.path("M"), "wb") as out:
            pickle.dump({"segments": [], "device_traces": [events]}, out, protocol=4)
        row = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
        self.path("T", {"traceEvents": [dict(row, ts=i * 2) for i in range(1_000_000)]})

    def stopped(self, command, number):
        words = [PROGRAM, *command.split(), *STOPPED[command]]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})) as running:
            while running.poll() is None and processor_seconds(running.pid) < WORKED:
                time.sleep(0.01)
            if running.poll() is not None:
                self.fail(f"{command}: ended by itself ({running.returncode}): {running.stderr.read()[:500]}")
            used = processor_seconds(running.pid)
            running.send_signal(number)
            said = running.stderr.read()
            _, status, usage = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        after = usage.ru_utime + usage.ru_stime - used
        self.assertEqual(running.returncode, INTERRUPTED, f"{command}: {said}")
        self.assertLess(after, PROMISED + MEASURED, command)
        if command not in BEST_SO_FAR:
            self.assertIn(b"interrupted", said, command)
        left = sorted(set(os.listdir(self.folder)) - set(self.before))
        for name in left:
            os.unlink(self.path(name))
        if command not in KEEPS:
            self.assertEqual(left, [], command)

    def test_every_command_is_tried_or_short(self):
        groups = {command["path"].rsplit(" ", 1)[0] for command in self.commands if " " in command["path"]}
        self.assertEqual({command["path"] for command in self.commands} - groups - {""}, set(STOPPED) | SHORT)

    def test_each_ends_in_time(self):
        for i, command in enumerate(STOPPED):
            with self.subTest(command):
                self.stopped(command, (signal.SIGTERM, signal.SIGINT)[i % 2])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
