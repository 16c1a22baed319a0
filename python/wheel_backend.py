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


def project(key):
    """A text of pyproject.toml's [project]; Python 3.9 reads no TOML."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE)[1]


def write_wheel(folder, files, tag=TAG, programs=(), fields="", level=None):
    """Writes the wheel of these files, by their places in it, and returns its name. `programs`: places of those that can
    be run; `fields`: more lines of METADATA; `level`: zlib's."""
    version = project("version")
    info = f"{PACKAGE}-{version}.dist-info"
    files = {**files,
             f"{info}/METADATA": (f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n"
                                  f"Summary: {project('description')}\nLicense: Apache-2.0\n"
                                  f"Requires-Python: {project('requires-python')}\n{fields}").encode(),
             f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: spillway\n"
                               f"Root-Is-Purelib: {str(tag.endswith('-any')).lower()}\nTag: {tag}\n").encode()}
    record = f"{info}/RECORD"
    rows = []
    for place, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{place},sha256={digest},{len(content)}\n")
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    name = f"{PACKAGE}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in files.items():
            entry = zipfile.ZipInfo(place, (2020, 1, 1, 0, 0, 0))  # the same bytes every time
            entry.external_attr = (0o100755 if place in programs else 0o100644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, level)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    sources = sorted((HERE / PACKAGE).rglob("*.py"))
    return write_wheel(wheel_directory, {source.relative_to(HERE).as_posix(): source.read_bytes() for source in sources})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # pylint: disable=unused-argument
    return write_wheel(wheel_directory, {f"{PACKAGE}.pth": f"{HERE}\n".encode()})
