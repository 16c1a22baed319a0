"""Pages that are right and wrong, and what documented_examples_test.py must say of them."""
import os
import pathlib
import stat
import tempfile

import documented_examples_test
import figure

# Stands for the program: `show` prints a table, `json NAME` a document, `write` a file; all else is bad usage.
PROGRAM = r'''#!/bin/sh
case "$*" in
  show) printf 'title\n\nname    time (ms)  share\nfirst      12.50    1 %%\nsecond  1,016.44    2 %%\nthird       3.00    3 %%\n' ;;
  no) echo no; exit 1 ;;
  "show --help" | "--help") echo '  -f,--fast  be quick' ;;
  "json a") echo '{"time_ns": 1016444000, "name": "GPU", "rows": [{"n": "x", "v": 1.5}, {"n": "y", "v": 2.25}]}' ;;
  "read data.json") cat data.json ;;
  "read made.json") cat made.json ;;
  write) echo x > written; test ! -e "$ROOT/written" && echo done ;;
  pdf) echo "error: this program was built without paper" >&2; exit 2 ;;
  *) echo "error: bad usage: $*" >&2; exit 2 ;;
esac
'''
AT = "From the repository's root:\n\n"
BLOCK = AT + "```\n{}\n```\n"
ROWS = "$ spillway show  # {}\nname time (ms) share\nfirst 12.50 1 %\n{}third 3.00 3 %"

# Page, size, and what the one failure must say (None: no failure).
CASES = [
    (BLOCK.format("$ spillway show\nfirst  12.50  1 %\n...\nthird 3.00 3 %"), "quick", None),
    (BLOCK.format("$ spillway show\n  second        1,016.44 2 %"), "quick", None),
    (BLOCK.format("$ spillway show\nfirst 12.51 1 %"), "quick", "printed:    first      12.50    1 %"),
    (BLOCK.format("$ spillway show\nfirst 12.5 1 %"), "quick", "page.md:5"),
    (BLOCK.format("$ spillway show\nthird 3.00 3 %\nfirst 12.50 1 %"), "quick", "documented: first 12.50 1 %"),
    (BLOCK.format("$ spillway show\nfirst 12.50"), "quick", "documented: first 12.50"),
    (BLOCK.format(ROWS.format("two rows of three", "")), "quick", None),
    (BLOCK.format(ROWS.format("two rows of four", "")), "quick", "2 rows of 3"),
    (BLOCK.format(ROWS.format("two rows of three", "second 1,016.44 2 %\n")), "quick", "3 rows of 3"),
    (BLOCK.format("$ spillway no    # exit code 1\nno"), "quick", None),
    (BLOCK.format("$ spillway no\nno"), "quick", "exit code 1"),
    (BLOCK.format("$ spillway show  # exit code 1"), "quick", "exit code 0"),
    (BLOCK.format("spillway shows \\\n  --fast"), "quick", "bad usage: shows --fast"),
    (BLOCK.format("$ spillway write\ndone"), "quick", None),
    (BLOCK.format("$ spillway show 'it"), "quick", "No closing quotation"),
    ("```\n$ spillway show\n```\n", "quick", "doesn't say where its examples run"),
    ("```\n$ spillway show\n", "quick", "this block has no end"),
    (AT + "<!-- examples full -->\n```\nspillway bad\n```\n", "quick", None),
    (AT + "<!-- examples full -->\n```\nspillway bad\n```\n", "full", "bad usage"),
    (AT + "<!-- examples\nfull bad\n-->\n```\nspillway bad\nspillway worse\n```\n", "quick", "worse"),
    (AT + "<!-- examples full gone -->\n```\nspillway bad\n```\n", "quick", "no example of the block has this: gone"),
    (AT + "<!-- examples skip bad: needs a GPU -->\n```\nspillway bad\n```\n", "quick", None),
    (AT + "<!-- examples skip bad -->\n```\nspillway bad\n```\n", "quick", "skip needs a reason"),
    (AT + "<!-- examples exit 1 no -->\n```\nspillway no\n```\n", "quick", None),
    (AT + "<!-- examples with data.json = source.json -->\n```\n$ spillway read data.json\n{\"a\": 1}\n```\n", "quick", None),
    (BLOCK.format("spillway pdf"), "quick", None),
    (AT + "<!-- file made.json -->\n```json\n{\"b\": 2}\n```\n\n```\n$ spillway read made.json\n{\"b\": 2}\n```\n", "quick", None),
    (AT + "<!-- file made.json: source.json -->\n```json\n\"b\": 2\n```\n\n```\n$ spillway read made.json\n"
          "{\"a\": 1, \"b\": 2}\n```\n", "quick", None),
    ("<!-- figure: spillway json a | .time_ns / 1e6 = 1,016.444 -->\nIt takes 1,016.444 ms.\n", "quick", None),
    ("<!-- figure: spillway json a | .time_ns / 1e6 = 1016.4 -->\nIt takes 1016.4 ms.\n", "quick", None),
    ("<!-- figure: spillway json a | .time_ns / 1e6 = 1016.5 -->\nIt takes 1016.5 ms.\n", "quick", "1016.4"),
    ("<!-- figure: spillway json a | .time_ns / 1e6 = 1016.4 -->\nIt takes 1016.44 ms.\n", "quick", "doesn't say 1016.4"),
    ("<!-- figure: spillway json a | .time_ns / 1e9 = 1 \"once\" -->\nIt is once.\n", "quick", None),
    ("<!-- figure: spillway json a | .name = GPU -->\nThe GPU binds.\n", "quick", None),
    ("<!-- figures: spillway json a\n.rows[n=y].v = 2.25\nsum(.rows[].v) = 3.75\ncount(.rows) = 2\n-->\n2.25 of 3.75 in 2.\n",
     "quick", None),
    ("<!-- figure: spillway json a | .rows[n=z].v = 2.25 -->\n2.25.\n", "quick", "no [n=z]"),
    ("<!-- figure: spillway json a | .rows.v = 2.25 -->\n2.25.\n", "quick", "no v"),
    ("<!-- figure: spillway json b | .v = 2 -->\n2.\n", "quick", "no JSON"),
    ("<!-- figure full: spillway json b | .v = 2 -->\n2.\n", "quick", None),
    ("<!-- table: spillway json a\nv: .rows[{row}].v\n-->\n\n| n | v |\n|---|---|\n| x | 1.5 |\n| y | 2.3 |\n", "quick", None),
    ("<!-- table: spillway json a\nv: .rows[n={n}].v\n-->\n| n | v |\n|---|---|\n| x | 1.5 |\n| y | 2.4 |\n", "quick", "2.2"),
    ("<!-- table: spillway json a\nw: .rows[n={n}].v\n-->\n| n | v |\n|---|---|\n| x | 1.5 |\n", "quick", "no column w"),
    ("Say `spillway show --fast`.\n", "quick", None),
    ("Say `spillway show [--slow]`.\n", "quick", "no option --slow"),
    ("Say `spillway shows FILE`.\n", "quick", "spillway shows --help fails"),
]

# Page before and after SPILLWAY_BLESS=1.
BLESSED = [
    (BLOCK.format("$ spillway show\nfirst 12.51 1 %"), BLOCK.format("$ spillway show\nfirst      12.50    1 %")),
    (BLOCK.format("$ spillway show\nfirst 12.51 of it"), BLOCK.format("$ spillway show\nfirst      12.50    1 %")),
    (BLOCK.format("$ spillway show\nfourth 12.51 1 %"), BLOCK.format("$ spillway show\nfourth 12.51 1 %")),
    ("<!-- figure: spillway json a | .time_ns / 1e6 = 1,016.5 -->\nIt takes 1,016.5 ms.\n",
     "<!-- figure: spillway json a | .time_ns / 1e6 = 1,016.4 -->\nIt takes 1,016.4 ms.\n"),
    ("<!-- table: spillway json a\nv: .rows[n={n}].v\n-->\n| n | v |\n|---|---|\n| x | 1.5 |\n| y | 2.4 |\n",
     "<!-- table: spillway json a\nv: .rows[n={n}].v\n-->\n| n | v |\n|---|---|\n| x | 1.5 |\n| y | 2.2 |\n"),
]

EXPRESSIONS = [("1 + 2 * 3", 7), ("-.a / 4", -2), ("max(.l) - min(.l)", 4), (".l[0]", 1), (".l[-1]", 5), (".o[k=b].v", 9),
               ("sum(.o[].v)", 12)]


def outcome_of(root, page, size):
    (root / "page.md").write_text(page, encoding="utf-8")
    return documented_examples_test.check(str(root / "spillway"), root, ["page.md"], size == "full")


def run():
    failed = 0

    def wrong(what, wanted, got):
        nonlocal failed
        failed += 1
        print(f"wanted {wanted!r}, got {got!r} for {what!r}")

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        os.environ["ROOT"] = folder
        (root / "source.json").write_text('{"a": 1}', encoding="utf-8")
        (root / "spillway").write_text(PROGRAM, encoding="utf-8")
        (root / "spillway").chmod(stat.S_IRWXU)
        for page, size, wanted in CASES:
            failures = outcome_of(root, page, size).failures
            if not (not failures if wanted is None else len(failures) == 1 and wanted in failures[0]):
                wrong(page, wanted, failures)
        for page, wanted in BLESSED:
            documented_examples_test.bless(root, outcome_of(root, page, "quick"))
            got = (root / "page.md").read_text(encoding="utf-8")
            if got != wanted:
                wrong(page, wanted, got)
    document = {"a": 8, "l": [1, 3, 5], "o": [{"k": "a", "v": 3}, {"k": "b", "v": 9}]}
    for expression, wanted in EXPRESSIONS:
        if (got := figure.evaluate(document, expression)) != wanted:
            wrong(expression, wanted, got)
    total = len(CASES) + len(BLESSED) + len(EXPRESSIONS)
    print(f"{total - failed} of {total} self-tests passed")
    return 1 if failed else 0
