#!/usr/bin/env python3
"""Runs the window under real keys and a real mouse, in an X server of its own.

Skipped (exit code 77) where no X server can be had, or nobody to press its keys; says which.

Usage: real_events.py TEST_PROGRAM [OPTION...]
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
PACKAGES = {"xvfb-run": "xvfb", "xauth": "xauth", "xdotool": "xdotool"}


def main(arguments):
    for program, package in PACKAGES.items():
        if shutil.which(program) is None:
            print(f"skipped: no {program} here; install the Debian package {package}")
            return SKIPPED
    # A desktop of one screen, as large as the largest window that is tested, with the scale and the motion of no
    # desktop's settings.
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("WAYLAND_DISPLAY", "QT_SCALE_FACTOR", "QT_STYLE_OVERRIDE")}
    environment["QT_QPA_PLATFORM"] = "xcb"
    return subprocess.run(["xvfb-run", "-a", "-s", "-screen 0 1920x1080x24", *arguments], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
