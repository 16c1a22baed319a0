"""Inputs that are certainly bad, made from good ones with a fixed seed.

A kind of input is a good file and the commands that read it; a fault is a way of spoiling it. Only faults that leave
nothing valid behind belong to a kind: a reader of our own documents refuses any key that it doesn't know, a reader of
other programs' files passes over them.
"""
import copy
import gzip
import json
import random
import struct
from dataclasses import dataclass, field

SEED = 20


@dataclass
class Kind:
    """name: of the input; commands: argument lists where BAD stands for the spoiled file, OUT for an output, GOOD/x for
    the prepared file x; ending: of the file's name; strict: unknown keys and values of another type are refused."""

    name: str
    good: bytes
    commands: list
    ending: str
    strict: bool = False
    json: bool = True
    drop: tuple = ()  # faults that may leave it valid
    anywhere: tuple = ()  # JSON pointers below which keys are free
    faults: dict = field(default_factory=dict)  # more faults of its own: name to list of bytes


@dataclass
class Case:
    kind: str
    fault: str
    content: bytes
    command: list
    ending: str
    codes: tuple = (2,)  # exit codes that are right

    @property
    def title(self):
        return f"{self.kind}, {self.fault}: {' '.join(self.command)}"


def walk(value, place=()):
    """Every value of a document with its place, outermost first."""
    yield place, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from walk(below, place + (key,))


def put(document, place, value):
    changed = copy.deepcopy(document)
    if not place:
        return value
    at = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return changed


# A text that stands for raw JSON until the document is written.
RAW = "\u0001raw\u0001"


def text_of(document, raw=None):
    text = json.dumps(document, ensure_ascii=False)
    if raw is not None:
        text = text.replace(json.dumps(RAW, ensure_ascii=False), raw)
    return text.encode("utf-8", "surrogateescape")


def pick(rng, candidates, count):
    candidates = list(candidates)
    return candidates if len(candidates) <= count else rng.sample(candidates, count)


def is_below(place, prefixes):
    pointer = "/" + "/".join(map(str, place))
    return any(pointer == prefix or pointer.startswith(prefix + "/") for prefix in prefixes)


def json_faults(kind, rng, count):
    """Every way of spoiling a JSON document: name of the fault to its contents."""
    text = kind.good.decode()
    document = json.loads(text)
    everything = [(place, value) for place, value in walk(document) if not is_below(place, kind.anywhere)]
    objects = [place for place, value in everything if isinstance(value, dict) and value]
    numbers = [place for place, value in everything if isinstance(value, (int, float)) and not isinstance(value, bool)]
    texts = [place for place, value in everything if isinstance(value, str)]
    leaves = numbers + texts + [place for place, value in everything if isinstance(value, bool)]
    end = len(text.rstrip()) - 1

    def at(place):
        value = document
        for key in place:
            value = value[key]
        return value

    def said_twice(place):
        key, value = rng.choice(list(at(place).items()))
        pairs = ", ".join(json.dumps(k) + ": " + json.dumps(v) for k, v in [*at(place).items(), (key, value)])
        return text_of(put(document, place, RAW), "{" + pairs + "}")

    faults = {
        "cut": [text[:length].encode() for length in pick(rng, range(1, end), count)],
        "not a number": [text_of(put(document, place, RAW), word) for place in pick(rng, leaves, count)
                         for word in (rng.choice(("NaN", "Infinity", "-Infinity", "nan", "1e", "0x10", "+1", "01", ".5")),)],
        "beyond a double": [text_of(put(document, place, RAW), rng.choice(("1e400", "-1e999", "9" * 400)))
                            for place in pick(rng, numbers or leaves, count)],
        "control character": [text_of(put(document, place, RAW), '"a' + chr(rng.randrange(1, 32)) + 'b"')
                              for place in pick(rng, texts or leaves, count)],
        "no UTF-8": [text_of(put(document, place, "a" + rng.choice("\udcff\udcc0\udced\udc80") + "b"))
                     for place in pick(rng, texts or leaves, count)],
        "behind the end": [text.encode() + more for more in (b"}", b"{}", b"\x00", b"trailing")],
        "too deep": [text_of(put(document, place, RAW), opened * 50_000 + closed * 50_000)
                     for place, (opened, closed) in zip(pick(rng, leaves, 2), (("[", "]"), ('{"a":', "}")))],
        "no object": [word.encode() for word in ("null", "true", "42", '"text"', "[]" if isinstance(document, dict) else "{}",
                                                 "[[[]]]")],
    }
    # An object's end that is missing, one bracket too many.
    faults["brackets"] = [(text[:spot] + mark + text[spot:]).encode() for spot, mark in
                          ((1, "{"), (1, "]"), (end, ","), (end, ":"), (end, "]"))]
    if kind.strict:
        faults["unknown key"] = [text_of(put(document, place + ("no_such_key",), rng.choice((1, "x", None, [], {}))))
                                 for place in pick(rng, objects, count)]
        faults["said twice"] = [said_twice(place) for place in pick(rng, objects, count)]
        faults["wrong type"] = [text_of(put(document, place, rng.choice(([[]], {"no_such_key": 1}))))
                                for place in pick(rng, leaves, count)]
        faults["too deep"] += [text_of(put(document, place, RAW), "[" * 3000 + "]" * 3000) for place in pick(rng, leaves, 2)]
    return faults


def other_faults(kind, rng, count):
    """What spoils a file of any format."""
    zipped = gzip.compress(kind.good, mtime=0)
    broken = bytearray(zipped)
    broken[len(broken) // 2] ^= 0x55
    wrong_sum = zipped[:-8] + struct.pack("<II", 1, len(kind.good))
    return {
        "empty": [b"", b" \n\t\n"],
        "binary": [rng.randbytes(size) for size in (1, 7, 100, 5000)][:count],
        "zeros": [b"\x00" * size for size in (1, 512)],
        "cut gzip": [zipped[:length] for length in pick(rng, range(11, len(zipped) - 8), count)],
        "damaged gzip": [bytes(broken), wrong_sum, zipped + b"more"],
        "cut zstd": [b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x24\x05"],
        "machine code": [b"\x7fELF\x02\x01\x01" + bytes(200)],
        "picture": [b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(64)],
        "web page": [b"<!DOCTYPE html><html><body>404 not found</body></html>"],
    }


def cases_of(kinds, count, strangers):
    """strangers: name of a kind to kinds that it must refuse, by the bytes of those."""
    cases = []
    for kind in kinds:
        rng = random.Random(f"{SEED} {kind.name}")
        faults = {**other_faults(kind, rng, count), **(json_faults(kind, rng, count) if kind.json else {}), **kind.faults}
        faults["wrong kind of file"] = [other.good for other in strangers(kind)][: 2 * count]
        for fault, contents in faults.items():
            if fault in kind.drop:
                continue
            for number, content in enumerate(dict.fromkeys(contents)):
                command = kind.commands[(number + len(cases)) % len(kind.commands)]
                cases.append(Case(kind.name, fault, content, command, kind.ending))
    return cases


def sample_of(cases, count):
    """So many of the cases, the first of each fault of each kind among them, and always the same."""
    first = {}
    for case in cases:
        first.setdefault((case.kind, case.fault), case)
    rest = [case for case in cases if first[case.kind, case.fault] is not case]
    return [*first.values(), *random.Random(SEED).sample(rest, max(0, min(len(rest), count - len(first))))]
