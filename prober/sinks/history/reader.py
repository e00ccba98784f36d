"""Reader of a history: events of a key, and runs, of all processes that wrote to it.

A query skips folders by date and hour, and row groups by their statistics of subscription, key, run and time. Each file that it needs is
first read completely, to detect damage (`arrow.is_damaged`). Events of a run are in recorder order; runs of the same hour may follow each
other. Memory does not grow with the history. Runs are returned as the recorded values (`StoredRun`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from prober.core.events import Event
from prober.core.findings import Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.arrow import FORMAT, is_damaged, schema_of, version_in
from prober.sinks.history.checking import RunRecord
from prober.sinks.history.decoding import EVENT_COLUMNS, events_of
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.schema import EVENTS, RUNS, Table, check_version, decode_rules
from prober.sinks.history.spool import bytes_below
from prober.sinks.history.store import SPOOL_FOLDER, HistoryError, HistoryStore, end_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts, whole_micros

ROWS_AT_ONCE_MAX: Final = 250_000
"""Maximum number of events in memory; a key seldom has more in one hour."""
_MARGIN_S: Final = 60.0
"""Margin around the start and end of a run for the times of its events."""


NO_END: Final = RunRecord(ended=False)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of the history.

    process, clock_offset_s   recording process, and the offset from `t` to seconds since 1970.
    at          end of the run, or its start if it has no end, in seconds since 1970 by the clock of its events.
    result      None for a run that was cut short or still goes on. Findings are not included: the history stores them separately.
    record      state of the record of its events.
    """

    context: RunContext
    process: str
    clock_offset_s: float
    at: float
    result: RunResult | None = None
    record: RunRecord = NO_END

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return self.context.run_id

    @property
    def began_at(self) -> float:
        """Start of the run, in seconds since 1970 by the clock of its events."""
        return self.at if self.result is None else self.at - self.result.duration_s

    @property
    def ended_at(self) -> float:
        """End of the run, by the same clock; `inf` if it has no end."""
        return inf if self.result is None else self.at

    @property
    def rules(self) -> Mapping[str, Rules]:
        """Bounds that the run is verified under, by subscription."""
        return self.context.rules


def extent(runs: Iterable[StoredRun]) -> TimeSpan:
    """Return a time span that covers all events of the runs, of which there is at least one."""
    listed = list(runs)
    return TimeSpan(min(run.began_at for run in listed) - _MARGIN_S, max(run.ended_at for run in listed) + _MARGIN_S)


def stored_run(row: Mapping[str, Any]) -> StoredRun:
    """Return the run of a row: the row of its end if `verdict` is set, else the row of its start."""
    context = RunContext(
        row["run_id"],
        row["target"],
        row["environment"],
        row["region"],
        row["probe"],
        row["vantage"],
        row["topic"],
        _rules(row["rules"]),
        _seconds(row["started_at"]),
        row["seed"],
    )
    result = None if row["verdict"] is None else _result(row, context)
    return StoredRun(context, row["process"], row["clock_offset_s"], _seconds(row["time"]), result, RunRecord.of(row))


def _result(row: Mapping[str, Any], context: RunContext) -> RunResult:
    return RunResult(
        context.run_id,
        context.probe,
        context.target,
        context.vantage,
        Verdict(row["verdict"]),
        row["reason"],
        context.started_at,
        row["duration_s"],
        context.seed,
        context.topic,
        row["subscription"],
        counts={(Kind(one["kind"]), Status(one["status"])): one["count"] for one in row["finding_counts"]},
        counters=dict(row["counters"]),
        checks={Indicator(one["indicator"]): SliCounts(one["good"], one["bad"], one["undecided"]) for one in row["checks"]},
        internal_error=row["internal_error"],
    )


def _seconds(time: datetime) -> float:
    return time.timestamp()


@lru_cache(maxsize=256)
def _rules(text: str) -> Mapping[str, Rules]:
    """Return decoded rules; cached, since runs of one probe share them."""
    return decode_rules(text)


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time span in seconds since 1970, without its end."""

    since: float = -inf
    until: float = inf


ALWAYS: Final = TimeSpan()


class Recorded(NamedTuple):
    """An event with its run and its number in the run."""

    run_id: str
    number: int
    event: Event


class RunRows(NamedTuple):
    """Event rows of a run: their count, the highest event number, and the number of processes that wrote them."""

    recorded: int
    highest: int
    processes: int


class HistoryReader:
    """Read access to a history. Raises `HistoryError` if data cannot be read, for instance a file of a newer version.

    unreadable   unreadable files that were skipped so far, by path below the history, each with the reason; without `skip_unreadable` they
    raise `HistoryError`.
    """

    def __init__(self, location: str, *, skip_unreadable: bool = False) -> None:
        self.location = location
        self._skip_unreadable = skip_unreadable
        self.unreadable: dict[str, str] = {}
        self._looked_at: set[str] = set()
        self._store = HistoryStore(location)
        if self._store.root is not None and not self._store.root.is_dir():
            raise HistoryError(f"{location}: no such folder; give the location of a history")

    def must_be_history(self) -> None:
        """Raise `HistoryError` if no prober has written to the location, or it cannot be read."""
        try:
            if self._store.is_used():
                return
        except OSError as error:
            raise self._unreachable(error) from error
        raise HistoryError(f"{self.location}: no prober has written a history here; give the location of one")

    def spooled_bytes(self) -> int:
        """Return the size of the spool in the history's own folder: bytes that are not in its tables yet."""
        return 0 if self._store.root is None else bytes_below(self._store.root / SPOOL_FOLDER)

    # --- queries -------------------------------------------------------------------------------------------------------------

    def run_ids(self, *, key: str | None = None, subscription: str | None = None, span: TimeSpan = ALWAYS) -> Sequence[str]:
        """Return the runs with events of the key itself in the span, ordered by the hour of their first event. `key` None: all events."""
        question = _about(subscription, span) & (pc.scalar(True) if key is None else pc.field("key") == key)
        found: dict[str, None] = {}
        for dataset in self._datasets(EVENTS, span):
            for batch in _batches(dataset, ["run_id"], question):
                found.update(dict.fromkeys(batch.column(0).unique().to_pylist()))
        return tuple(found)

    def run_rows(self, *, span: TimeSpan = ALWAYS, run_ids: Collection[str] | None = None) -> Mapping[str, RunRows]:
        """Return the counts of event rows in the span, by run."""
        parts: dict[str, list[tuple[int, int, str]]] = {}
        for dataset in self._datasets(EVENTS, span):
            rows = _table(dataset, ["run_id", "process", "number"], _within(span) & _of_runs(run_ids))
            counted = rows.group_by(["run_id", "process"]).aggregate([("number", "count"), ("number", "max")])
            for run_id, *part in zip(*(counted.column(name).to_pylist() for name in _COUNTED), strict=True):
                parts.setdefault(run_id, []).append(tuple(part))
        columns = {run_id: list(zip(*members, strict=True)) for run_id, members in parts.items()}
        return {
            run_id: RunRows(sum(counts), max(numbers), len(set(processes)))
            for run_id, (counts, numbers, processes) in columns.items()
        }

    def events(
        self, key: str | None, *, subscription: str | None = None, span: TimeSpan = ALWAYS, run_ids: Collection[str] | None = None
    ) -> Iterator[Recorded]:
        """Yield the events that concern a key, or all keys, on one subscription, or on all; those of each run in recorder order.

        Events that concern all keys are included. Several runs of one hour follow each other. A duplicate of an event is skipped.
        """
        question = _about(subscription, span)
        if key is not None:
            question &= (pc.field("key") == key) | pc.field("key").is_null()
        question &= _of_runs(run_ids)
        for dataset in self._datasets(EVENTS, span):
            for window in _windows(dataset, question):
                rows = _table(dataset, ["run_id", "number", *EVENT_COLUMNS], question & window)
                yield from _recorded(rows.sort_by([("run_id", "ascending"), ("number", "ascending")]))

    def runs(self, *, span: TimeSpan = ALWAYS, run_ids: Collection[str] | None = None) -> Iterator[StoredRun]:
        """Yield the runs that started or ended in the span, in the order of their ends; those without an end come last."""
        question = _within(span) & _of_runs(run_ids)
        begun: dict[str, StoredRun] = {}
        ended: set[str] = set()
        for row in self._rows(RUNS, question, span):
            run = stored_run(row)
            if run.result is None:
                begun[run.run_id] = run
            elif run.run_id not in ended:
                ended.add(run.run_id)
                begun.pop(run.run_id, None)
                yield run
        yield from (run for run_id, run in begun.items() if run_id not in ended)

    def runs_named(self, run_ids: Sequence[str], span: TimeSpan = ALWAYS) -> Mapping[str, StoredRun]:
        """Return these runs by id, in this order, without those that have no row. `span`: all of them had events in it."""
        near = TimeSpan(span.since - DAY_S, span.until + DAY_S)
        runs = {run.run_id: run for run in self.runs(span=near, run_ids=run_ids)} if run_ids else {}
        rest = [run_id for run_id in run_ids if run_id not in runs]
        if rest and near != ALWAYS:
            runs |= {run.run_id: run for run in self.runs(run_ids=rest)}
        return {run_id: runs[run_id] for run_id in run_ids if run_id in runs}

    # --- files ---------------------------------------------------------------------------------------------------------------

    def _rows(self, table: Table, question: pc.Expression, span: TimeSpan) -> Iterator[Mapping[str, Any]]:
        for dataset in self._datasets(table, span):
            yield from _table(dataset, None, question).sort_by("time").to_pylist()

    def _datasets(self, table: Table, span: TimeSpan) -> Iterator[ds.Dataset]:
        """Yield the files of each folder of a table that may have rows of the span, the oldest folder first."""
        try:
            folders = self._folders(table, span)
        except OSError as error:
            raise self._unreachable(error) from error
        for folder in folders:
            paths = sorted(file.path for file in self._store.contents(folder))
            if paths:
                yield self._dataset(table, paths)

    def _unreachable(self, error: OSError) -> HistoryError:
        text = str(error).partition("\n")[0]
        reason = text.partition("google::cloud::Status(")[2] or text  # pyarrow's library for Cloud Storage
        return HistoryError(f"{self.location} cannot be read: {reason:.200}")

    def _folders(self, table: Table, span: TimeSpan) -> Iterable[str]:
        folders = self._store.folders(table.name)
        if table.hourly:
            folders = [hour for date in folders if _touches(date, span) for hour in self._store.folders(date)]
        return [folder for folder in folders if _touches(folder, span)]

    def _dataset(self, table: Table, paths: Iterable[str]) -> ds.Dataset:
        for path in paths:
            if path not in self._looked_at:
                self._looked_at.add(path)
                if fault := self._fault_of(path):
                    if not self._skip_unreadable:
                        raise HistoryError(f"{self.location}/{path}: {fault}")
                    self.unreadable[path] = fault
        readable = [path for path in paths if path not in self.unreadable]
        return ds.dataset(readable, schema=schema_of(table), filesystem=self._store.files, format=FORMAT)

    def _fault_of(self, path: str) -> str:
        """Return the damage of a file in one line; empty if it is readable. Raises `HistoryError` for an unknown format or version."""
        try:
            with self._store.files.open_input_file(path) as file:
                if is_damaged(file):
                    return "damaged: its bytes are not those that were written"
                file.seek(0)
                metadata = pq.read_metadata(file).metadata
        except (OSError, pa.ArrowException) as wrong:
            return f"cannot be read: {str(wrong).partition(chr(10))[0]}"
        try:
            check_version(version_in(metadata))
        except ValueError as wrong:
            raise HistoryError(f"{self.location}/{path}: {wrong}") from wrong
        return ""


def _touches(folder: str, span: TimeSpan) -> bool:
    """Return whether a folder, of a day or an hour, may contain rows of the span."""
    end = end_of(folder)
    if end is None:
        return False
    length_s = 3600 if "/hour=" in folder else 86400
    return end.timestamp() > span.since and end.timestamp() - length_s < span.until


# --- expressions and rows ----------------------------------------------------------------------------------------------------


def _about(subscription: str | None, span: TimeSpan) -> pc.Expression:
    within = _within(span)
    if subscription is None:
        return within
    return within & ((pc.field("subscription") == subscription) | pc.field("subscription").is_null())


def _of_runs(run_ids: Collection[str] | None) -> pc.Expression:
    return pc.scalar(True) if run_ids is None else pc.field("run_id").isin(pa.array(run_ids, pa.string()))


def _within(span: TimeSpan) -> pc.Expression:
    expression = pc.scalar(True)
    if span.since > -inf:
        expression &= pc.field("time") >= _instant(span.since)
    if span.until < inf:
        expression &= pc.field("time") < _instant(span.until)
    return expression


def _instant(seconds: float) -> pa.Scalar:
    return pa.scalar(whole_micros(seconds), pa.int64()).cast(pa.timestamp("us", "UTC"))


def _table(dataset: ds.Dataset, columns: list[str] | None, question: pc.Expression) -> pa.Table:
    schema = dataset.schema if columns is None else pa.schema([dataset.schema.field(name) for name in columns])
    return pa.Table.from_batches(_batches(dataset, columns, question), schema=schema)


def _batches(dataset: ds.Dataset, columns: list[str] | None, question: pc.Expression) -> Iterator[pa.RecordBatch]:
    try:
        # Reading ahead would hold many row groups in memory, although the filter selects few of their rows.
        for batch in dataset.to_batches(columns=columns, filter=question, batch_readahead=2, fragment_readahead=2):
            batch.validate(full=True)  # a disk error may have damaged a text
            yield batch
    except (OSError, pa.ArrowInvalid) as error:
        raise HistoryError(f"the history cannot be read: {str(error).partition(chr(10))[0]}") from error


def _windows(dataset: ds.Dataset, question: pc.Expression) -> Iterator[pc.Expression]:
    """Yield conditions on time that divide a folder's rows into parts small enough for memory. Rows of equal time stay together."""
    times = pa.chunked_array([batch.column(0) for batch in _batches(dataset, ["time"], question)], pa.timestamp("us", "UTC"))
    if len(times) <= ROWS_AT_ONCE_MAX:
        yield pc.scalar(True)
        return
    times = times.take(pc.sort_indices(times))
    bounds = [times[at] for at in range(ROWS_AT_ONCE_MAX, len(times), ROWS_AT_ONCE_MAX)]
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        window = pc.scalar(True)
        if low is not None:
            window &= pc.field("time") >= low
        if high is not None:
            window &= pc.field("time") < high
        yield window


_COUNTED: Final = ("run_id", "number_count", "number_max", "process")


def _recorded(rows: pa.Table) -> Iterator[Recorded]:
    """Yield the events of rows that are sorted by run and number, without duplicates."""
    try:
        events = events_of(rows)
    except ValueError as wrong:
        raise HistoryError(f"the history cannot be read: {wrong}") from wrong
    latest: tuple[str, int] | None = None
    for run_id, number, event in zip(rows.column("run_id").to_pylist(), rows.column("number").to_pylist(), events, strict=True):
        if (run_id, number) != latest:
            latest = run_id, number
            yield Recorded(run_id, number, event)
