"""Decoding of rows of the table `events`, the inverse of `encoding`, for the reader of a history and for Spark's executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prober.core.events import EVENT_TYPES, Event
from prober.sinks.history.arrow import dictionary_columns
from prober.sinks.history.schema import EVENT_FIELDS, EVENTS, values_of

EVENT_COLUMNS: Final = ("event", *sorted({column for fields in EVENT_FIELDS.values() for column in fields.values()}))
"""Columns that `events_of` decodes."""

_NAMES: Final = frozenset(dictionary_columns(EVENTS))


def events_of(rows: pa.Table | pa.RecordBatch) -> list[Event]:
    """Return the event of each row, in order. Missing columns count as null. Raises ValueError for an unknown kind of event."""
    columns = {name: _whole(rows.column(name)) for name in EVENT_COLUMNS if name in rows.schema.names}
    kinds = columns["event"]
    if not pa.types.is_dictionary(kinds.type):
        kinds = kinds.dictionary_encode()
    kind_of_row = kinds.indices.to_numpy(zero_copy_only=False)
    events: list[Any] = [None] * len(kind_of_row)
    for number, kind in enumerate(kinds.dictionary.to_pylist()):
        places = np.flatnonzero(kind_of_row == number)
        if not len(places):
            continue
        if kind not in EVENT_TYPES:
            raise ValueError(f"it has an event {kind!r}, which is no kind of event")
        # Convert only the columns of this kind: they are few.
        fields = [_values(columns, name, pa.array(places)) for name in EVENT_FIELDS[kind].values()]
        for place, event in zip(places.tolist(), map(EVENT_TYPES[kind], *fields), strict=True):
            events[place] = event
    return events


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _values(columns: Mapping[str, pa.Array], name: str, places: pa.Array) -> list[Any]:
    """Return one column of the selected rows as Python values; much faster than `to_pylist` for repeated values or without nulls."""
    if name not in columns:
        return values_of(name, [None] * len(places))
    values = columns[name].take(places)
    if values.null_count == len(values):
        return values_of(name, [None] * len(values))
    if name in _NAMES:
        values = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        known = np.array([*values.dictionary.to_pylist(), None], object)  # the last entry stands for null
        indices = pc.fill_null(values.indices, len(known) - 1).to_numpy(zero_copy_only=False)
        return values_of(name, known[indices].tolist())
    return values_of(name, values.to_pylist() if values.null_count else values.to_numpy(zero_copy_only=False).tolist())
