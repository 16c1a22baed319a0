#!/usr/bin/env python3
"""Validates every bundled scenario against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import schema_test  # noqa: E402


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


schema_test.check("scenario.schema.json", "cli/scenarios/*.json",
                  schema_test.load("cli/scenarios/gpt2-xl-1k-h100.json"), broken)
