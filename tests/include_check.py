#!/usr/bin/env python3
"""Checks the floors' include rule and the few source rules that a pattern can see.

A floor includes only floors below it (docs/engine.md draws them):

    traces/base < {traces, hwprofiles} < models < sim/engine < sim/devices < sim/replay
                < planners < validation < {cli, gui}

traces and hwprofiles do not see each other, nor do cli and gui; sim/engine sees traces/base alone.
hwprofiles/calibrate measures this machine: it may look at clocks, and only validation and the faces may see it.
Usage: include_check.py ROOT      checks a tree, prints one line per breach, exit 1 if there is any
       include_check.py --self-test   builds small trees with one breach each and wants each found
"""
import os
import re
import sys
import tempfile

# Folder -> floors it may include besides itself. Longest folder wins, so traces/base is a floor of its own.
BASE = ["traces/base"]
INPUTS = BASE + ["traces", "hwprofiles"]
CALIBRATE = ["hwprofiles/calibrate"]
SIM = ["sim/engine", "sim/devices", "sim/replay", "sim"]
ALLOWED = {
    "traces/base": [],
    "traces": BASE,
    "hwprofiles": BASE,
    "hwprofiles/calibrate": BASE + ["hwprofiles"],
    "models": INPUTS,
    "sim/engine": BASE,
    "sim/devices": INPUTS + ["models", "sim/engine"],
    "sim/replay": INPUTS + ["models", "sim/engine", "sim/devices"],
    "sim": INPUTS + ["models"] + SIM,
    "planners": INPUTS + ["models"] + SIM,
    "validation": INPUTS + CALIBRATE + ["models"] + SIM + ["planners"],
    "cli": INPUTS + CALIBRATE + ["models"] + SIM + ["planners", "validation"],
    "gui": INPUTS + ["models"] + SIM + ["planners", "validation"],
}
FLOORS = sorted(ALLOWED, key=len, reverse=True)
UNFLOORED = ("tests/", "bench/")  # may include every floor

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
HEAVY = re.compile(r"^(nlohmann/json\.hpp|simdjson\.h|sqlite3\.h|google/protobuf/.*|.*\.pb\.h)$")
# Libraries that one unit alone compiles.
HOMES = {"spdlog/": "log.cc", "CLI/": "command_options.cc"}
NAMESPACE = re.compile(r"^namespace\b\s*([\w:]*)\s*{")
DEFINITION = re.compile(r"^(?:class|struct|union|enum(?: class)?)\s+(\w+)\b(?!.*;\s*$)")
# What would make a result depend on when or where it was computed.
UNREPEATABLE = re.compile(r"\b(random_device|system_clock|steady_clock|high_resolution_clock|gettimeofday)\b|\brand\(\)")
REPEATABLE_FLOORS = ("traces", "traces/base", "hwprofiles", "models", "sim", "sim/engine", "sim/devices", "sim/replay")
# The engine moves bytes and time; what they stand for is decided above it.
MEANING = re.compile(r"tensor|gradient|pytorch|cuda|nvme|\bgpus?\b", re.IGNORECASE)


def floor_of(path):
    for floor in FLOORS:
        if path.startswith(floor + "/"):
            return floor
    return None


def includes_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return [match.groups() for match in map(INCLUDE.match, source) if match]


def is_heavy(root, target):
    """A library's heavy header, or a private header of ours that includes one; those are for .cc files only."""
    if HEAVY.match(target):
        return True
    ours = target.endswith(".h") and os.path.exists(os.path.join(root, target))
    return ours and any(HEAVY.match(name) for _, name in includes_of(root, target))


def check_include(root, path, floor, quote, target):
    """Yields what is wrong with one include line."""
    if quote == '"' and path.endswith(".h") and floor and is_heavy(root, target):
        yield f'heavy header "{target}" in a header; include it in the .cc'
    for library, home in HOMES.items():
        if target.startswith(library) and os.path.basename(path) != home:
            yield f"<{target}> outside {home}, whose own header is a light face of it"
    if floor == "sim/engine" and target in ("iostream", "traces/base/log.h"):
        yield f"<{target}> in the engine, which logs nothing"
    target_floor = floor_of(target)
    if quote == "<":
        if target_floor:
            yield f'<{target}> is ours; write it with quotes'
        return
    if target.startswith(".") or "/" not in target:
        yield f'"{target}" is not written from the root'
        return
    if not target.endswith(".pb.h") and not os.path.exists(os.path.join(root, target)):
        yield f'"{target}" does not exist'
    if not floor:
        return
    if target.startswith(UNFLOORED):
        yield f'{floor} includes "{target}", which is not part of the product'
    elif target_floor and target_floor != floor and target_floor not in ALLOWED[floor]:
        yield f'{floor} may not include {target_floor}: "{target}"'


def check_file(root, path):
    floor = floor_of(path)
    with open(os.path.join(root, path), encoding="utf-8") as source:
        lines = source.read().splitlines()
    if path.endswith(".h") and not any(line.strip() == "#pragma once" for line in lines):
        yield f"{path}:1: no #pragma once"
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include:
            for breach in check_include(root, path, floor, *include.groups()):
                yield f"{path}:{number}: {breach}"
            continue
        if floor in REPEATABLE_FLOORS and UNREPEATABLE.search(line):
            yield f"{path}:{number}: a clock or an unseeded random number where results are made"
        if floor == "sim/engine" and MEANING.search(line.split("//")[0]):
            yield f"{path}:{number}: the engine names what its bytes stand for: {line.strip()}"


def definitions_of(root, path):
    """Types a header defines, as (line, name with its namespace)."""
    spaces = []
    with open(os.path.join(root, path), encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            space = NAMESPACE.match(line)
            if space:
                spaces.append(space.group(1))
            elif line.startswith("}  // namespace"):
                spaces = spaces[:-1]
            elif DEFINITION.match(line):
                yield number, "::".join(spaces + [DEFINITION.match(line).group(1)])


def twice_defined(root, files):
    """Two headers with one type: no compiler sees both, and the linker takes one's functions for the other."""
    first = {}
    for path in files:
        if not path.endswith(".h") or path.startswith(UNFLOORED):
            continue
        for number, name in definitions_of(root, path):
            if name in first:
                yield f"{path}:{number}: {name} is defined in {first[name]} too"
            first.setdefault(name, path)


def sources(root):
    tops = sorted({floor.split("/")[0] for floor in FLOORS} | {top.rstrip("/") for top in UNFLOORED})
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def check_tree(root):
    files = list(sources(root))
    breaches = [breach for path in files for breach in check_file(root, path)]
    return len(files), breaches + list(twice_defined(root, files))


# One tree each: files, and the word its only breach must contain (None: the tree is clean).
SELF_TESTS = [
    ({"traces/a.h": "#pragma once\n", "models/b.cc": '#include "traces/a.h"\n#include <vector>\n'}, None),
    ({"models/a.h": "#pragma once\n", "traces/b.cc": '#include "models/a.h"\n'}, "traces may not include models"),
    ({"hwprofiles/a.h": "#pragma once\n", "traces/b.cc": '#include "hwprofiles/a.h"\n'}, "may not include hwprofiles"),
    ({"traces/a.h": "#pragma once\n", "traces/base/b.cc": '#include "traces/a.h"\n'}, "traces/base may not include"),
    ({"traces/a.h": "#pragma once\n", "sim/engine/b.cc": '#include "traces/a.h"\n'}, "sim/engine may not include traces"),
    ({"sim/replay/a.h": "#pragma once\n", "sim/devices/b.cc": '#include "sim/replay/a.h"\n'}, "sim/devices may not"),
    ({"cli/a.h": "#pragma once\n", "gui/b.cc": '#include "cli/a.h"\n'}, "gui may not include cli"),
    ({"hwprofiles/calibrate/a.h": "#pragma once\n", "sim/replay/b.cc": '#include "hwprofiles/calibrate/a.h"\n'},
     "may not include hwprofiles/calibrate"),
    ({"hwprofiles/calibrate/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, None),
    ({"tests/a.h": "#pragma once\n", "cli/b.cc": '#include "tests/a.h"\n'}, "not part of the product"),
    ({"traces/a.cc": '#include "traces/none.h"\n'}, "does not exist"),
    ({"traces/a.cc": '#include "../traces/b.h"\n'}, "not written from the root"),
    ({"traces/a.h": "#pragma once\n", "models/b.cc": "#include <traces/a.h>\n"}, "with quotes"),
    ({"traces/a.h": "// nothing\n"}, "no #pragma once"),
    ({"traces/a.h": "#pragma once\n#include <simdjson.h>\n", "traces/b.cc": '#include "traces/a.h"\n'}, None),
    ({"traces/a.h": "#pragma once\n#include <simdjson.h>\n",
      "traces/b.h": '#pragma once\n#include "traces/a.h"\n'}, "heavy header"),
    ({"sim/engine/a.cc": "#include <iostream>\n"}, "logs nothing"),
    ({"traces/base/log.h": "#pragma once\n", "sim/engine/a.cc": '#include "traces/base/log.h"\n'}, "logs nothing"),
    ({"cli/a.cc": "#include <CLI/CLI.hpp>\n"}, "outside command_options.cc"),
    ({"cli/command_options.cc": "#include <CLI/CLI.hpp>\n"}, None),
    ({"sim/devices/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, "a clock"),
    ({"sim/engine/a.cc": "int tensors = 0;\n"}, "stand for"),
    ({"sim/engine/a.cc": "int amounts = 0;  // say, bytes of a tensor\n"}, None),
    ({"models/a.h": "#pragma once\nnamespace spillway {\nstruct A {\n};\n}  // namespace spillway\n",
      "planners/b.h": "#pragma once\nnamespace spillway {\nstruct A {\n};\n}  // namespace spillway\n"}, "too"),
    ({"models/a.h": "#pragma once\nnamespace spillway {\nstruct A {\n};\n}  // namespace spillway\n",
      "planners/b.h": "#pragma once\nnamespace spillway {\nstruct A;\nnamespace b {\nstruct A {\n};\n"
                      "}  // namespace b\n}  // namespace spillway\n"}, None),
    ({"tests/sim/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, None),
]


def self_test():
    failed = 0
    for files, wanted in SELF_TESTS:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                    out.write(text)
            breaches = check_tree(root)[1]
        right = not breaches if wanted is None else len(breaches) == 1 and wanted in breaches[0]
        if not right:
            failed += 1
            print(f"wanted {wanted!r}, got {breaches} for {files}")
    print(f"{len(SELF_TESTS) - failed} of {len(SELF_TESTS)} self-tests passed")
    return 1 if failed else 0


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "--self-test":
        return self_test()
    count, breaches = check_tree(arguments[0])
    for breach in breaches:
        print(breach)
    print(f"{count} files, {len(breaches)} breaches")
    return 1 if breaches or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
