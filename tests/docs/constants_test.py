"""docs/internals/operator-times.md, "Every constant", against the code: each value as it stands there, and none left out.

usage: constants_test.py SOURCE_ROOT
"""

import pathlib
import re
import sys

# Files whose every constant of a physical meaning must be in the table.
COMPLETE = ["models/cost/*.cc", "models/step/host_times.h"]
# What is no figure of a model: formats of files and limits of input.
APART = {"residual_unit"}
FIGURES = r"(?:double|Picos|std::array<[^;=]*?>|PowerClass|Products)"
ALL = FIGURES[:-1] + r"|std::int64_t)"


def constants_of(text, types):
    """{name: initialiser} of the file's constants at namespace scope, lists of declarators taken apart."""
    found = {}
    for match in re.finditer(rf"^(?:inline )?constexpr {types} (.*?);", text, re.M | re.S):
        depth, part, parts = 0, "", []
        for c in match.group(1):
            depth += (c in "{(") - (c in "})")
            if c == "," and depth == 0:
                parts.append(part)
                part = ""
            else:
                part += c
        for one in parts + [part]:
            declared = re.match(r"\s*(\w+)\s*(?:=\s*(.*)|(\{.*\}))\s*$", one, re.S)
            if declared:
                found[declared.group(1)] = plain(declared.group(2) or declared.group(3))
    return found


def plain(value):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", value)).replace("{ ", "{").strip()


def table_of(page):
    section = page.split("### Every constant")[1].split("\n## ")[0]
    file, rows = None, {}
    for line in section.splitlines():
        heading = re.match(r"\| \*\*`([^`]+)`\*\*", line)
        if heading:
            file = heading.group(1)
            rows[file] = {}
        row = re.match(r"\| `(\w+)` \| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", line)
        if row:
            rows[file][row.group(1)] = plain(row.group(2))
    return rows


def faults(root):
    rows = table_of((root / "docs/internals/operator-times.md").read_text())
    if sum(len(each) for each in rows.values()) < 50:
        yield "the table is not where this test looks for it"
    code = {file: constants_of((root / file).read_text(), ALL) for file in rows if (root / file).exists()}
    for file, constants in rows.items():
        for name, value in constants.items():
            stands = code.get(file, {}).get(name)
            if stands is None:
                yield f"{file} has no constant {name}"
            elif stands != value:
                yield f"{file}: {name} is {stands}, the page says {value}"
    for pattern in COMPLETE:
        for path in sorted(root.glob(pattern)):
            file = str(path.relative_to(root))
            for name in constants_of(path.read_text(), FIGURES):
                if name not in APART and name not in rows.get(file, {}):
                    yield f"{file}: {name} is not on the page"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(faults(pathlib.Path(sys.argv[1])))
    for fault in found:
        print(fault, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
