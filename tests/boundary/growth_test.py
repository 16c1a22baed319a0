#!/usr/bin/env python3
"""No small input takes the machine: 100,000 levels of every bracket, n x n sharing, doubling, each within 300 MiB and 5 s.

Usage: growth_test.py SPILLWAY SOURCE_ROOT [--only WORD] [--list] [--write]
Memory and processor time are measured from outside. The small ones of tests/fuzz/seeds are held to the same generator;
--write makes them anew.
"""
import argparse
import concurrent.futures
import multiprocessing
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


class KeptCase(Case):
    """A case that is made with the path of its content and reads it where it is asked for. Linux counts to a program's peak
    what the process was before it became the program: this one stays small."""

    @property
    def content(self):
        return stored(self.path)

    @content.setter
    def content(self, path):
        self.path = path


def kept_cases(reader, folder):
    """The cases of a reader at full size, their contents written into the folder."""
    cases = []
    for seed in reader(FULL):
        path = os.path.join(folder, f"{reader.__name__}-{len(cases)}")
        with open(path, "wb") as file:
            file.write(seed.content)
        cases += [KeptCase(seed.name, "growth", path, command.split(), seed.ending, seed.codes) for command in seed.commands]
    return cases


def cases(folder):
    """In processes of their own, see KeptCase."""
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        made = [pool.apply_async(kept_cases, (reader, folder)) for reader in READERS]
        return [case for of_reader in made for case in of_reader.get()]


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
    failures = [f"{path} is not what growth_test.py --write makes" for path, content in fuzz_files(root).items()
                if not arguments.only and stored(path) != content]
    print("\n".join(failures))
    with tempfile.TemporaryDirectory() as folder:
        seeds = os.path.join(folder, "seeds")
        os.mkdir(seeds)
        chosen = [case for case in cases(seeds) if arguments.only in case.title]
        if arguments.list:
            print("\n".join(f"{case.title}: {len(case.content)} bytes" for case in chosen))
            return 0
        good = os.path.join(folder, "good")
        os.mkdir(good)
        program = os.path.abspath(arguments.program)
        maker = good_inputs.Maker(program, root, good)
        good_inputs.keep_basics(maker)
        battery = Battery(program, folder, good, PEAK_BYTES, CPU_SECONDS)
        if battery.is_sanitized:
            battery.peak_bytes, battery.cpu_seconds = 20 * PEAK_BYTES, 20 * CPU_SECONDS
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for text in pool.map(battery.faults_of, enumerate(chosen)):
                if text:
                    failures.append(text)
                    print(text, flush=True)
    print(f"{len(chosen)} growing inputs, {len(failures)} failures; at most {battery.peak >> 20} MiB and {battery.seconds:.2f} s "
          f"of a processor")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
