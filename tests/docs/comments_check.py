#!/usr/bin/env python3
"""Holds comments of public headers, and texts of the program, to the words of the pages, floor by floor. Standard library only.

Usage: comments_check.py SOURCE_ROOT             exit code 1 where a floor has more findings than stored
       comments_check.py SOURCE_ROOT --lower     stores lower counts; a count never rises
       comments_check.py SOURCE_ROOT --where [FLOOR]  every finding, with its place
       comments_check.py --self-test

Findings are sentences over 30 words, refused words and inverted openings in comments of headers, and refused words in the
strings of sources, as words_check.py knows them. Counts of today are in comment_counts.json: a commit that adds one fails.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import words_check as words  # noqa: E402

FLOORS = ("base", "traces", "hwprofiles", "models", "launch", "sim", "planners", "scenario", "studies", "reports", "validation",
          "cli", "gui")  # upwards
STORED = pathlib.Path("tests/docs/comment_counts.json")
INVERTED = next(known for kind, _, known in words.SHARES if kind == "inverted")


def comments(text):
    """(line, text) of each paragraph: comment lines that follow each other, without indented ones (tables, examples), or the
    comment behind code."""
    block, begin = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        whole = re.match(r"\s*//( {2,}|\t)?\s?(.*)", line)
        if whole and not whole[1] and whole[2]:
            begin = begin if block else number
            block.append(whole[2])
            continue
        if block:
            yield begin, " ".join(block)
            block = []
        behind = not whole and re.match(r"(?:[^\"/]|\"(?:[^\"\\]|\\.)*\"|/(?!/))*//\s?(.*)", line)
        if behind:
            yield number, behind[1]


def findings(text):
    """(line, kind, what)"""
    for line, block in comments(text):
        block = words.plain(block)
        for sentence in words.sentences(block):
            if words.count(sentence) > words.SENTENCE_WORDS:
                yield line, "long", f"a sentence of {words.count(sentence)} words: {sentence[:60]}..."
            if INVERTED(sentence):
                yield line, "inverted", f"an inverted sentence: {sentence[:60]}"
        for what in words.refused(block):
            yield line, "refused", what


def strings(text):
    """(line, text) of literals with a space: what a person may read."""
    for number, line in enumerate(text.split("\n"), 1):
        if not re.match(r"\s*(?://|#include)", line):
            for match in re.finditer(r'"((?:[^"\\]|\\.)*)"', line):
                if " " in match[1]:
                    yield number, match[1]


def floor_findings(root, floor):
    for path in sorted((root / floor).rglob("*.cc")):
        for line, literal in strings(path.read_text(encoding="utf-8")):
            for what in words.refused(literal):
                yield "texts", f"{path.relative_to(root)}:{line}: {what}: {literal[:80]}"
    for path in sorted((root / floor).rglob("*.h")):
        for line, kind, what in findings(path.read_text(encoding="utf-8")):
            yield kind, f"{path.relative_to(root)}:{line}: {what}"


def counted(root):
    counts = {}
    for floor in FLOORS:
        kinds = [kind for kind, _ in floor_findings(root, floor)]
        counts[floor] = {kind: kinds.count(kind) for kind in ("long", "inverted", "refused", "texts")}
    return counts


def risen(stored, counts):
    for floor, kinds in counts.items():
        for kind, count in kinds.items():
            if count > stored.get(floor, {}).get(kind, 0):
                yield floor, kind, stored.get(floor, {}).get(kind, 0), count


def lowered(stored, counts):
    return {floor: {kind: min(count, stored.get(floor, {}).get(kind, count)) for kind, count in kinds.items()}
            for floor, kinds in counts.items()}


def self_test():
    text = ("// What fits in it is a small step of it.\nint a;\nint b;  // The fates of tensors.\n"
            "const char* c = \"// no comment, whose\";\n// " + "word " * 31 + "end.\n// A good sentence.\n")
    kinds = sorted((line, kind) for line, kind, _ in findings(text))
    good = kinds == [(1, "inverted"), (3, "refused"), (5, "long")]
    good = good and list(strings("// \"a b\"\nf(\"the fates\", \"x\");\n#include \"a b\"\n")) == [(2, "the fates")]
    good = good and list(risen({"base": {"long": 1}}, {"base": {"long": 2}})) == [("base", "long", 1, 2)]
    good = good and not list(risen({"base": {"long": 2}}, {"base": {"long": 1}}))
    good = good and lowered({"base": {"long": 1}}, {"base": {"long": 2, "refused": 3}}) == {"base": {"long": 1, "refused": 3}}
    print("self-test passed" if good else f"self-test failed: {kinds}")
    return 0 if good else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0])
    if arguments[1:2] == ["--where"]:
        for floor in arguments[2:] or FLOORS:
            print("\n".join(place for _, place in floor_findings(root, floor)))
        return 0
    stored = json.loads((root / STORED).read_text(encoding="utf-8")) if (root / STORED).exists() else {}
    counts = counted(root)
    if arguments[1:] == ["--lower"]:
        lines = [f"  {json.dumps(floor)}: {json.dumps(kinds)}" for floor, kinds in lowered(stored, counts).items()]
        (root / STORED).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    found = list(risen(stored, counts))
    for floor, kind, before, now in found:
        print(f"{floor}: {now} findings of kind '{kind}', at most {before}: "
              f"python3 tests/docs/comments_check.py . --where {floor}")
    print(f"{sum(sum(kinds.values()) for kinds in counts.values())} findings, {len(found)} counts have risen")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
