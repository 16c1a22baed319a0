"""Builds the package's wheel with the standard library alone (PEP 517 and 660), so that pip needs no network and nothing
beside itself: neither setuptools nor wheel are in a fresh virtual environment."""
import base64
import hashlib
import os
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "spillway"
TAG = "py3-none-any"


def _project(key):
    """A text of pyproject.toml's [project]; Python 3.9 reads no TOML."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE)[1]


def _wheel(folder, files):
    """Writes the wheel of these files, by their places in it, and returns its name."""
    version = _project("version")
    info = f"{PACKAGE}-{version}.dist-info"
    files = {**files,
             f"{info}/METADATA": (f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n"
                                  f"Summary: {_project('description')}\nLicense: Apache-2.0\n"
                                  f"Requires-Python: {_project('requires-python')}\n").encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: spillway\nRoot-Is-Purelib: true\nTag: {TAG}\n".encode()}
    record = f"{info}/RECORD"
    rows = []
    for place, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{place},sha256={digest},{len(content)}\n")
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    name = f"{PACKAGE}-{version}-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in files.items():
            archive.writestr(zipfile.ZipInfo(place, (2020, 1, 1, 0, 0, 0)), content)  # the same bytes every time
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    sources = sorted((HERE / PACKAGE).rglob("*.py"))
    return _wheel(wheel_directory, {source.relative_to(HERE).as_posix(): source.read_bytes() for source in sources})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    return _wheel(wheel_directory, {f"{PACKAGE}.pth": f"{HERE}\n".encode()})
