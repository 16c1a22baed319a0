#!/usr/bin/env python3
"""Results that must not move unseen: the program's answers, pinned in the JSON files beside this one.

Usage: golden_test.py SPILLWAY SOURCE_ROOT [GROUP...]

Each case is a command line; its figures (fingerprints, times, bytes, lives) are held to the pinned ones, exactly.
SPILLWAY_TEST_SIZE=quick (default) runs the small cases, full runs all. SPILLWAY_BLESS=1 writes the figures of the
cases that ran instead of comparing, and the test then counts as skipped (exit code 77): accepting is not passing.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

from golden_cases import groups

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
MOST_TEXT = 6000  # characters of a list before its digest stands for it
# Of the machine and the moment, or said elsewhere.
NOT_PINNED = {"schema", "version", "seconds", "command", "title", "note"}
WORD = re.compile(r"[\w.+:/-]{1,60}")


def bare(value):
    """What is pinned of a value: numbers, words, what is in it; None for sentences, which may be worded anew."""
    if isinstance(value, dict):
        parts = {key: bare(part) for key, part in value.items() if key not in NOT_PINNED}
        return {key: part for key, part in parts.items() if part is not None or value[key] is None}
    if isinstance(value, list):
        if value and all(isinstance(part, dict) and isinstance(part.get("name"), str) for part in value):
            names = [part["name"] for part in value]
            if len(set(names)) == len(names):
                return short({part["name"]: bare({k: v for k, v in part.items() if k != "name"}) for part in value})
        return short([part for part in map(bare, value) if part is not None])
    if isinstance(value, str) and not WORD.fullmatch(value):
        return None
    return value


def short(parts):
    text = json.dumps(parts, ensure_ascii=False)
    if len(text) <= MOST_TEXT:
        return parts
    return {"values": len(parts), "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def differences(pinned, found, place=""):
    """(place, from, to) of all that differs; 1 and 1.0 and true are different things."""
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
                **bare(case.pick(answer) if case.pick else answer)}


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, cases):
    text = json.dumps(cases, indent=1, ensure_ascii=False) + "\n"
    # Lists of figures and words on one line.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main():
    program, root, wanted = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    size, bless = os.environ.get("SPILLWAY_TEST_SIZE") or "quick", os.environ.get("SPILLWAY_BLESS", "") not in ("", "0")
    if size not in ("quick", "full"):
        sys.exit(f"SPILLWAY_TEST_SIZE={size}: expected quick or full")
    moved, ran = [], 0
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
                save(path, {name: found.get(name, pinned.get(name)) for name in names if name in found or name in pinned})
                continue
            for name in [*found, *(name for name in pinned if name not in {case.name for case in cases})]:
                for place, old, new in differences(pinned.get(name, {}), found.get(name, {})):
                    moved.append(f"{group}: {name}: {place or '/'}: {old} -> {new}")
    if bless:
        print(f"{ran} cases written to {HERE}: look at the difference and say in the commit why it moved")
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
