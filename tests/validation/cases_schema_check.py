#!/usr/bin/env python3
"""Validates every bundled file of cases against the published JSON Schema; skipped without python3-jsonschema."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed: skipped")
    sys.exit(77)

SOUND = {"schema": "spillway-cases", "version": 1,
         "cases": [{"id": "a", "source": "desk", "metric": "mfu", "unit": "%", "value": 40, "model.name": "gpt2-xl"}]}


def broken():
    yield "unknown key", {**SOUND, "colour": "red"}
    yield "newer version", {**SOUND, "version": 2}
    yield "rows without columns", {**SOUND, "rows": [["a"]]}
    for what, change in {"an unknown metric": {"metric": "speed"}, "an unknown unit": {"unit": "furlongs"},
                         "an unknown role": {"role": "test"}, "a figure of 0": {"value": 0},
                         "an unknown field": {"colour": "red"}, "an empty id": {"id": ""}}.items():
        yield what, {**SOUND, "cases": [{**SOUND["cases"][0], **change}]}


def main():
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "docs/schemas/cases.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((root / "validation/published").glob("*.json"))
    failures = 0 if validator.is_valid(SOUND) else 1
    for path in files:
        for error in validator.iter_errors(json.loads(path.read_text())):
            failures += 1
            print(f"{path.relative_to(root)}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
    for what, cases in broken():
        if validator.is_valid(cases):
            failures += 1
            print(f"the schema accepts cases with: {what}")
    print(f"{len(files)} files, {failures} problems")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
