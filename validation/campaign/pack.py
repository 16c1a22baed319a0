"""Keeps what steps leave in few files of bounded size, each result as soon as it is made.

A pack is one gzip-compressed tar archive cut into parts, campaign.tar.gz.00, .01, ...; every result is a gzip member of
its own at the end of it, so that what was written before stays readable whatever happens: cat campaign.tar.gz.* | tar -xz.
"""
import gzip
import io
import os
import tarfile
import zlib

STEM = "campaign.tar.gz"
PIECE_BYTES = 1 << 20
LARGE_BYTES = 1 << 20
ALWAYS_BYTES = 256 << 10  # packed also when there is no more time


class Pack:
    """Adds to `folder`, in at most `most_parts` files of `part_bytes`. parts: [{name, bytes, crc32}] of what is whole."""

    def __init__(self, folder, most_parts, part_bytes):
        self.folder, self.most_parts, self.part_bytes = folder, most_parts, part_bytes
        self.parts = []

    def room(self, is_large=False):
        """Bytes left; a fifth of all is for small results, however large those before them were."""
        whole = self.most_parts * self.part_bytes
        return whole - sum(part["bytes"] for part in self.parts) - (whole // 5 if is_large else 0)

    def add(self, root, names, may_go_on=lambda: True):
        """Files below `root`, small ones first; [{name, bytes}] of those that found no room or, when may_go_on() turned
        false, no time."""
        left_out = []
        for name in sorted(names, key=lambda name: os.path.getsize(os.path.join(root, name))):
            size = os.path.getsize(os.path.join(root, name))
            may = may_go_on if size > ALWAYS_BYTES else lambda: True
            # Nothing that is recorded shrinks to a tenth of a tenth.
            member = _member(root, name, may) if size <= 100 * self.room() else None
            if member is None or len(member) > self.room(len(member) > LARGE_BYTES):
                left_out.append({"name": name, "bytes": size})
            else:
                self._append(member)
        return left_out

    def _append(self, data):
        while data:
            if not self.parts or self.parts[-1]["bytes"] >= self.part_bytes:
                self.parts.append({"name": f"{STEM}.{len(self.parts):02}", "bytes": 0, "crc32": 0})
            part = self.parts[-1]
            piece, data = data[:self.part_bytes - part["bytes"]], data[self.part_bytes - part["bytes"]:]
            with open(os.path.join(self.folder, part["name"]), "ab") as file:
                file.truncate(part["bytes"])
                file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            part["bytes"] += len(piece)
            part["crc32"] = zlib.crc32(piece, part["crc32"])


def _member(root, name, may_go_on):
    """One file as a gzip member of a tar archive without an end, so that another may follow; None when stopped."""
    path = os.path.join(root, name)
    info = tarfile.TarInfo(name)
    info.size, info.mtime = os.path.getsize(path), int(os.path.getmtime(path))
    buffer = io.BytesIO()
    level = 1 if name.endswith((".gz", ".zst")) else 6
    with open(path, "rb") as file, gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=level, mtime=0) as out:
        out.write(info.tobuf(tarfile.GNU_FORMAT))
        copied = 0
        while copied < info.size:  # a file that grows is cut where it was, one that shrinks is filled
            if not may_go_on():
                return None
            piece = file.read(min(PIECE_BYTES, info.size - copied))
            piece = piece or bytes(min(PIECE_BYTES, info.size - copied))
            out.write(piece)
            copied += len(piece)
        out.write(bytes(-info.size % tarfile.BLOCKSIZE))
    return buffer.getvalue()
