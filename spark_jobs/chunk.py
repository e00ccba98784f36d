"""A part of an events file in memory, column by column: what an executor works on when it reduces events to a few rows.

Names are numbers here, by their place in a dictionary, and times are whole microseconds. Nothing depends on the order of rows; but since
files are sorted by subscription, key and run, rows of one place stand together, which makes `segments` few.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NAMES: Final = ("event", "subscription", "key", "run_id", "epoch")
"""Columns that are read as dictionaries."""
NEVER_US: Final = np.iinfo(np.int64).max
"""Stands for a time that nothing has."""

_SPARSE: Final = 4


class Chunk:
    """Rows of a table of events."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._dictionaries: dict[str, pa.DictionaryArray] = {}

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def names(self, column: str) -> pa.Array:
        """The different values of a column."""
        return self._dictionary(column).dictionary

    def places(self, column: str) -> Ints:
        """Of each row the place of its value among `names`, -1 for null."""
        return _numbers(pc.fill_null(self._dictionary(column).indices, -1))

    def numbers(self, column: str, missing: int = 0) -> Ints:
        """A column of whole numbers."""
        return _numbers(pc.fill_null(_one(self._rows[column]), missing))

    def column(self, name: str) -> pa.Array:
        """A column as it is."""
        return _one(self._rows[name])

    @cached_property
    def time_us(self) -> Ints:
        """When it happened, microseconds since 1970."""
        return _numbers(_one(self._rows["time"]).cast(pa.int64()))

    def where(self, *kinds: str) -> Ints:
        """The rows of these kinds of event, in their order."""
        wanted = np.array([name in kinds for name in self.names("event").to_pylist()], np.bool_)
        return np.flatnonzero(wanted[self.places("event")])

    def segments(self, *columns: str) -> Ints:
        """Where a stretch of rows begins in which all these columns stay the same; the first one at 0."""
        changes = np.zeros(max(0, len(self) - 1), np.bool_)
        for column in columns:
            places = self.places(column)
            changes |= places[1:] != places[:-1]
        return np.concatenate(([0], np.flatnonzero(changes) + 1)) if len(self) else np.zeros(0, np.int64)

    @cached_property
    def owners(self) -> Ints:
        """Of each row the number of its key and run together, from 0."""
        starts = self.segments("key", "run_id")
        pairs = self.places("key")[starts] * (len(self.names("run_id")) + 1) + self.places("run_id")[starts]
        number = np.unique(pairs, return_inverse=True)[1]
        return np.repeat(number, np.diff(np.append(starts, len(self))))

    def value(self, column: str, rows: Ints) -> pa.Array:
        """The values of a column of names at these rows, null where there is none."""
        return self._dictionary(column).take(pa.array(rows)).cast(pa.string())

    def _dictionary(self, column: str) -> pa.DictionaryArray:
        if column not in self._dictionaries:
            values = self._rows[column]
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            self._dictionaries[column] = _one(values.unify_dictionaries())
        return self._dictionaries[column]


def numbered(owner: Ints, number: Ints) -> tuple[Ints, int]:
    """A number from 0 for each pair, the same for the same pair, and how many numbers there may be: few more than there are pairs."""
    if not len(owner):
        return owner, 0
    low = np.full(owner.max() + 1, NEVER_US)
    high = np.full(owner.max() + 1, -1)
    np.minimum.at(low, owner, number)
    np.maximum.at(high, owner, number)
    lengths = np.where(high >= low, high - low + 1, 0)
    ends = np.cumsum(lengths)
    if lengths.max() <= _SPARSE * len(owner) and ends[-1] <= _SPARSE * len(owner):
        return (ends - lengths)[owner] + number - low[owner], int(ends[-1])
    pairs, place = np.unique(np.stack((owner, number)), axis=1, return_inverse=True)
    return place.reshape(-1), pairs.shape[1]


def earliest(place: Ints, time_us: Ints, count: int) -> Ints:
    """The earliest time of each place, `NEVER_US` for one that has none."""
    first = np.full(count, NEVER_US)
    np.minimum.at(first, place, time_us)
    return first


def times(values: Ints) -> pa.Array:
    """Times as a column, null for `NEVER_US`."""
    return pa.array(values, pa.int64(), mask=values == NEVER_US)


def rows_of(schema: pa.Schema, columns: Mapping[str, pa.Array | Ints], count: int) -> pa.RecordBatch:
    """A batch with these columns; those that are not given are null."""
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _one(values: pa.ChunkedArray) -> pa.Array:
    whole = values.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _numbers(values: pa.Array) -> Ints:
    numbers: Ints = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
