#!/usr/bin/env python3
"""What ./spill release passes on: every ELF file in it, and the programs where nothing of this machine helps them.

usage: release_test.py BUILD_FOLDER SOURCE_FOLDER             of the programs built there, unpacked at another path
       release_test.py --archive FILE.tar.zst [--chroot ROOT]  of a release; in another system, whose root is given

Run without an environment, and without a network where this user may (unshare); in a chroot as root.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../release"))
from elf_file import ElfFile, is_elf  # noqa: E402
from make_release import C_LIBRARY, NEWEST_GLIBC, NVIDIA  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "../docs"))
import site_test  # noqa: E402

MAKE = os.path.join(HERE, "../../release/make_release.py")
ARCHIVE = CHROOT = BUILD = SOURCE = None
if sys.argv[1] == "--archive":
    ARCHIVE = os.path.abspath(sys.argv[2])
    CHROOT = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
else:
    BUILD, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

MOST_BYTES = {False: 25_000_000, True: 60_000_000}  # of an archive, without and with the window


def no_network():
    """A way to run a command without a network, as this user; empty where there is none."""
    for way in (["unshare", "-n"], ["unshare", "-rn"]):
        try:
            if subprocess.run(way + ["true"], capture_output=True, check=False).returncode == 0:
                return way
        except FileNotFoundError:
            break
    print("no network name space of one's own here: run with the machine's network", file=sys.stderr)
    return []


class ReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=os.path.join(CHROOT, "tmp") if CHROOT else None)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        target = os.path.join(folder.name, "some where")
        os.makedirs(target)
        if ARCHIVE:
            subprocess.run(["tar", "-I", "zstd", "-xf", ARCHIVE, "-C", target], check=True)
        else:
            made = os.path.join(folder.name, "spillway")
            # A site of one page: test "site" builds the whole one.
            site = os.path.join(folder.name, "site")
            os.mkdir(site)
            pathlib.Path(site, "index.html").write_text("<h1>spillway</h1>", encoding="utf-8")
            done = subprocess.run([sys.executable, MAKE, BUILD, made, "--site", site], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            shutil.move(made, target)
        cls.root = os.path.join(target, os.listdir(target)[0])
        cls.has_window = os.path.exists(os.path.join(cls.root, "bin/spillway-gui"))
        cls.elf_files = [os.path.join(where, name) for where, _, names in os.walk(cls.root) for name in names
                         if is_elf(os.path.join(where, name))]
        path, = ElfFile(os.path.join(cls.root, "bin/spillway")).rpath
        cls.libraries = os.path.normpath(path.replace("$ORIGIN", cls.root + "/bin"))
        cls.way = no_network()

    def inside(self, path):
        return path[len(CHROOT):] if CHROOT else path

    def run_program(self, *arguments, program="bin/spillway", **environment):
        """A program of the release, from another folder, with nothing of this environment."""
        command = [self.inside(os.path.join(self.root, program)), *map(str, arguments)]
        work = os.path.join(self.folder, "work")
        os.makedirs(work, exist_ok=True)
        variables = {"PATH": "/usr/bin:/bin", "HOME": self.inside(work), "LC_ALL": "C", **environment}
        command = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command]
        if CHROOT:
            # With a /proc of its own, which the loader needs for $ORIGIN as on any system.
            command = ["unshare", "-m", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', CHROOT,
                       "sh", "-c", 'cd "$0" && exec "$@"', self.inside(work), *command]
        return subprocess.run([*self.way, *command], capture_output=True, text=True, check=False, timeout=400,
                              cwd=work)

    def test_needs_of_every_file_are_met(self):
        self.assertGreater(len(self.elf_files), 20)
        for path in self.elf_files:
            file, name = ElfFile(path), os.path.relpath(path, self.root)
            with self.subTest(name):
                self.assertLessEqual(file.newest("GLIBC") or (0,), NEWEST_GLIBC)
                for folder in file.rpath + file.runpath:
                    self.assertRegex(folder, r"^\$ORIGIN(/|$)")
                for needed in file.needed:
                    if NVIDIA.fullmatch(needed):
                        self.assertEqual(os.path.basename(name), "libspillway_cuda.so", needed)
                    elif not C_LIBRARY.fullmatch(needed):
                        self.assertTrue(os.path.exists(os.path.join(self.libraries, needed)), needed)
                if name.startswith("bin/"):
                    self.assertEqual((len(file.rpath), file.runpath), (1, []))

    def test_the_cxx_library_is_new_enough_for_all(self):
        with open(os.path.join(self.libraries, "libstdc++.so.6"), "rb") as file:
            content = file.read()
        known = {match.decode() for match in re.findall(rb"GLIBCXX_[0-9.]+[0-9]", content)}
        for path in self.elf_files:
            wanted = {name for name in ElfFile(path).versions.get("libstdc++.so.6", []) if name.startswith("GLIBCXX")}
            self.assertLessEqual(wanted, known, path)

    def test_the_recorder_brings_no_library_into_a_program(self):
        path = os.path.join(self.libraries, "libspillway_inject.so")
        if not os.path.exists(path):
            self.skipTest("built without CUDA")
        self.assertEqual([name for name in ElfFile(path).needed if not C_LIBRARY.fullmatch(name)], [])

    def test_nothing_names_where_it_was_built(self):
        own = [SOURCE, BUILD] if BUILD else [os.path.dirname(os.path.dirname(HERE))]
        for where, _, names in os.walk(self.root):
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    content = file.read()
                for path in own:
                    self.assertNotIn(path.encode(), content, os.path.join(where, name))

    def test_its_own_libraries_are_the_ones_loaded(self):
        for program in ["bin/spillway"] + (["bin/spillway-gui"] if self.has_window else []):
            result = self.run_program(program=program, LD_TRACE_LOADED_OBJECTS="1", LD_LIBRARY_PATH=f"/usr/lib/{platform.machine()}-linux-gnu")
            self.assertNotIn("not found", result.stdout)
            loaded = re.findall(r"^\s+(\S+) => (.+) \(0x", result.stdout, re.MULTILINE)
            self.assertGreater(len(loaded), 15)
            for name, path in loaded:
                if not C_LIBRARY.fullmatch(name):
                    self.assertTrue(os.path.realpath((CHROOT or "") + path).startswith(self.libraries + "/"),
                                    f"{name} is {path}")

    def test_archive_is_small_enough(self):
        if not ARCHIVE:
            self.skipTest("no archive is written here: ./spill release --check")
        self.assertLess(os.path.getsize(ARCHIVE), MOST_BYTES[self.has_window])

    def test_licences_of_what_is_carried_are_there(self):
        licences = os.listdir(os.path.join(self.root, "share/doc/spillway/licences"))
        for package in ("libfmt9.txt", "libtbb12.txt", "libstdc++6.txt", "LGPL-2.1"):
            self.assertIn(package, licences)

    def test_the_pages_are_there_as_a_site(self):
        html = pathlib.Path(self.root, "share/doc/spillway/html")
        self.assertTrue((html / "index.html").is_file())
        self.assertEqual(list(site_test.loads(html)), [])
        if ARCHIVE:
            for name in ("search.html", "searchindex.js", "_static/searchtools.js", "tutorial/first-hour.html"):
                self.assertTrue((html / name).is_file(), name)

    def test_version_is_in_a_file_too(self):
        result = self.run_program("--version")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^spillway \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}(-dirty)?|unknown)\)\n$")
        with open(os.path.join(self.root, "VERSION"), encoding="utf-8") as file:
            self.assertEqual(file.read(), result.stdout)

    def test_bundled_scenarios_run(self):
        folder = os.path.join(self.root, "share/spillway/examples/scenarios")
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            result = self.run_program("run", self.inside(os.path.join(folder, name)), "--timeline", name + ".svg",
                                      "--format", "json")
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertGreater(json.loads(result.stdout)["step_time_ns"], 0)
            self.assertGreater(os.path.getsize(os.path.join(self.folder, "work", name + ".svg")), 1000)

    def test_profiles_are_its_own(self):
        listed = json.loads(self.run_program("profile", "list", "--format", "json").stdout)["profiles"]
        self.assertGreater(len(listed), 100)
        for profile in listed:
            self.assertTrue(profile["path"].startswith(self.inside(self.root) + "/share/"), profile["path"])

    def test_a_program_without_its_data_says_so(self):
        alone = os.path.join(self.folder, "alone/bin")
        os.makedirs(alone, exist_ok=True)
        shutil.copy(os.path.join(self.root, "bin/spillway"), alone)
        os.symlink(os.path.relpath(os.path.join(self.root, "lib"), os.path.dirname(alone)), os.path.join(alone, "../lib"))
        # A stray file of a build, without the build, lends it none.
        with open(os.path.join(self.folder, "alone/spillway-source"), "w", encoding="utf-8") as file:
            file.write(self.inside(SOURCE or os.path.join(self.root, "share/spillway")) + "\n")
        scenario = os.path.join(self.root, "share/spillway/examples/scenarios/gpt2-xl-1k-h100.json")
        result = self.run_program("run", self.inside(scenario), program=os.path.join(alone, "spillway"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("its bundled data are not beside the program", result.stderr)

    def test_a_drive_is_measured(self):
        result = self.run_program("calibrate", "nvme", "--quick", "--file", "scratch", "--output", "drive.json")
        if result.returncode == 2 and re.search("io_uring|O_DIRECT|direct", result.stderr):
            self.skipTest("this system lets no drive be measured: " + result.stderr.strip())
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.folder, "work/drive.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["kind"], "nvme")

    def test_kernels_run_on_the_processor(self):
        result = self.run_program("validate", "kernels", "--backend", "cpu", "--file", "offload", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        runs = json.loads(result.stdout)["runs"]
        self.assertGreater(len(runs), 5)
        self.assertTrue(all(run["as_predicted"] for run in runs))

    def test_a_report_has_its_text(self):
        scenario = self.inside(os.path.join(self.root, "share/spillway/examples/scenarios/gpt2-xl-1k-h100.json"))
        result = self.run_program("report", "step", scenario, "--output", "step.pdf")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.folder, "work/step.pdf"), "rb") as file:
            self.assertTrue(b"/FontFile" in file.read(), "the pages are empty: no font was found")

    def test_the_gpu_module_says_what_is_missing(self):
        result = self.run_program("calibrate", "gpu", "--quick")
        if result.returncode == 0:
            self.skipTest("a GPU is here")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "driver|CUDA")

    def test_the_window_draws(self):
        if not self.has_window:
            self.skipTest("the release without the window")
        result = self.run_program("--screenshot", "window.png", program="bin/spillway-gui", QT_QPA_PLATFORM="offscreen")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.folder, "work/window.png"), "rb") as file:
            self.assertTrue(file.read().startswith(b"\x89PNG"))

    def test_what_cannot_be_made_is_refused(self):
        if ARCHIVE:
            self.skipTest("nothing is made here")
        for arguments, words in (([BUILD, self.root], "exists already"),
                                 ([self.folder, os.path.join(self.folder, "x")], "meson install")):
            result = subprocess.run([sys.executable, MAKE, *arguments], capture_output=True, text=True, check=False)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
