#!python
"""Becomes the program that the installed package brings along: its arguments, input, signals and exit code are the
program's. A wheel's script, whose first line pip replaces; make_packages.py puts it there."""
import os
import signal
import sys

# Beside bin/ where pip installed with --target, else where Python looks for packages.
for folder in (os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."), *sys.path):
    program = os.path.join(folder, "spillway/bundle/bin/spillway")
    if os.path.isfile(program):
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and so by what it becomes
            signal.signal(ignored, signal.SIG_DFL)
        os.execv(program, ["spillway", *sys.argv[1:]])
print("spillway: the package spillway is not where Python looks for packages; install its wheel again", file=sys.stderr)
sys.exit(2)
