#!/usr/bin/env python3
"""Validates every bundled scenario against the published JSON Schema; skipped without python3-jsonschema."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed: skipped")
    sys.exit(77)


def broken(scenario):
    """Scenarios that the schema must refuse, made from a sound one that names a model."""
    yield "unknown key", {**scenario, "colour": "red"}
    yield "unknown key of a part", {**scenario, "memory": {"allocater": "torch"}}
    yield "newer version", {**scenario, "version": 2}
    yield "a trace and a model", {**scenario, "trace": "steps.json"}
    yield "neither a trace nor a model", {key: value for key, value in scenario.items() if key != "model"}
    yield "a model without hardware", {key: value for key, value in scenario.items() if key != "hardware"}
    yield "a word for a number", {**scenario, "model": {**scenario["model"], "micro_batch": "many"}}
    yield "a speed of 0", {**scenario, "what_if": {"gpu": 0}}
    yield "a wrong tie order", {**scenario, "replay": {"tie_order": "shuffle"}}
    yield "an execution trace alone", {**scenario, "execution_trace": "graph.json"}


def main():
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "docs/schemas/scenario.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((root / "cli/scenarios").glob("*.json"))
    failures = 0
    for path in files:
        for error in validator.iter_errors(json.loads(path.read_text())):
            failures += 1
            print(f"{path.relative_to(root)}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
    sound = json.loads((root / "cli/scenarios/gpt2-xl-1k-h100.json").read_text())
    for what, scenario in broken(sound):
        if validator.is_valid(scenario):
            failures += 1
            print(f"the schema accepts a scenario with: {what}")
    print(f"{len(files)} scenarios, {failures} problems")
    return 1 if failures or not files else 0


sys.exit(main())
