#!/usr/bin/env python3
"""Holds docs/internals/licences.md to what the built programs need (Debian 12 only).

The libraries are those that `readelf -d` says a program needs, by the Debian package that each is in, and those
whose headers our sources include. What they are for and their licences are in LIBRARIES below; a library, a package
or a header that is not there is an error that names it, and so is a library there that nothing needs.
Usage: licences.py ROOT [--absent LIBRARY]... PROGRAM...   compares; exit 1 and the difference where they are not equal
       licences.py --self-test
--absent: an optional library that this build was made without. What the page says of it, and of programs that are not
among the PROGRAMs, is left as it is. With SPILLWAY_BLESS=1 the page is written anew, and the test is skipped (77).
"""
import difflib
import os
import re
import subprocess
import sys

PAGE = "docs/internals/licences.md"
SKIPPED = 77

# Name on the page -> (packages it is in, headers that are its, what for, SPDX licence). Packages are those of Debian's
# shared libraries; the CUDA toolkit comes from NVIDIA, under other names on each system, and is known by its sonames.
LIBRARIES = {
    "fmt": (["libfmt9"], r"fmt/", "text output", "MIT"),
    "spdlog": (["libspdlog1.10"], r"spdlog/", "--verbose", "MIT"),
    "nlohmann/json": ([], r"nlohmann/", "configuration, results", "MIT"),
    "CLI11": ([], r"CLI/", "command line", "BSD-3-Clause"),
    "zlib": (["zlib1g"], r"zlib\.h", "compressed files", "Zlib"),
    "Zstandard": (["libzstd1"], r"zstd(_errors)?\.h", "compressed files", "BSD-3-Clause OR GPL-2.0-only"),
    "SQLite": (["libsqlite3-0"], r"sqlite3\.h", "Nsight Systems exports", "blessing (public domain)"),
    "protobuf": (["libprotobuf-lite32"], r"google/protobuf/", "Chakra and Perfetto traces", "BSD-3-Clause"),
    "Boost": ([], r"boost/(container|algorithm/string)/", "small vectors, letter case (headers)", "BSL-1.0"),
    "Boost.MPI": (["libboost-mpi1.74.0", "libboost-serialization1.74.0"], r"boost/(mpi|serialization)", "sweeps under MPI",
                  "BSL-1.0"),
    "Open MPI": (["libopenmpi3"], None, "sweeps under MPI", "BSD-3-Clause"),
    "Eigen": ([], r"Eigen/", "fits, reference kernels (headers)", "MPL-2.0"),
    "oneTBB": (["libtbb12"], r"(oneapi/)?tbb/", "threads", "Apache-2.0"),
    "yaml-cpp": (["libyaml-cpp0.7"], r"yaml-cpp/", "launch files in YAML", "MIT"),
    "toml++": (["libtomlplusplus3"], r"toml\+\+/", "launch files in TOML", "MIT"),
    "muParser": (["libmuparser2v5"], r"muParser\.h", "expressions in sweeps", "BSD-2-Clause"),
    "cairo": (["libcairo2"], r"cairo-pdf\.h", "reports as PDF", "LGPL-2.1-only OR MPL-1.1"),
    "Pango": (["libpango-1.0-0", "libpangocairo-1.0-0"], r"pango/", "text of PDF reports", "LGPL-2.0-or-later"),
    "GLib": (["libglib2.0-0"], None, "what Pango's objects are", "LGPL-2.1-or-later"),
    "libxlsxwriter": (["libxlsxwriter4"], r"xlsxwriter\.h", "reports as spreadsheets", "BSD-2-Clause"),
    "liburing": (["liburing2"], r"liburing\.h", "drives, through io_uring", "MIT OR LGPL-2.1-or-later"),
    "hwloc": (["libhwloc15"], r"hwloc\.h", "NUMA nodes of devices", "BSD-3-Clause"),
    "jemalloc": (["libjemalloc2"], None, "allocator of the programs", "BSD-2-Clause"),
    "Qt": (["libqt6core6", "libqt6gui6", "libqt6widgets6"], r"Q[A-Z]\w+$", "the window",
           "LGPL-3.0-only OR GPL-2.0-or-later"),
    "CUDA toolkit": (["cuBLASLt", "CUPTI"], r"(cu[a-z]+(_[a-z_]+)?|cublasLt|mma)\.h(pp)?$",
                     "GPUs measured, recorded and driven", "NVIDIA CUDA Toolkit EULA (not free software)"),
    "GNU C++ library": (["libstdc++6", "libgcc-s1"], r"([a-z_0-9]+|cxxabi\.h|[a-z]mmintrin\.h)$", "language",
                        "GPL-3.0-or-later WITH GCC-exception-3.1"),
    "GNU C library": (["libc6"], r"(sys/|linux/|(unistd|fcntl|fnmatch|dlfcn|poll|pthread|signal|spawn|stdlib|string)\.h)", "language, system",
                      "LGPL-2.1-or-later"),
    "GoogleTest": ([], r"(gtest|gmock)/", "tests (not installed)", "BSD-3-Clause"),
    "Google Benchmark": ([], r"benchmark/", "benchmarks (not installed)", "Apache-2.0"),
    "simdjson": ([], r"simdjson\.h", "comparison under bench/peers (not installed)", "Apache-2.0"),
    "SimGrid": ([], r"simgrid/", "comparison under bench/peers (not installed)", "LGPL-2.1-only"),
}
HEADERS_ALONE = "headers"  # stands where programs stand, for what no program links
PROGRAMS = {"spillway": "spillway", "spillway-mpi": "spillway-mpi", "spillway-gui": "spillway-gui",
            "libspillway_pdf.so": "PDF module", "libspillway_xlsx.so": "spreadsheet module",
            "libspillway_cuda.so": "GPU module", "libspillway_inject.so": "recorder"}
CUDA = {"libcublasLt": "cuBLASLt", "libcupti": "CUPTI"}

INTRODUCTION = """# Licences

spillway is Apache-2.0 (`LICENSE`); its sources contain no code of the libraries below. The table is made by
`docs/licences.py` from what the built programs need and what the sources include; a test compares. Libraries that are
headers alone are compiled into the programs, and the CUDA runtime into the GPU module.

`spillway` is the program, `spillway-mpi` what `spillway sweep` becomes under mpirun, `spillway-gui` the window. The
modules for PDF and spreadsheets (`libspillway_pdf.so`, `libspillway_xlsx.so`) are files apart, loaded when asked for. The GPU
module (`libspillway_cuda.so`) and the recorder's library (`libspillway_inject.so`) are files apart, built where there is
a CUDA toolkit and loaded when asked for: no program links them. Libraries that these libraries need in turn have their
licences in their packages (`/usr/share/doc/PACKAGE/copyright`).

| library | used for | licence | Debian packages | needed by |
|---|---|---|---|---|
"""
NOTES = """
NVIDIA's NVML, cuFile and, for the recorder, CUPTI are looked for and loaded at run time; nothing of them is linked.
Releases (`./spill release`) carry none of NVIDIA's libraries, and the licences of those that they carry in
`share/doc/spillway/licences`.

`spillway-gui` links Qt, LGPL-3, dynamically: it is Apache-2.0 itself, and Qt under it may be replaced by another build.
The other programs link nothing of Qt; nothing is linked that is under the GPL without an exception.

Hardware figures are facts from vendors' public datasheets; each value names its source in its profile. The capture under
`traces/data/gpt2-tiny-cpu` was recorded for this project and has its licence.
"""


class Unknown(Exception):
    pass


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sonames_of(program):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", program))


def packages_of(sonames):
    """Soname -> Debian package, of the libraries that a program finds without being told where."""
    ours = {soname: title for soname in sonames for stem, title in CUDA.items() if soname.startswith(stem)}
    theirs = sorted(set(sonames) - set(ours) - {name for name in sonames if name.startswith("ld-linux")})
    found = subprocess.run(["dpkg-query", "-S"] + ["*/" + soname for soname in theirs], capture_output=True, text=True)
    for line in found.stdout.splitlines():
        package, path = line.split(": ", 1)
        if re.match(r"(/usr)?/lib/([^/]+-linux-[^/]+/)?[^/]+$", path):
            ours[os.path.basename(path)] = package.split(":")[0]
    for soname in theirs:
        if soname not in ours:
            raise Unknown(f"no Debian package has {soname}")
    return ours


def library_of_package(package):
    for name, (packages, _, _, _) in LIBRARIES.items():
        if package in packages:
            return name
    raise Unknown(f"package {package} is not in the table of {__file__}: add its library, use and licence")


def library_of_header(header):
    for name, (_, pattern, _, _) in LIBRARIES.items():
        if pattern and re.match(pattern, header):
            return name
    raise Unknown(f"<{header}> belongs to no library in the table of {__file__}: add it, with use and licence")


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")))
        for name in sorted(names):
            if name.endswith((".h", ".cc", ".cu", ".cuh")):
                yield os.path.join(folder, name)


def included(root):
    """The libraries whose headers our sources include."""
    libraries = set()
    for path in sources(root):
        with open(path, encoding="utf-8") as source:
            for header in re.findall(r"^\s*#\s*include\s*<([^>]+)>", source.read(), re.MULTILINE):
                try:
                    libraries.add(library_of_header(header))
                except Unknown as error:
                    raise Unknown(f"{os.path.relpath(path, root)}: {error}") from None
    return libraries


def needs_of(programs):
    """Program's title -> packages that it needs."""
    sonames = {PROGRAMS[os.path.basename(program)]: sonames_of(program) for program in programs}
    packages = packages_of({soname for names in sonames.values() for soname in names})
    return {title: {packages[name] for name in names if name in packages} for title, names in sonames.items()}


def read_page(text):
    """Program's title -> packages, as the page has them."""
    needs = {}
    for row in re.findall(r"^\| (.+) \|$", text, re.MULTILINE):
        cells = row.split(" | ")
        if len(cells) != 5 or cells[0] not in LIBRARIES or cells[4] == HEADERS_ALONE:
            continue
        for program in cells[4].split(", "):
            needs.setdefault(program, set()).update(cells[3].split(", "))
    return needs


def page_of(needs, headers):
    users = {}  # library -> (packages, programs)
    for program in PROGRAMS.values():
        for package in needs.get(program, ()):
            packages, programs = users.setdefault(library_of_package(package), (set(), []))
            packages.add(package)
            if program not in programs:
                programs.append(program)
    unused = [name for name in LIBRARIES if name not in users and name not in headers]
    if unused:
        raise Unknown(f"no program and no source needs {', '.join(unused)}: drop it from the table of {__file__}")
    rows = ""
    for name, (_, _, use, licence) in LIBRARIES.items():
        packages, programs = users.get(name, (["-"], [HEADERS_ALONE]))
        rows += f"| {name} | {use} | {licence} | {', '.join(sorted(packages))} | {', '.join(programs)} |\n"
    return INTRODUCTION + rows + NOTES


def kept(measured, page, absent):
    """What was measured, with the page's word on programs that are not built and libraries that this build lacks."""
    needs = {**page, **measured}
    for program in measured:
        lacked = {package for package in page.get(program, ()) if library_of_package(package) in absent}
        needs[program] = measured[program] | lacked
    return needs


def check(root, absent, programs):
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as page:
        text = page.read()
    wanted = page_of(kept(needs_of(programs), read_page(text), absent), included(root))
    if os.environ.get("SPILLWAY_BLESS") == "1":
        with open(path, "w", encoding="utf-8") as page:
            page.write(wanted)
        print(f"{PAGE} written from {len(programs)} programs: not compared")
        return SKIPPED
    difference = list(difflib.unified_diff(text.splitlines(), wanted.splitlines(), PAGE, "what is needed", lineterm=""))
    print("\n".join(difference) if difference else f"{PAGE} says what {len(programs)} programs need")
    return 1 if difference else 0


def self_test():
    base = {"libfmt9", "libc6"}
    headers = set(LIBRARIES)
    page = page_of({"spillway": base, "spillway-gui": base | {"libqt6widgets6"}}, headers)
    refused = []
    for attempt in (lambda: library_of_package("libnone14"), lambda: library_of_header("none/none.h"),
                    lambda: page_of({"spillway": base}, set()), lambda: packages_of(["libnone_of_them.so.1"])):
        try:
            attempt()
        except Unknown as error:
            refused.append(str(error))
    checks = {
        "a page is read as it was written": read_page(page) == {"spillway": base, "spillway-gui": base | {"libqt6widgets6"}},
        "what isn't built is kept": kept({"spillway": base}, read_page(page), [])["spillway-gui"] == base | {"libqt6widgets6"},
        "what a build lacks is kept": kept({"spillway": {"libc6"}}, read_page(page), ["fmt"])["spillway"] == base,
        "what is needed no more goes": kept({"spillway": {"libc6"}}, read_page(page), [])["spillway"] == {"libc6"},
        "the unknown is named": len(refused) == 4 and "libnone14" in refused[0] and "<none/none.h>" in refused[1]
                                and "nlohmann/json" in refused[2] and "libnone_of_them.so.1" in refused[3],
        "nothing is under the GPL alone": not [name for name, (_, _, _, licence) in LIBRARIES.items()
                                               if licence.startswith("GPL") and "exception" not in licence],
    }
    for what, right in checks.items():
        print(f"{'ok' if right else 'FAILED'}: {what}")
    return 0 if all(checks.values()) else 1


def main(arguments):
    with open("/etc/os-release", encoding="utf-8") as release:
        if 'VERSION_ID="12"' not in release.read().split() or not os.path.exists("/usr/bin/dpkg-query"):
            print("not Debian 12, whose packages the page names")
            return SKIPPED
    if arguments == ["--self-test"]:
        return self_test()
    absent, programs = [], []
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--absent":
            absent.append(next(rest))
        else:
            programs.append(argument)
    if not programs or any(name not in LIBRARIES for name in absent):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return check(arguments[0], absent, programs)
    except Unknown as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
