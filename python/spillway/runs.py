"""Scenarios and sweeps through the program."""
import contextlib
import json
import os
import tempfile

from .errors import InputError, ProgramError, SpillwayError
from .program import call, find_program, path_word
from .results import Result
from .shards import folder_of, run_shards


@contextlib.contextmanager
def _as_file(what, beside, noun):
    """The path of a scenario or sweep: its own, or that of a file written of a dict. `beside`: the folder that relative
    paths within the dict are read from."""
    if not isinstance(what, dict):
        yield path_word(what)
        return
    try:
        text = json.dumps(what)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {noun} isn't JSON: {error}") from None
    try:
        handle, path = tempfile.mkstemp(prefix=".spillway-", suffix=".json", dir=beside)
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"the {noun} can't be written into {beside!r}: {error}; give beside= a folder that can be "
                         "written to") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    except SpillwayError as error:
        error.args = (str(error).replace(path, f"the {noun}"), *error.args[1:])
        raise
    finally:
        os.unlink(path)


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.isdecimal():  # "4090" is a name
        return json.dumps(value)
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _settings(settings):
    # model__sequence=4096 is model.sequence, as Python's keywords have no dots.
    for key, value in settings.items():
        yield f"--set={key.replace('__', '.')}={_text(value)}"


def _answer(arguments, program):
    out, words, code = call(*arguments, "--format", "json", program=program)
    try:
        document = json.loads(out)
    except ValueError:
        raise ProgramError("spillway printed no JSON", code, words) from None
    return Result(document, code, words.splitlines())


def run(scenario, *, program=None, beside=None, reserve=None, **settings):
    """Replays a scenario (`spillway run`): a path (also of a trace) or a dict of its JSON.

    settings  changes, as with --set: `model__sequence=4096` or `**{"model.sequence": 4096}`
    beside    folder that relative paths in a dict are read from (the current one)
    reserve   device memory kept free, as with --keep-free: "2GiB", "8%"
    Returns a Result; `fits` is True, False or None (unknown). Raises InputError with the program's message.
    """
    with _as_file(scenario, beside or os.getcwd(), "scenario") as path:
        arguments = ["run", path, *_settings(settings)]
        if reserve is not None:
            arguments.append(f"--keep-free={reserve}")
        return _answer(arguments, program)


def sweep(space, *, output=None, resume=False, jobs=None, shard=None, all_points=False, database=None, executor=None,
          shards=None, stores=None, tries=3, program=None, beside=None):
    """Searches a space of scenarios (`spillway sweep`): a path of a sweep file or a dict of its JSON. `output` keeps
    what is found in a store, `resume` goes on with one; `database` is an SQLite database to write every replayed point into:
    other tables in it stay, and a file that is none is refused.

    executor  of concurrent.futures, or anything with its submit(): a ProcessPoolExecutor or ThreadPoolExecutor here, a
              distributed.Client of Dask, a ray.util or mpi4py.futures executor. Each worker runs the program on shards;
              the program and the files that the sweep names are found at the same paths by all
    shards    parts, of which the executor gets one at a time (16)
    stores    folder that keeps the shards' stores, on a file system that all workers see; a sweep that was interrupted
              goes on with it. None: a temporary folder, for workers on this machine
    tries     how often a shard that ends badly is given to the executor
    The answer is that of an undivided run, whatever the executor. Returns a Result."""
    with _as_file(space, beside or os.getcwd(), "sweep") as path:
        more = ["--all"] if all_points else []
        more += ["--database", path_word(database)] if database is not None else []
        if executor is None:
            if shards is not None or stores is not None:
                raise InputError("shards and stores go with an executor; give one, or shard= for one part alone")
            arguments = ["sweep", path]
            arguments += ["--output", path_word(output)] if output is not None else []
            arguments += [f"{flag}={value}" for flag, value in (("--jobs", jobs), ("--shard", shard))
                          if value is not None]
            arguments += ["--resume"] if resume else []
            return _answer(arguments + more, program)
        if shard is not None or resume:
            raise InputError("shard and resume don't go with an executor; stores= keeps what was done")
        with folder_of(stores) as folder:
            names = run_shards(executor, find_program(program), os.path.abspath(path), 16 if shards is None else shards,
                               os.path.abspath(folder), jobs or 1, tries)
            kept = ["--output", path_word(output)] if output is not None else []
            return _answer(["merge", *names, *kept, *more], program)


def export(scenario, target="pytorch", *, program=None, beside=None, **settings):
    """The text that `spillway export SCENARIO --for TARGET` makes; of "pytorch": the fates of a module plan, parsed."""
    with _as_file(scenario, beside or os.getcwd(), "scenario") as path:
        answer = _answer(["export", path, f"--for={target}", *_settings(settings)], program)
    return json.loads(answer["text"]) if target == "pytorch" else answer["text"]
