#!/usr/bin/env python3
"""Runs the examples of README and docs and compares what they print, and the figures in the text, with the program.

Usage: documented_examples_test.py SPILLWAY SOURCE_ROOT [PAGE...]
       documented_examples_test.py --self-test

page.py says how pages are read. SPILLWAY_TEST_SIZE=full also runs the examples that take long. SPILLWAY_BLESS=1 writes
into the pages what the program prints now, where it is clear what belongs where, and exits with 77 (skipped).
"""
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import figure  # noqa: E402
import page as pages  # noqa: E402

# What the commands on the pages read, relative to the root.
DATA = ("cli/scenarios", "cli/sweeps", "traces/data",
        "validation/results/2026-11-26-h100-sxm5-80gb/recordings/gpt2-774m-b4")
# A library that this build lacks.
LACKING = "built without"
SKIPPED = 77


@dataclasses.dataclass
class Outcome:
    examples: int = 0
    figures: int = 0
    spans: int = 0
    lines: int = 0  # documented lines compared
    left_out: int = 0  # full ones, in a quick run
    skips: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    edits: list = dataclasses.field(default_factory=list)  # (page, line, old, new)
    seconds: list = dataclasses.field(default_factory=list)  # (of a processor, place, command)

    def fail(self, place, documented, printed):
        self.failures.append(f"{place}:\n  documented: {documented}\n  printed:    {printed}")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class PageCheck:
    """One page, with a copy of what its commands read."""

    def __init__(self, program, root, page, full, outcome):
        self.program, self.root, self.page, self.full, self.outcome = program, pathlib.Path(root), page, full, outcome
        self.documents = {}  # by command

    def run(self, arguments, folder):
        begin = processor_seconds()
        done = subprocess.run([self.program, *arguments], cwd=self.scratch / folder, capture_output=True, text=True,
                              check=False)
        seconds = processor_seconds() - begin
        print(f"{seconds:7.1f} s  {self.page.name}: spillway {' '.join(arguments)}", file=sys.stderr, flush=True)
        return done, seconds

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            self.scratch = pathlib.Path(scratch)
            for folder in DATA:
                if (self.root / folder).is_dir():
                    shutil.copytree(self.root / folder, self.scratch / folder)
            for name, path, folder in self.page.copies:
                shutil.copyfile(self.root / path, self.scratch / folder / name)
            for name, (text, base) in self.page.files.items():
                self.write(name, text, base)
            for example in self.page.examples:
                self.example(example)
            for documented in self.page.figures:
                self.figure(documented)
        for place, span in self.page.spans:
            self.span(place, span)

    def write(self, name, text, base):
        """A file that the page shows, put over the file `base` where it shows a part of one."""
        folder = self.page.examples[0].folder if self.page.examples else "."
        if base:
            document = json.loads((self.root / base).read_text(encoding="utf-8"))
            document.update(json.loads("{" + text + "}"))
            text = json.dumps(document)
        (self.scratch / folder / name).write_text(text, encoding="utf-8")

    def example(self, example):
        if example.skip:
            self.outcome.skips.append((example.place, example.text, example.skip))
            return
        if example.full and not self.full:
            self.outcome.left_out += 1
            return
        done, seconds = self.run(example.arguments, example.folder)
        if done.returncode == 2 and LACKING in done.stderr:
            self.outcome.skips.append((example.place, example.text, "this build lacks a library for it"))
            return
        self.outcome.examples += 1
        self.outcome.seconds.append((seconds, example.place, example.text))
        if done.returncode != example.exit_code:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            self.outcome.fail(example.place, f"{example.text}, exit code {example.exit_code}",
                              f"exit code {done.returncode}: {' '.join(said)}")
            return
        self.lines(example, done.stdout.splitlines())

    def lines(self, example, printed):
        places = figure.compare_lines([line.text for line in example.printed], printed)
        self.outcome.lines += len(places)
        for line, place in zip(example.printed, places):
            if place is not None:
                continue
            self.outcome.fail(f"{self.page.name}:{line.number}", line.text.strip(),
                              (figure.nearest(line.text, printed) or "nothing").strip())
            if new := figure.replacement(line.text, printed):
                self.outcome.edits.append((self.page.name, line.number, line.text, new))
        found = [place for place in places if place is not None]
        if (stated := figure.stated_rows(example.comment)) and found:
            rows = figure.rows_of_table(printed, found[-1])
            shown = len(found) - (len(found) > 1)  # several rows stand under their header
            if stated != (shown, rows):
                self.outcome.fail(example.place, f"{stated[0]} rows of {stated[1]}", f"{shown} rows of {rows}")

    def figure(self, documented):
        if documented.full and not self.full:
            self.outcome.left_out += 1
            return
        key = (documented.folder, *documented.arguments)
        if key not in self.documents:
            done, seconds = self.run(documented.arguments, documented.folder)
            self.outcome.seconds.append((seconds, documented.place, " ".join(documented.arguments)))
            try:
                self.documents[key] = json.loads(done.stdout)
            except ValueError:
                self.documents[key] = None
                self.outcome.fail(documented.place, " ".join(documented.arguments),
                                  f"no JSON: {(done.stderr or done.stdout).strip()[:200]}")
        if self.documents[key] is None:
            return
        self.outcome.figures += 1
        try:
            value = figure.evaluate(self.documents[key], documented.expression)
        except figure.FigureError as error:
            self.outcome.fail(documented.place, documented.expression, error)
            return
        if figure.agrees(value, documented.value):
            return
        new = figure.as_printed(value, documented.value) if isinstance(value, (int, float, str)) else str(value)
        self.outcome.fail(f"{self.page.name}:{documented.line.number}", documented.printed,
                          f"{new} ({documented.expression} = {value})")
        if documented.printed == documented.value and documented.line.text.count(documented.value) == 1:
            for line in filter(None, (documented.line, documented.marker)):
                self.outcome.edits.append((self.page.name, line.number, documented.value, new))

    def span(self, place, span):
        """A command in running text: its words and options exist."""
        self.outcome.spans += 1
        path, words = [], span.split()[1:]
        while words and words[0].isalpha() and words[0].islower() and not pathlib.Path(words[0]).suffix:
            path.append(words.pop(0))
        key = ("help", *path)
        if key not in self.documents:
            own, general = (self.run_anywhere([*words, "--help"]) for words in (path, []))
            self.documents[key] = own.stdout + general.stdout if own.returncode == 0 else None
        text = self.documents[key]
        if text is None:
            self.outcome.fail(place, span, f"spillway {' '.join(path)} --help fails")
            return
        for word in span.replace("[", " ").replace("]", " ").split():
            option = word.partition("=")[0]
            if option.startswith("--") and option not in text.replace(",", " ").split():
                self.outcome.fail(place, span, f"no option {option}")

    def run_anywhere(self, arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, check=False)


def documentation(root):
    root = pathlib.Path(root)
    return ["README.md", *sorted(str(path.relative_to(root)) for path in root.glob("docs/**/*.md"))]


def check(program, root, names, full):
    outcome = Outcome()
    for name in names:
        text = (pathlib.Path(root) / name).read_text(encoding="utf-8")
        try:
            PageCheck(program, root, pages.parse(name, text), full, outcome).check()
        except pages.PageError as error:
            outcome.failures.append(str(error))
    return outcome


def bless(root, outcome):
    """Writes the edits into the pages; returns how many there were."""
    written = set()
    for name, number, old, new in outcome.edits:
        path = pathlib.Path(root) / name
        lines = path.read_text(encoding="utf-8").split("\n")
        if (name, number, old) not in written and lines[number - 1].count(old) == 1:
            lines[number - 1] = lines[number - 1].replace(old, new)
            path.write_text("\n".join(lines), encoding="utf-8")
            written.add((name, number, old))
    return len(written)


def report(outcome, full):
    for failure in outcome.failures:
        print(failure)
    for place, text, reason in outcome.skips:
        print(f"skipped: {place}: {text}: {reason}")
    for seconds, place, text in sorted(outcome.seconds, reverse=True)[:10]:
        print(f"{seconds:7.1f} s  {place}: {text}")
    print(f"{outcome.examples} examples, {outcome.lines} printed lines, {outcome.figures} figures, {outcome.spans} commands "
          f"in running text; {outcome.left_out} of the full size "
          f"{'too' if full else 'left out'}, {len(outcome.skips)} skipped; {len(outcome.failures)} wrong; "
          f"{sum(seconds for seconds, _, _ in outcome.seconds):.0f} s")


def main(arguments):
    if arguments == ["--self-test"]:
        import self_test  # pylint: disable=import-outside-toplevel
        return self_test.run()
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program, root, *names = arguments
    full = os.environ.get("SPILLWAY_TEST_SIZE") == "full"
    outcome = check(os.path.abspath(program), root, names or documentation(root), full)
    report(outcome, full)
    if os.environ.get("SPILLWAY_BLESS") == "1":
        print(f"{bless(root, outcome)} lines of the pages rewritten; see git diff, and mend the others by hand")
        return SKIPPED
    if not outcome.examples + outcome.figures:
        print("no example and no figure was checked")
        return 1
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
