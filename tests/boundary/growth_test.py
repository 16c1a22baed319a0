#!/usr/bin/env python3
"""No small input takes the machine: 100,000 levels of every bracket, n x n sharing, doubling, each within 300 MiB and 5 s.

Usage: growth_test.py SPILLWAY SOURCE_ROOT [--only WORD] [--list] [--write]
Memory and processor time are measured from outside. The small ones of tests/fuzz/seeds are held to the same generator;
--write makes them anew.
"""
import argparse
import concurrent.futures
import os
import sys
import tempfile

import good_inputs
import text_growth
import trace_growth
from bad_inputs import Case
from bad_inputs_test import Battery
from growth_seeds import FULL, SMALL

PEAK_BYTES = 300 << 20
CPU_SECONDS = 5
LARGEST_FUZZ_SEED = 4096
READERS = (*text_growth.READERS, *trace_growth.READERS)


def seeds_of(size):
    return [seed for reader in READERS for seed in reader(size)]


def cases():
    for seed in seeds_of(FULL):
        for command in seed.commands:
            yield Case(seed.name, "growth", seed.content, command.split(), seed.ending, seed.codes)


def fuzz_files(root):
    """Path to content of the small seeds that fuzzers begin with."""
    return {os.path.join(root, "tests", "fuzz", "seeds", seed.target, f"growth-{seed.name}{seed.ending}"): seed.content
            for seed in seeds_of(SMALL) if seed.target and seed.is_fuzzed and len(seed.content) <= LARGEST_FUZZ_SEED}


def stored(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("root")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    if arguments.write:
        for path, content in fuzz_files(root).items():
            with open(path, "wb") as file:
                file.write(content)
        return 0
    chosen = [case for case in cases() if arguments.only in case.title]
    if arguments.list:
        print("\n".join(f"{case.title}: {len(case.content)} bytes" for case in chosen))
        return 0
    failures = [f"{path} is not what growth_test.py --write makes" for path, content in fuzz_files(root).items()
                if not arguments.only and stored(path) != content]
    with tempfile.TemporaryDirectory() as folder:
        good = os.path.join(folder, "good")
        os.mkdir(good)
        program = os.path.abspath(arguments.program)
        maker = good_inputs.Maker(program, root, good)
        good_inputs.keep_basics(maker)
        battery = Battery(program, folder, good, PEAK_BYTES, CPU_SECONDS)
        if battery.is_sanitized:
            battery.peak_bytes, battery.cpu_seconds = 20 * PEAK_BYTES, 20 * CPU_SECONDS
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            failures += [text for text in pool.map(battery.faults_of, enumerate(chosen)) if text]
    print("\n".join(failures))
    print(f"{len(chosen)} growing inputs, {len(failures)} failures; at most {battery.peak >> 20} MiB and {battery.seconds:.2f} s "
          f"of a processor")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
