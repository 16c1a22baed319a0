"""Inputs that are small as files and deep, shared or growing in what they say, for every reader.

A seed is made at any size, so that the battery and the fuzzers have the same ones: growth_test.py runs them at full size
through the program, small ones lie in tests/fuzz/seeds/TARGET as growth-NAME. A reader's seeds are a function from a Size
to a list of Seed, named in READERS: text in text_growth.py.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """levels: of nesting; shares: how often a shared thing is named, and of how many parts it is made; doublings: lines
    that each double what the one before made; wide: things side by side."""

    levels: int
    shares: int
    doublings: int
    wide: int


FULL = Size(levels=100_000, shares=20_000, doublings=60, wide=100_000)
SMALL = Size(levels=70, shares=40, doublings=6, wide=40)


@dataclass
class Seed:
    """name: of the growth, one word with dashes; target: the fuzz target that reads such a file, "": none does; commands:
    argument lists, as of bad_inputs.Kind; codes: exit codes at full size; is_fuzzed: fuzzers begin with the small one."""

    name: str
    target: str
    content: bytes
    commands: list
    ending: str
    codes: tuple = (2,)
    is_fuzzed: bool = True


def as_bytes(content):
    return content if isinstance(content, bytes) else content.encode()


def nested(opened, closed, levels, inner="1"):
    """`inner` between so many brackets; of texts or bytes."""
    return opened * levels + inner + closed * levels


def doubling(first, line, doublings):
    """first, then line(now, before) for each number: what a line makes is twice what the one before made."""
    return [first, *(line(i, i - 1) for i in range(1, doublings + 1))]


def in_brackets(name, around, brackets, levels, make):
    """A seed for each pair of brackets, closed and left open. `around` puts a value into a file of the reader's; `make`
    makes a Seed of name and content."""
    seeds = []
    for word, (opened, closed) in brackets.items():
        seeds.append(make(f"{name}-{word}", around(nested(opened, closed, levels))))
        seeds.append(make(f"{name}-{word}-open", around(nested(opened, "", levels, ""))))
    return seeds
