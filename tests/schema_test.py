"""Holds a published JSON Schema to the bundled files and to documents it must refuse; for the schema checks beside it."""
import json
import pathlib
import sys


def each_word(properties, path=()):
    """Yields (path, word) for every word of every list of a schema's properties, inside objects too."""
    for key, value in properties.items():
        for form in value.get("anyOf", [value]):
            for word in form.get("enum", ()):
                yield (*path, key), word
        yield from each_word(value.get("properties", {}), (*path, key))


def with_value(document, path, value):
    """A copy of the document with a value at the path."""
    if not path:
        return value
    return {**document, path[0]: with_value(document.get(path[0], {}), path[1:], value)}


def check(schema_file, pattern, sound, broken, further=lambda document: (), decisive=()):
    """Exits 0 when every file of `pattern` (below the source root, argv[1]) and `sound` are valid and every
    document of `broken(sound)` (pairs of what is wrong and the document) is refused, 1 otherwise, 77 without
    python3-jsonschema. So are `sound`'s copies with each word of each list, but of the keys in `decisive`, which
    decide what else there must be. `further` yields what else is wrong with a file."""
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed: skipped")
        sys.exit(77)
    schema = json.loads((root() / "docs/schemas" / schema_file).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted(root().glob(pattern))
    problems = []
    for path in files:
        document = json.loads(path.read_text())
        for error in validator.iter_errors(document):
            problems.append(f"{path.relative_to(root())}: {'/'.join(map(str, error.path))}: {error.message[:300]}")
        problems += [f"{path.relative_to(root())}: {what}" for what in further(document)]
    if not validator.is_valid(sound):
        problems.append(f"{schema_file} refuses the sound document")
    for place, word in each_word(schema.get("properties", {})):
        if place[-1] not in decisive and not validator.is_valid(with_value(sound, place, word)):
            problems.append(f"{schema_file} refuses {'.'.join(place)}={word}")
    problems += [f"{schema_file} accepts: {what}" for what, document in broken(sound) if validator.is_valid(document)]
    print(*problems, f"{len(files)} files, {len(problems)} problems", sep="\n")
    sys.exit(1 if problems or not files else 0)


def root():
    return pathlib.Path(sys.argv[1])


def load(file):
    return json.loads((root() / file).read_text())
