"""A spool segment becomes Parquet files.

Which files those are, and every byte in them, follows from the segment alone. So a conversion that was cut short is repeated, and
what it had written already is written again under the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from prober.sinks.history.arrow import ARROW_TYPES, conform, to_parquet
from prober.sinks.history.encoding import CLOCK_OFFSET, EVENT, RUN, TABLE
from prober.sinks.history.schema import EVENTS, TABLES, Table, Type, file_name, folder_of


@dataclass(frozen=True, slots=True)
class File:
    """A file of the history: its path below `HISTORY`, and its content."""

    path: str
    content: pa.Buffer


def files_of(frames: Sequence[bytes], writer: str, segment: int) -> Iterator[File]:
    """The files of a segment with this content. `writer` and `segment` name them. Raises ValueError for what no spool holds."""
    batches: dict[Table, list[pa.RecordBatch]] = {table: [] for table in TABLES.values()}
    for frame in frames:
        with pa.ipc.open_stream(frame) as stream:
            table = TABLES[stream.schema.metadata[TABLE].decode()]
            batches[table] += list(stream)
    for table, members in batches.items():
        if members:
            rows = events_table(members) if table is EVENTS else conform(pa.Table.from_batches(members), table)
            yield from divided(rows, table, file_name(table, writer, segment))


def divided(rows: pa.Table, table: Table, name: str) -> Iterator[File]:
    """One file of that name for each date, or hour, that the rows fall into."""
    unit = "hour" if table.hourly else "day"
    starts = pc.floor_temporal(rows.column("time"), unit=unit)
    for start in sorted(starts.unique().to_pylist()):
        part = rows.filter(pc.equal(starts, pa.scalar(start, starts.type)))
        yield File(f"{_folder(table, start)}/{name}", to_parquet(part, table))


def _folder(table: Table, start: datetime) -> str:
    return folder_of(table, f"{start:%Y-%m-%d}", start.hour)


def events_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Batches of events, each of one kind and one run, as rows with all columns."""
    runs: dict[bytes, int] = {}
    kinds: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        metadata = batch.schema.metadata
        run = runs.setdefault(metadata[RUN], len(runs))
        column = pa.repeat(pa.scalar(run, pa.int32()), batch.num_rows)
        marked = batch.replace_schema_metadata(None).append_column("run", column)
        kinds.setdefault(metadata[EVENT].decode(), []).append(marked)
    shared = [orjson.loads(run) for run in runs]
    tables = [_widened(name, pa.Table.from_batches(members), shared) for name, members in kinds.items()]
    return pa.concat_tables(tables).combine_chunks()  # sorting is much faster then


def _widened(name: str, rows: pa.Table, runs: Sequence[Mapping[str, object]]) -> pa.Table:
    run = rows.column("run").combine_chunks()
    for column in runs[0]:
        kind = pa.float64() if column == CLOCK_OFFSET else pa.string()
        rows = rows.append_column(column, pa.array([shared[column] for shared in runs], kind).take(run))
    rows = rows.append_column("time", wall_time(rows.column("t"), rows.column(CLOCK_OFFSET)))
    return conform(rows.append_column("event", pa.repeat(name, rows.num_rows)), EVENTS)


def wall_time(t: pa.Array, clock_offset_s: pa.Array | float) -> pa.Array:
    """The column `time` from the column `t`."""
    wall_us = pc.round(pc.multiply(pc.add(t, clock_offset_s), 1e6))
    return wall_us.cast(pa.int64()).cast(ARROW_TYPES[Type.TIMESTAMP])
