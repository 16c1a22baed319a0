#!/usr/bin/env python3
"""The published schemas and the generated parts of docs/reference are what the program prints of its own descriptions.

    schema_test.py SPILLWAY SOURCE_ROOT            compares
    schema_test.py SPILLWAY SOURCE_ROOT --write    writes them again

A generated part stands between <!-- generated: spillway COMMAND --> and <!-- end -->. Of `spillway schema NAME` it is the
table of the schema's keys; of any other command, what the command prints.
"""
import json
import pathlib
import re
import subprocess
import sys

FILES = {"scenario": "scenario", "sweep": "sweep", "profile": "hardware-profile", "model": "model", "prices": "prices",
         "plan": "plan", "module-plan": "module-plan", "cases": "cases", "trace": "trace",
         "operators": "operators", "answer": "answer"}
PART = re.compile(r"(<!-- generated: spillway ([^\n]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def printed(*arguments):
    return subprocess.run([sys.argv[1], *arguments], check=True, capture_output=True, text=True).stdout


def takes(node):
    """What a key takes, in a few words."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"])
    for several in ("oneOf", "anyOf"):
        if several in node:
            return " or ".join(dict.fromkeys(takes(choice) for choice in node[several]))
    kind = node.get("type", "any")
    words = " or ".join(kind) if isinstance(kind, list) else kind
    least, most = node.get("minimum"), node.get("maximum")
    if least is not None and most is not None:
        words += f", {least} to {most}"
    elif least is not None:
        words += f", at least {least}"
    if "items" in node:
        words += f" of {takes(node['items'])}"
    return words


def key_rows(node, path, schema, depth=0):
    """Table rows of the keys below a node of a schema; a list is KEY[], a key of any name is KEY.NAME."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    below = {f"{path}.{key}" if path else key: child for key, child in node.get("properties", {}).items()}
    if isinstance(node.get("additionalProperties"), dict):
        below[f"{path}.NAME" if path else "NAME"] = node["additionalProperties"]
    if isinstance(node.get("items"), dict):
        yield from key_rows(node["items"], f"{path}[]", schema, depth + 1)
    for choice in node.get("oneOf", []) + node.get("anyOf", []):
        if depth < 6:
            yield from key_rows(choice, path, schema, depth + 1)
    for name, child in below.items():
        if "$ref" in child:
            child = schema["$defs"][child["$ref"].rsplit("/", 1)[-1]] | {key: value for key, value in child.items()
                                                                         if key != "$ref"}
        about = child.get("description", "")
        if "default" in child:
            about = f"{about} Default: {child['default']}.".strip()
        cells = (text.replace("|", "\\|").replace("\n", " ") for text in (f"`{name}`", takes(child), about))
        yield f"| {' | '.join(cells)} |"
        if depth < 6:
            yield from key_rows(child, name, schema, depth + 1)


def part(words):
    if words[0] != "schema" or "--table" in words:
        return printed(*words)
    schema = json.loads(printed(*words))
    rows = dict.fromkeys(key_rows(schema, "", schema))
    return schema["description"] + "\n\n| key | takes | is |\n|---|---|---|\n" + "".join(f"{row}\n" for row in rows)


def with_parts(page):
    return PART.sub(lambda found: found[1] + part(found[2].split()) + found[3], page)


def main():
    root = pathlib.Path(sys.argv[2])
    wanted = {root / f"docs/schemas/{file}.schema.json": printed("schema", name) for name, file in FILES.items()}
    pages = {path: path.read_text(encoding="utf-8") for path in root.glob("docs/reference/*.md")}
    wanted |= {path: with_parts(text) for path, text in pages.items()}
    if not any(PART.search(text) for text in pages.values()):
        print("no page has a generated part")
        return 1
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    if "--write" in sys.argv:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
        stale = []
    for path in stale:
        print(f"{path} is not what the program prints; write it again: {' '.join(sys.argv)} --write")
    return 1 if stale else 0


sys.exit(main())
