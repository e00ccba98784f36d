"""Events on their way from the files to the checker: packed, so that Spark carries a few rows for each run in place of one for each event.

A *package* is what one file holds of a stretch of a shard of a run. Stretches follow each other in the order of judging: in the recorder's
numbering, or in time if several processes recorded the run. Whoever judges a shard unpacks one stretch after the other, and needs
no more memory than one of them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa

from prober.core.events import EVENT_TYPES, Event
from prober.sinks.history.schema import EVENT_FIELDS, values_of
from prober.slo.objectives import MICROS
from spark_jobs.scan import Chunk, Ints

STRETCH_EVENTS: Final = 65_536
STRETCH_US: Final = 600 * MICROS
EVENT_COLUMNS: Final = tuple(sorted({column for columns in EVENT_FIELDS.values() for column in columns.values()}))
PACKED_COLUMNS: Final = ("run_id", "number", "process", "event", "time", *EVENT_COLUMNS)
PACKAGES: Final = "run_id string, shard int, stretch long, events binary"

_PACKAGES: Final = pa.schema([("run_id", pa.string()), ("shard", pa.int32()), ("stretch", pa.int64()), ("events", pa.binary())])
_CONTENT: Final = ("number", "process", "event", *EVENT_COLUMNS)


@dataclass(frozen=True, slots=True)
class JudgingPlan:
    """How a run is to be judged.

    rules       as in the table of runs.
    limit       judge no event with a larger number; None: all of them.
    settled     whether what is on hold at the end may be settled: of a run of one process only if that waited for deliveries.
    merged      whether events come from several processes, in the order of the wall clock; clocks may differ by `clock_error_s`.
    shards      into how many parts it is divided.
    """

    rules: str
    limit: int | None = None
    settled: bool = True
    merged: bool = False
    clock_error_s: float = 0.0
    shards: int = 1


# --- packed ------------------------------------------------------------------------------------------------------------------


def packing(plans: Mapping[str, JudgingPlan], clock_error_s: float) -> Callable[[Chunk], Iterator[pa.RecordBatch]]:
    """The reduction of `PACKED_COLUMNS` to `PACKAGES`, of the runs that have a plan."""

    def pack(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        wall_us = chunk.time_us.copy()
        wall_us[chunk.where("publish")] -= round(2 * clock_error_s * MICROS)
        names = chunk.names("run_id").to_pylist()
        rows, shard = _divided(chunk, np.array([plans[name].shards if name in plans else 0 for name in names], np.int64))
        run = chunk.places("run_id")[rows]
        stretch = _stretches(chunk, wall_us, [plans.get(name, JudgingPlan("")) for name in names])[rows]
        if not len(rows):
            return
        order = np.lexsort((stretch, shard, run))
        run, shard, stretch = run[order], shard[order], stretch[order]
        table = chunk.take(rows[order])
        content = table.select([name for name in _CONTENT if name in table.column_names])
        content = content.append_column("wall_t", pa.array(wall_us[rows[order]] / MICROS))
        starts = _changes(run, shard, stretch)
        packages = [_packed(content[begin:end]) for begin, end in zip(starts, [*starts[1:], len(order)], strict=True)]
        columns = [chunk.names("run_id").take(pa.array(run[starts])).cast(pa.string()), shard[starts], stretch[starts], packages]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, _PACKAGES, strict=True)], schema=_PACKAGES
        )

    return pack


def _divided(chunk: Chunk, shards_of_run: Ints) -> tuple[Ints, Ints]:
    """Rows with their shards. A row goes to the shard of its key, and one without a key to every shard of its run."""
    shards = shards_of_run[chunk.places("run_id")]
    keys = chunk.places("key")
    hashes = np.array([*(crc32(key.encode()) for key in chunk.names("key").to_pylist()), 0], np.int64)
    keyed, common = np.flatnonzero((keys >= 0) & (shards > 0)), np.flatnonzero((keys < 0) & (shards > 0))
    everywhere = np.concatenate([np.arange(count) for count in shards[common]]) if len(common) else common
    rows = np.concatenate((keyed, np.repeat(common, shards[common])))
    return rows, np.concatenate((hashes[keys[keyed]] % shards[keyed], everywhere))


def _stretches(chunk: Chunk, wall_us: Ints, plans: Sequence[JudgingPlan]) -> Ints:
    run = chunk.places("run_id")
    merged = np.array([plan.merged for plan in plans], np.bool_)[run]
    length = np.array([plan.shards * STRETCH_EVENTS for plan in plans], np.int64)[run]
    stretches: Ints = np.where(merged, wall_us // STRETCH_US, chunk.numbers("number") // length)
    return stretches


def _changes(*columns: Ints) -> list[int]:
    """Where a stretch of rows begins in which all these columns stay the same."""
    changed = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return [0, *(np.flatnonzero(changed) + 1).tolist()]


def _packed(rows: pa.Table) -> bytes:
    """Without columns that are null throughout, and with the names only that occur."""
    columns = {name: _own(rows[name].combine_chunks()) for name in rows.column_names if rows[name].null_count < rows.num_rows}
    batch = pa.RecordBatch.from_pydict(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _own(values: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(values.type):
        return values
    used, indices = np.unique(_indices(values), return_inverse=True)
    known = used[used >= 0]
    absent = len(used) - len(known)  # null, at the first place
    places = pa.array(indices - absent, pa.int32(), mask=indices < absent)
    return pa.DictionaryArray.from_arrays(places, values.dictionary.take(pa.array(known)))


def _indices(values: pa.DictionaryArray) -> Ints:
    indices: Ints = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return indices


# --- unpacked ----------------------------------------------------------------------------------------------------------------


Recorded: TypeAlias = tuple[Event, int, str, float]
"""An event with its number, its process, and its time in seconds since 1970."""


def unpacked(packages: Sequence[bytes], *, merged: bool) -> Iterator[Recorded]:
    """The events of one stretch in the order of judging: of a merged run that of time."""
    tables = [pa.ipc.open_stream(package).read_all() for package in packages]
    rows = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    number, wall_t = rows["number"].to_numpy(), rows["wall_t"].to_numpy()
    process = np.array(_values(rows["process"].combine_chunks()))
    order = np.lexsort((number, process, wall_t) if merged else (number, process))
    places = (number[order].tolist(), process[order].tolist(), wall_t[order].tolist())
    return zip(_events(rows.take(pa.array(order))), *places, strict=True)


def _events(rows: pa.Table) -> list[Event]:
    """Kind by kind, since each has few of the columns."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    kinds, indices = columns["event"].dictionary.to_pylist(), _indices(columns["event"])
    events: list[Any] = [None] * len(indices)
    for place, kind in enumerate(kinds):
        at = np.flatnonzero(indices == place)
        for row, event in zip(at.tolist(), _of_kind(kind, columns, at), strict=True):
            events[row] = event
    return events


def _of_kind(kind: str, columns: Mapping[str, pa.Array], at: Ints) -> Iterator[Event]:
    rows, nothing = pa.array(at), [None] * len(at)
    names = EVENT_FIELDS[kind].values()
    fields = [values_of(name, _values(columns[name].take(rows)) if name in columns else nothing) for name in names]
    return map(EVENT_TYPES[kind], *fields)


def _values(column: pa.Array) -> list[Any]:
    """What `to_pylist` gives, many times as fast where most values are alike or none is null."""
    if pa.types.is_dictionary(column.type):
        names: list[Any] = np.array([*column.dictionary.to_pylist(), None], object)[_indices(column)].tolist()
        return names
    plain = not column.null_count and pa.types.is_primitive(column.type)
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist() if plain else column.to_pylist()
    return values
