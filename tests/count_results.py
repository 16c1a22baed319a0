#!/usr/bin/env python3
"""Turns meson's test log into one line of counts: "N passed, N failed[, N skipped]".

A GoogleTest program counts each of its cases; any other program counts as one. A program that ended badly
without naming a failed case (a crash, a time-out) counts as one failure more.
Usage: count_results.py BUILD/meson-logs/testlog.json
"""
import json
import re
import sys

CASE = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] \S.*\(\d+ ms\)$", re.MULTILINE)
KINDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
GOOD = ("OK", "EXPECTEDFAIL")


def count_program(record):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for kind in CASE.findall(record.get("stdout") or ""):
        counts[KINDS[kind]] += 1
    result = record["result"]
    if result not in GOOD and result != "SKIP":
        counts["failed"] = max(1, counts["failed"])
    elif not any(counts.values()):
        counts["skipped" if result == "SKIP" else "passed"] = 1
    return counts


def main(path):
    total = {"passed": 0, "failed": 0, "skipped": 0}
    with open(path, encoding="utf-8") as log:
        for line in log:
            for kind, count in count_program(json.loads(line)).items():
                total[kind] += count
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
