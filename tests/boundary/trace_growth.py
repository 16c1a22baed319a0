"""Growing inputs for the readers of traces: pickles, SQLite, protobufs, JSON of every kind and spillway's own form."""
import gzip
import json
import os
import sqlite3
import struct
import tempfile
import zlib
from random import Random

from growth_seeds import Seed, as_bytes, in_brackets, nested

INFO = ["trace info BAD"]
EITHER = (0, 2)  # what is passed over, or refused for another reason


def seeds_of(target, ending, commands=None):
    def make(name, content, codes=(2,), more=None):
        return Seed(name, target, as_bytes(content), more or commands or INFO, ending, codes)
    return make


def zipped(make, name, content, codes=(2,)):
    """What unfolds to far more; no fuzzer begins with it, since its bytes are the library's."""
    seed = make(f"{name}-zipped", gzip.compress(content, mtime=0), codes)
    seed.target = ""
    seed.ending += ".gz"
    return seed


def text(word):
    word = as_bytes(word)
    return b"\x8c" + bytes([len(word)]) + word if len(word) < 256 else b"X" + struct.pack("<I", len(word)) + word


def pickled(key, value):
    return b"\x80\x04}(" + text("segments") + b"]" + text(key) + value + b"u."


def dictionary(**members):
    return b"}(" + b"".join(text(key) + value for key, value in members.items()) + b"u"


def random_lives(count):
    """Allocations whose lives begin and end anywhere: a third of them are alive at once, in sizes that never come again."""
    random = Random(1)
    lives = [sorted((random.random(), random.random())) for _ in range(count)]
    moments = sorted((moment, end, number) for number, life in enumerate(lives) for end, moment in enumerate(life))
    sizes = [512 * random.randint(2, 40_000) for _ in lives]
    events = [dictionary(action=text("free_completed" if end else "alloc"), addr=b"J" + struct.pack("<i", number + 1 << 9),
                         size=b"J" + struct.pack("<i", sizes[number]), stream=b"K\x00") for _, end, number in moments]
    return b"](](" + b"".join(events) + b"ee"


def pickle_seeds(size):
    make = seeds_of("pickle", ".pickle", ["trace info BAD", "memory BAD --explain"])
    levels, shares, wide = size.levels, size.shares, size.wide
    again, twice = b"h\x00" * shares, b"h\x01" * shares
    event = dictionary(action=text("alloc"), addr=b"M\x01\x10", size=b"K\x10", stream=b"K\x00", time_us=b"K\x01")
    no_event = dictionary(action=text("nothing known"))
    mark = dictionary(name=text("x" * shares), stage=text("START"), time_us=b"K\x01")
    many_keys = b"}(" + b"".join(text(f"a{i}") + b"N" for i in range(shares)) + text("action") + text("alloc") + b"u"
    block = dictionary(size=b"K\x10", state=text("active_allocated"))
    frame = b"}(" + text("filename") + text("x" * shares) + b"\x94" + text("name") + b"h\x00" + text("line") + b"K\x01u"
    frames = b"](" + frame + b"".join(b"}(" + text("filename") + b"h\x00" + text("line") + b"J" + struct.pack("<i", i) + b"u"
                                      for i in range(shares)) + b"e"
    stacked = b"}(" + text("frames") + frames + b"".join(text(key) + value for key, value in (
        ("action", text("alloc")), ("addr", b"M\x01\x10"), ("size", b"K\x10"), ("time_us", b"K\x01"))) + b"u"
    jumps = b"".join(b"r" + struct.pack("<I", 1024 * i) for i in range(1, min(wide, 4_000_000)))
    return [
        make("marks", pickled("device_traces", b"(" * levels)),
        make("random-lives", pickled("device_traces", random_lives(3 * shares // 8)), (0,)),
        make("lists", pickled("device_traces", b"](" * levels + b"e" * levels)),
        make("dictionaries", pickled("device_traces", (b"}(" + text("a")) * levels + b"N" + b"u" * levels)),
        make("tuples", pickled("device_traces", b"N" + b"\x85" * levels), EITHER),
        make("long-tuple", pickled("device_traces", b"(" + b"N" * wide + b"t"), EITHER),
        make("memo-jumps", pickled("device_traces", b"]" + jumps)),
        make("shared-events", pickled("device_traces", b"](](" + event + b"\x94" + again + b"e\x94" + twice + b"e")),
        make("shared-non-events", pickled("device_traces", b"](](" + no_event + b"\x94" + again + b"e\x94" + twice + b"e")),
        make("shared-keys", pickled("device_traces", b"](](" + many_keys + b"\x94" + again + b"ee")),
        make("shared-blocks", b"\x80\x04}(" + text("segments") + b"](" + dictionary(
            address=b"K\x00", total_size=b"K\x10", blocks=b"](" + block + b"\x94" + again + b"e") + b"\x94" + twice + b"eu."),
        make("shared-marks", pickled("external_annotations", b"](" + mark + b"\x94" + again + b"e")),
        make("shared-names", pickled("external_annotations", b"](" + mark.replace(text("x" * shares), text("x" * shares) + b"\x94")
             + b"".join(mark.replace(text("x" * shares), b"h\x00") for _ in range(shares)) + b"e"), EITHER),
        make("shared-frames", pickled("device_traces", b"](](" + stacked + b"ee"), EITHER),
        make("shared-settings", pickled("allocator_settings", b"}(" + text("x" * shares) + b"\x94N" + b"h\x00N" * shares + b"u"), EITHER),
        zipped(make, "tuples", pickled("device_traces", b"N" + b"\x85" * (500 * wide))),
        zipped(make, "empty-tuples", pickled("device_traces", b"](" + b")" * (500 * wide) + b"e")),
        zipped(make, "numbers", pickled("device_traces", b"](](" + b"K\x01" * (250 * wide) + b"ee"), EITHER),
    ]


def event_of(**members):
    return json.dumps({"ph": "X", **members})


def kernel(number, thread=7, **more):
    return event_of(cat="kernel", name="k", pid=0, tid=thread, ts=10 + number, dur=1, args={"stream": thread, **more})


def call(number, thread, process=1):
    return event_of(cat="cuda_runtime", name="cudaDeviceSynchronize", pid=process, tid=thread, ts=10 + number, dur=1)


def kineto(events, **more):
    return json.dumps({"schemaVersion": 1, **more})[:-1] + ', "traceEvents": [' + ",".join(events) + "]}"


BRACKETS = {"list": ("[", "]"), "object": ('{"a":', "}"), "both": ('[{"a":', "}]")}


def kineto_seeds(size):
    make = seeds_of("kineto", ".json", ["trace info BAD", "run BAD"])
    levels, most = size.levels, min(size.wide, 60_000)
    loose = lambda name, content: make(name, content, EITHER)
    one = kernel(0)
    span = lambda i: event_of(cat="cpu_op", name="a", pid=1, tid=1, ts=10 + i, dur=2 * levels - 2 * i)
    return [
        *in_brackets("argument", lambda value: kineto([one[:-2] + f', "a": {value}' + "}}", one]), BRACKETS, levels, loose),
        *in_brackets("member", lambda value: kineto([one])[:-1] + f', "a": {value}' + "}", BRACKETS, levels, loose),
        *in_brackets("header", lambda value: kineto([one])[:-1] + f', "deviceProperties": {value}' + "}", BRACKETS, levels, loose),
        *in_brackets("events", lambda value: kineto([one, value]), BRACKETS, levels, loose),
        loose("quotes", kineto([one.replace('"k"', '"' + 'a"' * levels + '"'), one])),
        loose("nested-ranges", kineto([span(i) for i in range(levels)] + [one])),
        make("threads", kineto([call(i, i) for i in range(most)] + [one]), (0,)),
        make("threads-of-one-number", kineto([call(i, 5, f"p{i}") for i in range(most)] + [one]), (0,)),
        make("processes", kineto([call(i, i, i) for i in range(most)] + [one]), (0,)),
        make("streams", kineto([kernel(i, i, correlation=i) for i in range(most)] + [call(most, 1)]), (0,)),
        make("streams-in-turn", kineto([kernel(i, i % 300) for i in range(size.wide)]), (0,)),
        make("too-many-threads", kineto([call(i, i) for i in range(max(size.wide, 70_000) if size.wide > 1000 else 40)] + [one]),
             (2,) if size.wide > 1000 else EITHER),
        zipped(make, "rows", kineto([kernel(0)] * (4 * size.wide)).encode(), EITHER),
    ]


def json_seeds(size):
    """Readers that keep one row at a time, or all."""
    levels, wide = size.levels, size.wide
    graph = lambda nodes: '{"schema": "1.1.1-chakra.0.0.4", "nodes": [' + ",".join(nodes) + "]}"
    chain = lambda i: json.dumps({"id": i + 1, "name": "a", "ctrl_deps": i, "inputs": {"values": [], "shapes": [], "types": []},
                                  "outputs": {"values": [], "shapes": [], "types": []}, "attrs": [{"name": "rf_id", "type": "uint64", "value": i}]})
    workload = lambda nodes: '{"workload_graph": [' + ",".join(nodes) + "]}"
    step = lambda i: json.dumps({"Id": i + 1, "Name": "a", "NodeType": 4, "Runtime": 1, "DataDeps": [i] if i else []})
    own = lambda rest: '{"schema": "spillway.trace", "version": 1, ' + rest + "}"
    edges = {"from": list(range(levels - 1)), "to": list(range(1, levels))}
    ops = {"name": ["a"] * levels, "lane": [0] * levels, "kind": ["kernel"] * levels}
    rocprof = lambda rest: '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [' + rest + "]}}]}"
    seeds = []
    for target, around in (("execution_trace", lambda v: graph(['{"id": 1, "name": ' + v + "}"])),
                           ("chakra", lambda v: workload(['{"Id": 1, "Name": ' + v + "}"])),
                           ("spillway_json", lambda v: own(f'"ops": {v}')), ("rocprof_json", rocprof)):
        make = seeds_of("" if target == "chakra" else target, ".json")
        loose = lambda name, content, make=make, target=target: make(f"{target}-{name}", content, EITHER)
        seeds += in_brackets("value", around, BRACKETS, levels, loose)
        seeds += [zipped(make, f"{target}-numbers", around("[" + "0," * (250 * wide) + "0]").encode(), EITHER),
                  zipped(make, f"{target}-lists", around("[" + "[]," * (150 * wide) + "[]]").encode(), EITHER)]
    both = ["trace info BAD", "run BAD"]
    seeds += [
        seeds_of("execution_trace", ".json", both)("execution-chain", graph([chain(i) for i in range(levels)]), EITHER),
        seeds_of("", ".json", both)("chakra-chain", workload([step(i) for i in range(levels)]), EITHER),
        seeds_of("spillway_json", ".json")("own-chain", own(
            f'"lanes": {{"kind": ["stream"]}}, "ops": {json.dumps(ops)}, "edges": {json.dumps(edges)}'), EITHER),
        seeds_of("rocprof_json", ".json")("rocprof-long-key", rocprof(
            '{"' + "a" * size.shares + '": {' + ",".join(f'"b{i}": 1' for i in range(size.shares)) + "}}"), EITHER),
    ]
    return seeds


def frame_of(byte, count):
    """A zstd frame that unfolds to so many of one byte: blocks of 128 KiB, each told by four bytes (RFC 8878, 3.1.1.2)."""
    block = 1 << 17
    sizes = [block] * (count // block) + [count % block]
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(
        struct.pack("<I", size << 3 | 2 | (i == len(sizes) - 1))[:3] + bytes([byte]) for i, size in enumerate(sizes))


def binary_seeds(size):
    make = seeds_of("spillway_binary", ".spillway")
    count = 10_000 * size.wide

    def section(name, rows, frame):
        return bytes([len(name)]) + name.encode() + struct.pack("<QQ", rows, len(frame)) + frame

    head, none = b"SPLWTRC1\x01\0\0\0", frame_of(0, 0)
    about = section("strings", 0, none) + section("about.texts", 0, none)
    return [make("section-without-rows", head + section("strings", 0, frame_of(0, count))),
            make("section-of-texts", head + section("strings", count, frame_of(0, count))),
            make("section-of-one-text", head + section("strings", 1, b"\x28\xb5\x2f\xfd\x00\x58" + struct.pack("<I", 4 << 3)[:3]
                                                       + b"\xff\xff\xff\x7f" + frame_of(97, count)[6:])),
            make("section-of-numbers", head + about + section("about.numbers", count, frame_of(0, count))),
            make("section-of-few-numbers", head + about + section("about.numbers", 12, frame_of(0, count)))]


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def perfetto_seeds(size):
    make = seeds_of("perfetto", ".pftrace")
    loose = lambda name, content: make(name, content, EITHER)
    packet = lambda *fields: field(1, b"".join(fields))
    begin = lambda i, track=1: packet(field(8, 5 + i), field(10, 1), field(11, field(9, 1) + field(11, track) + field(23, b"k")))
    end = lambda i, track=1: packet(field(8, 5 + i), field(10, 1), field(11, field(9, 2) + field(11, track)))
    track = lambda i: packet(field(60, field(1, i + 1) + (field(5, i) if i else b"") + field(2, b"a")))
    first = packet(field(10, 1))
    one = begin(0) + end(1)
    inner = field(2, bytes(600 * size.wide))  # a field beside the packets
    unfolding = packet(field(50, zlib.compress(inner, 9)))
    seeds = [
        make("open-ranges", first + b"".join(begin(i) for i in range(size.levels)), (2,)),
        loose("nested-ranges", first + b"".join(begin(i) for i in range(min(size.levels, 60_000)))
              + b"".join(end(size.levels + i) for i in range(min(size.levels, 60_000)))),
        loose("parents", first + b"".join(track(i) for i in range(size.levels)) + begin(0, size.levels) + end(1, size.levels)),
        loose("tracks", first + b"".join(begin(i, i + 1) + end(i + 1, i + 1) for i in range(min(size.wide, 30_000)))),
        loose("writers", first + b"".join(packet(field(10, i + 2)) for i in range(size.wide)) + one),
        zipped(make, "writers", first + b"".join(packet(field(10, i + 2)) for i in range(10 * size.wide)) + one, EITHER),
        make("unfolding", first + unfolding * 40 + one, EITHER),
        zipped(make, "unfolding", first + unfolding * 200 + one),
    ]
    seeds[6].target = ""
    return seeds


def chakra_seeds(size):
    make = seeds_of("chakra", ".et", ["trace info BAD", "run BAD"])
    message = lambda content: varint(len(content)) + content
    head = message(field(1, b"0.0.4"))
    node = lambda i, *more: message(field(1, i + 1) + field(2, b"a") + field(3, 4) + field(7, 1) + b"".join(more))
    all_before = field(5, b"".join(varint(i + 1) for i in range(127)))
    return [
        make("chain", head + b"".join(node(i, *([field(5, i)] if i else [])) for i in range(size.levels)), EITHER),
        make("all-wait", head + b"".join(node(i) for i in range(127)) + b"".join(node(i + 127, all_before) for i in range(size.wide // 20)), EITHER),
        zipped(make, "nodes", head + node(0) * (60 * size.wide), EITHER),
        zipped(make, "waits", head + b"".join(node(i, field(5, bytes([1]) * 100)) for i in range(3 * size.wide)), EITHER),
    ]


def database(statements, page_size=512):
    """An SQLite file, without what names the library's version."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.sqlite")
        connection = sqlite3.connect(path)
        connection.executescript(f"PRAGMA page_size = {page_size}; BEGIN;" + statements + "COMMIT;")
        connection.close()
        with open(path, "rb") as file:
            content = bytearray(file.read())
    content[96:100] = bytes(4)
    return content


def with_shared_children(content, page_size=512):
    """Every page between a root and the leaves names the next such page in each place, the last one a leaf."""
    first = lambda kind: [at for at in range(page_size, len(content), page_size) if content[at] == kind]
    inner, leaf = first(5)[:15], first(13)[-1]
    for at, child in zip(inner, [*inner[1:], leaf]):
        name = struct.pack(">I", child // page_size + 1)
        content[at + 8:at + 12] = name
        for cell in range(struct.unpack(">H", content[at + 3:at + 5])[0]):
            place = at + struct.unpack(">H", content[at + 12 + 2 * cell:at + 14 + 2 * cell])[0]
            content[place:place + 4] = name
    return bytes(content)


def nsys_seeds(size):
    make = seeds_of("nsys", ".sqlite", ["trace info BAD", "run BAD"])
    count = lambda rows: f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
    kernels = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, demangledName INT);"
    ranges = "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);"
    calls = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT);"
    names = "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    fill = lambda table, rows, values: f"INSERT INTO {table} {count(rows)} SELECT {values} FROM n;".replace(
        f"INSERT INTO {table} {count(rows)}", f"{count(rows)} INSERT INTO {table}")
    one = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1);"
    levels, most = size.levels, min(size.wide, 60_000)
    shared = database(kernels + fill("CUPTI_ACTIVITY_KIND_KERNEL", max(size.shares, 400), "i, i + 1, 0, 7, 1"))
    shared_names = database(kernels + one + names + fill("StringIds", max(size.shares, 400), "i, 'name ' || i"))
    seeds = [
        make("shared-pages", with_shared_children(shared)),
        make("shared-pages-of-names", with_shared_children(shared_names)),
        make("nested-ranges", bytes(database(kernels + one + ranges + fill("NVTX_EVENTS", levels, f"i, {3 * levels} - i, 59, 'a', 1"), 4096)), (0,)),
        make("threads", bytes(database(kernels + one + calls + fill("CUPTI_ACTIVITY_KIND_RUNTIME", most, "i, i + 1, i, i"), 4096)), (0,)),
        make("streams", bytes(database(kernels + fill("CUPTI_ACTIVITY_KIND_KERNEL", most, "i, i + 1, 0, i, 1"), 4096)), (0,)),
    ]
    for seed in seeds[2:]:
        seed.target = ""
    return seeds


READERS = [pickle_seeds, kineto_seeds, json_seeds, binary_seeds, perfetto_seeds, chakra_seeds, nsys_seeds]
