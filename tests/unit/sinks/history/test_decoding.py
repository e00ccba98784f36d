"""Rows become the events that were recorded, however their names are stored."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prober.core.events import EVENT_TYPES, Event, FilterChanged
from prober.sinks.history.arrow import dictionary_columns
from prober.sinks.history.decoding import EVENT_COLUMNS, events_of
from prober.sinks.history.schema import EVENTS
from prober.traces.trace import read_trace
from tests.commands import VECTORS
from tests.unit.sinks.history.older import ADDED
from tests.unit.sinks.history.recording import Recorder, as_recorded


def recorded() -> Iterator[list[Event]]:
    """The events of every vector, and what none of them has."""
    for vector in sorted(VECTORS.glob("*.jsonl")):
        with read_trace(vector) as trace:
            yield [as_recorded(event) for event in trace]
    yield [FilterChanged(1.0, "s", 2.0)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """All of `recorded`, one run after the other."""
    recorder = Recorder(tmp_path_factory.mktemp("decoding"))
    for number, events in enumerate(recorded()):
        recorder.record(events, f"run-{number:03}")
    recorder.save()
    recorder.kill()
    files = recorder.location / EVENTS.name
    return pq.read_table(files, partitioning=None).sort_by([("run_id", "ascending"), ("number", "ascending")])


def test_every_kind_of_event_comes_back(rows: pa.Table) -> None:
    expected = [event for events in recorded() for event in events]
    assert events_of(rows) == expected
    assert {type(event) for event in expected} == set(EVENT_TYPES.values())


def test_names_may_be_dictionaries_and_rows_may_come_in_batches(rows: pa.Table) -> None:
    expected = events_of(rows)
    for name in dictionary_columns(EVENTS):
        rows = rows.set_column(rows.column_names.index(name), name, rows.column(name).dictionary_encode())
    assert events_of(rows) == expected
    assert [event for batch in rows.to_batches(7) for event in events_of(batch)] == expected


def test_columns_that_are_missing_are_null(rows: pa.Table) -> None:
    fewer = rows.select([name for name in EVENT_COLUMNS if name not in ADDED])
    nulls = fewer
    for name in set(ADDED) & set(EVENT_COLUMNS):
        nulls = nulls.append_column(name, pa.nulls(len(rows), rows.schema.field(name).type))
    assert events_of(fewer) == events_of(nulls)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="'deliverex', which is no kind of event"):
        events_of(pa.table({"event": ["deliverex"]}))
