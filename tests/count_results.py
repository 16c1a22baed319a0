#!/usr/bin/env python3
"""Turns meson's test log into one line of counts: "N passed, N failed[, N skipped]".

A GoogleTest program counts each of its cases; any other program counts as one. A program that ended badly
without naming a failed case (a crash, a time-out) counts as one failure more.
Usage: count_results.py BUILD/meson-logs/testlog.json
       count_results.py --self-test
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


# Result and stdout of a program, and the (passed, failed, skipped) it must count as.
SELF_TESTS = [
    ("OK", "[       OK ] A.b (0 ms)\n[       OK ] A.c (12 ms)\n[  PASSED  ] 2 tests.\n", (2, 0, 0)),
    ("FAIL", "[       OK ] A.b (0 ms)\n[  FAILED  ] A.c, where GetParam() = 3 (1 ms)\n"
             "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.c, where GetParam() = 3\n", (1, 1, 0)),
    ("OK", "[  SKIPPED ] A.b (0 ms)\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.b\n", (0, 0, 1)),
    ("FAIL", "[       OK ] A.b (0 ms)\n[ RUN      ] A.c\n", (1, 1, 0)),  # died in A.c
    ("TIMEOUT", "", (0, 1, 0)),
    ("FAIL", "", (0, 1, 0)),
    ("OK", "202 files, 0 breaches\n", (1, 0, 0)),
    ("SKIP", "", (0, 0, 1)),
]


def self_test():
    failed = 0
    for result, stdout, wanted in SELF_TESTS:
        counted = tuple(count_program({"result": result, "stdout": stdout}).values())
        if counted != wanted:
            failed += 1
            print(f"wanted {wanted}, got {counted} for {result} {stdout!r}")
    return 1 if failed else 0


def main(path):
    if path == "--self-test":
        return self_test()
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
