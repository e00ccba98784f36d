"""Names as numbers, for whole columns at once: what is the same in one file has the same number in every other.

Two different names of a day give one number once in 100,000 days with ten million of them. Numbers are the same on every executor, and
mean nothing beyond one query.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.scan import Chunk

Hashes: TypeAlias = NDArray[np.uint64]

_WORD: Final = 8
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_NONE: Final = np.uint64(0x9E3779B97F4A7C15)
"""Stands for a name that is not there."""


def hashes(names: pa.Array) -> Hashes:
    """A number for each of these texts."""
    if not len(names):
        return np.zeros(0, np.uint64)
    texts = names.cast(pa.string())
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    held = np.zeros(bounds[-1] - bounds[0] + _WORD, np.uint8)  # the last text can be read word by word, too
    if content is not None:
        held[:-_WORD] = np.frombuffer(content, np.uint8)[bounds[0] : bounds[-1]]
    words: Hashes = np.ndarray((len(held) - _WORD + 1,), "<u8", held, strides=(1,))
    starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
    hashed = _stirred(lengths.astype(np.uint64))
    for at in range(0, int(lengths.max()), _WORD):
        longer = np.flatnonzero(lengths > at)
        word = words[starts[longer] + at] & _MASKS[np.minimum(lengths[longer] - at, _WORD)]
        hashed[longer] = _stirred(hashed[longer] ^ word)
    return hashed


def mixed(*columns: NDArray[np.generic]) -> Hashes:
    """A number for each row of these numbers."""
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashed = _stirred(hashed ^ column.astype(np.uint64))
    return hashed


def hashed_names(chunk: Chunk, column: str) -> Hashes:
    """Of each row of a chunk the number of its name in a column."""
    known: Hashes = np.append(hashes(chunk.names(column)), _NONE)[chunk.places(column)]
    return known


def _stirred(values: Hashes) -> Hashes:
    """Steele, Lea and Flood (2014), the last step of SplitMix: each bit of the result depends on every bit, and no two values meet."""
    values = values + _NONE
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
