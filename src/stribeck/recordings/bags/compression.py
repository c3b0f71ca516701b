"""Compressed bags: storage files and single messages, packed with Zstandard or LZ4.

rosbag2 packs either whole storage files, which then have a further suffix, or the bytes of every message. A serialised
message begins with a zero byte, so packed ones are recognised by the first bytes of their format.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lz4 import frame as lz4  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STORAGES = (".mcap", ".db3")
SUFFIXES = (".zstd", ".zst", ".lz4")

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"


def is_packed(path: Path) -> bool:
    """Whether a file is a compressed storage file, by its suffixes."""
    return path.suffix in SUFFIXES and Path(path.stem).suffix in STORAGES


def unpacked(data: bytes) -> bytes:
    """The bytes, decompressed if they begin as a frame of Zstandard or LZ4."""
    if data[:4] == _ZSTD_MAGIC:
        return bytes(zstd.decompress(data))
    if data[:4] == _LZ4_MAGIC:
        return bytes(lz4.decompress(data))
    return data


@contextmanager
def storage_files(path: Path) -> Iterator[list[Path]]:
    """The storage files of a bag, or the file itself; packed ones are unpacked into a temporary folder."""
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in found if file.suffix in STORAGES or is_packed(file)]
    with tempfile.TemporaryDirectory() as folder:
        for k, file in enumerate(files):
            if is_packed(file):
                files[k] = Path(folder) / file.stem
                files[k].write_bytes(unpacked(file.read_bytes()))
        yield files
