"""The seal of a file of the history: a checksum of every other byte in it.

Parquet's own checksums cover the data of pages. They cover neither the headers of pages nor the footer, where one other byte gives a column
another name or another encoding; the events that are read then show false violations. The seal stands right before the footer. Readers of
Parquet find everything by its offset, so they do not notice it. Files of older probers, and those that other programs wrote, have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final
from zlib import crc32

import pyarrow as pa

_MAGIC: Final = b"OKP-SEAL"
_SEAL: Final = Struct("<8sI")
_END: Final = Struct("<I4s")
"""The end of a Parquet file: length of the footer, and Parquet's own mark."""
_AT_ONCE: Final = 1 << 20


def sealed(content: pa.Buffer) -> pa.Buffer:
    """The bytes of a Parquet file with its seal."""
    data = memoryview(content)
    at = len(data) - _END.size - _END.unpack(data[-_END.size :])[0]
    return pa.py_buffer(b"".join([data[:at], _SEAL.pack(_MAGIC, crc32(data)), data[at:]]))


def is_damaged(file: pa.NativeFile) -> bool:
    """Whether a file has a seal, and other bytes than those that were sealed. Reads all of it. Raises OSError."""
    size = file.size()
    at = size - _END.size - _SEAL.size
    if at < 0:
        return False
    file.seek(size - _END.size)
    at -= _END.unpack(file.read(_END.size))[0]
    if at < 0:
        return False
    file.seek(at)
    seal = file.read(_SEAL.size)
    return bool(seal.startswith(_MAGIC)) and seal != _SEAL.pack(_MAGIC, _checksum(file, at, size))


def _checksum(file: pa.NativeFile, at: int, size: int) -> int:
    """The checksum of everything but the seal, which stands at that place."""
    checksum = 0
    for since, until in ((0, at), (at + _SEAL.size, size)):
        file.seek(since)
        for data in _pieces(file, until - since):
            checksum = crc32(data, checksum)
    return checksum


def _pieces(file: pa.NativeFile, length: int) -> Iterator[bytes]:
    while length and (data := file.read(min(length, _AT_ONCE))):
        length -= len(data)
        yield data
