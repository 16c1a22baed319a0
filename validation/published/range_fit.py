#!/usr/bin/env python3
"""Fits the factors of scenario/figure_range.cc and says how many measured steps lie in ranges that never saw them.

Usage: range_fit.py CSV...
  CSV  what `spillway validate published --output CSV` and the tables of table_cases.py write

measured / predicted is a sum over what binds on the critical path, share by share: two linear regressions at the
quantiles LOW and HIGH, sources weighing alike, factors at least FLOOR away from 1. Each source is left out in turn.
Needs numpy and scipy (Debian: python3-numpy, python3-scipy).
"""
import collections
import csv
import re
import sys

import numpy
from scipy.optimize import linprog

LOW, HIGH, FLOOR = 0.05, 0.9, 0.05
PARTS = (("compute",), ("hbm",), ("network",), ("host", "launch_latency", "pcie", "storage", "idle"))


def source_of(name):
    """Tables and sections of one publication, parts of one table, are one source; None: the same steps again."""
    if name.endswith("rate known"):
        return None
    if "ZeRO-3" in name:
        return name  # another program
    return re.split(r" Table | Sec |, | fp8$| H100 of | A100$(?<=torchtitan A100)|(?<=AWS) ", name)[0]


def read(paths):
    rows = collections.defaultdict(list)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                source = source_of(row["source"])
                if row["metric"] not in ("iteration_time", "throughput") or row["role"] != "validation" or not source:
                    continue
                error = float(row["relative_error"])
                ratio = 1 + error if row["metric"] == "throughput" else 1 / (1 + error)
                shares = [sum(float(row["share_" + part]) for part in parts) for parts in PARTS]
                rows[source].append((ratio, shares))
    return rows


def factors(rows, quantile):
    shares = numpy.array([shares for group in rows for _, shares in group])
    ratios = numpy.array([ratio for group in rows for ratio, _ in group])
    weights = numpy.array([1 / len(group) for group in rows for _ in group])
    count, parts = shares.shape
    bounds = [(0.3, 1 - FLOOR) if quantile < 0.5 else (1 + FLOOR, None)] * parts + [(0, None)] * (2 * count)
    costs = numpy.concatenate([numpy.zeros(parts), weights * quantile, weights * (1 - quantile)])
    equal = numpy.hstack([shares, numpy.eye(count), -numpy.eye(count)])
    return linprog(costs, A_eq=equal, b_eq=ratios, bounds=bounds, method="highs").x[:parts]


def main():
    rows = read(sys.argv[1:])
    within = total = 0
    print(f"{'left out':36} {'steps':>5} within   mean range")
    for source, mine in sorted(rows.items()):
        others = [group for name, group in rows.items() if name != source]
        low, high = factors(others, LOW), factors(others, HIGH)
        ends = [(numpy.dot(shares, low), numpy.dot(shares, high)) for _, shares in mine]
        hits = sum(least <= ratio <= most for (ratio, _), (least, most) in zip(mine, ends))
        within, total = within + hits, total + len(mine)
        print(f"{source:36} {len(mine):5} {hits / len(mine):6.0%}   {numpy.mean(ends, axis=0).round(2)}")
    print(f"{'all':36} {total:5} {within / total:6.1%}   {len(rows)} sources")
    for name, quantile in (("low", LOW), ("high", HIGH)):
        print(name, dict(zip((parts[0] for parts in PARTS), factors(list(rows.values()), quantile).round(3))))


if __name__ == "__main__":
    main()
