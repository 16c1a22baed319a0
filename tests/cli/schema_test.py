#!/usr/bin/env python3
"""The published schemas and the tables of docs/scenarios.md and docs/launch-files.md are what the program prints of its
own descriptions.

    schema_test.py SPILLWAY SOURCE_ROOT            compares
    schema_test.py SPILLWAY SOURCE_ROOT --write    writes them anew
"""
import pathlib
import subprocess
import sys

FILES = {"scenario": "scenario", "sweep": "sweep", "profile": "hardware-profile", "model": "model", "prices": "prices",
         "plan": "plan", "module-plan": "module-plan", "cases": "cases", "trace": "trace",
         "operators": "operators", "answer": "answer"}
TABLES = {"docs/scenarios.md": ("schema", "scenario", "--table"),
          "docs/launch-files.md": ("list", "flags", "--format", "markdown")}
END = "<!-- end -->\n"


def printed(*arguments):
    return subprocess.run([sys.argv[1], *arguments], check=True, capture_output=True, text=True).stdout


def with_table(page, command):
    begin = f"<!-- generated: spillway {' '.join(command)} -->\n"
    head, rest = page.split(begin)
    return head + begin + printed(*command) + END + rest.split(END, 1)[1]


def main():
    root = pathlib.Path(sys.argv[2])
    wanted = {root / f"docs/schemas/{file}.schema.json": printed("schema", name) for name, file in FILES.items()}
    for name, command in TABLES.items():
        wanted[root / name] = with_table((root / name).read_text(encoding="utf-8"), command)
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    if "--write" in sys.argv:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
        stale = []
    for path in stale:
        print(f"{path} is not what the program prints; write it anew: {' '.join(sys.argv)} --write")
    return 1 if stale else 0


sys.exit(main())
