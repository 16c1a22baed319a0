#!/usr/bin/env python3
"""Pins how far predictions lie from published measurements, by source, metric and role.

Usage: published_test.py SPILLWAY sample|whole [GOLDEN]
  sample   a few set-ups of each group, for every run
  whole    every published case
A change of the model that moves a median, a 90th percentile or a rank correlation further than the golden file allows
fails, for better or worse. SPILLWAY_BLESS=1 writes what comes out into the golden file instead, and skips.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

GOLDEN = pathlib.Path(__file__).with_name("published.json")
SKIPPED = 77  # meson's word for it
PER_GROUP = 4  # set-ups of a group in the sample
FIGURES = ("median_error", "median_abs_error", "p90_abs_error", "kendall_tau")
# The simulator repeats itself bit by bit: what this leaves is room for roundings of other compilers' libraries.
TOLERANCE = {"median_error": 0.001, "median_abs_error": 0.001, "p90_abs_error": 0.001, "kendall_tau": 0.005}


def validate(spillway, size):
    """Exit code and summary of `spillway validate published`; progress goes to the terminal, if there is one."""
    command = [spillway, "validate", "published", "--format", "json"]
    if size == "sample":
        command += ["--sample", str(PER_GROUP)]
    began = time.monotonic()
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit code {run.returncode}")
    document = json.loads(run.stdout)
    print(f"{len(document['rows'])} cases predicted in {time.monotonic() - began:.1f} s")
    return run.returncode, document["summary"]


def name_of(group):
    return " | ".join((group["source"], group["metric"], group["role"]))


def figures_of(group):
    return {"n": group["n"], **{figure: round(group[figure], 6) for figure in FIGURES}}


def differences(wanted, got, tolerance):
    """A line for each group that is missing, new, or further from its figures than the tolerance."""
    for name in wanted.keys() - got.keys():
        yield f"{name}: gone"
    for name in got.keys() - wanted.keys():
        yield f"{name}: not in the golden file"
    for name in wanted.keys() & got.keys():
        if wanted[name]["n"] != got[name]["n"]:
            yield f"{name}: {got[name]['n']} cases, pinned are {wanted[name]['n']}"
        for figure in FIGURES:
            if not abs(wanted[name][figure] - got[name][figure]) <= tolerance[figure]:
                yield (f"{name}: {figure} {got[name][figure]}, pinned is {wanted[name][figure]} "
                       f"to within {tolerance[figure]}")


def judgements(code, summary):
    """What the case files state must be so: every group keeps what it is held to, and misses what it is excused from."""
    for group in summary:
        if not group["within_tolerance"]:
            yield f"{name_of(group)}: outside the tolerance it is held to ({group['tolerance']})"
        for figure, asked in group["asked"].items():
            if group["tolerance"][figure] != asked and group["missed"][figure] is None:
                yield f"{name_of(group)}: {figure} reaches the {asked} asked: take it out of held_to"
    if code != (0 if all(group["within_tolerance"] for group in summary) else 1):
        yield f"exit code {code}"


def self_test():
    """The comparison fails when it must."""
    pinned = {"a": {"n": 2, **dict.fromkeys(FIGURES, 0.1)}}
    assert not list(differences(pinned, pinned, TOLERANCE))
    for figure in FIGURES:
        near = {"a": {**pinned["a"], figure: 0.1 + 0.9 * TOLERANCE[figure]}}
        far = {"a": {**pinned["a"], figure: 0.1 - 1.1 * TOLERANCE[figure]}}
        assert not list(differences(pinned, near, TOLERANCE)) and len(list(differences(pinned, far, TOLERANCE))) == 1
        assert list(differences(pinned, {"a": {**pinned["a"], figure: float("nan")}}, TOLERANCE))
    assert len(list(differences(pinned, {"a": {**pinned["a"], "n": 3}}, TOLERANCE))) == 1
    assert len(list(differences(pinned, {"b": pinned["a"]}, TOLERANCE))) == 2


def bless(golden, size, figures):
    document = json.loads(golden.read_text(encoding="utf-8")) if golden.exists() else {"tolerance": TOLERANCE}
    document[size] = figures
    groups = {key: ",\n".join(f"    {json.dumps(name)}: {json.dumps(pinned)}" for name, pinned in document[key].items())
              for key in ("sample", "whole") if key in document}
    parts = [f'  "tolerance": {json.dumps(document["tolerance"])}',
             *(f'  "{key}": {{\n{lines}\n  }}' for key, lines in groups.items())]
    golden.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{golden}: {size} written anew")


def main(spillway, size, golden=GOLDEN):
    self_test()
    code, summary = validate(spillway, size)
    figures = {name_of(group): figures_of(group) for group in summary}
    if os.environ.get("SPILLWAY_BLESS") == "1":
        bless(pathlib.Path(golden), size, figures)
        return SKIPPED
    pinned = json.loads(pathlib.Path(golden).read_text(encoding="utf-8"))
    found = list(differences(pinned[size], figures, pinned["tolerance"]))
    if size == "whole":
        found += judgements(code, summary)
    for line in sorted(found):
        print(line)
    print(f"{len(figures)} groups, {len(found)} differences" +
          ("; SPILLWAY_BLESS=1 pins them as they are now" if found else ""))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in ("sample", "whole"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
