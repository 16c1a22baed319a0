#!/usr/bin/env python3
"""Every bad input ends with exit code 2 and one message that names the file; nothing but it was touched.

Usage: bad_inputs_test.py SPILLWAY SOURCE_ROOT [--only WORD] [--list] [--show]
SPILLWAY_TEST_SIZE=full makes several times as many.
"""
import argparse
import concurrent.futures
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import bad_inputs
import good_inputs

PEAK_BYTES = 1 << 30
CPU_SECONDS = 10
LEAST_CASES = 1500


def digest(folder):
    """What lies in a folder, by name and content."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Battery:
    def __init__(self, program, folder, good, peak_bytes=PEAK_BYTES, cpu_seconds=CPU_SECONDS):
        self.program, self.folder, self.good = program, folder, good
        self.peak_bytes, self.cpu_seconds = peak_bytes, cpu_seconds
        self.peak = self.seconds = 0
        with open(program, "rb") as file:
            self.is_sanitized = b"__asan_init" in file.read()

    def faults_of(self, numbered):
        """What is wrong with the program's answer to a case, in words; empty: nothing."""
        number, case = numbered
        place = os.path.join(self.folder, str(number))
        os.mkdir(place)
        name = f"bad_input{case.ending}"
        with open(os.path.join(place, name), "wb") as file:
            file.write(case.content)
        before = digest(place)
        words = [word.replace("BAD", name).replace("GOOD", self.good).replace("OUT", "out") for word in case.command]
        answer = place + ".answer"
        with open(answer, "wb+") as out:
            with subprocess.Popen([self.program, *words], cwd=place, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT) as run:
                resource.prlimit(run.pid, resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds))
                if not self.is_sanitized:  # spares the machine, should a reader never end
                    resource.prlimit(run.pid, resource.RLIMIT_AS, (4 * self.peak_bytes, 4 * self.peak_bytes))
                _, status, used = os.wait4(run.pid, 0)
                run.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        problems = []
        code = run.returncode
        if code == -signal.SIGXCPU or code == -signal.SIGKILL:
            problems.append(f"took more than {self.cpu_seconds} s")
        elif code not in case.codes:
            problems.append(f"ended with {code}")
        said = text.decode("utf-8", "replace")
        lines = said.splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        if "profile" in words and "check" in words:
            errors = errors or [line for line in lines if line.startswith(name)][:1]  # lists every problem
        if code != 2 and code in case.codes:
            pass
        elif len(errors) != 1:
            problems.append(f"{len(errors)} lines begin with 'error: '")
        elif (name not in errors[0] and not ("--set" in words and "--set" in errors[0])) or "internal" in errors[0]:
            problems.append("the error does not name the file")
        if any(ord(letter) < 32 and letter not in "\n\t" or 0x7F <= ord(letter) < 0xA0 for letter in said):
            problems.append("control characters are written")
        peak = used.ru_maxrss * 1024
        self.peak, self.seconds = max(self.peak, peak), max(self.seconds, used.ru_utime + used.ru_stime)
        if peak >= self.peak_bytes:
            problems.append(f"took {peak >> 20} MiB")
        after = digest(place)
        if code != 2 and code in case.codes:
            after.pop("out", None)  # what was asked for
        if after != before:
            problems.append("left " + " ".join(sorted(set(os.listdir(place)) - {name}) or ["the input changed"]))
        shutil.rmtree(place)
        os.remove(answer)
        if problems:
            return f"{case.title}\n    {'; '.join(problems)}\n    input: {case.content[:160]!r}\n    " + said[:600].replace("\n", "\n    ")
        return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("root")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    is_full = os.environ.get("SPILLWAY_TEST_SIZE") == "full"
    count = 24 if is_full else 2
    with tempfile.TemporaryDirectory() as folder:
        good = os.path.join(folder, "good")
        os.mkdir(good)
        program = os.path.abspath(arguments.program)
        kinds = good_inputs.make(program, os.path.abspath(arguments.root), good)
        cases = bad_inputs.cases_of(kinds, count, lambda kind: good_inputs.strangers(kind, kinds))
        if not is_full:
            cases = bad_inputs.sample_of(cases, LEAST_CASES)
        assert len(cases) >= LEAST_CASES, len(cases)
        cases = [case for case in cases if arguments.only in case.title]
        if arguments.list:
            print("\n".join(case.title for case in cases))
            return 0
        good_before = digest(good)
        battery = Battery(program, folder, good)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            failures = [text for text in pool.map(battery.faults_of, enumerate(cases)) if text]
        if digest(good) != good_before:
            failures.append("a good file was changed")
        print("\n".join(failures))
        print(f"{len(cases)} bad inputs of {len(kinds)} kinds, {len(failures)} not refused as they should be; "
              f"at most {battery.peak >> 20} MiB and {battery.seconds:.2f} s of a processor")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
