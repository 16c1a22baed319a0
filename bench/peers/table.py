#!/usr/bin/env python3
"""Spillway beside other programs on the same work: one table, and a gate on its ratios.

usage: table.py BUILD SPILLWAY [--peers FOLDER] [--gate] [ROW...]
       table.py --self-test

BUILD: the folder with bench/ (meson, -Dbuildtype=release); SPILLWAY: the program. FOLDER holds checkouts `minimalloc` and
`calculon`; what is not there is said to be missing. ROW: the rows wanted (layout, engine, kineto, screen); all unless told.
Processor seconds of whole runs, which a busy machine does not distort as it does elapsed time; ratios are the peer's over
spillway's. --gate: a ratio that is less than 1/1.10 of peers/ratios.json is measured again, twice at most, and the exit code
is 1 if it stays so. SPILLWAY_BLESS=1: stores the ratios measured.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
RATIOS = os.path.join(HERE, "ratios.json")
SLOWER = 1.10
CONFIRMATIONS = 2
TRACE_MEGABYTES = "200"
# Where SimGrid's time grows with the square of the work and with what else is in the caches, a ratio says nothing of ours.
NOT_STORED = re.compile(r"graph of \d\d,")
SWEEP = os.path.join(SOURCE, "cli/sweeps/gpt3-175b-512xa100.json")


class Missing(Exception):
    pass


def output_of(*command, worst_exit=0):
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise Missing(f"{command[0]}: {error.strerror}") from None
    if not 0 <= done.returncode <= worst_exit:
        raise Missing(f"{os.path.basename(command[0])} failed: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def cpu_seconds(*command):
    """Its output, whether the answer is yes or no, and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = output_of(*command, worst_exit=1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def layout(setting):
    """MiniMalloc's eleven tables at their capacity, CPU seconds in all."""
    checkout = os.path.join(setting["peers"], "minimalloc")
    if not os.path.isdir(checkout):
        raise Missing("no checkout of github.com/google/minimalloc")
    rows = [line.split() for line in output_of("sh", os.path.join(HERE, "minimalloc.sh"), checkout,
                                               setting["spillway"]).splitlines()[1:]]
    unsolved = [row[0] for row in rows if "exit" in " ".join(row)]
    if unsolved or not rows:
        raise Missing(f"not solved: {', '.join(unsolved) or 'any'}")
    theirs, ours = (sum(float(row[column]) for row in rows) for column in (2, 3))
    yield f"layout of MiniMalloc's {len(rows)} tables", "CPU s", ours, "MiniMalloc", theirs, theirs / ours


def engine(setting):
    """Simulated activities, operators per CPU second."""
    for line in output_of(os.path.join(setting["build"], "bench/peers/simgrid_bench")).splitlines()[1:]:
        cells = line.split()
        if len(cells) == 7 and cells[3] != "-":
            ours, theirs = float(cells[2]), float(cells[3])
            yield f"{cells[0]} of {int(cells[1]):,} operators", "operators/CPU s", ours, "SimGrid", theirs, ours / theirs


def rate(program, row):
    return float(re.search(rf"^{row} .*?([\d.]+) MB/CPU-s", output_of(program, TRACE_MEGABYTES), re.MULTILINE).group(1))


def kineto(setting):
    """A made-up Kineto trace: ours makes a trace of it, simdjson reads its fields and makes nothing."""
    ours = rate(os.path.join(setting["build"], "bench/kineto_reader_bench"), "read")
    theirs = rate(os.path.join(setting["build"], "bench/peers/simdjson_bench"), "simdjson")
    yield f"Kineto import, {TRACE_MEGABYTES} MB", "MB/CPU s", ours, "simdjson", theirs, ours / theirs


def screen(setting):
    """GPT-3 175B on 512 A100 at batch 1,536: sound layouts whose step is estimated, per CPU second of one core."""
    checkout = os.path.join(setting["peers"], "calculon")
    if not os.path.isdir(checkout):
        raise Missing("no checkout of github.com/calculon-ai/calculon")
    theirs = json.loads(output_of("/usr/bin/python3", os.path.join(HERE, "calculon_rate.py"), checkout))
    with open(SWEEP, encoding="utf-8") as file:
        sweep = json.load(file)
    sweep["replays"] = 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sweep.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sweep, file)
        text, seconds = cpu_seconds(setting["spillway"], "sweep", path, "--jobs", "1", "--format", "json")
    ours = json.loads(text)["screened"] / seconds
    peer = theirs["sound"] / theirs["cpu_seconds"]
    yield "screening of valid layouts", "points/CPU s", ours, "Calculon", peer, ours / peer


ROWS = {"layout": layout, "engine": engine, "kineto": kineto, "screen": screen}


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_rows(rows):
    print("| work | | spillway | peer | its figure | ratio |\n|---|---|---|---|---|---|")
    for name, unit, ours, peer, theirs, ratio in rows:
        print(f"| {name} | {unit} | {shown(ours)} | {peer} | {shown(theirs)} | {shown(ratio)} |", flush=True)


def slower(stored, measured, again):
    """The rows whose ratio stays below what is stored: the best of the runs that were needed to say so."""
    best = dict(measured)
    for _ in range(CONFIRMATIONS):
        late = [name for name in stored if name in best and stored[name] / best[name] > SLOWER]
        if not late:
            break
        for name, ratio in again(late).items():
            best[name] = max(ratio, best.get(name, 0))
    return {name: stored[name] / best[name] for name in stored if name in best and stored[name] / best[name] > SLOWER}


def measure(setting, wanted):
    rows, kinds = [], {}
    for kind in wanted:
        try:
            for row in ROWS[kind](setting):
                rows.append(row)
                kinds[row[0]] = kind
        except Missing as error:
            print(f"{kind}: not compared: {error}", file=sys.stderr)
    return rows, kinds


def main_table(setting, wanted, has_gate):
    rows, kinds = measure(setting, wanted)
    print_rows(rows)
    if not rows:
        return 2
    with open(RATIOS, encoding="utf-8") as file:
        stored = json.load(file)
    if os.environ.get("SPILLWAY_BLESS") == "1":
        stored.update({row[0]: float(f"{row[5]:.4g}") for row in rows if not NOT_STORED.match(row[0])})
        with open(RATIOS, "w", encoding="utf-8") as file:
            file.write(json.dumps(stored, indent=2) + "\n")
        print(f"{RATIOS} written: nothing compared", file=sys.stderr)
        return 0
    if not has_gate:
        return 0

    def again(names):
        return {row[0]: row[5] for row in measure(setting, sorted({kinds[name] for name in names}))[0]}

    late = slower(stored, {row[0]: row[5] for row in rows}, again)
    for name, factor in late.items():
        print(f"{name}: {factor:.2f} times slower beside its peer than stored", file=sys.stderr)
    return 1 if late else 0


def self_test():
    runs = iter([{"a": 8.0, "b": 9.9}, {"a": 8.5}])
    late = slower({"a": 10.0, "b": 10.0, "c": 10.0, "d": 1.0}, {"a": 7.0, "b": 8.0, "c": 9.5}, lambda names: next(runs))
    checks = {
        "slower three times is slower": list(late) == ["a"] and abs(late["a"] - 10 / 8.5) < 1e-9,
        "one slow run of two is none": "b" not in late and next(runs, None) is None,
        "what wasn't measured is not judged": "d" not in late,
    }
    for what, right in checks.items():
        print(f"{'ok' if right else 'FAILED'}: {what}")
    return 0 if all(checks.values()) else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    peers, has_gate, words = "", False, []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--peers":
            peers = next(rest, "")
        elif argument == "--gate":
            has_gate = True
        else:
            words.append(argument)
    wanted = words[2:] or list(ROWS)
    if len(words) < 2 or any(row not in ROWS for row in wanted):
        print(__doc__, file=sys.stderr)
        return 2
    return main_table({"build": words[0], "spillway": os.path.abspath(words[1]), "peers": peers}, wanted, has_gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
