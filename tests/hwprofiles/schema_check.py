#!/usr/bin/env python3
"""Validates every bundled hardware profile against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import schema_test  # noqa: E402


def broken(profile):
    """Profiles that the schema must refuse, made from a sound one."""
    yield "unknown key", {**profile, "colour": "red"}
    yield "no kind", {key: value for key, value in profile.items() if key != "kind"}
    yield "wrong unit", {**profile, "memory": {"value": 80, "unit": "W"}}
    yield "neither its numbers nor a base", {key: profile[key] for key in ("schema", "kind", "name", "title")}
    yield "wrong unit on a base", {**{key: profile[key] for key in ("schema", "kind", "name", "title")},
                                   "base": "l40s", "memory": {"value": 80, "unit": "W"}}
    yield "negative", {**profile, "memory": {"value": -80, "unit": "GiB"}}


schema_test.check("hardware-profile.schema.json", "hwprofiles/data/**/*.json",
                  schema_test.load("hwprofiles/data/gpus/h100-sxm5-80gb.json"), broken, decisive=("kind",))
