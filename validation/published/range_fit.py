#!/usr/bin/env python3
"""Fits the factors of scenario/figure_range.cc and says how many measured steps lie in ranges that never saw them.

Usage: range_fit.py CSV...
  CSV  what `spillway validate published --output CSV` and the tables of table_cases.py write

measured / predicted is a sum over what binds on the critical path, share by share, by the kind of step: two linear
regressions at the quantiles LOW and HIGH, sources weighing alike, factors at least FLOOR away from 1 (experts' kernels
further, as one source alone has them). Each source is left out in turn. The host of experts has factors that are not
fitted here. Peaks have no parts: their factors are the quantiles of measured / predicted by kind, sources weighing
alike. Needs numpy and scipy (Debian: python3-numpy, python3-scipy).
"""
import collections
import csv
import re
import sys

import numpy
from scipy.optimize import linprog

LOW, HIGH, FLOOR, FLOOR_OF_EXPERTS = 0.05, 0.92, 0.05, (0.12, 0.25)
PARTS = ("kernels", "experts", "inside", "across", "split", "gathers", "host")
HOST_OF_EXPERTS, ON_CLOUDS, LEAST_NETWORK = (0.8, 1.45), 1.25, 0.1
PEAK_LOW, PEAK_HIGH, PEAK_FLOOR = 0.1, 0.9, 0.01


def source_of(name):
    """Tables and sections of one publication, parts of one table, are one source; None: the same steps again, or those
    whose set-up is not stated."""
    if name.endswith("rate known") or name.startswith("STAlloc"):
        return None
    if "ZeRO-3" in name:
        return name  # another program
    return re.split(r" Table | Sec |, | fp8$| H100 of | A100$(?<=torchtitan A100)|(?<=AWS) ", name)[0]


class Step:
    def __init__(self, row):
        error = float(row["relative_error"])
        self.ratio = 1 + error if row["metric"] == "throughput" else 1 / (1 + error)
        share = {name[6:]: float(value) for name, value in row.items() if name.startswith("share_")}
        self.kernels, self.network = share["compute"] + share["hbm"], share["network"]
        self.host = sum(share[part] for part in ("host", "launch_latency", "pcie", "storage", "idle"))
        self.reach, _, experts = row["range_kind"].partition(" ")
        self.experts, self.on_cloud = experts != "", row["source"].startswith("AWS")

    def shares(self, is_high):
        """By PARTS. At the upper end a tenth of a step over machines counts as communication."""
        moved = min(max(LEAST_NETWORK - self.network, 0), self.kernels) if is_high and self.reach == "across" else 0
        result = dict.fromkeys(PARTS, 0.0)
        result["experts" if self.experts else "kernels"] = self.kernels - moved
        result[self.reach] = self.network + moved
        result["host"] = 0 if self.experts else self.host
        return numpy.array([result[part] for part in PARTS])

    def fixed(self, is_high):
        factor = HOST_OF_EXPERTS[is_high] * (ON_CLOUDS if is_high and self.on_cloud else 1)
        return self.host * factor if self.experts else 0


def read(paths):
    steps = collections.defaultdict(list)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                source = source_of(row["source"])
                if row["metric"] in ("iteration_time", "throughput") and row["role"] == "validation" and source:
                    steps[source].append(Step(row))
    return steps


def factors(groups, is_high):
    steps = [step for group in groups for step in group]
    shares = numpy.array([step.shares(is_high) for step in steps])
    ratios = numpy.array([step.ratio - step.fixed(is_high) for step in steps])
    weights = numpy.array([1 / len(group) for group in groups for _ in group])
    count, parts = shares.shape
    floors = [FLOOR_OF_EXPERTS[is_high] if part == "experts" else FLOOR for part in PARTS]
    bounds = [(1 + floor, None) if is_high else (0.3, 1 - floor) for floor in floors] + [(0, None)] * (2 * count)
    quantile = HIGH if is_high else LOW
    costs = numpy.concatenate([numpy.zeros(parts), weights * quantile, weights * (1 - quantile)])
    equal = numpy.hstack([shares, numpy.eye(count), -numpy.eye(count)])
    return linprog(costs, A_eq=equal, b_eq=ratios, bounds=bounds, method="highs").x[:parts]


def read_peaks(paths):
    """Ratios by kind and source."""
    peaks = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                source = source_of(row["source"])
                if row["metric"] in ("peak_allocated", "peak_reserved") and row["role"] == "validation" and source:
                    peaks[row["range_kind"]][source].append(1 / (1 + float(row["relative_error"])))
    return peaks


def peak_factors(groups):
    ratios = sorted((ratio, 1 / len(group)) for group in groups for ratio in group)
    weights = numpy.cumsum([weight for _, weight in ratios]) / len(groups)
    low, high = (ratios[min(numpy.searchsorted(weights, at), len(ratios) - 1)][0] for at in (PEAK_LOW, PEAK_HIGH))
    return min(low, 1 - PEAK_FLOOR), max(high, 1 + PEAK_FLOOR)


def fit_peaks(paths):
    kinds = read_peaks(paths)
    print(f"\n{'peaks of':14} {'left out':34} {'peaks':>5} within   range")
    for kind, sources in sorted(kinds.items()):
        for source, mine in sorted(sources.items()):
            others = [group for name, group in sources.items() if name != source]
            if others:
                low, high = peak_factors(others)
                hits = sum(low <= ratio <= high for ratio in mine)
                print(f"{kind:14} {source:34} {len(mine):5} {hits / len(mine):6.0%}   {low:.3f} to {high:.3f}")
        low, high = peak_factors(list(sources.values()))
        mine = [ratio for group in sources.values() for ratio in group]
        hits = sum(low <= ratio <= high for ratio in mine)
        print(f"{kind:14} {'none':34} {len(mine):5} {hits / len(mine):6.0%}   {low:.3f} to {high:.3f}")
    low, high = peak_factors([group for sources in kinds.values() for group in sources.values()])
    print(f"all kinds {low:.3f} to {high:.3f}")


def main():
    sources = read(sys.argv[1:])
    within = total = 0
    widths = collections.defaultdict(list)
    print(f"{'left out':36} {'steps':>5} within   mean range   width")
    for source, mine in sorted(sources.items()):
        others = [group for name, group in sources.items() if name != source]
        both = [factors(others, is_high) for is_high in (False, True)]
        ends = [[step.shares(i) @ both[i] + step.fixed(i) for i in (False, True)] for step in mine]
        hits = sum(low <= step.ratio <= high for step, (low, high) in zip(mine, ends))
        within, total = within + hits, total + len(mine)
        for step, (low, high) in zip(mine, ends):
            widths["experts" if step.experts else "dense"].append(high / low)
        width = numpy.mean([high / low for low, high in ends])
        print(f"{source:36} {len(mine):5} {hits / len(mine):6.0%}   {numpy.mean(ends, axis=0).round(2)}  {width:.2f}")
    print(f"{'all':36} {total:5} {within / total:6.1%}   {len(sources)} sources")
    print({kind: round(numpy.mean(values), 2) for kind, values in widths.items()})
    for is_high in (False, True):
        print("high" if is_high else "low", dict(zip(PARTS, factors(list(sources.values()), is_high).round(3))))
    fit_peaks(sys.argv[1:])


if __name__ == "__main__":
    main()
