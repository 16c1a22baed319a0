#!/usr/bin/env python3
"""Runs the shell of the pages on gating jobs and on agents: blocks marked sh, each page in one folder, with a stand-in srun.

Usage: shell_examples_test.py SPILLWAY SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGES = ("docs/how-to/gate-a-job.md", "docs/how-to/use-from-an-agent.md")
LAUNCH = "tests/launch/data/megatron-llama3-8b.sh"


def run(program, root, page, change=lambda text: text):
    """Exit code of the page's blocks, one behind the other, and whether the job was started."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (root / page).read_text(encoding="utf-8"), re.M | re.S)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "launch.sh").write_text(change((root / LAUNCH).read_text(encoding="utf-8")), encoding="utf-8")
        (folder / "bin").mkdir()
        (folder / "bin/spillway").symlink_to(program)
        (folder / "bin/srun").write_text("#!/bin/sh\ntouch started\n", encoding="utf-8")
        (folder / "bin/srun").chmod(0o755)
        done = subprocess.run(["bash", "-ec", "\n".join(blocks)], cwd=folder, capture_output=True, text=True, timeout=500,
                              env=dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}"), check=False)
        return len(blocks), done.returncode, (folder / "started").exists(), done.stdout[-300:] + done.stderr[-600:]


def main(program, root):
    program, root, failed = os.path.abspath(program), pathlib.Path(root), 0
    for page in PAGES:
        blocks, code, started, said = run(program, root, page)
        print(f"{page}: {blocks} blocks, exit code {code}")
        if blocks == 0 or code != 0 or started != ("srun " in (root / page).read_text(encoding="utf-8")):
            failed += 1
            print(said)
    # A launch that cannot fit starts no job.
    _, code, started, said = run(program, root, PAGES[0], lambda text: text.replace("--micro-batch-size 1", "--micro-batch-size 128"))
    if code == 0 or started:
        failed += 1
        print(f"a job that does not fit was started, or the code is {code}: {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
