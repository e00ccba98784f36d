"""Encoding of events, findings, runs and messages as Arrow batches, each a self-contained stream of bytes for the spool.

A batch of events contains events of one kind and one run, and only the columns of this kind. The facts about the run are stored once, in
the batch's metadata. Conversion of a spool segment to Parquet files (`files_of`) adds the other columns of the table. The files, including
every byte in them, depend on the segment only. So an interrupted conversion is repeated and replaces its earlier files under the same
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from prober.core.events import EVENT_NAMES, Event
from prober.core.guarded_verifier import RecordedFinding
from prober.core.rules import Rules
from prober.evidence.explain import explain
from prober.runs.result import RunResult
from prober.sinks.history.arrow import conform, schema_of, to_parquet
from prober.sinks.history.schema import (
    EVENT_FIELDS,
    EVENTS,
    LAGGED,
    MESSAGES,
    MESSAGES_WRITTEN,
    SCHEMA_VERSION,
    TABLES,
    TIMESTAMP,
    VERSION,
    Table,
    encode_rules,
    folder_of,
    history_file_name,
)
from prober.slo.objectives import whole_micros

TABLE: Final = b"table"
EVENT: Final = b"event"
RUN: Final = b"run"
"""Keys of a batch's metadata: the table, the kind of its events, and the run.

The value of the run is JSON: the columns that all rows of the batch share and, for events, the clock offset that yields their `time`.
"""
CLOCK_OFFSET: Final = "clock_offset_s"

MESSAGES_AT_ONCE: Final = 5000
_NUMBER: Final = pa.field("number", pa.int64(), nullable=False)
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RunContext:
    """Facts about a run that are known at its start.

    environment, region   of the target.
    rules       bounds of each subscription of the run, by full name; the first is the run's own.
    started_at  seconds since 1970.
    """

    run_id: str
    target: str
    environment: str
    region: str
    probe: str
    vantage: str
    topic: str
    rules: Mapping[str, Rules]
    started_at: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """The recording process: its incarnation, and the offset from its monotonic clock to seconds since 1970."""

    process: str
    clock_offset_s: float


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Numbers of events and messages of a run.

    recorded  all events of the run, including those that the history dropped.
    dropped   events that the history dropped.
    verified  events that were verified online; None: all.
    messages  rows in `MESSAGES`; None: not written.
    stopped   the prober was stopped during the run.
    """

    recorded: int
    dropped: int
    verified: int | None
    messages: int | None = None
    stopped: bool = False


def as_stream(batch: pa.RecordBatch) -> bytes:
    """Return the batch as an Arrow stream for `pa.ipc.open_stream`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


# --- events ------------------------------------------------------------------------------------------------------------------


class EventEncoder:
    """Encoder of the events of one run."""

    def __init__(self, run: RunContext, origin: Origin) -> None:
        shared = shared_columns(run, origin) | {"topic": run.topic, CLOCK_OFFSET: origin.clock_offset_s}
        self._metadata = {TABLE: EVENTS.name.encode(), RUN: orjson.dumps(shared)}
        self._forms: dict[type[Event], _Form] = {}

    def batches(
        self, first: int, events: Sequence[Event], lagged_s: Mapping[int, float] = MappingProxyType({})
    ) -> Iterator[pa.RecordBatch]:
        """Yield events with consecutive numbers from `first` on as batches, one per kind.

        `lagged_s`: event loop lag by event number. An integer beyond 64 bits, possible only in messages of other publishers, becomes the
        nearest that fits; half of a surrogate pair becomes a question mark.
        """
        groups: dict[type[Event], tuple[list[int], list[Event]]] = {}
        for number, event in enumerate(events, first):
            kind = type(event)
            group = groups.get(kind)
            if group is None:
                group = groups[kind] = ([], [])
            group[0].append(number)
            group[1].append(event)
        for kind, (numbers, members) in groups.items():
            form = self._forms.get(kind)
            if form is None:
                form = self._forms[kind] = _Form(kind, self._metadata)
            yield form.batch(numbers, members, lagged_s)


class _Form:
    """Schema of one kind of event of one run, with access to the fields."""

    def __init__(self, kind: type[Event], metadata: Mapping[bytes, bytes]) -> None:
        name = EVENT_NAMES[kind]
        types = {column.name: column.type for column in EVENTS.columns}
        columns = EVENT_FIELDS[name]
        self.schema = pa.schema(
            [_NUMBER, *((column, types[column]) for column in columns.values())], metadata={**metadata, EVENT: name.encode()}
        )
        self._lagging_schema = self.schema.append(pa.field(LAGGED, types[LAGGED]))
        self._getters: list[tuple[Callable[[Event], Any], pa.DataType]] = [
            (attrgetter(field), types[column]) for field, column in columns.items()
        ]

    def batch(self, numbers: list[int], events: list[Event], lagged_s: Mapping[int, float]) -> pa.RecordBatch:
        columns = [_array(list(map(getter, events)), kind) for getter, kind in self._getters]
        if not lagged_s:
            return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), *columns], schema=self.schema)
        lagged = pa.array([lagged_s.get(number) for number in numbers], pa.float64())
        return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), *columns, lagged], schema=self._lagging_schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        return pa.array([_fitting(value) for value in values], kind)


def _fitting(value: object) -> object:
    if isinstance(value, int):
        return max(-_INT64_MAX, min(_INT64_MAX, value))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def shared_columns(run: RunContext, origin: Origin) -> dict[str, object]:
    """Return the columns that all rows of a run share, in every table."""
    return {
        "run_id": run.run_id,
        "process": origin.process,
        "target": run.target,
        "environment": run.environment,
        "region": run.region,
        "probe": run.probe,
        "vantage": run.vantage,
    }


# --- runs and findings -------------------------------------------------------------------------------------------------------


def rows_batch(table: Table, rows: Iterable[Mapping[str, object]]) -> pa.RecordBatch:
    """Return a batch of a table, from rows of the functions below."""
    schema = schema_of(table)
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema.with_metadata({**schema.metadata, TABLE: table.name}))


def finding_row(made: RecordedFinding, run: RunContext, origin: Origin) -> dict[str, object]:
    """Return the row of a finding in `FINDINGS`."""
    finding = made.finding
    return {
        "time": whole_micros(finding.t + origin.clock_offset_s),
        "t": finding.t,
        **shared_columns(run, origin),
        "kind": finding.kind.value,
        "status": finding.status.value,
        "subscription": finding.subscription,
        "key": finding.key,
        "after": made.after,
        "witnesses": list(finding.witnesses),
        "facts": orjson.dumps(dict(finding.facts)).decode(),
        "doubt": finding.doubt,
        "assumptions": list(finding.assumptions.items()),
        "reasons": list(finding.reasons),
        "explanation": explain(finding, origin.clock_offset_s),
    }


def beginning_row(run: RunContext, origin: Origin, t: float) -> dict[str, object]:
    """Return the row in `RUNS` for a run that starts at `t`."""
    return {
        "time": whole_micros(t + origin.clock_offset_s),
        **shared_columns(run, origin),
        "topic": run.topic,
        "subscription": next(iter(run.rules), ""),
        "started_at": whole_micros(run.started_at),
        "seed": run.seed,
        CLOCK_OFFSET: origin.clock_offset_s,
        "rules": encode_rules(run.rules),
        SCHEMA_VERSION: VERSION,
    }


def ending_row(run: RunContext, origin: Origin, t: float, result: RunResult, counts: EventCounts) -> dict[str, object]:
    """Return the row in `RUNS` for a run that ended at `t`."""
    return beginning_row(run, origin, t) | {
        "verdict": result.verdict.value,
        "reason": result.reason,
        "duration_s": result.duration_s,
        "internal_error": result.internal_error,
        "events": counts.recorded,
        "events_dropped": counts.dropped,
        "verified_events": counts.verified,
        "stopped": counts.stopped or None,
        MESSAGES_WRITTEN: counts.messages,
        "finding_counts": [{"kind": kind, "status": status, "count": count} for (kind, status), count in result.counts.items()],
        "counters": list(result.counters.items()),
        "checks": [
            {"indicator": indicator, "good": checked.good, "bad": checked.bad, "undecided": checked.undecided}
            for indicator, checked in result.checks.items()
        ],
    }


def message_batches(rows: Iterable[Mapping[str, object]], run: RunContext, origin: Origin) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `prober.sinks.history.messages` of one run as batches.

    Batches are small, so that other threads of the process do not wait long.
    """
    shared = shared_columns(run, origin) | {"topic": run.topic}
    schema = pa.schema(
        [field for field in schema_of(MESSAGES) if field.name not in shared],
        metadata={TABLE: MESSAGES.name.encode(), RUN: orjson.dumps(shared)},
    )
    left = iter(rows)
    while part := list(islice(left, MESSAGES_AT_ONCE)):
        columns = [_array([row[field.name] for row in part], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


# --- files -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file of the history: its path below `HISTORY`, and its content."""

    path: str
    content: pa.Buffer


def files_of(frames: Sequence[bytes], writer: str, segment: int) -> Iterator[EncodedFile]:
    """Yield the files of a segment with these frames, named after `writer` and `segment`.

    Raises ValueError for a frame that is not an Arrow stream.
    """
    batches: dict[Table, list[pa.RecordBatch]] = {table: [] for table in TABLES.values()}
    for frame in frames:
        with pa.ipc.open_stream(frame) as stream:
            table = TABLES[stream.schema.metadata[TABLE].decode()]
            batches[table] += list(stream)
    for table, members in batches.items():
        if members:
            yield from divided(_joined_rows(members, table), table, history_file_name(table, writer, segment))


def _joined_rows(batches: Sequence[pa.RecordBatch], table: Table) -> pa.Table:
    if table is EVENTS:
        return events_table(batches)
    if table is MESSAGES:
        return conform(pa.concat_tables(map(_with_shared, batches)), table)
    return conform(pa.Table.from_batches(batches), table)


def _with_shared(batch: pa.RecordBatch) -> pa.Table:
    """Return messages of one run with the columns that they share."""
    rows = pa.Table.from_batches([batch.replace_schema_metadata(None)])
    for column, value in orjson.loads(batch.schema.metadata[RUN]).items():
        rows = rows.append_column(column, pa.repeat(value, rows.num_rows))
    return rows


def divided(rows: pa.Table, table: Table, name: str) -> Iterator[EncodedFile]:
    """Yield a file called `name` for each UTC date, or hour, of the rows."""
    unit = "hour" if table.hourly else "day"
    starts = pc.floor_temporal(rows.column(table.time), unit=unit)
    for start in sorted(starts.unique().to_pylist()):
        part = rows.filter(pc.equal(starts, pa.scalar(start, starts.type)))
        yield EncodedFile(f"{_folder(table, start)}/{name}", to_parquet(part, table))


def _folder(table: Table, start: datetime) -> str:
    return folder_of(table, f"{start:%Y-%m-%d}", start.hour)


def events_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return batches of events, each of one kind and one run, as one table with all columns."""
    runs: dict[bytes, int] = {}
    kinds: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        metadata = batch.schema.metadata
        run = runs.setdefault(metadata[RUN], len(runs))
        column = pa.repeat(pa.scalar(run, pa.int32()), batch.num_rows)
        marked = batch.replace_schema_metadata(None).append_column("run", column)
        kinds.setdefault(metadata[EVENT].decode(), []).append(marked)
    shared = [orjson.loads(run) for run in runs]
    tables = [_widened(name, _joined(members), shared) for name, members in kinds.items()]
    return pa.concat_tables(tables).combine_chunks()  # sorting is much faster then


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return batches of one kind of event as one table; only some batches may have the column `LAGGED`."""
    return pa.concat_tables((pa.Table.from_batches([batch]) for batch in batches), promote_options="default")


def _widened(name: str, rows: pa.Table, runs: Sequence[Mapping[str, object]]) -> pa.Table:
    run = rows.column("run").combine_chunks()
    for column in runs[0]:
        kind = pa.float64() if column == CLOCK_OFFSET else pa.string()
        rows = rows.append_column(column, pa.array([shared[column] for shared in runs], kind).take(run))
    rows = rows.append_column("time", wall_time(rows.column("t"), rows.column(CLOCK_OFFSET)))
    return conform(rows.append_column("event", pa.repeat(name, rows.num_rows)), EVENTS)


def wall_time(t: pa.Array, clock_offset_s: pa.Array | float) -> pa.Array:
    """Return the column `time` for the column `t`."""
    wall_us = pc.round(pc.multiply(pc.add(t, clock_offset_s), 1e6))
    return wall_us.cast(pa.int64()).cast(TIMESTAMP)
