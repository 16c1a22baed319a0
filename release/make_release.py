#!/usr/bin/env python3
"""Puts a build folder's programs, their libraries and data into one folder that runs wherever it is unpacked.

    release/make_release.py BUILD_FOLDER OUTPUT_FOLDER [--window] [--site FOLDER] [--archive FILE.tar.zst]

OUTPUT_FOLDER (which must not exist) becomes what the archive holds: bin/, lib/spillway/ (or as its libdir says: the libraries that are not the
C library's own, the GPU module and the recorder's library), share/, python/, validation/, VERSION. With --window the
window is in it too, with --site the pages that `./spill site` built, as share/doc/spillway/html. The build folder's programs must be built. Libraries are those of this system; NVIDIA's are never
copied: the GPU module finds them at run time. Exit code 2 when something is missing or may not be passed on.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from elf_file import ElfFile, is_elf  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Of the C library itself, which every system has in its own version and which can't be carried along.
C_LIBRARY = re.compile(r"(ld-linux-(?:x86-64|aarch64)|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec|nss_\w+))\.so\.\d+")
NEWEST_GLIBC = (2, 36)  # Debian 12
# Found at run time (hwprofiles/calibrate/cuda_libraries.h).
NVIDIA = re.compile(r"lib(cuda|cublas|cublasLt|cupti|cudart|cudnn\w*|nvidia-ml|nvrtc)\.so\.\d+")
WINDOW_FILES = ["bin/spillway-gui", "share/applications", "share/icons", "share/spillway/start"]
# The window draws by itself on X11, or into a picture without any display.
QT_PLUGINS = ["platforms/libqxcb.so", "platforms/libqoffscreen.so", "imageformats/libqsvg.so", "iconengines/libqsvgicon.so"]
# For systems that have none.
FONTS = [f"/usr/share/fonts/truetype/dejavu/{name}.ttf" for name in ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono")]
# Compiled into the programs, by the Debian package that has its licence.
COMPILED_IN = ["libboost1.74-dev", "libcli11-dev", "libeigen3-dev", "nlohmann-json3-dev", "libstdc++6"]
SCRIPTS = ["gpu_campaign.sh", "campaign", "allocator_checks.py"]


class Refused(Exception):
    pass


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def install(build, root):
    staged = root + ".staged"
    shutil.rmtree(staged, ignore_errors=True)
    try:
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--strip", "--destdir", os.path.abspath(staged))
        found = [folder for folder, folders, _ in os.walk(staged) if "bin" in folders]
        if not found:
            raise Refused(f"{build}: nothing was installed; build it first: ninja -C {build}")
        os.rename(found[0], root)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def library_folder(root):
    """Where the programs of this release look for their libraries, before anywhere else."""
    paths = ElfFile(os.path.join(root, "bin/spillway")).rpath
    if len(paths) != 1 or not paths[0].startswith("$ORIGIN/"):
        raise Refused(f"bin/spillway looks for its libraries in {':'.join(paths) or 'no folder'}, not beside itself")
    folder = os.path.normpath(paths[0].replace("$ORIGIN", os.path.join(root, "bin")))
    os.makedirs(folder, exist_ok=True)
    return folder


def system_libraries():
    """Soname -> file, as the dynamic loader finds it."""
    found = {}
    for line in run("/sbin/ldconfig", "-p").splitlines():
        match = re.match(r"\s+(\S+) \(libc6,(?:x86-64|AArch64)\b[^)]*\) => (\S+)", line)
        if match:
            found.setdefault(match.group(1), match.group(2))
    return found


def elf_files(root):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path) and is_elf(path):
                yield path


def add_libraries(root, libraries):
    """Copies what the programs need, and what that needs; soname -> file it came from."""
    system, copied = system_libraries(), {}
    waiting = list(elf_files(root))
    while waiting:
        path = waiting.pop()
        for name in ElfFile(path).needed:
            if C_LIBRARY.fullmatch(name) or NVIDIA.fullmatch(name) or os.path.exists(os.path.join(libraries, name)):
                continue
            if name not in system:
                raise Refused(f"{path} needs {name}, which is not on this system")
            copied[name] = os.path.realpath(system[name])
            target = os.path.join(libraries, name)
            shutil.copyfile(copied[name], target)
            run("strip", "--strip-unneeded", target)
            waiting.append(target)
    return copied


def add_plugins(root, libraries):
    plugins = run("qmake6", "-query", "QT_INSTALL_PLUGINS").strip()
    target = os.path.join(libraries, "plugins")
    copied = {}
    for name in QT_PLUGINS:
        source = os.path.join(plugins, name)
        if not os.path.exists(source) and not name.startswith("platforms"):
            continue
        os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
        shutil.copyfile(source, os.path.join(target, name))
        copied[name] = source
    with open(os.path.join(root, "bin/qt.conf"), "w", encoding="utf-8") as conf:
        conf.write(f"[Paths]\nPrefix = ..\nPlugins = {os.path.relpath(target, root)}\n")
    return copied


def add_fonts(root):
    folder = os.path.join(root, "share/spillway/fonts")
    os.makedirs(folder, exist_ok=True)
    for path in FONTS:
        if not os.path.exists(path):
            raise Refused(f"{path} is not there: install fonts-dejavu-core")
        shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
    shutil.copyfile(os.path.join(SOURCE, "release/fonts.conf"), os.path.join(folder, "fonts.conf"))


def add_licences(root, files):
    folder = os.path.join(root, "share/doc/spillway/licences")
    os.makedirs(folder, exist_ok=True)
    packages = set(COMPILED_IN)
    for path in files:
        # The package database may know the file by its place before /usr was merged.
        for place in (path, path.removeprefix("/usr")):
            done = subprocess.run(["dpkg-query", "-S", place], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                packages.add(done.stdout.split(":")[0])
                break
        else:
            raise Refused(f"{path} is in no Debian package: its licence is not known")
    common = set()
    for package in sorted(packages):
        licence = f"/usr/share/doc/{package}/copyright"
        if not os.path.exists(licence):
            if package in COMPILED_IN:
                continue
            raise Refused(f"{licence} is not there: {package} may not be passed on without it")
        shutil.copyfile(licence, os.path.join(folder, package + ".txt"))
        with open(licence, encoding="utf-8", errors="replace") as text:
            common.update(re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text.read()))
    for name in sorted(common):
        if os.path.exists(f"/usr/share/common-licenses/{name}"):
            shutil.copyfile(f"/usr/share/common-licenses/{name}", os.path.join(folder, name))


def add_python(root):
    leave = shutil.ignore_patterns("__pycache__", "*.pyc", "tests", "*.egg-info", "build", "results")
    python = os.path.join(SOURCE, "python")
    if os.path.isdir(python):
        shutil.copytree(python, os.path.join(root, "python"), ignore=leave)
    os.makedirs(os.path.join(root, "validation"), exist_ok=True)
    for name in SCRIPTS:
        source = os.path.join(SOURCE, "validation", name)
        if os.path.isdir(source):
            shutil.copytree(source, os.path.join(root, "validation", name),
                            ignore=shutil.ignore_patterns("__pycache__", "*.cc", "*.h", "meson.build"))
        elif os.path.exists(source):
            shutil.copy(source, os.path.join(root, "validation", name))
    shutil.copyfile(os.path.join(SOURCE, "LICENSE"), os.path.join(root, "LICENSE"))


def add_site(root, site):
    if not os.path.exists(os.path.join(site, "index.html")):
        raise Refused(f"{site} has no index.html; build the site first: ./spill site")
    shutil.copytree(site, os.path.join(root, "share/doc/spillway/html"))


def refuse_build_paths(root, build):
    """No file may name the folders that it was made in."""
    folders = {os.path.realpath(SOURCE), os.path.realpath(build)}
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            for path in folders:
                if path.encode() in content:
                    raise Refused(f"{os.path.relpath(os.path.join(folder, name), root)} names {path}, where it was built")


def write_version(root):
    program = os.path.join(root, "bin/spillway")
    with open(os.path.join(root, "VERSION"), "w", encoding="utf-8") as version:
        version.write(run(program, "--version", env={"PATH": "/usr/bin:/bin"}))


def commit_time():
    done = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


def write_archive(root, archive):
    """The same bytes for the same files: sorted names, no owner, the commit's time."""
    unfinished = archive + ".unfinished"
    try:
        run("tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{commit_time()}", "--mode=u+w,go=rX",
            "-I", "zstd -19 -T0 --long=27", "-cf", os.path.abspath(unfinished), "-C", os.path.dirname(os.path.abspath(root)),
            os.path.basename(root))
        os.rename(unfinished, archive)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


def make(build, root, window, site):
    install(build, root)
    for name in ["bin/spillway-mpi"] + ([] if window else WINDOW_FILES):
        path = os.path.join(root, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    if window and not os.path.exists(os.path.join(root, "bin/spillway-gui")):
        raise Refused(f"{build} has no window: install Qt 6 (./spill build says which packages) and build it")
    folder = library_folder(root)
    plugins = add_plugins(root, folder) if window else {}
    libraries = add_libraries(root, folder)
    add_fonts(root)
    add_licences(root, sorted({*libraries.values(), *plugins.values(), *FONTS}))
    add_python(root)
    if site:
        add_site(root, site)
    refuse_build_paths(root, build)
    write_version(root)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD_FOLDER")
    parser.add_argument("root", metavar="OUTPUT_FOLDER")
    parser.add_argument("--window", action="store_true")
    parser.add_argument("--site", metavar="FOLDER")
    parser.add_argument("--archive", metavar="FILE.tar.zst")
    arguments = parser.parse_args()
    if os.path.exists(arguments.root):
        sys.exit(f"make_release.py: {arguments.root} exists already; name another folder, or remove it")
    try:
        make(arguments.build, arguments.root, arguments.window, arguments.site)
        if arguments.archive:
            write_archive(arguments.root, arguments.archive)
    except Refused as error:
        shutil.rmtree(arguments.root, ignore_errors=True)
        print(f"make_release.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
