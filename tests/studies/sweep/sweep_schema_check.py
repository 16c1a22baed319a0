#!/usr/bin/env python3
"""Validates every bundled sweep against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import schema_test  # noqa: E402


def broken(sweep):
    """Sweeps that the schema must refuse, made from a sound one."""
    axis = sweep["axes"][0]
    yield "unknown key", {**sweep, "axis": []}
    yield "no axes", {**sweep, "axes": []}
    yield "newer version", {**sweep, "version": 2}
    yield "unknown objective", {**sweep, "objectives": ["speed"]}
    yield "range without a step", {**sweep, "axes": [{"name": "t", "key": axis["key"], "from": 1, "to": 8}]}
    yield "values and a range", {**sweep, "axes": [{**axis, "values": [1]}]}
    yield "margin above one", {**sweep, "margin": 1.5}


schema_test.check("sweep.schema.json", "cli/sweeps/*.json",
                  schema_test.load("cli/sweeps/llama2-7b-16xa100.json"), broken)
