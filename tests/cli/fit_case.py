"""Questions to `spillway fit`, and the scenarios that the edits of its set-ups are of."""
import json
import os
import re
import subprocess

import folder_case

FULL = os.environ.get("SPILLWAY_TEST_SIZE") == "full"


def listed(edits):
    """As --set takes them."""
    return [f"{key}={json.dumps(value).strip(chr(34))}" for key, value in edits.items()]


def embedded(page):
    """The document in a page."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.DOTALL)
    assert len(blocks) == 1, blocks
    return json.loads(blocks[0])


class FitCase(folder_case.FolderCase):
    program = ""
    answers = {}  # of this process, by question

    def ask(self, *words, codes=(0, 1, 4)):
        result = subprocess.run([self.program, *words, "--format", "json"], capture_output=True, text=True, timeout=900,
                                check=False)
        self.assertIn(result.returncode, codes, f"{words}: {result.stderr}")
        return json.loads(result.stdout)

    def fit(self, *words, codes=(0,)):
        """Its answer, asked once."""
        if words not in self.answers:
            self.answers[words] = self.ask("fit", *words, codes=codes)
        return self.answers[words]

    def base(self, model, machine, sequence, batch, gpus, **more):
        """The scenario that a model on a machine is asked as."""
        replicas = next(count for count in range(min(gpus, batch), 0, -1) if gpus % count == 0 and batch % count == 0)
        return self.path("base.json", {
            "schema": "spillway-scenario", "version": 1, "hardware": {"profile": machine},
            "model": {"name": model, "sequence": sequence, "global_batch": batch, "data_parallel": replicas,
                      "optimizer_form": "fused", **more}})

    def run_of(self, scenario, edits):
        return self.ask("run", scenario, *[f"--set={edit}" for edit in listed(edits)])

    @staticmethod
    def shown(answer):
        """Rows of the set-ups shown, with their groups."""
        return [{**answer["ways"][one["way"]], "group": one["group"]} for one in answer["shown"]]

    @staticmethod
    def gib_short(row):
        return row["short_of_bytes"] / 2**30

    def assert_has(self, row, **keys):
        """Values of the edits by the key behind "model."."""
        for key, value in keys.items():
            self.assertEqual(row["edits"].get("model." + key), value, f"{row['name']}: {key}")

    def assert_no_word(self, answer, pattern):
        for row in self.shown(answer):
            self.assertIsNone(re.search(pattern, row["name"]), row["name"])

    def assert_as_fast_as(self, row, scenario, recipe):
        """As the recipe by its own replay, or faster; the row is what `run` says of its edits."""
        expert, own = self.run_of(scenario, recipe), self.run_of(scenario, row["edits"])
        self.assertEqual(own["fingerprint"], row["fingerprint"], row["name"])
        self.assertEqual(row["verdict"], "fits", row["name"])
        self.assertEqual(expert["verdict"], "fits", f"the recipe itself: {recipe}")
        self.assertLessEqual(row["step_time_ns"], 1.001 * expert["step_time_ns"], f"{row['name']} beside {recipe}")
