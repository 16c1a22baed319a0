#!/usr/bin/env python3
"""One run's documents say the same, and the bill can be worked out again from the CSV alone.

Usage: procurement_bill_test.py SPILLWAY SOURCE_ROOT
The bill's formulas are written here a second time, after docs/internals/procurement.md, and share no code with the program's.
"""
import csv
import html.parser
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM, ROOT = sys.argv[1:3]
SCENARIO = os.path.join(ROOT, "cli/scenarios/gpt2-small-procurement.json")
CENT = 0.005


class Tables(html.parser.HTMLParser):
    """Cells of a page's tables, row by row."""

    def __init__(self):
        super().__init__()
        self.rows, self.cell = [], None

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def figures(rows):
    """{sheet: {case: {field: (number, is given)}}} of the tables of figures."""
    found, sheet, cases = {}, None, []
    for row in rows:
        if row and row[0].startswith("Figures: "):
            sheet = found.setdefault(row[0][len("Figures: "):], {})
        elif sheet is not None and row[:4] == ["field", "label", "unit", "formula"]:
            cases = row[4:]
        elif sheet is not None and len(row) == 4 + len(cases) and cases:
            for case, number in zip(cases, row[4:]):
                sheet.setdefault(case, {})[row[0]] = (float(number), row[3] == "")
        else:
            sheet, cases = None if row else sheet, []
    return found


def bill(option, runs):
    """A fleet's bill over its period, from what is given of it and of its runs."""
    hours = option["period_months"] * 365 / 12 * 24
    busy_days = written_tb = 0.0
    for run in runs:
        steps = math.ceil(run["tokens"] / run["tokens_per_step"])
        busy_days += steps * run["step_seconds"] / 86400
        written_tb += steps * run["written_gb"] / 1000
    machines = math.ceil(option["gpus"] / option["gpus_per_machine"])
    drives = option["gpus"] * option["drives_per_gpu"]
    drive_usd = option["drive_price"] * option["drive_price_factor"]
    machine_usd = machines * option["machine_price"] * option["machine_price_factor"]
    network_usd = option["gpus"] * option["network_price"]
    switch_usd = machines * option["switches_per_machine"] * option["switch_price"]
    capital = machine_usd + network_usd + drives * drive_usd + switch_usd
    use = option["utilisation"]
    watts = machines * (use * option["machine_watts"] + (1 - use) * option["idle_watts"])
    watts += use * drives * option["drive_watts"]
    energy = watts / 1000 * option["power_overhead"] * hours * option["electricity"] * option["pays_power"]
    rent = machines * option["machine_rent"] * option["machine_price_factor"] * hours
    maintenance = capital * option["maintenance"] * option["period_months"] / 12
    replacement = 0.0
    if written_tb > 0 and drives > 0:
        a_year = written_tb / busy_days * 365 / option["drives_per_gpu"] * option["write_amplification"]
        first = option["drive_endurance_tb"] * (option["retention_credit"] - option["used"]) / a_year / use
        new = option["drive_endurance_tb"] * option["retention_credit"] / a_year / use
        sets = math.ceil(max(0.0, option["period_months"] / 12 - first) / new)
        replacement = sets * drives * drive_usd
    running = energy + rent + maintenance + replacement
    return {"capital": capital, "energy_cost": energy, "rent_cost": rent, "maintenance_cost": maintenance,
            "replacement_cost": replacement, "running": running, "total": capital + running,
            "days": busy_days / use}


def number_of(text):
    plain = text.replace(",", "")
    return float(plain) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", plain) else None


class Bill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = {kind: os.path.join(cls.folder.name, "offer." + kind) for kind in ("html", "pdf", "xlsx", "csv")}
        kinds = list(cls.paths)
        while True:
            outputs = [word for kind in kinds for word in ("--output", cls.paths[kind])]
            cls.run_once = subprocess.run([PROGRAM, "report", "procurement", SCENARIO, "--format", "json", *outputs],
                                          capture_output=True, text=True, timeout=500, check=False)
            missing = {"libxlsxwriter": "xlsx", "pango": "pdf"}
            lacks = [kind for name, kind in missing.items() if "was built without " + name in cls.run_once.stderr]
            if not lacks:
                break
            kinds = [kind for kind in kinds if kind not in lacks]
        cls.kinds = kinds
        with open(cls.paths["csv"], encoding="utf-8", newline="") as file:
            cls.rows = list(csv.reader(file))
        with open(cls.paths["html"], encoding="utf-8") as file:
            tables = Tables()
            tables.feed(file.read())
        cls.html = tables.rows

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_bill_of_three_options_to_the_cent(self):
        self.assertIn(self.run_once.returncode, (0, 1), self.run_once.stderr)
        found = figures(self.rows)
        kinds = {}
        for name, option in found["Options"].items():
            given = {field: number for field, (number, is_given) in option.items() if is_given}
            kind = "rented" if given["machine_rent"] > 0 else "drives" if given["drives_per_gpu"] > 0 else "bought"
            if kind in kinds:
                continue
            fleet = name.split("; ")[0]
            runs = [{field: number for field, (number, is_given) in run.items() if is_given}
                    for case, run in found["Runs"].items() if case == fleet or case.startswith(fleet + ": ")]
            self.assertTrue(runs, fleet)
            kinds[kind] = name
            for figure, number in bill(given, runs).items():
                self.assertLess(abs(number - option[figure][0]), CENT, f"{name}: {figure}")
        self.assertEqual(set(kinds), {"rented", "bought", "drives"}, "one option of each kind")

    def test_html_says_what_csv_says(self):
        lines = iter(self.rows)
        compared = 0
        for row in self.html:
            numbers = [number_of(cell) for cell in row]
            if not any(number is not None for number in numbers):
                continue
            for line in lines:
                if len(line) != len(row) or line[0] != row[0]:
                    continue
                for text, number, other in zip(row, numbers, line):
                    if number is None or number_of(other) is None:
                        self.assertEqual(text, other)
                        continue
                    # Figures are printed with three digits at least.
                    self.assertLessEqual(abs(number - float(other)), 0.00501 * abs(float(other)), (text, other, row))
                    compared += 1
                break
            else:
                self.fail(f"the CSV lacks {row}")
        self.assertGreater(compared, 100)

    def test_the_workbook_says_what_csv_says(self):
        if "xlsx" not in self.kinds:
            self.skipTest("built without libxlsxwriter")
        with zipfile.ZipFile(self.paths["xlsx"]) as book:
            numbers = set()
            for name in book.namelist():
                if name.startswith("xl/worksheets/sheet"):
                    for value in re.findall(rb'<c r="[A-Z]+[0-9]+"(?![^>]*t="s)[^>]*>.*?<v>(.*?)</v>', book.read(name)):
                        numbers.add(f"{float(value):.9g}")
        option = next(iter(figures(self.rows)["Options"].values()))
        for field, (number, _) in option.items():
            self.assertIn(f"{number:.9g}", numbers, field)

    def test_the_pages_hold_the_figures_of_html(self):
        if "pdf" not in self.kinds or not shutil.which("pdftotext"):
            self.skipTest("built without pango, or no pdftotext")
        pages = subprocess.run(["pdftotext", "-layout", self.paths["pdf"], "-"], capture_output=True, text=True,
                               check=True).stdout
        words = set(pages.split())
        numbers = [cell for row in self.html for cell in row if number_of(cell) is not None]
        self.assertGreater(len(numbers), 100)
        for number in numbers:
            self.assertIn(number, words)

    def test_every_document_is_there(self):
        for kind in self.kinds:
            self.assertGreater(os.path.getsize(self.paths[kind]), 1000, kind)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
