#!/usr/bin/env python3
"""Checks who may include whom, and the few source rules that a pattern can see.

Folders are floors (ARCHITECTURE.md draws them), lowest first:

    base < traces, hwprofiles < models < sim < planners < scenario < launch < studies < reports < validation < cli, gui

A file includes its own floor and floors below; floors on one level do not see each other. Every sub-folder that has
sources is a room: rooms include each other without a circle, and each has a sentence in ARCHITECTURE.md.
sim/engine sees base alone. hwprofiles/calibrate measures this machine: it may look at clocks, and only validation and
the faces may see it. Names of a floor are in its namespace (base/floors.h).
Usage: include_check.py ROOT      checks a tree, prints one line per breach, exit 1 if there is any
       include_check.py --self-test   builds small trees with one breach each and wants each found
"""
import os
import re
import sys
import tempfile

LEVELS = [["base"], ["traces", "hwprofiles"], ["models"], ["sim"], ["planners"], ["scenario"], ["launch"], ["studies"], ["reports"],
          ["validation"], ["cli", "gui"]]
LEVEL = {floor: level for level, floors in enumerate(LEVELS) for floor in floors}
CALIBRATE = "hwprofiles/calibrate"
SEES_CALIBRATE = ("hwprofiles", "validation", "cli")
UNFLOORED = ("tests/", "bench/")  # may include every floor
ROOM_ROW = re.compile(r"^\| `([\w/]+)` \|", re.MULTILINE)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
HEAVY = re.compile(r"^(nlohmann/json\.hpp|sqlite3\.h|google/protobuf/.*|.*\.pb\.h)$")
# Libraries that one unit alone compiles.
HOMES = {"spdlog/": "log.cc", "CLI/": "command_options.cc"}
NAMESPACE = re.compile(r"^namespace\b\s*([\w:]*)\s*{")
DEFINITION = re.compile(r"^(?:class|struct|union|enum(?: class)?)\s+(\w+)\b(?!.*;\s*$)")
# What would make a result depend on when or where it was computed.
UNREPEATABLE = re.compile(r"\b(random_device|system_clock|steady_clock|high_resolution_clock|gettimeofday)\b|\brand\(\)")
REPEATABLE_FLOORS = ("base", "traces", "hwprofiles", "models", "sim", "scenario", "reports")
# The engine moves bytes and time; what they stand for is decided above it.
MEANING = re.compile(r"tensor|gradient|pytorch|cuda|nvme|\bgpus?\b", re.IGNORECASE)


def floor_of(path):
    floor = path.split("/")[0]
    return floor if floor in LEVEL else None


def room_of(path):
    return os.path.dirname(path)


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
    room = room_of(path)
    if quote == '"' and path.endswith(".h") and floor and is_heavy(root, target):
        yield f'heavy header "{target}" in a header; include it in the .cc'
    for library, home in HOMES.items():
        if target.startswith(library) and os.path.basename(path) != home:
            yield f"<{target}> outside {home}, whose own header is a light face of it"
    if room == "sim/engine" and target in ("iostream", "base/log.h"):
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
    elif not target_floor or target_floor == floor and room != "sim/engine":
        return
    elif room_of(target) == CALIBRATE and floor not in SEES_CALIBRATE:
        yield f'{floor} may not include {CALIBRATE}: "{target}"'
    elif room == "sim/engine" and room_of(target) not in (room, "base"):
        yield f'{room} may not include {room_of(target)}: "{target}"'
    elif target_floor != floor and LEVEL[target_floor] >= LEVEL[floor]:
        yield f'{floor} may not include {target_floor}: "{target}"'


def check_file(root, path):
    floor = floor_of(path)
    repeatable = floor in REPEATABLE_FLOORS and room_of(path) != CALIBRATE
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
        if repeatable and UNREPEATABLE.search(line):
            yield f"{path}:{number}: a clock or an unseeded random number where results are made"
        if room_of(path) == "sim/engine" and MEANING.search(line.split("//")[0]):
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
    tops = sorted(set(LEVEL) | {top.rstrip("/") for top in UNFLOORED})
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".h", ".cc", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def circles(root, files):
    """Rooms that reach themselves through others' includes, once each."""
    sees = {}
    for path in files:
        if floor_of(path):
            targets = {room_of(target) for quote, target in includes_of(root, path) if quote == '"' and floor_of(target)}
            sees.setdefault(room_of(path), set()).update(targets - {room_of(path)})
    for room in sorted(sees):
        reached, ahead = set(), [room]
        while ahead:
            new = sees.get(ahead.pop(), set()) - reached
            reached |= new
            ahead.extend(new)
        if room in reached:
            yield f"{room}: in a circle of rooms with {', '.join(sorted(reached & set(sees)))}"


def unsaid(root, files):
    """Rooms without a sentence in ARCHITECTURE.md's table, and rows of no room."""
    page = os.path.join(root, "ARCHITECTURE.md")
    if not os.path.exists(page):
        return
    with open(page, encoding="utf-8") as text:
        said = set(ROOM_ROW.findall(text.read().split("| room | is |")[-1].split("\n\n")[0]))
    rooms = {room_of(path) for path in files if floor_of(path)}
    yield from (f"{room}: a room without a sentence in ARCHITECTURE.md" for room in sorted(rooms - said))
    yield from (f"ARCHITECTURE.md: {room} is no room" for room in sorted(said - rooms))


def foreign_names(root, files):
    """Sources that put their names into another floor's namespace."""
    for path in files:
        floor = floor_of(path)
        if not floor or floor == "base" and path == "base/floors.h":
            continue
        own = "spillway" if floor == "base" else f"spillway::{floor}"
        with open(os.path.join(root, path), encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                space = NAMESPACE.match(line)
                if not space or not space.group(1).startswith("spillway"):
                    continue
                name = space.group(1)
                others = [other for other in LEVEL if other != floor and (name + "::").startswith(f"spillway::{other}::")]
                forward = others and LEVEL[others[0]] < LEVEL[floor]  # a declaration ahead of a name below is fine
                if (name != own and not name.startswith(own + "::")) and not forward:
                    yield f"{path}:{number}: {name} is not the namespace of {floor}"


def check_tree(root):
    files = list(sources(root))
    breaches = [breach for path in files for breach in check_file(root, path)]
    for rule in (twice_defined, circles, unsaid, foreign_names):
        breaches.extend(rule(root, files))
    return len(files), breaches


# One tree each: files, and the word its only breach must contain (None: the tree is clean).
SELF_TESTS = [
    ({"traces/a.h": "#pragma once\n", "models/b.cc": '#include "traces/a.h"\n#include <vector>\n'}, None),
    ({"models/a.h": "#pragma once\n", "traces/b.cc": '#include "models/a.h"\n'}, "traces may not include models"),
    ({"hwprofiles/a.h": "#pragma once\n", "traces/b.cc": '#include "hwprofiles/a.h"\n'}, "may not include hwprofiles"),
    ({"traces/a.h": "#pragma once\n", "base/b.cc": '#include "traces/a.h"\n'}, "base may not include"),
    ({"traces/a.h": "#pragma once\n", "sim/engine/b.cc": '#include "traces/a.h"\n'}, "sim/engine may not include traces"),
    ({"base/a.h": "#pragma once\n", "sim/engine/a.h": "#pragma once\n",
      "sim/engine/b.cc": '#include "sim/engine/a.h"\n#include "base/a.h"\n'}, None),
    ({"sim/replay/a.h": "#pragma once\n", "sim/engine/b.cc": '#include "sim/replay/a.h"\n'}, "sim/engine may not"),
    ({"cli/a.h": "#pragma once\n", "gui/b.cc": '#include "cli/a.h"\n'}, "gui may not include cli"),
    ({"scenario/a.h": "#pragma once\n", "planners/offload/b.cc": '#include "scenario/a.h"\n'},
     "planners may not include scenario"),
    ({"reports/a.h": "#pragma once\n", "studies/sweep/b.cc": '#include "reports/a.h"\n'},
     "studies may not include reports"),
    ({"hwprofiles/calibrate/a.h": "#pragma once\n", "sim/replay/b.cc": '#include "hwprofiles/calibrate/a.h"\n'},
     "may not include hwprofiles/calibrate"),
    ({"hwprofiles/calibrate/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, None),
    ({"tests/a.h": "#pragma once\n", "cli/b.cc": '#include "tests/a.h"\n'}, "not part of the product"),
    ({"traces/a.cc": '#include "traces/none.h"\n'}, "does not exist"),
    ({"traces/a.cc": '#include "../traces/b.h"\n'}, "not written from the root"),
    ({"traces/a.h": "#pragma once\n", "models/b.cc": "#include <traces/a.h>\n"}, "with quotes"),
    ({"traces/a.h": "// nothing\n"}, "no #pragma once"),
    ({"traces/a.h": "#pragma once\n#include <sqlite3.h>\n", "traces/b.cc": '#include "traces/a.h"\n'}, None),
    ({"traces/a.h": "#pragma once\n#include <sqlite3.h>\n",
      "traces/b.h": '#pragma once\n#include "traces/a.h"\n'}, "heavy header"),
    ({"sim/engine/a.cc": "#include <iostream>\n"}, "logs nothing"),
    ({"base/log.h": "#pragma once\n", "sim/engine/a.cc": '#include "base/log.h"\n'}, "logs nothing"),
    ({"cli/a.cc": "#include <CLI/CLI.hpp>\n"}, "outside command_options.cc"),
    ({"cli/command_options.cc": "#include <CLI/CLI.hpp>\n"}, None),
    ({"sim/devices/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, "a clock"),
    ({"sim/engine/a.cc": "int tensors = 0;\n"}, "stand for"),
    ({"sim/engine/a.cc": "int amounts = 0;  // say, bytes of a tensor\n"}, None),
    ({"models/a.h": "#pragma once\nnamespace spillway::models {\nstruct A {\n};\n}  // namespace spillway::models\n",
      "models/spec/b.h": "#pragma once\nnamespace spillway::models {\nstruct A {\n};\n"
                         "}  // namespace spillway::models\n"}, "too"),
    ({"models/a.h": "#pragma once\nnamespace spillway::models {\nstruct A {\n};\n}  // namespace spillway::models\n",
      "planners/b.h": "#pragma once\nnamespace spillway::planners {\nstruct A {\n};\n"
                      "}  // namespace spillway::planners\n"}, None),
    ({"models/a.cc": "namespace spillway {\nint a;\n}  // namespace spillway\n"}, "not the namespace of models"),
    ({"models/a.cc": "namespace spillway::sim {\nint a;\n}  // namespace spillway::sim\n"}, "not the namespace of"),
    ({"sim/a.h": "#pragma once\nnamespace spillway::models {\nstruct A;\n}  // namespace spillway::models\n"}, None),
    ({"models/spec/a.h": "#pragma once\n", "models/cost/b.h": '#pragma once\n#include "models/spec/a.h"\n',
      "models/cost/c.h": "#pragma once\n", "models/spec/d.cc": '#include "models/spec/a.h"\n'}, None),
    ({"models/a.cc": "int a;\n", "ARCHITECTURE.md": "| room | is |\n|---|---|\n| `sim` | a |\n"}, 2),
    ({"models/a.cc": "int a;\n", "ARCHITECTURE.md": "| room | is |\n|---|---|\n| `models` | a |\n\n| `sim` | b |\n"}, None),
    ({"tests/sim/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, None),
]
# A circle is told once by each of its rooms.
CIRCLE = {"models/spec/a.h": "#pragma once\n", "models/cost/b.h": '#pragma once\n#include "models/spec/a.h"\n',
          "models/spec/c.cc": '#include "models/cost/b.h"\n'}


def self_test():
    failed = 0
    for files, wanted in SELF_TESTS:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                    out.write(text)
            breaches = check_tree(root)[1]
        right = (len(breaches) == wanted if isinstance(wanted, int) else
                 not breaches if wanted is None else len(breaches) == 1 and wanted in breaches[0])
        if not right:
            failed += 1
            print(f"wanted {wanted!r}, got {breaches} for {files}")
    with tempfile.TemporaryDirectory() as root:
        for path, text in CIRCLE.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        breaches = check_tree(root)[1]
    if len(breaches) != 2 or not all("circle" in breach for breach in breaches):
        failed += 1
        print(f"wanted two rooms in a circle, got {breaches}")
    print(f"{len(SELF_TESTS) + 1 - failed} of {len(SELF_TESTS) + 1} self-tests passed")
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
