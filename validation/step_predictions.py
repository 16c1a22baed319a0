#!/usr/bin/env python3
"""Recorded steps of PyTorch against spillway: replayed at their own times, and predicted from the model's shape alone.

    validation/step_predictions.py FOLDER SYSTEM.json [--spillway PROGRAM] [--batch MODEL=N ...] [--output FILE.json]

FOLDER holds MODEL.spillway for each model that traces/pytorch/record.py knows and that was recorded. Errors are signed,
predicted / recorded - 1. Exit code 1 when a replay is off by more than 1 %, or the median prediction by more than 5 %.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../traces/pytorch"))
import shapes  # noqa: E402

REPLAY_WITHIN, MEDIAN_WITHIN = 0.01, 0.05


def ask(program, *arguments):
    done = subprocess.run([program, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        sys.exit(f"step_predictions.py: {done.stderr.strip()}")
    return json.loads(done.stdout)


def recorded_ns(program, trace):
    return statistics.median(step["duration_ns"] for step in ask(program, "trace", "info", trace)["steps"])


def predicted_ns(program, name, sequence, batch, hardware):
    with tempfile.TemporaryDirectory() as folder:
        model, scenario = os.path.join(folder, "model.json"), os.path.join(folder, "scenario.json")
        with open(model, "w", encoding="utf-8") as file:
            json.dump(shapes.model_file(name, sequence), file)
        with open(scenario, "w", encoding="utf-8") as file:
            json.dump(shapes.scenario(name, sequence, batch, model, os.path.abspath(hardware)), file)
        return ask(program, "run", scenario)["step_time_ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("hardware", metavar="SYSTEM.json")
    parser.add_argument("--spillway", default="build/cli/spillway", metavar="PROGRAM")
    parser.add_argument("--batch", action="append", default=[], metavar="MODEL=N", help="8 where not given")
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--output", metavar="FILE.json")
    arguments = parser.parse_args()
    batches = dict(word.split("=", 1) for word in arguments.batch)
    rows = []
    for name in shapes.SHAPES:
        trace = os.path.join(arguments.folder, name + ".spillway")
        if not os.path.exists(trace):
            continue
        recorded = recorded_ns(arguments.spillway, trace)
        replayed = ask(arguments.spillway, "run", trace)["step_time_ns"]
        predicted = predicted_ns(arguments.spillway, name, arguments.sequence, int(batches.get(name, 8)),
                                 arguments.hardware)
        rows.append({"model": name, "recorded_ns": recorded, "replayed_ns": replayed, "predicted_ns": predicted,
                     "replay_error": replayed / recorded - 1, "prediction_error": predicted / recorded - 1})
        print(f"{name}: recorded {recorded * 1e-6:.2f} ms, replayed {100 * rows[-1]['replay_error']:+.2f} %, "
              f"predicted {100 * rows[-1]['prediction_error']:+.2f} %")
    if not rows:
        sys.exit(f"step_predictions.py: no recorded step in {arguments.folder}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
    replays_hold = all(abs(row["replay_error"]) <= REPLAY_WITHIN for row in rows)
    median = statistics.median(abs(row["prediction_error"]) for row in rows)
    sys.exit(0 if replays_hold and median <= MEDIAN_WITHIN else 1)


if __name__ == "__main__":
    main()
