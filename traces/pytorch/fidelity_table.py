#!/usr/bin/env python3
"""Replays every capture below a folder on its own timings and prints how well that matches, as a Markdown table.

Usage: fidelity_table.py SPILLWAY FOLDER

The folders right below FOLDER are named after the repositories that the captures are from, with + for /. A row a capture:
repository, file, GPU, steps, recorded and replayed time of the steps together, error of the worst step, share of the
replayed time that nothing in the capture explains, and what the program says is missing. Files that can't be replayed
have a row too, with the reason. Equal files are shown once. The last line counts.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

ENDINGS = (".json", ".json.gz", ".sqlite", ".pftrace", ".perfetto-trace")


def asked(*arguments):
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    document = json.loads(run.stdout) if run.stdout.startswith("{") else None
    return document, run.stderr.strip().splitlines()


def gpu_of(spillway, path):
    info, _ = asked(spillway, "trace", "info", str(path), "--format", "json")
    return ((info or {}).get("devices") or ["not named"])[0] or "not named"


def row_of(spillway, path):
    """Cells behind the file's name, and whether it is good: within 1 % or with a reason."""
    document, complaints = asked(spillway, "run", str(path), "--format", "json")
    if document is None:
        reason = complaints[0].split(": ", 2)[-1] if complaints else "no answer"
        return ["-", "-", "-", "-", "-", "-", "refused: " + reason], "refused"
    found = document["fidelity"]
    if found is None:
        return [gpu_of(spillway, path), "0", "-", "-", "-", "-", "no recorded times"], "refused"
    steps = sum("recorded_span_ns" in step for step in document["steps"])
    error, share = found["relative_error"], found["unexplained_fraction"]
    cells = [gpu_of(spillway, path), str(steps), f"{found['recorded_ns'] / 1e6:,.3f}",
             f"{found['replayed_ns'] / 1e6:,.3f}", f"{error * 100:+.2f}", f"{share * 100:.1f}", found["cause"]]
    return cells, "within 1 %" if abs(error) <= 0.01 else "off, and said so"


def main(spillway, folder):
    root = pathlib.Path(folder)
    seen, counts, repositories, gpus = set(), {}, set(), set()
    print("| repository | capture | GPU | steps | recorded, ms | replayed, ms | error, % | unexplained, % | missing |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in sorted(root.glob("*/**/*")):
        if not path.is_file() or not path.name.endswith(ENDINGS):
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        repository = path.relative_to(root).parts[0].replace("+", "/")
        cells, kind = row_of(spillway, path)
        counts[kind] = counts.get(kind, 0) + 1
        repositories.add(repository)
        gpus.add(cells[0])
        print("| " + " | ".join([repository, path.name, *(cell.replace("|", "/") for cell in cells)]) + " |")
    known = sorted(gpus - {"-", "not named"})
    print(f"\n{sum(counts.values())} captures from {len(repositories)} repositories, {len(known)} kinds of GPU: "
          + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
