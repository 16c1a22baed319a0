#!/usr/bin/env python3
"""Predicts the measured steps of a campaign from its recordings: every recorded step as it stands, and under each technique
that the machine then ran.

    validation/recorded_steps.py RESULTS_FOLDER [--spillway PROGRAM] [--output FILE.json]

RESULTS_FOLDER has `campaign.json` and `recordings/MODEL-bBATCH`. What no plan of a recorded step says (layers or modules made
again) is generated, with kernels as the recording measured them (`spillway check --from`); `ssdtrain`'s files are behind a
page cache, and what binds is the package (package_steps.py). Prints measured and predicted with signed errors by recording and
technique, and by metric the signed median, median, 90th percentile and worst size.
tests/validation/h100_results_test.py holds them.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import package_steps  # noqa: E402
from campaign import cases, script  # noqa: E402

METRICS = ("step_time", "peak_allocated", "peak_reserved")
# On a recorded step these plans hold too much, or need what isn't recorded.
GENERATED = ("full", "every:2", "selective", "checkpoints-host", "selective+host")


def asked(program, *words):
    """The answer, or why there is none."""
    done = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        return None, (done.stderr.strip() or f"spillway ended with code {done.returncode}").splitlines()[-1]
    return json.loads(done.stdout), ""


def settings_of(technique):
    settings = list(cases.TECHNIQUES.get(technique, []))
    if technique in GENERATED and any(setting.startswith("offload.") for setting in settings):
        settings.append("offload.hooks=true")  # as of every step that spillway.torch recorded
    return [word for setting in settings for word in ("--set", setting)]


class Predictor:
    """Of one campaign's steps."""

    def __init__(self, folder, program, scratch):
        self.folder, self.program, self.scratch, self.machines = folder, program, scratch, {}

    def generated(self, model, batch):
        """The words for the generated step with the recording's kernels."""
        path, gpu = (os.path.join(self.scratch, f"{kind}-{model}-{batch}.json") for kind in ("step", "gpu"))
        if (model, batch) not in self.machines:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(cases.scenario(model, batch, "h100-sxm5-80gb"), file)
            _, self.machines[model, batch] = asked(self.program, "check", path, "--from", self.recording(model, batch),
                                                   "--output", gpu)
        return [path, "--on", gpu]

    def recording(self, model, batch):
        return os.path.join(self.folder, "recordings", f"{model}-b{batch}")

    def predict(self, technique, model, batch):
        """The figures by metric, or why there are none."""
        step = self.generated(model, batch) if technique in GENERATED else [self.recording(model, batch)]
        if self.machines.get((model, batch)):
            return None, self.machines[model, batch]
        if technique == "ssdtrain":
            kept, why = self.predict("keep", model, batch)
            return kept and package_steps.predicted(step[0], self.program, kept["peak_allocated"]), why
        answer, why = asked(self.program, "run", *step, *settings_of(technique))
        return answer and {metric: answer.get(cases.METRICS[metric][0]) for metric in METRICS}, why


def rows_of(folder, program, techniques=None):
    """Of these techniques; of all: None."""
    with open(os.path.join(folder, "campaign.json"), encoding="utf-8") as file:
        document = json.load(file)
    wanted = [(cases.plain_case(model, batch), model, batch, "recorded") for model, batch in cases.RECORDED]
    wanted += [(cases.case_name(model, batch, technique), model, batch, technique)
               for model, batch in cases.PLANNED for technique in cases.TECHNIQUES]
    wanted = [row for row in wanted if techniques is None or row[3] in techniques]
    measured = {(row["case"], row["metric"]): row["measured"] for row in document["comparisons"] if row.get("measured")}
    with tempfile.TemporaryDirectory() as scratch:
        predictor = Predictor(folder, program, scratch)
        for case, model, batch, technique in wanted:
            figures, why = predictor.predict(technique, model, batch)
            for metric in METRICS:
                if (case, metric) not in measured:
                    continue
                known = measured[case, metric]
                predicted = (figures or {}).get(metric)
                yield {"case": case, "technique": technique, "metric": metric, "measured": known, "predicted": predicted,
                       "error": predicted / known - 1 if predicted else None, "why": why}


def statistics(errors):
    sizes = sorted(abs(error) for error in errors)
    signed = sorted(errors)
    return {"n": len(sizes), "signed": signed[len(signed) // 2], "median": sizes[len(sizes) // 2],
            "p90": sizes[int(0.9 * (len(sizes) - 1))], "worst": sizes[-1]}


GROUPS = {"recorded": "recorded", "keep": "recorded", "full": "made again", "every:2": "made again",
          "selective": "made again", "host": "to host memory", "checkpoints-host": "made again, to host memory",
          "selective+host": "made again, to host memory", "ssdtrain": "to files"}


def groups_of(rows):
    """(group, metric) -> errors"""
    groups = {}
    for row in rows:
        if row["error"] is not None:
            groups.setdefault((GROUPS[row["technique"]], row["metric"]), []).append(row["error"])
    return groups


def figure(metric, value):
    return "-" if value is None else f"{value / 1e6:.2f} ms" if metric == "step_time" else f"{value / (1 << 30):.3f} GiB"


def main():
    arguments = script.parser_of(__doc__).parse_args()
    rows = list(rows_of(arguments.folder, arguments.spillway))
    for row in rows:
        error = f"{row['error']:+8.1%}" if row["error"] is not None else "       -"
        print(f"{row['case']:32} {row['metric']:15} {figure(row['metric'], row['measured']):>12} "
              f"{figure(row['metric'], row['predicted']):>12} {error}  {row['why']}".rstrip())
    for metric in METRICS:
        errors = [row["error"] for row in rows if row["metric"] == metric and row["error"] is not None
                  and row["technique"] != "ssdtrain"]
        found = statistics(errors)
        print(f"all but files, {metric}: {found['n']} cases, signed median {found['signed']:+.1%}, median "
              f"{found['median']:.1%}, 90th percentile {found['p90']:.1%}, worst {found['worst']:.1%}")
    for (group, metric), errors in groups_of(rows).items():
        found = statistics(errors)
        print(f"{group}, {metric}: {found['n']} cases, signed median {found['signed']:+.1%}, median {found['median']:.1%}, "
              f"90th percentile {found['p90']:.1%}, worst {found['worst']:.1%}")
    script.write_rows(rows, arguments.output)


if __name__ == "__main__":
    main()
