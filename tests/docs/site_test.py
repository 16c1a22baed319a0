#!/usr/bin/env python3
"""Builds the site of docs/ and checks it: no warning, every page there, nothing loaded from elsewhere, words to search for.

Usage: site_test.py FOLDER       builds into FOLDER, which is emptied before
       site_test.py              the same in a folder that goes again; 77 (skipped) where Sphinx isn't installed
       site_test.py --self-test  loads from elsewhere are found
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# Stems as the search index has them.
SEARCHED = ("checkpoint", "memori", "fsdp", "offload")
LOADS = re.compile(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']((?:https?:/)?/[^\"']+)"
                   r"|<link\b(?![^>]*rel=[\"'](?:canonical|author|license|next|prev))[^>]*\bhref=[\"']((?:https?:/)?/[^\"']+)"
                   r"|(?:@import\s+(?:url\()?|url\()[\"']?((?:https?:/)?/[^\"')]+)", re.I)


def loads(folder):
    """(file, address) of all that a page would load from another host or from the root of a server."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            for match in LOADS.finditer(path.read_text(encoding="utf-8", errors="replace")):
                yield path.relative_to(folder), next(filter(None, match.groups()))


def problems(folder):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    yield from (f"{page} is missing" for page in sorted(pages) if not (folder / page).is_file())
    yield from (f"{path} loads {address}" for path, address in loads(folder))
    index = (folder / "searchindex.js").read_text(encoding="utf-8")
    yield from (f"the search does not know '{word}'" for word in SEARCHED if not re.search(rf'\b{word}"?:', index))
    if not (folder / "_static/searchtools.js").is_file():
        yield "the search has no script: install libjs-sphinxdoc"


def build(folder):
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as trees:
        run = subprocess.run(["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "-d", trees, "-c",
                              ROOT / "docs/site", ROOT / "docs", folder], check=False)
    if run.returncode:
        return run.returncode
    (folder / ".buildinfo").unlink(missing_ok=True)
    found = list(problems(folder))
    print("\n".join(found) or f"{len(list(folder.rglob('*.html')))} pages")
    return 1 if found else 0


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        page.write_text('<a href="https://a.b">x</a><img src="c.png"><link rel="canonical" href="https://a.b">')
        good = not list(loads(page.parent))
        page.write_text('<script src="//a.b/c.js"></script><style>@import url("https://d.e/f.css")</style><img src="/g.png">')
        good = good and len(list(loads(page.parent))) == 3
    print("self-test passed" if good else "self-test failed")
    return 0 if good else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if not shutil.which("sphinx-build"):
        print("sphinx-build is not installed; Debian: python3-sphinx python3-myst-parser libjs-sphinxdoc")
        return SKIPPED
    if arguments:
        return build(pathlib.Path(arguments[0]))
    with tempfile.TemporaryDirectory() as folder:
        return build(pathlib.Path(folder) / "site")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
