#!/usr/bin/env python3
"""Results that must not move unseen: the program's answers, pinned in the JSON files beside this one.

Usage: golden_test.py SPILLWAY SOURCE_ROOT [GROUP...]
       golden_test.py SPILLWAY SOURCE_ROOT --against OTHER [GROUP...]

Each case is a command line; its fingerprint and some figures (times, bytes, lives) are held to the pinned ones, exactly.
SPILLWAY_TEST_SIZE=quick (default) runs the small cases, full runs all. SPILLWAY_BLESS=1 writes the figures of the
cases that ran instead of comparing, prints what drifted in short, for the commit's message, and the test counts as
skipped (exit code 77): accepting is not passing. --against compares the whole answers of two programs, all that they say.
"""
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from golden_cases import groups

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
# Of the machine and the moment.
NOT_COMPARED = {"version", "seconds"}


def differences(pinned, found, place=""):
    """(place, from, to) of all that differs; 1 and 1.0 and true are different things."""
    if place.rsplit("/", 1)[-1] in NOT_COMPARED:
        return
    if isinstance(pinned, dict) and isinstance(found, dict):
        for key in [*pinned, *(key for key in found if key not in pinned)]:
            inner = f"{place}/{key}"
            if key not in found:
                yield inner, pinned[key], "nothing"
            elif key not in pinned:
                yield inner, "nothing", found[key]
            else:
                yield from differences(pinned[key], found[key], inner)
    elif isinstance(pinned, list) and isinstance(found, list) and len(pinned) == len(found):
        for i, (a, b) in enumerate(zip(pinned, found)):
            yield from differences(a, b, f"{place}/{i}")
    elif type(pinned) is not type(found) or pinned != found:
        yield place, pinned, found


class Runner:
    """The program, from the source tree's root, with a folder for files on the way."""

    def __init__(self, program, root, folder):
        self.program, self.root, self.folder = program, root, folder
        self.shared = os.environ.get("SPILLWAY_SHARED_DATA") or os.path.join(root, "..", "shared", "data")

    def answer(self, arguments):
        """The document and the exit code: 0, or 1 where the answer is no."""
        filled = [argument.replace("{root}", self.root).replace("{folder}", self.folder) for argument in arguments]
        result = subprocess.run([self.program, *filled, "--format", "json", "--quiet"], capture_output=True, text=True,
                                timeout=1800, check=False)
        if result.returncode not in (0, 1):
            raise RuntimeError(f"spillway {' '.join(filled)}: exit code {result.returncode}\n{result.stderr}")
        return json.loads(result.stdout), result.returncode

    def figures(self, case):
        answer, exit_code = self.answer(case.arguments)
        told = " ".join(case.arguments)
        for folder in ("{root}/", "{folder}/", os.path.join(self.shared, "")):
            told = told.replace(folder, "")
        return {"command": "spillway " + told, "exit_code": exit_code,
                **case.pick(answer)}


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, cases):
    """A case a line."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(case, ensure_ascii=False)}" for name, case in cases.items())
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("{\n" + lines + "\n}\n")
    os.replace(path + ".new", path)


class Drift:
    """What moved between two states of the figures, in short."""

    def __init__(self):
        self.moved, self.cases, self.new, self.gone = {}, 0, [], []

    def add(self, group, pinned, found):
        self.cases += len(found)
        self.new += [f"{group}: {name}" for name in found if name not in pinned]
        self.gone += [f"{group}: {name}" for name in pinned if name not in found]
        for name in found:
            for place, old, new in differences(pinned.get(name, found[name]), found[name]):
                figure = place.split("/")[1]
                share = (new / old - 1 if all(type(value) in (int, float) for value in (old, new)) and old else None)
                self.moved.setdefault(figure, {}).setdefault(f"{group}: {name}", []).append(share)

    def text(self):
        moved = {case for cases in self.moved.values() for case in cases}
        lines = [f"{len(moved)} of {self.cases} cases moved, {len(self.new)} new, {len(self.gone)} gone"]
        for figure, cases in self.moved.items():
            shares = [(abs(share), share, name) for name, found in cases.items() for share in found if share is not None]
            most = f", most {max(shares)[1]:+.3%} ({max(shares)[2]})" if shares else ""
            lines.append(f"  {figure}: {len(cases)} cases{most}")
        return "\n".join(lines)


def compare_programs(program, other, root, wanted):
    """Everything that two programs answer differently, case by case."""
    moved = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other_folder:
        runners = Runner(program, root, folder), Runner(other, root, other_folder)
        for group, cases in groups(runners[0]).items():
            groups(runners[1])  # writes its files
            for case in cases if not wanted or group in wanted else []:
                if case.full and os.environ.get("SPILLWAY_TEST_SIZE") != "full":
                    continue
                if case.needs and not os.path.exists(case.needs):
                    continue
                found, old = (dict(zip(("answer", "exit_code"), runner.answer(case.arguments))) for runner in runners)
                for place, before, after in differences(old, found):
                    print(f"{group}: {case.name}: {place}: {before} -> {after}")
                    moved += 1
    print(f"{moved} differences")
    return 0


def main():
    program, root, wanted = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    if wanted[:1] == ["--against"]:
        return compare_programs(program, os.path.abspath(wanted[1]), root, wanted[2:])
    size, bless = os.environ.get("SPILLWAY_TEST_SIZE") or "quick", os.environ.get("SPILLWAY_BLESS", "") not in ("", "0")
    if size not in ("quick", "full"):
        sys.exit(f"SPILLWAY_TEST_SIZE={size}: expected quick or full")
    moved, ran, drift = [], 0, Drift()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        runner = Runner(program, root, folder)
        for group, cases in groups(runner).items():
            if wanted and group not in wanted:
                continue
            path = os.path.join(HERE, group + ".json")
            pinned = load(path)
            asked = [case for case in cases
                    if (size == "full" or not case.full) and (not case.needs or os.path.exists(case.needs))]
            found = dict(zip((case.name for case in asked), pool.map(runner.figures, asked)))
            ran += len(asked)
            if bless:
                names = [case.name for case in cases]
                now = {name: found.get(name, pinned.get(name)) for name in names if name in found or name in pinned}
                drift.add(group, pinned, now)
                save(path, now)
                continue
            for name in [*found, *(name for name in pinned if name not in {case.name for case in cases})]:
                for place, old, new in differences(pinned.get(name, {}), found.get(name, {})):
                    moved.append(f"{group}: {name}: {place or '/'}: {old} -> {new}")
    if bless:
        print(f"{ran} cases written. For the commit, with why:\n\n{drift.text()}")
        return SKIPPED
    for line in moved:
        print(line)
    if moved:
        print(f"\n{len(moved)} figures moved. If they were meant to:\n"
              f"  SPILLWAY_BLESS=1 SPILLWAY_TEST_SIZE=full meson test -C BUILD goldens")
        return 1
    print(f"{ran} cases as pinned ({size})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
