#!/usr/bin/env python3
"""What pip and apt get: the wheel and the .deb, read, installed and run without an environment and a network.

usage: packages_test.py SPILLWAY SOURCE_FOLDER            of that program with its data, packed here
       packages_test.py --packages WHEEL DEB --chroot ROOT  of a release, in another system as root
"""
import base64
import csv
import email
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../release"))
import make_packages  # noqa: E402
import make_release  # noqa: E402
from elf_file import ElfFile  # noqa: E402

SKIPPED = 77  # meson's word for it
NEEDED = {"pip": "python3-pip", "ensurepip": "python3-venv"}
PROGRAM = SOURCE = WHEEL = DEB = CHROOT = None
if sys.argv[1] == "--packages":
    WHEEL, DEB, CHROOT = (os.path.abspath(sys.argv[at]) for at in (2, 3, 5))
else:
    PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

DATA = {"hwprofiles/data": "hwprofiles", "models/data": "models", "models/times": "times", "cli/scenarios": "examples/scenarios",
        "hwprofiles/prices.json": "prices.json"}
SCENARIO = "share/spillway/examples/scenarios/gpt2-xl-1k-h100.json"
FROM_PYTHON = f"""
import os, spillway
program = spillway.find_program()
assert program == os.path.join(os.path.dirname(spillway.__file__), "bundle/bin/spillway"), program
print(spillway.run(os.path.join(os.path.dirname(program), "..", "{SCENARIO}")).verdict)
"""


def run(*command, code=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)
    if done.returncode != code:
        raise AssertionError(f"{command}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout


def stage(root, program):
    """A release's folder in small: a program, the libraries it needs, and some of its data."""
    os.makedirs(os.path.join(root, "bin"))
    target = os.path.join(root, "bin/spillway")
    run("strip", "-o", target, program)
    placeholder, = ElfFile(target).rpath  # of a program that isn't installed yet; as long as what replaces it
    with open(target, "rb") as file:
        content = file.read()
    rpath = "$ORIGIN/../lib/spillway".ljust(len(placeholder), "\0").encode()
    with open(target, "wb") as file:
        file.write(content.replace(placeholder.encode(), rpath))
    make_release.add_libraries(root, make_release.library_folder(root))
    make_release.add_licences(root, [])
    make_release.add_python(root)
    for source, place in DATA.items():
        source, place = os.path.join(SOURCE, source), os.path.join(root, "share/spillway", place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, place)
    manual = os.path.join(root, "share/man/man1/spillway.1")
    completion = os.path.join(root, "share/bash-completion/completions/spillway.bash")
    for path, words in ((manual, ["manual"]), (completion, ["completion", "bash"])):
        make_packages.write_text(path, run(program, *words))
    make_release.write_version(root)


def stage_shell(root):
    """The smallest folder that is packed, with a shell for a program, which tells what it was started with."""
    shutil.copytree(os.path.join(SOURCE, "python/spillway"), os.path.join(root, "python/spillway"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("bin", "lib/spillway", "share/spillway", "share/doc/spillway/licences"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy("/bin/dash", os.path.join(root, "bin/spillway"))
    for name, text in (("LICENSE", "free\n"), ("VERSION", f"spillway {make_packages.project('version')} (commit unknown)\n"),
                       ("share/man/man1/spillway.1", ".TH\n")):
        make_packages.write_text(os.path.join(root, name), text)


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=os.path.join(CHROOT, "tmp") if CHROOT else None)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.packages = os.path.join(folder.name, "packages")
        os.makedirs(cls.packages)
        if CHROOT:
            for path in (WHEEL, DEB):
                shutil.copy(path, cls.packages)
        else:
            root = os.path.join(folder.name, "small")
            stage(root, PROGRAM)
            run(sys.executable, make_packages.__file__, root, cls.packages, "--quick")
        deb, wheel = sorted(os.listdir(cls.packages), key=lambda name: name.endswith(".whl"))
        cls.deb, cls.wheel = os.path.join(cls.packages, deb), os.path.join(cls.packages, wheel)
        cls.version = wheel.split("-")[1]
        os.makedirs(os.path.join(folder.name, "work"))

    def inside(self, path):
        return path[len(CHROOT):] if CHROOT else path

    def start(self, *command, code=0, **variables):
        """A command with nothing of this environment and without a network, in the other system where there is one."""
        work = os.path.join(self.folder, "work")
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.inside(work), "LC_ALL": "C", **variables}
        command = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]
        if CHROOT:
            command = ["unshare", "-n", "-m", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', CHROOT,
                       "sh", "-c", 'cd "$0" && exec "$@"', self.inside(work), *command]
        return run(*command, code=code, cwd=work)

    def check_program(self, program, data):
        """It says its version, knows its machines, and runs a scenario that it has."""
        said = self.start(program, "--version")
        self.assertTrue(said.startswith(f"spillway {self.version} (commit "), said)
        if PROGRAM:
            self.assertEqual(said, run(PROGRAM, "--version"))
        self.assertIn("h100-80gb-1gpu", self.start(program, "list", "machines"))
        answer = json.loads(self.start(program, "run", os.path.join(data, SCENARIO), "--format", "json"))
        self.assertIs(answer["fits"], True)
        self.start(program, "run", os.path.join(data, SCENARIO), "--set", "model.micro_batch=64", code=1)
        self.start(program, "run", "nowhere.json", code=2)

    def test_wheel_says_what_it_has(self):
        info = f"spillway-{self.version}.dist-info"
        self.assertEqual(os.path.basename(self.wheel), f"spillway-{self.version}-py3-none-manylinux_2_36_x86_64.whl")
        with zipfile.ZipFile(self.wheel) as wheel:
            files = {entry.filename: wheel.read(entry) for entry in wheel.infolist()}
            modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()}
            self.assertEqual({entry.date_time for entry in wheel.infolist()}, {(2020, 1, 1, 0, 0, 0)})
        metadata, tags = (email.message_from_bytes(files[f"{info}/{name}"]) for name in ("METADATA", "WHEEL"))
        self.assertEqual((metadata["Name"], metadata["Version"], metadata["License-File"]), ("spillway", self.version, "LICENSE"))
        self.assertEqual((tags["Root-Is-Purelib"], tags["Tag"]), ("false", "py3-none-manylinux_2_36_x86_64"))
        script = f"spillway-{self.version}.data/scripts/spillway"
        for name in ("spillway/__init__.py", "spillway/torch/__init__.py", f"spillway/bundle/{SCENARIO}", script, f"{info}/LICENSE",
                     "spillway/bundle/bin/spillway", "spillway/bundle/lib/spillway/libstdc++.so.6",
                     "spillway/bundle/share/doc/spillway/licences/libstdc++6.txt"):
            self.assertIn(name, files)
        self.assertEqual((modes["spillway/bundle/bin/spillway"], modes[script], modes["spillway/__init__.py"]), (0o755, 0o755, 0o644))
        self.assertTrue(files[script].startswith(b"#!python\n"))
        self.assertFalse([name for name in files if name.endswith(".pyc")])
        rows = list(csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())))
        self.assertEqual([name for name, _, _ in rows], list(files))
        for name, digest, size in rows[:-1]:
            wanted = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode().rstrip("=")
            self.assertEqual((digest, int(size)), (f"sha256={wanted}", len(files[name])), name)
        self.assertEqual(rows[-1], [f"{info}/RECORD", "", ""])

    def test_wheel_installs_and_runs(self):
        home = os.path.join(self.folder, "venv")
        python = self.inside(os.path.join(home, "bin/python"))
        if CHROOT:
            self.start("python3", "-m", "venv", self.inside(home))
            pip = [python, "-m", "pip"]
        else:
            run(sys.executable, "-m", "venv", "--without-pip", home)  # its pip takes seconds
            pip = [sys.executable, "-m", "pip", "--python", python]
        self.start(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check",
                   self.inside(self.wheel))
        bundle = self.start(python, "-c", "import spillway; print(spillway.find_program())").strip()
        self.check_program(self.inside(os.path.join(home, "bin/spillway")), os.path.dirname(os.path.dirname(bundle)))
        self.assertEqual(self.start(python, "-c", FROM_PYTHON), "fits\n")
        # The one it came with, whatever else is on PATH.
        other = os.path.join(self.folder, "other")
        os.makedirs(other)
        shutil.copy("/bin/true", os.path.join(other, "spillway"))
        self.assertEqual(self.start(python, "-c", FROM_PYTHON, PATH=f"{self.inside(other)}:/usr/bin:/bin"), "fits\n")

    def test_deb_says_what_it_has(self):
        self.assertEqual(os.path.basename(self.deb), f"spillway_{self.version}_amd64.deb")
        fields = email.message_from_string(run("dpkg-deb", "-f", self.deb))
        self.assertEqual((fields["Package"], fields["Version"], fields["Architecture"]), ("spillway", self.version, "amd64"))
        self.assertRegex(fields["Depends"], r"^libc6 \(>= 2\.3[0-6]\)$")
        self.assertIn("new Debian package", run("dpkg-deb", "-I", self.deb))
        modes = {}
        for line in run("dpkg-deb", "-c", self.deb).splitlines():
            mode, owner, _, _, _, path = line.split(maxsplit=5)
            modes[path[1:]] = mode
            self.assertEqual(owner, "root/root", line)
        self.assertEqual(modes["/usr/bin/spillway"], "-rwxr-xr-x")
        self.assertEqual(modes["/"], "drwxr-xr-x")
        self.assertTrue(set(modes.values()) <= {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"}, set(modes.values()))
        for path in ("/usr/share/man/man1/spillway.1.gz", "/usr/share/bash-completion/completions/spillway.bash",
                     "/usr/share/doc/spillway/copyright", "/usr/lib/python3/dist-packages/spillway/__init__.py",
                     "/usr/share/doc/spillway/licences/libstdc++6.txt", "/usr/" + SCENARIO):
            self.assertEqual(modes.get(path), "-rw-r--r--", path)
        target = os.path.join(self.folder, "unpacked")
        run("dpkg-deb", "-R", self.deb, target)
        run("md5sum", "--quiet", "--check", "DEBIAN/md5sums", cwd=target)

    def test_deb_installs_and_runs(self):
        if not CHROOT:
            target = os.path.join(self.folder, "installed")
            run("dpkg-deb", "-x", self.deb, target)
            self.check_program(os.path.join(target, "usr/bin/spillway"), os.path.join(target, "usr"))
            return
        self.start("dpkg", "-i", self.inside(self.deb))
        try:
            self.check_program("spillway", "/usr")
            said = self.start("python3", "-B", "-c", f"import spillway; print(spillway.run('/usr/{SCENARIO}').verdict)")
            self.assertEqual(said, "fits\n")
            self.assertEqual(self.start("dpkg", "-V", "spillway"), "")
        finally:
            self.start("dpkg", "-P", "spillway")


@unittest.skipIf(CHROOT, "of packing, not of what was packed")
class PackingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.root = os.path.join(self.folder, "shell")
        stage_shell(self.root)

    def pack(self, name, **options):
        output = os.path.join(self.folder, name)
        os.makedirs(output)
        run(sys.executable, make_packages.__file__, self.root, output, **options)
        return {name: os.path.join(output, name) for name in sorted(os.listdir(output))}

    def test_same_files_same_bytes(self):
        packed = []
        for name, umask in (("first", 0o022), ("second", 0o077)):
            packed.append({})
            for package, path in self.pack(name, umask=umask).items():
                with open(path, "rb") as file:
                    packed[-1][package] = file.read()
            shutil.copytree(self.root, self.root + ".again", copy_function=shutil.copy)  # other times
            self.root += ".again"
        self.assertEqual(len(packed[0]), 2)
        self.assertTrue(packed[0] == packed[1])

    def test_script_becomes_the_program(self):
        target = os.path.join(self.folder, "target")
        wheel, = [path for name, path in self.pack("packed").items() if name.endswith(".whl")]
        run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--target", target,
            "--disable-pip-version-check", wheel)
        words = 'cat; grep SigIgn /proc/$$/status; printf "%s|" "$$" "$@"; exit 41'
        with subprocess.Popen([os.path.join(target, "bin/spillway"), "-c", words, "zero", "a b", "", "--x"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            out, _ = program.communicate("read\n", timeout=60)
        self.assertEqual(program.returncode, 41)
        ignored = run("/bin/dash", "-c", "grep SigIgn /proc/$$/status")
        self.assertEqual(out, f"read\n{ignored}{program.pid}|a b||--x|")
        shutil.rmtree(os.path.join(target, "spillway"))
        run(os.path.join(target, "bin/spillway"), "--version", code=2, env={"PATH": "/usr/bin:/bin"})

    def test_another_version_is_refused(self):
        make_packages.write_text(os.path.join(self.root, "VERSION"), "spillway 0.0.1 (commit unknown)\n")
        self.refused("the program's version is 0.0.1")

    def refused(self, words):
        done = subprocess.run([sys.executable, make_packages.__file__, self.root, self.folder], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(words, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["shell"])

    def test_what_needs_another_library_is_refused(self):
        shutil.copy(os.path.realpath("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), os.path.join(self.root, "lib/spillway/libx.so"))
        self.refused("libx.so needs libgcc_s.so.1, which is not carried along")


if __name__ == "__main__":
    absent = [] if CHROOT else [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    absent += [name for name in ("dpkg-deb",) if shutil.which(name) is None]
    if absent:
        print(f"skipped: apt-get install {' '.join(absent)}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=1)
