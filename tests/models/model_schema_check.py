#!/usr/bin/env python3
"""Validates every bundled model against the published JSON Schema; skipped without python3-jsonschema."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed: skipped")
    sys.exit(77)


def broken(model):
    """Models that the schema must refuse, made from a sound one that has experts."""
    yield "unknown key", {**model, "colour": "red"}
    yield "unknown key of the experts", {**model, "experts": {**model["experts"], "shared": 1}}
    yield "experts without a count", {**model, "experts": {"active": 2, "width": 8}}
    yield "newer version", {**model, "version": 2}
    yield "no layers", {**model, "layers": 0}
    yield "an unknown activation", {**model, "activation": "tanh"}
    yield "neither tokens nor images", {key: value for key, value in model.items() if key != "vocabulary"}
    yield "tokens and images", {**model, "patches": {"image": 224, "patch": 16, "channels": 3}, "classes": 10}
    yield "a count from nowhere", {**model, "parameters": {**model["parameters"], "count_source": "hearsay"}}


def main():
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "docs/schemas/model.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((root / "models/data").glob("*.json"))
    failures = 0
    for path in files:
        model = json.loads(path.read_text())
        for error in validator.iter_errors(model):
            failures += 1
            print(f"{path.relative_to(root)}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
        if "count_source" not in model["parameters"]:
            failures += 1
            print(f"{path.relative_to(root)}: parameters/count_source is missing")
    sound = json.loads((root / "models/data/deepseek-v3.json").read_text())
    for what, model in broken(sound):
        if validator.is_valid(model):
            failures += 1
            print(f"the schema accepts a model with: {what}")
    print(f"{len(files)} models, {failures} problems")
    return 1 if failures or not files else 0


sys.exit(main())
