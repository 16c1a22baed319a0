#!/usr/bin/env python3
"""The package installs into a virtual environment with no network, and works there.

usage: install_test.py SPILLWAY
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

import fixture

PROGRAM = os.path.abspath(sys.argv[1])
NEEDED = {"pip": "python3-pip", "ensurepip": "python3-venv"}

# Without the network's names and addresses, where that may be had.
ALONE = ["unshare", "--net", "--map-root-user"]

USED = """
import os, sys
import spillway
assert os.path.realpath(spillway.__file__).startswith(os.path.realpath(sys.prefix)), spillway.__file__
assert "torch" not in sys.modules and "numpy" not in sys.modules
print(spillway.run(sys.argv[1]).verdict)
"""
VERSION = "import importlib.metadata; print(importlib.metadata.version('spillway'))"
USED_WITH_TORCH = """
import torch, spillway.torch
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(2)))
with spillway.torch.apply(model, "full", layers=""):
    model(torch.ones(2, 4, requires_grad=True)).sum().backward()
print("applied")
"""


def run(*command, **keywords):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **keywords)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def main():
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(f"skipped: apt-get install {' '.join(missing)}")
        sys.exit(fixture.SKIPPED)
    alone = ALONE if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        source, home = os.path.join(folder, "python"), os.path.join(folder, "venv")
        shutil.copytree(os.path.join(fixture.ROOT, "python"), source,
                        ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        run(sys.executable, "-m", "venv", home)
        python = os.path.join(home, "bin/python")
        nowhere = {**os.environ, "PYTHONPATH": "", "SPILLWAY": PROGRAM, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        run(*alone, python, "-m", "pip", "install", "--quiet", source, env=nowhere)  # as docs/internals/pytorch.md says
        scenario = os.path.join(fixture.ROOT, "cli/scenarios/gpt2-xl-1k-h100.json")
        said = run(*alone, python, "-c", VERSION, cwd=folder, env=nowhere).strip()
        if said not in run(PROGRAM, "--version"):
            sys.exit(f"python/pyproject.toml has version {said}, the program is {run(PROGRAM, '--version').strip()}")
        assert run(*alone, python, "-c", USED, scenario, cwd=folder, env=nowhere) == "fits\n"
        run(*alone, python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--editable", source, env=nowhere)
        where = run(*alone, python, "-c", "import spillway; print(spillway.__file__)", cwd=folder, env=nowhere).strip()
        assert os.path.realpath(where).startswith(os.path.realpath(source)), where
        if importlib.util.find_spec("torch") is None:
            print("installed; not tried with torch, which isn't there: apt-get install python3-torch")
            return
        with_torch = os.path.join(folder, "with-torch")
        run(sys.executable, "-m", "venv", "--system-site-packages", with_torch)
        python = os.path.join(with_torch, "bin/python")
        run(*alone, python, "-m", "pip", "install", "--quiet", source, env=nowhere)
        assert run(*alone, python, "-c", USED_WITH_TORCH, cwd=folder, env=nowhere) == "applied\n"


if __name__ == "__main__":
    main()
