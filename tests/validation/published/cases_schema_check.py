#!/usr/bin/env python3
"""Validates every bundled file of cases against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import schema_test  # noqa: E402

SOUND = {"schema": "spillway-cases", "version": 1, "tolerance": {"p90": 0.1},
         "held_to": [{"source": "desk", "metric": "mfu", "p90": 0.2}],
         "cases": [{"id": "a", "source": "desk", "metric": "mfu", "unit": "%", "value": 40, "model.name": "gpt2-xl"}]}


def broken(sound):
    yield "unknown key", {**sound, "colour": "red"}
    yield "newer version", {**sound, "version": 2}
    yield "rows without columns", {**sound, "rows": [["a"]]}
    held = {"source": "desk", "metric": "mfu", "p90": 0.2}
    for what, group in {"a held group without a figure": {"source": "desk", "metric": "mfu"},
                        "a held group without a source": {"metric": "mfu", "p90": 0.2},
                        "a held group's unknown metric": {**held, "metric": "speed"},
                        "a held group's unknown key": {**held, "worst": 0.3}}.items():
        yield what, {**sound, "tolerance": {"p90": 0.1}, "held_to": [group]}
    for what, change in {"an unknown metric": {"metric": "speed"}, "an unknown unit": {"unit": "furlongs"},
                         "an unknown role": {"role": "test"}, "a figure of 0": {"value": 0},
                         "an unknown field": {"colour": "red"}, "an empty id": {"id": ""}}.items():
        yield what, {**sound, "cases": [{**sound["cases"][0], **change}]}


schema_test.check("cases.schema.json", "validation/published/*.json", SOUND, broken)
