#!/usr/bin/env python3
"""Validates the bundled price list against the published JSON Schema; skipped without python3-jsonschema."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import schema_test  # noqa: E402


def broken(prices):
    """Price lists that the schema must refuse, made from a sound one."""
    leaf = prices["electricity"]
    yield "unknown key", {**prices, "electricty": leaf}
    yield "no source", {**prices, "electricity": {key: value for key, value in leaf.items() if key != "source"}}
    yield "no date", {**prices, "electricity": {key: value for key, value in leaf.items() if key != "date"}}
    yield "wrong unit", {**prices, "electricity": {**leaf, "unit": "EUR/kWh"}}
    yield "negative", {**prices, "electricity": {**leaf, "value": -1}}
    yield "newer version", {**prices, "version": 2}
    yield "a machine without a price", {**prices, "machines": {"dgx-h100": {}}}


schema_test.check("prices.schema.json", "hwprofiles/prices.json", schema_test.load("hwprofiles/prices.json"), broken)
