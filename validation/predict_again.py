#!/usr/bin/env python3
"""Predicts the measured steps of a campaign anew, with today's program: what `spillway validate results` can't say, whose
predictions are those that were made before the steps ran.

    validation/predict_again.py RESULTS_FOLDER [--spillway PROGRAM] [--profile NAME] [--output FILE.json]

Prints every case with its measured figure, the error of then and the error of now, and the median, 90th percentile and
worst size of both by metric.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from campaign import cases, script  # noqa: E402

MIB = 1 << 20


def all_cases():
    """name -> (model, batch, settings)"""
    found = {cases.plain_case(model, batch): (model, batch, []) for model, batch in cases.RECORDED}
    for model, batch in cases.PLANNED:
        for technique, settings in cases.TECHNIQUES.items():
            found[cases.case_name(model, batch, technique)] = (model, batch, settings)
    return found


def predict(program, profile, model, batch, settings):
    """The answer of `spillway run`, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scenario.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(cases.scenario(model, batch, profile), file)
        words = [word for setting in settings for word in ("--set", setting)]
        done = subprocess.run([program, "run", path, "--format", "json", *words], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        return None, (done.stderr.strip() or f"spillway ended with code {done.returncode}").splitlines()[0]
    return json.loads(done.stdout), ""


def rows_of(document, program, profile):
    answers = {}
    for name, (model, batch, settings) in all_cases().items():
        answers[name] = predict(program, profile, model, batch, settings)
    for row in document["comparisons"]:
        if row["case"] not in answers or "measured" not in row or row["metric"] not in cases.METRICS:
            continue
        answer, why = answers[row["case"]]
        now = answer.get(cases.METRICS[row["metric"]][0]) if answer else None
        yield {"case": row["case"], "metric": row["metric"], "measured": row["measured"],
               "then": row["blind"] / row["measured"] - 1 if row.get("blind") else None,
               "now": now / row["measured"] - 1 if now else None, "why": why}


def summary(errors):
    sizes = sorted(abs(error) for error in errors)
    signed = sorted(errors)
    return (f"{len(sizes)} cases, signed median {signed[len(signed) // 2]:+.1%}, median {sizes[len(sizes) // 2]:.1%}, "
            f"90th percentile {sizes[int(0.9 * (len(sizes) - 1))]:.1%}, worst {sizes[-1]:.1%}")


def figure(metric, value):
    return f"{value / 1e6:.2f} ms" if metric == "step_time" else f"{value / (1024 * MIB):.3f} GiB"


def main():
    arguments = script.add_profile(script.parser_of(__doc__)).parse_args()
    with open(os.path.join(arguments.folder, "campaign.json"), encoding="utf-8") as file:
        rows = list(rows_of(json.load(file), arguments.spillway, arguments.profile))
    for row in rows:
        errors = " ".join(f"{row[when]:+8.1%}" if row[when] is not None else "       -" for when in ("then", "now"))
        print(f"{row['case']:32} {row['metric']:15} {figure(row['metric'], row['measured']):>12} {errors}  {row['why']}".rstrip())
    for metric in cases.METRICS:
        for when in ("then", "now"):
            errors = [row[when] for row in rows if row["metric"] == metric and row[when] is not None]
            if errors:
                print(f"{metric}, {when}: {summary(errors)}")
    script.write_rows(rows, arguments.output)


if __name__ == "__main__":
    main()
