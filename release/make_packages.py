#!/usr/bin/env python3
"""Packs what make_release.py put into a folder (without the window) for pip and for apt.

    release/make_packages.py FOLDER OUTPUT_FOLDER [--quick]

OUTPUT_FOLDER gets spillway-VERSION-py3-none-manylinux_2_36_x86_64.whl, whose package spillway has the program, its libraries
and data in spillway/bundle, and spillway_VERSION_amd64.deb. The same bytes for the same files. --quick compresses little.
Exit code 2 when something in FOLDER is missing or may not be passed on.
"""
import argparse
import gzip
import hashlib
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from elf_file import ElfFile  # noqa: E402
from make_release import C_LIBRARY, NEWEST_GLIBC, NVIDIA, SOURCE, Refused, commit_time, elf_files, run  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "python"))
from wheel_backend import project, write_wheel  # noqa: E402

WHEEL_TAG = "py3-none-manylinux_{}_{}_x86_64".format(*NEWEST_GLIBC)
# What the wheel's bundle has of the folder: pages and completions are no use within a package.
BUNDLED = ["bin", "lib", "share/spillway", "share/doc/spillway/licences"]
# Where the .deb has what the folder has.
DEB_PLACES = {"bin": "usr/bin", "lib": "usr/lib", "share": "usr/share", "python/spillway": "usr/lib/python3/dist-packages/spillway"}
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: spillway

Files: *
Copyright: the contributors of spillway
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0, and here in LICENSE.
Comment: /usr/lib/spillway has libraries of Debian packages, and the programs have some compiled in; licences/ has the
 copyright of each by its package.
"""
DESCRIPTION = """\
simulator and capacity planner for memory-limited LLM training
 Says what happens when a model that does not fit is trained: does it fit, how
 fast is a step, what binds, and what would help. Replays a training step in a
 discrete-event simulation of a real machine.
"""


def version_of(root):
    with open(os.path.join(root, "VERSION"), encoding="utf-8") as file:
        version = re.match(r"spillway (\d+\.\d+\.\d+)\b", file.read())[1]
    if version != project("version"):
        raise Refused(f"the program's version is {version}, that of python/pyproject.toml {project('version')}")
    return version


def files_of(root, part):
    """Paths from root of the files in a part of it, sorted."""
    return sorted(os.path.relpath(os.path.join(folder, name), root)
                  for folder, _, names in os.walk(os.path.join(root, part)) for name in names
                  if not name.endswith(".pyc"))


def needed_glibc(root):
    """The C library's version that all programs are content with. Refuses what needs a library that isn't there."""
    newest, carried = (0,), {os.path.basename(path) for path in elf_files(root)}
    for path in elf_files(root):
        file = ElfFile(path)
        newest = max(newest, file.newest("GLIBC") or newest)
        for name in file.needed:
            if not C_LIBRARY.fullmatch(name) and not NVIDIA.fullmatch(name) and name not in carried:
                raise Refused(f"{path} needs {name}, which is not carried along")
    if newest > NEWEST_GLIBC:
        raise Refused(f"{root} needs glibc {'.'.join(map(str, newest))}; releases run with {'.'.join(map(str, NEWEST_GLIBC))}")
    return ".".join(map(str, newest))


def make_wheel(root, output, quick):
    info, files, programs = f"spillway-{version_of(root)}", {}, set()

    def add(place, path):
        with open(path, "rb") as file:
            files[place] = file.read()
        if os.stat(path).st_mode & 0o111:
            programs.add(place)

    for path in files_of(root, "python/spillway"):
        add(path.removeprefix("python/"), os.path.join(root, path))
    for part in BUNDLED:
        for path in files_of(root, part):
            add(f"spillway/bundle/{path}", os.path.join(root, path))
    add(f"{info}.dist-info/LICENSE", os.path.join(root, "LICENSE"))
    add(f"{info}.data/scripts/spillway", os.path.join(SOURCE, "release/wheel_script.py"))
    programs.add(f"{info}.data/scripts/spillway")
    return write_wheel(output, dict(sorted(files.items())), WHEEL_TAG, programs, "License-File: LICENSE\n",
                       1 if quick else None)


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def stage_deb(root, staged, glibc):
    """The tree that dpkg-deb packs: the files, then what is said of them in DEBIAN."""
    for part, place in DEB_PLACES.items():
        shutil.copytree(os.path.join(root, part), os.path.join(staged, place), ignore=shutil.ignore_patterns("*.pyc", "__pycache__"))
    for path in files_of(staged, "usr/share/man"):
        with open(os.path.join(staged, path), "rb") as page, open(os.path.join(staged, path + ".gz"), "wb") as packed:
            packed.write(gzip.compress(page.read(), mtime=0))
        os.remove(os.path.join(staged, path))
    write_text(os.path.join(staged, "usr/share/doc/spillway/copyright"), COPYRIGHT)
    paths = files_of(staged, "")
    sums, total = [], 0
    for path in paths:
        with open(os.path.join(staged, path), "rb") as file:
            content = file.read()
        sums.append(f"{hashlib.md5(content).hexdigest()}  {path}\n")
        total += -(-len(content) // 1024)
    write_text(os.path.join(staged, "DEBIAN/md5sums"), "".join(sums))
    write_text(os.path.join(staged, "DEBIAN/control"),
               f"Package: spillway\nVersion: {version_of(root)}\nArchitecture: amd64\n"
               f"Maintainer: the contributors of spillway\nSection: science\nPriority: optional\n"
               f"Installed-Size: {total}\nDepends: libc6 (>= {glibc})\nSuggests: python3 (>= 3.9)\n"
               f"Description: {DESCRIPTION}")
    for folder, _, names in os.walk(staged):
        os.chmod(folder, 0o755)
        for name in names:
            path = os.path.join(folder, name)
            os.chmod(path, 0o755 if os.stat(path).st_mode & 0o111 else 0o644)


def make_deb(root, output, glibc, quick):
    name, time = f"spillway_{version_of(root)}_amd64.deb", commit_time()
    with tempfile.TemporaryDirectory(dir=output) as folder:
        stage_deb(root, os.path.join(folder, "spillway"), glibc)
        # Files are sorted by dpkg-deb; times of its own are SOURCE_DATE_EPOCH.
        for where, _, names in os.walk(folder):
            for path in [where, *(os.path.join(where, name) for name in names)]:
                os.utime(path, (time, time))
        run("dpkg-deb", "--root-owner-group", *(["-Zgzip", "-z1"] if quick else ["-Zxz"]), "--build",
            os.path.join(folder, "spillway"), os.path.join(output, name),
            env={**os.environ, "SOURCE_DATE_EPOCH": str(time)})
    return name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", metavar="FOLDER")
    parser.add_argument("output", metavar="OUTPUT_FOLDER")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    try:
        glibc = needed_glibc(arguments.root)
        for name in (make_wheel(arguments.root, arguments.output, arguments.quick),
                     make_deb(arguments.root, arguments.output, glibc, arguments.quick)):
            path = os.path.join(arguments.output, name)
            print(f"{path}: {os.path.getsize(path)} bytes")
    except (Refused, OSError) as error:
        print(f"make_packages.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
