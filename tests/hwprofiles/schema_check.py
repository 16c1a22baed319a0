#!/usr/bin/env python3
"""Validates every bundled hardware profile against the published JSON Schema; skipped without python3-jsonschema."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed: skipped")
    sys.exit(77)


def broken(profile):
    """Profiles that the schema must refuse, made from a sound one."""
    yield "unknown key", {**profile, "colour": "red"}
    yield "no kind", {key: value for key, value in profile.items() if key != "kind"}
    yield "wrong unit", {**profile, "memory": {"value": 80, "unit": "W"}}
    yield "negative", {**profile, "memory": {"value": -80, "unit": "GiB"}}


def main():
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "docs/schemas/hardware-profile.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((root / "hwprofiles/data").rglob("*.json"))
    failures = 0
    for path in files:
        for error in validator.iter_errors(json.loads(path.read_text())):
            failures += 1
            print(f"{path.relative_to(root)}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
    sound = json.loads((root / "hwprofiles/data/gpus/h100-sxm5-80gb.json").read_text())
    for what, profile in broken(sound):
        if validator.is_valid(profile):
            failures += 1
            print(f"the schema accepts a profile with: {what}")
    print(f"{len(files)} profiles, {failures} problems")
    return 1 if failures or not files else 0


sys.exit(main())
