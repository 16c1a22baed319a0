#!/usr/bin/env python3
"""Validates every bundled model against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import schema_test  # noqa: E402


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


def without_source(model):
    if "count_source" not in model["parameters"]:
        yield "parameters/count_source is missing"


schema_test.check("model.schema.json", "models/data/*.json", schema_test.load("models/data/deepseek-v3.json"),
                  broken, without_source)
