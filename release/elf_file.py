"""Reads what the dynamic loader reads of an ELF file: needed libraries, its name, search paths, versions of symbols.

64-bit little-endian files alone, by their program headers, so that stripped files are read too.
"""
import re
import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 14, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF


class ElfFile:
    """needed, soname ("" where it has none), rpath and runpath (lists of folders), versions {library: [symbol version]}."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: no 64-bit little-endian ELF file")
        self.needed, self.soname, self.rpath, self.runpath, self.versions = [], "", [], [], {}
        offset, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        headers = [struct.unpack_from("<IIQQQQQQ", self.bytes, offset + index * size) for index in range(count)]
        self.loads = [(address, at, length) for kind, _, at, address, _, length, _, _ in headers if kind == PT_LOAD]
        for kind, _, at, _, _, length, _, _ in headers:
            if kind == PT_DYNAMIC:
                self._read_dynamic(at, length)

    def _at(self, address):
        for start, offset, length in self.loads:
            if start <= address < start + length:
                return address - start + offset
        raise ValueError(f"address {address:#x} is in no segment")

    def _text(self, index):
        start = self.strings + index
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def _read_dynamic(self, offset, length):
        entries = []
        for at in range(offset, offset + length, 16):
            entry = struct.unpack_from("<QQ", self.bytes, at)
            if entry[0] == 0:
                break
            entries.append(entry)
        values = dict(entries)
        self.strings = self._at(values[DT_STRTAB])
        self.needed = [self._text(value) for tag, value in entries if tag == DT_NEEDED]
        if DT_SONAME in values:
            self.soname = self._text(values[DT_SONAME])
        for tag, folders in ((DT_RPATH, self.rpath), (DT_RUNPATH, self.runpath)):
            if tag in values:
                folders.extend(self._text(values[tag]).split(":"))
        if DT_VERNEED in values:
            self._read_versions(self._at(values[DT_VERNEED]), values[DT_VERNEEDNUM])

    def _read_versions(self, at, count):
        for _ in range(count):
            _, names, library, first, following = struct.unpack_from("<HHIII", self.bytes, at)
            of_library, name_at = self.versions.setdefault(self._text(library), []), at + first
            for _ in range(names):
                _, _, _, name, next_name = struct.unpack_from("<IHHII", self.bytes, name_at)
                of_library.append(self._text(name))
                name_at += next_name
            at += following

    def newest(self, prefix):
        """The highest version of this prefix, as numbers: (2, 36) for "GLIBC"; None where there is none."""
        found = [tuple(map(int, match.group(1).split(".")))
                 for names in self.versions.values() for name in names
                 if (match := re.fullmatch(prefix + r"_(\d+(?:\.\d+)*)", name))]
        return max(found, default=None)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(6) == b"\x7fELF\x02\x01"
