#!/usr/bin/env python3
"""`spillway gui --screenshot` through the command line, without a display: every view, both themes, twice the density;
and what it says when something is wrong.

Usage: screenshot_test.py SPILLWAY SOURCE_ROOT
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

VIEWS = ["start", "answer", "canvas", "timeline", "memory", "map", "sensitivity", "pareto", "roofline", "pipeline", "compare"]


def size_of(path):
    with open(path, "rb") as picture:
        head = picture.read(24)
    assert head.startswith(b"\x89PNG\r\n\x1a\n"), path
    return struct.unpack(">II", head[16:24])


def check_missing_window(program, folder, environment):
    """Which of build, option, package and installation is missing is said, and what to do."""
    build = os.path.join(folder, "build")
    os.makedirs(os.path.join(build, "cli"))
    os.mkdir(os.path.join(build, "meson-info"))
    copy = shutil.copy(program, os.path.join(build, "cli"))

    def said():
        done = subprocess.run([copy, "gui"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, done.returncode
        return done.stderr

    def write(name, text):
        with open(os.path.join(build, name), "w") as out:
            out.write(text)

    assert "not installed" in said()
    write("build.ninja", "build cli/spillway: cpp_LINKER\n")
    options = "meson-info/intro-buildoptions.json"
    write(options, '[{"name": "gui", "value": "auto"}]')
    assert "install qt6-base-dev" in said()
    write(options, '[{"name": "gui", "value": "disabled"}]')
    assert "-Dgui=auto" in said() and "qt6" not in said()
    write("build.ninja", "build gui/spillway-gui: cpp_LINKER\n")
    assert "not built yet" in said() and "ninja -C" in said() and "qt6" not in said()


def main(program, root):
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    scenario = os.path.join(root, "gui/scenarios/fits-after-one-toggle.json")
    with tempfile.TemporaryDirectory() as folder:
        environment["HOME"] = environment["XDG_CONFIG_HOME"] = environment["XDG_RUNTIME_DIR"] = folder

        def run(*arguments):
            return subprocess.run([program, "gui", *arguments], env=environment, capture_output=True, text=True,
                                  timeout=600)

        for view in VIEWS:
            out = os.path.join(folder, view + ".png")
            done = run("--screenshot", out, "--view", view, "--size", "1280x720", "--theme", "light",
                       *([] if view == "start" else [scenario]))
            assert done.returncode == 0, (view, done.stderr)
            assert size_of(out) == (1280, 720), (view, size_of(out))
        out = os.path.join(folder, "dark.png")
        done = run("--screenshot", out, "--view", "timeline", "--size", "1280x720", "--theme", "dark", "--scale", "2",
                   scenario)
        assert done.returncode == 0, done.stderr
        assert size_of(out) == (2560, 1440), size_of(out)
        done = run("--screenshot", out, "--view", "timeline", "/no/such/scenario.json")
        assert done.returncode == 2 and "/no/such/scenario.json" in done.stderr, (done.returncode, done.stderr)
        done = run("--view", "nonsense")
        assert done.returncode == 2, done.returncode
        check_missing_window(program, folder, environment)
    print(f"{len(VIEWS) + 1} pictures")


if __name__ == "__main__":
    main(*sys.argv[1:3])
