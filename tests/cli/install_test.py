#!/usr/bin/env python3
"""What `meson install` leaves behind works where it was put, with its own data.

Usage: install_test.py MESON BUILD_FOLDER PREFIX [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MESON, BUILD, PREFIX = sys.argv[1:4]


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        root = pathlib.Path(folder.name) / "root"
        command = [MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", str(root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        # Moved after it was installed: nothing may depend on the place.
        cls.prefix = pathlib.Path(folder.name) / "moved"
        shutil.move(root / PREFIX.lstrip("/"), cls.prefix)
        cls.data = cls.prefix / "share/spillway"

    def spillway(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        return subprocess.run([self.prefix / "bin/spillway", *map(str, arguments)], capture_output=True, text=True,
                              timeout=120, check=False, cwd="/", env=environment)

    def scenario(self, name):
        return self.data / "examples/scenarios" / (name + ".json")

    def test_profiles_are_the_installed_ones(self):
        listed = json.loads(self.spillway("profile", "list", "--format", "json").stdout)["profiles"]
        elsewhere = [profile["path"] for profile in listed if not profile["path"].startswith(str(self.data))]
        self.assertGreater(len(listed), 100)
        self.assertEqual(elsewhere, [])

    def test_models_are_the_installed_ones(self):
        shutil.copy(self.data / "models/gpt2-small.json", self.data / "models/only-here.json")
        result = self.spillway("run", self.scenario("gpt2-xl-1k-h100"), "--set", "model.name=only-here")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_bundled_scenarios_run(self):
        scenarios = sorted(self.scenario("x").parent.glob("*.json"))
        self.assertGreaterEqual(len(scenarios), 3)
        for scenario in scenarios:
            result = self.spillway("run", scenario, "--format", "json")
            self.assertIn(result.returncode, (0, 1), f"{scenario}: {result.stderr}")
            self.assertGreater(json.loads(result.stdout)["step_time_ns"], 0)

    def test_modules_are_found_beside_it(self):
        made = {module.name.removeprefix("libspillway_").removesuffix(".so")
                for module in self.prefix.glob("lib*/**/libspillway_*.so")}
        for ending, begin in {"pdf": b"%PDF-", "xlsx": b"PK"}.items():
            report = self.prefix / ("report." + ending)
            result = self.spillway("report", "step", self.scenario("gpt2-xl-1k-h100"), "--output", report)
            if ending in made:
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(report.read_bytes().startswith(begin))
            else:
                self.assertEqual(result.returncode, 2)
                self.assertFalse(report.exists())
        if not made:
            self.skipTest("built without modules")

    def test_schemas_and_pages_are_there(self):
        for name in ("scenario", "hardware-profile", "model", "trace"):
            json.loads((self.data / "schemas" / (name + ".schema.json")).read_text())
        for name in ("man/man1/spillway.1", "bash-completion/completions/spillway.bash",
                     "fish/vendor_completions.d/spillway.fish", "zsh/site-functions/_spillway",
                     "man/man1/spillway-plan.1"):
            self.assertIn("spillway", (self.prefix / "share" / name).read_text(encoding="utf-8"), name)
        pages = self.prefix / "share/doc/spillway"
        self.assertGreater((pages / "LICENSE").stat().st_size, 0)
        links = re.findall(r"\]\(([^):]+)\)", (pages / "README.md").read_text(encoding="utf-8"))
        self.assertGreater(len(links), 5)
        for link in links:
            self.assertTrue((pages / link.partition("#")[0]).is_file(), link)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
