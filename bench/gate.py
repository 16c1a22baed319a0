#!/usr/bin/env python3
"""Fails where a benchmark has become slower than bench/ratios.json says.

A ratio is a benchmark's time over that of `reference` (bench/reference.h) in the same process, each the least of some
repetitions: so machines and loads compare, if not perfectly. Changes within 2 % are noise and not shown as any. What is
more than 1.10 times its stored ratio is run again, twice at most, and fails if it is so every time.
Usage: gate.py BUILD         runs BUILD/bench/*; exit 1 where something is slower. SPILLWAY_BLESS=1: stores the ratios
       gate.py --self-test
"""
import json
import os
import re
import subprocess
import sys

RATIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ratios.json")
NOISE = 0.02
SLOWER = 1.10
CONFIRMATIONS = 2
REPETITIONS = 5
REFERENCE = "reference"


def least_times(report):
    """Benchmark -> its least CPU time over the repetitions, in ns."""
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    least = {}
    for run in report["benchmarks"]:
        if run.get("run_type") == "iteration":
            time = run["cpu_time"] * unit[run["time_unit"]]
            least[run["run_name"]] = min(time, least.get(run["run_name"], time))
    return least


def ratios_of(report, names):
    times = least_times(report)
    missing = [name for name in [REFERENCE, *names] if name not in times]
    if missing:
        sys.exit(f"no benchmark {', '.join(missing)}: rename it in {RATIOS} too")
    return {name: times[name] / times[REFERENCE] for name in names}


def run(build, program, names):
    pattern = "^(" + "|".join(re.escape(name) for name in [REFERENCE, *names]) + ")$"
    command = [os.path.join(build, "bench", program), f"--benchmark_filter={pattern}", "--benchmark_format=json",
               f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.1"]
    return ratios_of(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout), names)


def verdict(change):
    if abs(change - 1) <= NOISE:
        return "same"
    if change > SLOWER:
        return "SLOWER"
    return "slower" if change > 1 else "faster"


def gate(stored, measure):
    """How often each benchmark's ratio is the stored one, at best of the runs that were needed to say so."""
    changes = {}
    names = list(stored)
    for _ in range(1 + CONFIRMATIONS):
        for name, ratio in measure(names).items():
            changes[name] = min(ratio / stored[name], changes.get(name, float("inf")))
        names = [name for name in names if changes[name] > SLOWER]
        if not names:
            break
    return changes


def main_gate(build):
    with open(RATIOS, encoding="utf-8") as file:
        stored = json.load(file)
    if os.environ.get("SPILLWAY_BLESS") == "1":
        for program, ratios in stored.items():
            stored[program] = {name: float(f"{ratio:.4g}") for name, ratio in run(build, program, list(ratios)).items()}
        with open(RATIOS, "w", encoding="utf-8") as file:
            file.write(json.dumps(stored, indent=2) + "\n")
        print(f"{RATIOS} written: nothing compared")
        return 0
    slower = 0
    for program, ratios in stored.items():
        for name, change in gate(ratios, lambda names: run(build, program, names)).items():
            slower += change > SLOWER
            print(f"{program:24} {name:44} {change:6.3f} times its stored ratio: {verdict(change)}", flush=True)
    print(f"{slower} slower than {SLOWER} times what is stored, confirmed by {CONFIRMATIONS} more runs")
    return 1 if slower else 0


def self_test():
    runs = iter([{"a": 1.5, "b": 1.01, "c": 2.4}, {"a": 1.2, "c": 2.1}, {"a": 1.3}])
    changes = gate({"a": 1.0, "b": 1.0, "c": 2.0}, lambda names: next(runs))
    report = {"benchmarks": [
        {"run_name": name, "run_type": kind, "cpu_time": time, "time_unit": unit}
        for name, kind, time, unit in [("reference", "iteration", 2, "ms"), ("reference", "iteration", 1, "ms"),
                                       ("a", "iteration", 500, "us"), ("a", "aggregate", 1, "us")]]}
    checks = {
        "slower three times is slower": changes["a"] == 1.2 and verdict(changes["a"]) == "SLOWER",
        "within the noise is the same": verdict(changes["b"]) == "same" and verdict(0.985) == "same",
        "one slow run of two is none": verdict(changes["c"]) == "slower" and next(runs, None) is None,
        "ratios are of least times": ratios_of(report, ["a"]) == {"a": 0.5},
    }
    for what, right in checks.items():
        print(f"{'ok' if right else 'FAILED'}: {what}")
    return 0 if all(checks.values()) else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return main_gate(arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
