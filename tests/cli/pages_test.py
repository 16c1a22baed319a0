#!/usr/bin/env python3
"""What people read in a terminal of 80 and of 100 columns: the pages in tests/cli/pages, to the letter, and no line of
them wider than the terminal.

Usage: pages_test.py SPILLWAY SOURCE_ROOT [CASE...]
SPILLWAY_BLESS=1 writes the pages instead of comparing; the test then counts as skipped (exit code 77).
"""
import difflib
import fcntl
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WIDTHS = (80, 100)
SKIPPED = 77
MOST_LINES = 80  # that are pinned: of a report of many pages its first
LLAMA, GPT2 = "cli/scenarios/llama3-8b-8k-h100.json", "cli/scenarios/gpt2-xl-32-h100.json"
# By name: the command line, from the source tree's root. {folder}: for files it writes.
CASES = {
    "run": ["run", LLAMA],
    "run-pipeline": ["run", "cli/scenarios/gpt3-175b-128xa100.json"],
    "fit": ["fit", GPT2, "--replays", "80"],
    "explain": ["explain", LLAMA],
    "report-ssd": ["report", "ssd", GPT2],
    "report-pcie": ["report", "pcie", GPT2],
    "report-procurement": ["report", "procurement", "cli/scenarios/gpt2-small-procurement.json"],
    "techniques": ["techniques", GPT2, "--technique", "full", "--technique", "selective", "--technique", "ssdtrain"],
    "snapshot": ["explain", "traces/data/ran-out/snapshot.pickle", "--verbose"],
    "capture": ["explain", "cli/scenarios/gpt2-tiny-captured-cpu.json"],
    "capacity": ["capacity", "cli/scenarios/gpt2-xl-1k-h100.json", "--axis", "sequence"],
    "sweep": ["sweep", "tests/cli/pages/sweep.json", "--output", "{folder}/sweep.sqlite"],
    "plan": ["plan", "offload", "cli/scenarios/gpt2-xl-1k-h100.json"],
    "import": ["import", "tests/launch/data/megatron-llama3-8b.sh", "--on", "dgx-h100"],
}


def page(arguments, columns, folder):
    """The standard output in a terminal so wide."""
    terminal, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = termios.tcgetattr(inside)
    settings[1] &= ~termios.OPOST  # line ends as they are
    termios.tcsetattr(inside, termios.TCSANOW, settings)
    pieces = []

    def read():
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the last who could write has gone
                return
            if not piece:
                return
            pieces.append(piece)

    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    told = [argument.replace("{folder}", folder) for argument in arguments]
    with subprocess.Popen([PROGRAM, *told], stdout=inside, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT,
                          env=environment) as program:
        os.close(inside)
        reader = threading.Thread(target=read)
        reader.start()
        errors = program.stderr.read().decode(errors="replace")
        program.wait(timeout=300)
        reader.join()
    os.close(terminal)
    if program.returncode not in (0, 1, 4):
        raise RuntimeError(f"spillway {' '.join(told)}: exit code {program.returncode}\n{errors}")
    text = b"".join(pieces).decode().replace(folder, "FOLDER")
    return re.sub(r"(spillway) \d+\.\d+\.\d+\S*", r"\1 VERSION", re.sub(r" in [\d.]+ m?s$", " in TIME", text, flags=re.M))


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def main():
    wanted = sys.argv[3:] or list(CASES)
    is_blessing = os.environ.get("SPILLWAY_BLESS") == "1"
    failures = 0
    for name in wanted:
        for columns in WIDTHS:
            with tempfile.TemporaryDirectory() as folder:
                found = page(CASES[name], columns, folder)
            for number, line in enumerate(found.splitlines(), 1):
                if width(line) > columns:
                    print(f"{name} at {columns}, line {number}: {width(line)} columns\n  {line}")
                    failures += 1
            found = "".join(found.splitlines(True)[:MOST_LINES])
            path = os.path.join(HERE, "pages", f"{name}.{columns}.txt")
            if is_blessing:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(found)
                continue
            with open(path, encoding="utf-8") as file:
                pinned = file.read()
            if found != pinned:
                failures += 1
                sys.stdout.writelines(difflib.unified_diff(pinned.splitlines(True), found.splitlines(True),
                                                           f"{name} at {columns}, pinned", "printed"))
    return 1 if failures else SKIPPED if is_blessing else 0


if __name__ == "__main__":
    sys.exit(main())
