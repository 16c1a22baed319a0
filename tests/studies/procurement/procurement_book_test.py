#!/usr/bin/env python3
"""The procurement workbook's formulas, worked out by LibreOffice, against the values the program put beside them.

Usage: procurement_book_test.py SPILLWAY SOURCE_ROOT [SCENARIO]
Exit code 77 (skipped) without LibreOffice or without libxlsxwriter in the program.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

PROGRAM, ROOT = sys.argv[1:3]
SCENARIO = sys.argv[3] if len(sys.argv) > 3 else os.path.join(ROOT, "cli/scenarios/gpt2-small-procurement.json")
CELL = re.compile(rb'<c r="([A-Z]+[0-9]+)"[^>]*?(?:/>|>(.*?)</c>)', re.S)


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def sheets(book):
    """By sheet's place: {cell: (has a formula, number)}."""
    found = {}
    with zipfile.ZipFile(book) as archive:
        for name in archive.namelist():
            if not re.fullmatch(r"xl/worksheets/sheet[0-9]+\.xml", name):
                continue
            cells = {}
            for match in CELL.finditer(archive.read(name)):
                value = re.search(rb"<v>(.*?)</v>", match[2] or b"")
                is_text = b't="s"' in match[0].split(b">")[0] or b't="str"' in match[0].split(b">")[0]
                if value and not is_text:
                    cells[match[1].decode()] = (b"<f" in (match[2] or b""), float(value[1]))
            found[int(re.search(r"[0-9]+", name.split("/")[-1])[0])] = cells
    return found


def without_values(book, stripped):
    """The same workbook with no cached value behind any formula, so that every one must be worked out."""
    with zipfile.ZipFile(book) as archive, zipfile.ZipFile(stripped, "w") as out:
        for item in archive.infolist():
            content = archive.read(item)
            if item.filename.startswith("xl/worksheets/sheet"):
                content = re.sub(rb"(</f>)<v>.*?</v>", rb"\1", content, flags=re.S)
            out.writestr(item.filename, content)


def main():
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if not office:
        skip("LibreOffice is not installed")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        book = folder / "book.xlsx"
        result = subprocess.run([PROGRAM, "report", "procurement", SCENARIO, "--output", str(book)],
                                capture_output=True, text=True, timeout=500, check=False)
        if "was built without libxlsxwriter" in result.stderr:
            skip("no libxlsxwriter")
        assert result.returncode in (0, 1), result.stderr
        stripped = folder / "stripped.xlsx"
        without_values(book, stripped)
        left = [cell for cells in sheets(stripped).values() for cell in cells.values() if cell[0]]
        assert not left, "some formulas kept their values"
        subprocess.run([office, f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "xlsx",
                        "--outdir", str(folder / "out"), str(stripped)], capture_output=True, timeout=300, check=True)
        ours, theirs = sheets(book), sheets(folder / "out" / "stripped.xlsx")
        compared, worst = 0, 0.0
        for place, cells in ours.items():
            for cell, (is_formula, value) in cells.items():
                if not is_formula:
                    continue
                assert cell in theirs[place], f"sheet {place}, {cell}: {value} here, nothing from LibreOffice"
                other = theirs[place][cell][1]
                difference = abs(other - value) / max(1e-12, abs(value), abs(other)) if other != value else 0.0
                assert difference < 1e-9, f"sheet {place}, {cell}: {value} here, {other} from LibreOffice"
                worst = max(worst, difference)
                compared += 1
        print(f"{compared} formulas, worst difference {worst:.2g}")
        assert compared > 200


main()
