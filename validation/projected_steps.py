#!/usr/bin/env python3
"""Predicts the unprofiled steps of a campaign with kernels as one recording measured them: `spillway check --from` makes a
GPU's profile of each recording, and every recorded step is generated on it.

    validation/projected_steps.py RESULTS_FOLDER [--spillway PROGRAM] [--profile NAME] [--output FILE.json]

Prints signed errors, a row for each profile and a column for each step, and by group (the same step, the same model at
another batch, other models) the signed median, median and worst size. tests/validation/h100_results_test.py holds them.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from campaign import cases, script  # noqa: E402


def answer(program, *words):
    done = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def group_of(source, target):
    if source is None:
        return "as generated"
    if source == target:
        return "the same step"
    return "the same model, another batch" if source[0] == target[0] else "another model"


def rows_of(folder, program, profile):
    """The error of each step on the profile of each recording, and on the plain one (source None)."""
    with tempfile.TemporaryDirectory() as scratch:
        scenarios, machines, measured = {}, {None: profile}, {}
        for model, batch in cases.RECORDED:
            recording = os.path.join(folder, "recordings", f"{model}-b{batch}")
            with open(os.path.join(recording, "manifest.json"), encoding="utf-8") as file:
                measured[model, batch] = json.load(file)["phases"]["unprofiled"]["median_ns"]
            path = scenarios[model, batch] = os.path.join(scratch, f"{model}-{batch}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(cases.scenario(model, batch, profile), file)
            machines[model, batch] = os.path.join(scratch, f"gpu-{model}-{batch}.json")
            answer(program, "check", path, "--from", recording, "--output", machines[model, batch])
        for source, machine in machines.items():
            for target, path in scenarios.items():
                predicted = answer(program, "run", path, "--on", machine)["step_time_ns"]
                yield {"source": source, "target": target, "measured": measured[target], "predicted": predicted,
                       "error": predicted / measured[target] - 1, "group": group_of(source, target)}


def name(step):
    return "as generated" if step is None else f"{step[0]} b{step[1]}"


def main():
    arguments = script.add_profile(script.parser_of(__doc__)).parse_args()
    rows = list(rows_of(arguments.folder, arguments.spillway, arguments.profile))
    print(f"{'kernels of':16}" + "".join(f"{name(target):>16}" for target in cases.RECORDED))
    for source in dict.fromkeys(row["source"] for row in rows):
        print(f"{name(source):16}" + "".join(f"{row['error']:+16.1%}" for row in rows if row["source"] == source))
    for group in dict.fromkeys(row["group"] for row in rows):
        errors = [row["error"] for row in rows if row["group"] == group]
        sizes = [abs(error) for error in errors]
        print(f"{group}: {len(errors)} cases, signed median {statistics.median(errors):+.1%}, "
              f"median {statistics.median(sizes):.1%}, worst {max(sizes):.1%}")
    script.write_rows(rows, arguments.output)


if __name__ == "__main__":
    main()
