"""Finds the program spillway and calls it."""
import os
import re
import shutil
import subprocess

from .errors import InputError, NotFound, ProgramError

ANSWER_IS_NO = 1  # exit codes of the program
BAD_INPUT = 2
NOT_KNOWN = 4

# Where the program is, seen from a folder above this package: a checkout's build, a release's programs.
_BESIDE = ("build/cli/spillway", "bin/spillway", "spillway")
# Of a wheel that brings its program along (release/make_packages.py).
_BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle/bin/spillway")


def _is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_program(program=None):
    """The path of the program: `program`, else $SPILLWAY, else the one within this package, else on PATH, else beside the
    checkout or release that this package lies in. Raises NotFound with the places that were tried."""
    for named, source in ((program, "the argument"), (os.environ.get("SPILLWAY"), "$SPILLWAY")):
        if not named:
            continue
        found = shutil.which(os.fspath(named))
        if found is None:
            raise NotFound(f"{named} ({source}) is no program that can be run; name spillway's program")
        return found
    if _is_program(_BUNDLED):
        return _BUNDLED
    found = shutil.which("spillway")
    if found:
        return found
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(5):
        folder = os.path.dirname(folder)
        for beside in _BESIDE:
            if _is_program(os.path.join(folder, beside)):
                return os.path.join(folder, beside)
    raise NotFound("the program spillway is neither on PATH nor beside this package; set SPILLWAY to its path, or pass "
                   "program=")


def path_word(path):
    """A path as a word of the program's that is no option, whatever the path begins with."""
    try:
        word = os.fsdecode(path)
    except TypeError as error:
        raise InputError(f"no path: {error}") from None
    return os.path.join(".", word) if word.startswith("-") else word


def _sentence(words):
    """The program's error and its remedy as one line."""
    error = re.search(r"^error: (.*)$", words, re.MULTILINE)
    remedy = re.search(r"^\s*remedy: (.*)$", words, re.MULTILINE)
    if error is None:
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        return lines[-1] if lines else "no message"
    return error.group(1) + (f"; remedy: {remedy.group(1)}" if remedy else "")


def call(*arguments, program=None, answers=(0, ANSWER_IS_NO, NOT_KNOWN)):
    """Runs the program and returns (stdout, stderr, exit code). Exit codes that aren't `answers` are errors: InputError
    for bad input, ProgramError otherwise, each with the program's own words on one line."""
    path = find_program(program)
    environment = dict(os.environ, NO_COLOR="1")
    try:
        done = subprocess.run([path, *map(os.fspath, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              env=environment, check=False)
    except (OSError, TypeError, ValueError) as error:  # no path, a zero byte in one, more words than a command may have
        raise InputError(f"the program can't be called so: {error}; give paths and settings that a command line can "
                         "hold") from None
    out, words = done.stdout.decode(), done.stderr.decode(errors="replace")
    if done.returncode in answers:
        return out, words, done.returncode
    if done.returncode == BAD_INPUT:
        raise InputError(_sentence(words))
    raise ProgramError(f"spillway ended with status {done.returncode}: {_sentence(words)}", done.returncode, words)
