#!/usr/bin/env python3
"""Checks that what has one home stays there.

    json reads        keys of JSON documents are read by the field reader in base/ alone
    words             a technique's, schedule's or allocator's word stands in its table alone
    ticks             one algorithm of round steps: base/axis.cc
    mixing constants  one generator and one set of multipliers: base/splitmix64.h; FNV's: base/digest.h
    data folders      one finder: base/data_folder.cc
    quantiles         base/quantile.h
    verdicts          whether a step fits is said in words of sim/replay/verdict_words.h alone
    names             what a source of a room keeps to itself (anonymous namespaces, static) has a name that no other source
                      of the room gives: several are one unit of the compiler (-Dunity=on)

Breaches of the first two that are older than this check are listed by file in tests/house_ceilings.json. The list may
only shrink: more in a file fails, and so does fewer until the list says so.
Usage: house_check.py ROOT           checks a tree, prints one line per breach, exit 1 if there is any
       house_check.py ROOT --lower   lowers the list to what is there (writes it where there is none), then checks
       house_check.py --self-test    builds small trees with one breach each and wants each found
"""
import json
import os
import re
import sys
import tempfile

FLOORS = ["base", "traces", "hwprofiles", "models", "sim", "planners", "scenario", "launch", "studies", "reports", "validation",
          "cli", "gui"]
BESIDE = ["tests", "bench"]  # mixing constants alone
ALONE = {"bench", "bench/peers"}  # a program each
NAMESPACE = re.compile(r"^namespace (spillway[\w:]*) \{", re.MULTILINE)
CEILINGS = "tests/house_ceilings.json"

JSON_HEADERS = re.compile(r'#include\s+(<nlohmann/json\.hpp>|"base/field_(reader|writer)\.h")')
# A key that is looked up; document["key"] = x and its push_back write.
JSON_READ = re.compile(r'\.(?:at|contains|value)\("|\["[\w$]+"\](?!\s*(?:=(?!=)|\.push_back|\.emplace_back|\[))')
FIELD_READER = re.compile(r"base/")

STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
# Files that hold the tables, and how a word looks there.
WORD_TABLES = {
    "schedule": [("models/pipeline/named_schedules.cc", re.compile(r'(?:\{\{(?:\.name = )?|\.alias = )"([\w-]+)"')),
                 ("models/pipeline/named_schedules.h", re.compile(r'\b\w+ = "([\w-]+)"'))],
    "allocator": [("sim/devices/memory/memory_policies.h", re.compile(r'\b\w+_policy = "([\w-]+)"'))],
    "technique": [(None, re.compile(r'\b\w+_word = "([\w-]+)"'))],
}
# Words that mean other things as well; they are told apart by nothing but reading.
COMMON = {"none", "order", "layout", "stream", "mix", "planned", "arena", "recompute", "checkpoints", "lifetimes"}

ONCE = [
    # What, pattern, files that may have it, also in tests and bench.
    ("a list of round steps (base/axis.h has round_step)",
     re.compile(r"\{\s*1(?:\.0)?,\s*2(?:\.0)?,\s*(?:4(?:\.0)?,\s*)?5(?:\.0)?\b|\b5 \* power\b"), ("base/axis.cc",), False),
    ("a mixing constant (base/splitmix64.h names them)",
     re.compile(r"0x(?:9E3779B9|BF58476D1CE4E5B9|94D049BB133111EB|D6E8FEB86659FD93|A3B195354A39B70D)", re.IGNORECASE),
     ("base/splitmix64.h",), True),
    ("FNV's constants (base/digest.h has Fnv1a)",
     re.compile(r"0x0*CBF29CE484222325|0x0*100000001B3|\b14695981039346656037|\b1099511628211", re.IGNORECASE),
     ("base/digest.h",), True),
    ("a finder of installed data (base/data_folder.h has data_places)", re.compile(r'"SPILLWAY_DATA[/"]'),
     ("base/data_folder.cc",), False),
    ("words of a verdict (sim/replay/verdict_words.h has them)",
     re.compile(r'"(?:[Dd]oes not fit|[Ff]its with|[Tt]ight: |Unknown: |✔ |▲ (?:fits|tight|unknown|not)|✖ (?:does|out of|drives))'),
     ("sim/replay/verdict.cc", "sim/replay/verdict_words.cc"), False),
    ("a quantile (base/quantile.h has one)", re.compile(r"^\s*(?:static |inline )?double (?:\w+_)?(?:quantile|percentile)\("),
     ("base/quantile.h", "base/quantile.cc"), False),
]


def sources(root, tops):
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".h", ".cc", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return source.read()


def code_lines(text):
    """Lines without their comments; a // within a string is kept."""
    for number, line in enumerate(text.splitlines(), 1):
        bare = STRING.sub(lambda match: " " * len(match.group(0)), line)
        at = bare.find("//")
        yield number, line if at < 0 else line[:at]


def words_of(texts):
    """Each kind's words, with the files that may spell them."""
    words = {kind: {} for kind in WORD_TABLES}
    for kind, tables in WORD_TABLES.items():
        for home, pattern in tables:
            for path, text in texts.items():
                if home in (None, path):
                    for word in pattern.findall(text):
                        words[kind].setdefault(word, set()).add(path)
    return words


def counts(root, texts):
    """Per kind of breach: file -> lines that have it."""
    words = {}
    for kind in words_of(texts).values():
        for word, homes_of_word in kind.items():
            if word not in COMMON:
                words[word] = words.get(word, set()) | homes_of_word
    found = {"json_reads": {}, "words": {}}
    for path, text in texts.items():
        reads_json = JSON_HEADERS.search(text) and not FIELD_READER.match(path)
        for number, line in code_lines(text):
            if line.lstrip().startswith("#"):
                continue
            if reads_json:
                for _ in JSON_READ.finditer(line):
                    found["json_reads"].setdefault(path, []).append(number)
            for literal in STRING.findall(line):
                if path not in words.get(literal, {path}):
                    found["words"].setdefault(path, []).append(number)
    return found


MEANING = {"json_reads": "reads of JSON keys outside the field reader",
           "words": "words of techniques, schedules or allocators outside their table"}


def against_ceilings(found, ceilings):
    for kind, by_file in found.items():
        allowed = ceilings.get(kind, {})
        for path in sorted(set(by_file) | set(allowed)):
            lines, ceiling = by_file.get(path, []), allowed.get(path, 0)
            if len(lines) > ceiling:
                places = ", ".join(str(line) for line in lines[:8]) + (", .." if len(lines) > 8 else "")
                yield f"{path}: {len(lines)} {MEANING[kind]}, {ceiling} are allowed (lines {places})"
            elif len(lines) < ceiling:
                yield f"{path}: {len(lines)} {MEANING[kind]}, fewer than the {ceiling} listed; run house_check.py --lower"


def homes(root, texts):
    for path, text in texts.items():
        beside = path.split("/")[0] in BESIDE
        for number, line in code_lines(text):
            for what, pattern, allowed, everywhere in ONCE:
                if path not in allowed and (everywhere or not beside) and pattern.search(line):
                    yield f"{path}:{number}: {what}"


# Declarations at the beginning of a line, as clang-format lays them out.
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)\b(?!;)")
ALIAS = re.compile(r"using (\w+) = ([^;]+);")
CONSTANT = re.compile(r"(?:\w[\w:<>,*& ]* |^|, )(\w+) ?(?:=|\{)")
FUNCTION = re.compile(r"[\w:<>,&*\s\[\]\.()]*?[\s&*](\w+)\(")

OVERLOADED = "describe"  # a description of fields for each type (base/fields.h)


def own_names(text):
    """Of a source: what it declares for itself at the outermost level, each with what may be there twice (an alias)."""
    inside, found = False, {}
    for line in text.splitlines():
        if line == "namespace {":
            inside = True
        elif line == "}  // namespace":
            inside = False
        elif line[:1] not in (" ", "\t", "", "#", "/", "}") and (inside or line.startswith("static ")):
            if match := TYPE.match(line):
                found[match[1]] = ""
            elif match := ALIAS.match(line):
                found[match[1]] = match[2]
            elif re.match(r"(?:static |inline )?const(?:expr|init)? ", line) and "(" not in line.split("=")[0].split("{")[0]:
                for name in CONSTANT.findall(line):
                    found[name] = ""
            elif not line.startswith(("using ", "namespace", "template", "extern", "TEST", "INSTANTIATE")) and (
                    match := FUNCTION.match(line)):
                found[match[1]] = ""
    return found


def shared_names(texts):
    """Names that two sources of a room keep to themselves, in one namespace."""
    given = {}
    for path, text in sorted(texts.items()):
        room = path.rsplit("/", 1)[0]
        if path.endswith(".cc") and room not in ALONE:
            namespace = NAMESPACE.search(text)
            for name, alias in own_names(text).items():
                before = given.setdefault((room, namespace and namespace[1], name), (path, alias))
                if name != OVERLOADED and before[0] != path and not (alias and alias == before[1]):
                    yield f"{path}: {name} is a name of its own in {before[0]} too; a unit may have both"


def ceilings_of(root):
    try:
        with open(os.path.join(root, CEILINGS), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def lower(root, found):
    old = ceilings_of(root)
    new = {kind: {path: len(lines) if old is None else min(len(lines), old.get(kind, {}).get(path, 0))
                  for path, lines in sorted(by_file.items())} for kind, by_file in found.items()}
    new = {kind: {path: count for path, count in by_file.items() if count > 0} for kind, by_file in new.items()}
    with open(os.path.join(root, CEILINGS), "w", encoding="utf-8") as file:
        json.dump(new, file, indent=1)
        file.write("\n")


def check_tree(root, lowers=False):
    texts = {path: text_of(root, path) for path in sources(root, FLOORS)}
    found = counts(root, texts)
    if lowers:
        lower(root, found)
    breaches = list(against_ceilings(found, ceilings_of(root) or {}))
    beside = {path: text_of(root, path) for path in sources(root, BESIDE)}
    breaches.extend(homes(root, {**texts, **beside}))
    breaches.extend(shared_names({**texts, **beside}))
    return {kind: sum(map(len, by_file.values())) for kind, by_file in found.items()}, len(texts), breaches


JSON_INCLUDE = "#include <nlohmann/json.hpp>\n"
SCHEDULES = {"models/pipeline/named_schedules.cc": '{{"zb-v", "in a V"}, build},\n'}
POLICIES = {"sim/devices/memory/memory_policies.h": 'ideal_policy = "ideal", torch_policy = "torch";\n'}
# One tree each: files, and the word its only breach must contain (None: the tree is clean).
SELF_TESTS = [
    ({"scenario/a.cc": JSON_INCLUDE + 'int a = json.at("key");\n'}, "1 reads of JSON keys"),
    ({"scenario/a.cc": JSON_INCLUDE + 'if (json["key"] == 1) a();\n'}, "1 reads of JSON keys"),
    ({"scenario/a.cc": JSON_INCLUDE + 'json["key"] = 1;\njson["list"].push_back(2);\n'}, None),
    ({"scenario/a.cc": 'int a = map.at("key");\n'}, None),
    ({"base/a.cc": JSON_INCLUDE + 'int a = json.at("key");\n'}, None),
    ({"scenario/a.cc": JSON_INCLUDE + '// json.at("key")\n'}, None),
    ({"scenario/a.cc": JSON_INCLUDE + 'json.at("a");\njson.at("b");\n', CEILINGS: '{"json_reads": {"scenario/a.cc": 2}}'},
     None),
    ({"scenario/a.cc": JSON_INCLUDE + 'json.at("a");\njson.at("b");\n', CEILINGS: '{"json_reads": {"scenario/a.cc": 1}}'},
     "2 reads of JSON keys"),
    ({"scenario/a.cc": JSON_INCLUDE + 'json.at("a");\n', CEILINGS: '{"json_reads": {"scenario/a.cc": 2}}'}, "fewer than"),
    ({**SCHEDULES, "studies/a.cc": 'const char* a = "zb-v";\n'}, "outside their table"),
    ({**SCHEDULES, "studies/a.cc": 'const char* a = "a zb-v";\n'}, None),
    ({**POLICIES, "studies/a.cc": 'const char* a = "torch";\n'}, "outside their table"),
    ({**POLICIES, "studies/a.cc": 'const char* a = "ideal";\n'}, "outside their table"),
    ({"planners/a.h": 'std::string_view a_word = "swapping";\n', "cli/b.cc": 'auto b = "swapping";\n'}, "outside their"),
    ({"reports/a.cc": "for (const double factor : {1.0, 2.0, 5.0, 10.0}) a();\n"}, "round steps"),
    ({"base/axis.cc": "for (const double factor : {1.0, 2.0, 5.0}) a();\n"}, None),
    ({"planners/a.cc": "x ^= 0x9e3779b97f4a7c15U;\n"}, "mixing constant"),
    ({"tests/sim/a.cc": "x *= 0xbf58476d1ce4e5b9ULL;\n"}, "mixing constant"),
    ({"studies/a.cc": "hash *= 1099511628211U;\n"}, "FNV"),
    ({"models/a.cc": 'const char* data = std::getenv("SPILLWAY_DATA");\n'}, "installed data"),
    ({"gui/a.cc": 'const char* a = "✖ out of memory";\n'}, "words of a verdict"),
    ({"sim/replay/verdict_words.cc": 'const char* a = "does not fit: ";\n'}, None),
    ({"validation/a.cc": "double quantile(std::vector<double> values) {\n"}, "a quantile"),
    ({"sim/a.cc": "namespace {\nint run(int a) {\n", "sim/b.cc": "namespace {\nvoid run() {\n"}, "sim/b.cc: run is a name"),
    ({"sim/a.cc": "namespace {\nclass Reader {\n", "sim/b.cc": "namespace {\nstruct Reader final {\n"}, "Reader is a name"),
    ({"sim/a.cc": "namespace {\nconstexpr int a = 1, most = 2;\n", "sim/b.cc": "static int most() {\n"}, "most is a name"),
    ({"sim/a.cc": "namespace {\nint run() {\n", "sim/replay/b.cc": "namespace {\nint run() {\n"}, None),
    ({"sim/a.cc": "namespace {\nusing Json = x::Json;\n", "sim/b.cc": "namespace {\nusing Json = x::Json;\n"}, None),
    ({"sim/a.cc": "namespace {\nusing Json = x::Json;\n", "sim/b.cc": "namespace {\nusing Json = y::Json;\n"}, "Json is"),
    ({"tests/sim/a.cc": "namespace spillway::sim::a {\nnamespace {\nint run() {\n",
      "tests/sim/b.cc": "namespace spillway::sim::b {\nnamespace {\nint run() {\n"}, None),
]


def self_test():
    failed = 0
    for files, wanted in SELF_TESTS:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                    out.write(text)
            breaches = check_tree(root)[2]
        right = not breaches if wanted is None else len(breaches) == 1 and wanted in breaches[0]
        if not right:
            failed += 1
            print(f"wanted {wanted!r}, got {breaches} for {files}")
    # Lowering never raises.
    with tempfile.TemporaryDirectory() as root:
        for path, text in {"scenario/a.cc": JSON_INCLUDE + 'json.at("a");\n', "scenario/b.cc": JSON_INCLUDE +
                           'json.at("a");\njson.at("b");\n', CEILINGS: '{"json_reads": {"scenario/a.cc": 3, "scenario/b.cc": 1}}'
                           }.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        breaches = check_tree(root, True)[2]
        if ceilings_of(root)["json_reads"] != {"scenario/a.cc": 1, "scenario/b.cc": 1} or len(breaches) != 1:
            failed += 1
            print(f"lowering: got {ceilings_of(root)}, {breaches}")
    print(f"{len(SELF_TESTS) + 1 - failed} of {len(SELF_TESTS) + 1} self-tests passed")
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) not in (1, 2) or arguments[1:] not in ([], ["--lower"]):
        print(__doc__, file=sys.stderr)
        return 2
    totals, files, breaches = check_tree(arguments[0], bool(arguments[1:]))
    words = words_of({path: text_of(arguments[0], path) for path in sources(arguments[0], FLOORS)})
    breaches.extend(f"no {kind}'s word was found: WORD_TABLES no longer names its table" for kind in words if not words[kind])
    for breach in breaches:
        print(breach)
    print(f"{files} files, {len(breaches)} breaches; listed: {totals['json_reads']} reads of JSON keys, {totals['words']} words")
    return 1 if breaches or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
