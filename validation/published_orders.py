#!/usr/bin/env python3
"""ROAM's published peaks against ours on the same training graphs.

    validation/published_orders.py PROGRAM GRAPHS [--cases FILE.json]

Runs `spillway plan order --compare --layout` on each graph of the case file that GRAPHS has. Prints each figure's error
(ROAM's own, LESCEA's, PyTorch's as our allocators reserve) and what ROAM's orders and ours save, on the published baselines
and on ours. MODeL needs Gurobi and is not run: its published figures alone are a baseline. Exit code 1 if the median error of
a method lies above what the file holds it to, 77 if no graph is there.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

MIB = 1 << 20
NOT_THERE = 77


def heights(program, graph, ratio):
    """MiB by method: ROAM's, LESCEA's and our laid-out orders, and what PyTorch's allocator reserves of the program's."""
    command = [program, "plan", "order", graph, "--compare", "--layout", "--format", "json", "--quiet"]
    run = subprocess.run(command + (["--roam-ratio", str(ratio)] if ratio else []), stdout=subprocess.PIPE, text=True,
                         check=True)
    found = {method["method"]: method for method in json.loads(run.stdout)["methods"]}
    return {"torch": found["program"]["emulated_reserved_bytes"]["torch"] / MIB,
            **{name: found[name]["height_bytes"] / MIB for name in ("lescea", "roam", "best")}}


def saved(of, against):
    """Mean share that is saved, over the cases."""
    return statistics.mean(1 - mine / base for mine, base in zip(of, against))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("graphs")
    parser.add_argument("--cases", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "published_orders.json"))
    wanted = parser.parse_args()
    with open(wanted.cases, encoding="utf-8") as file:
        document = json.load(file)
    files = {case["graph"]: os.path.join(wanted.graphs, case["graph"] + "_train_canon.json.gz") for case in document["cases"]}
    cases = [case for case in document["cases"] if os.path.exists(files[case["graph"]])]
    if not cases:
        print(f"{wanted.graphs} has none of the graphs: {document['graphs']}")
        return NOT_THERE
    ours = [heights(wanted.program, files[case["graph"]], case.get("roam_ratio")) for case in cases]
    errors = {name: [mine[name] / case[name] - 1 for case, mine in zip(cases, ours)] for name in ("torch", "lescea", "roam")}
    print(f"{'graph':16}{'torch':>10}{'here':>10}{'error':>9}{'LESCEA':>10}{'error':>9}{'ROAM':>10}{'error':>9}{'ours':>10}")
    for i, (case, mine) in enumerate(zip(cases, ours)):
        print(f"{case['graph']:16}{case['torch']:10.2f}{mine['torch']:10.2f}{errors['torch'][i]:+9.1%}{case['lescea']:10.2f}"
              f"{errors['lescea'][i]:+9.1%}{case['roam']:10.2f}{errors['roam'][i]:+9.1%}{mine['best']:10.2f}")
    published = {name: [case[name] for case in cases] for name in ("torch", "lescea", "model", "roam")}
    here = {name: [mine[name] for mine in ours] for name in ("torch", "lescea", "roam", "best")}
    print("\nmean saved of         ROAM, published  ROAM, here      ours")
    for name in ("torch", "lescea", "model"):
        print(f"{name + ', published':22}{saved(published['roam'], published[name]):>15.1%}"
              f"{saved(here['roam'], published[name]):>12.1%}{saved(here['best'], published[name]):>10.1%}")
    for name in ("torch", "lescea"):
        print(f"{name + ', here':22}{saved(published['roam'], here[name]):>15.1%}{saved(here['roam'], here[name]):>12.1%}"
              f"{saved(here['best'], here[name]):>10.1%}")
    misses = 0
    for name, limit in document["held_to"].items():
        middle = statistics.median(abs(error) for error in errors[name])
        misses += middle > limit
        print(f"{name}: median |error| {middle:.2%}, held to {limit:.1%}{': missed' if middle > limit else ''}")
    if len(cases) == len(document["cases"]):
        for name, mean in document["means"].items():
            found = saved(published["roam"], published[name.rsplit(" ", 1)[1]])
            if abs(found - mean) > 0.001:
                print(f"{name}: {found:.3f}, the paper has {mean}")
                misses += 1
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
