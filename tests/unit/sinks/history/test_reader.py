"""Questions to a history: only what is asked for is read, and it comes in the order in which it was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from prober.core.events import Acked, Closed, Delivered, Ended, Event, Opened, Published, PublishInvoked
from prober.sinks.history import encoding
from prober.sinks.history import reader as reader_module
from prober.sinks.history.arrow import ROW_GROUP_ROWS, schema_of
from prober.sinks.history.reader import HistoryReader, Recorded, RunRows, TimeSpan
from prober.sinks.history.schema import EVENT_FIELDS, EVENTS, VERSION_KEY
from prober.sinks.history.store import HistoryError
from tests.notation import history
from tests.unit.sinks.history.older import ADDED, make_older
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, numbered, parquet_files, result

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"
LINE = "P1,2,3 A<1,2,3@2 A ack 1@2.5"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path)
    yield recorder
    recorder.kill()


def reader(recorder: Recorder) -> HistoryReader:
    return HistoryReader(str(recorder.location))


def acked(t: float, key: str = "k", subscription: str = "s") -> Event:
    return Acked(t, subscription, key, "A", str(t))


# --- events ------------------------------------------------------------------------------------------------------------------

TELLING: list[Event] = [
    Opened(0.0, "s", "A", "a", max_outstanding_messages=5, max_outstanding_bytes=600),
    PublishInvoked(1.0, "k", "e", 1, size=3, region="europe-west1"),
    Published(1.1, "k", "e", 1, "m", publish_time=1_767_323_045.25),
    Delivered(2.0, "s", "k", "A", "e", 1, "m", publish_time=1_767_323_045_123_456_789),
    Delivered(2.1, "s", "k", "A", "e", 1, "m", publish_time=1_767_323_045_123_456_788),
    Closed(3.0, "s", "A", lost=True),
    Ended(4.0, True),
]


def test_files_without_the_columns_that_were_added_stay_readable(recorder: Recorder) -> None:
    """Also next to newer files, whose columns they do not have."""
    recorder.record(TELLING, "old")
    recorder.save()
    assert make_older(recorder.location) == 1
    later = [replace(event, t=event.t + 10.0) for event in TELLING]
    recorder.record(later, "new")
    recorder.save()
    reported = [event for run_id, _, event in numbered(recorder.location) if run_id == "old"]
    assert reported == [
        Opened(0.0, "s", "A", "a"),
        PublishInvoked(1.0, "k", "e", 1, size=3),
        Published(1.1, "k", "e", 1, "m", publish_time=1_767_323_045.25),
        Delivered(2.0, "s", "k", "A", "e", 1, "m"),
        Delivered(2.1, "s", "k", "A", "e", 1, "m"),
        Closed(3.0, "s", "A"),
        Ended(4.0, True),
    ]
    assert [event for run_id, _, event in numbered(recorder.location) if run_id == "new"] == later


def test_what_an_older_program_left_in_the_spool_is_brought_home(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        fields = {
            name: {field: column for field, column in columns.items() if column not in ADDED}
            for name, columns in EVENT_FIELDS.items()
        }
        older.setattr(encoding, "EVENT_FIELDS", fields)
        recorder.record(TELLING)
        assert recorder.writer.flush()
    recorder.save()
    events = [event for _, _, event in numbered(recorder.location)]
    assert events[:2] == [Opened(0.0, "s", "A", "a"), PublishInvoked(1.0, "k", "e", 1, size=3)]
    assert events[-2] == Closed(3.0, "s", "A")


def test_a_key_comes_with_what_concerns_all_keys_and_without_the_others(recorder: Recorder) -> None:
    events = [Opened(0.0, "s", "A", "A"), acked(1.0), acked(2.0, "other"), PublishInvoked(3.0, "k", "e", 1), Ended(4.0, True)]
    recorder.record(events)
    recorder.save()
    assert list(numbered(recorder.location)) == [("run-1", number, events[number - 1]) for number in (1, 2, 4, 5)]
    assert reader(recorder).run_ids(key="k") == ("run-1",)
    assert reader(recorder).run_ids(key="") == ()


def test_a_subscription_comes_with_what_was_published_and_without_the_others(recorder: Recorder) -> None:
    events = [
        Closed(0.0, "s", "A"),
        Closed(0.5, "other", "A"),
        acked(1.0),
        acked(2.0, "k", "other"),
        PublishInvoked(3.0, "k", "e", 1),
    ]
    recorder.record(events)
    recorder.save()
    assert [found.number for found in reader(recorder).events("k", subscription="s")] == [1, 3, 5]


def test_runs_come_one_after_the_other_each_in_its_order_over_files_and_hours(recorder: Recorder) -> None:
    logs = {run_id: recorder.begin(run_id) for run_id in ("b", "a")}
    for step in range(8):
        for log in logs.values():
            log.record(acked(step * 900.0))
        recorder.save()
    found = list(numbered(recorder.location))
    assert len(parquet_files(recorder.location)) > 6
    for run_id in logs:
        assert [number for found_id, number, _ in found if found_id == run_id] == list(range(1, 9))
    assert [run_id for run_id, _, event in found if event.t < 3355.0] == ["a"] * 4 + ["b"] * 4


def test_what_is_written_by_two_processes_is_one_history(tmp_path: Path) -> None:
    for process in ("one", "two"):
        recorder = Recorder(tmp_path, process)
        recorder.record(history(GAP), f"run-{process}")
        recorder.save()
        recorder.kill()
    assert HistoryReader(str(tmp_path)).run_ids(key="k") == ("run-one", "run-two")
    assert len(list(numbered(tmp_path))) == 2 * len(history(GAP))


def test_a_time_span_has_its_begin_and_not_its_end(recorder: Recorder) -> None:
    recorder.record([acked(float(t)) for t in range(10)])
    recorder.save()
    span = TimeSpan(BEGAN_AT + 3, BEGAN_AT + 6)
    assert [found.number for found in reader(recorder).events("k", span=span)] == [4, 5, 6]
    assert reader(recorder).run_ids(key="k", span=TimeSpan(BEGAN_AT + 20)) == ()


def test_an_event_that_is_there_twice_comes_once(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    path = next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    (recorder.location / path).with_name("events-merged-00000001.parquet").write_bytes((recorder.location / path).read_bytes())
    assert len(list(numbered(recorder.location))) == len(history(GAP))


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_many_events_come_in_parts(recorder: Recorder, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(reader_module, "ROWS_AT_ONCE_MAX", at_once)
    events = [acked(t // 2) for t in range(20)]
    recorder.record(events)
    recorder.save()
    assert list(reader(recorder).events("k")) == [Recorded("run-1", number, event) for number, event in enumerate(events, 1)]


def test_other_folders_and_other_keys_are_not_read(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 keys fill two row groups of one hour; another hour is broken, and nobody notices."""
    recorder.record(Acked(t / 1e6, "s", f"k{t % 64:02}", "A", str(t)) for t in range(2 * ROW_GROUP_ROWS))
    recorder.save()
    broken = recorder.location / "events/date=2026-01-02/hour=09/events-p9-00000001.parquet"
    broken.parent.mkdir()
    broken.write_bytes(b"PAR1")
    read: list[int] = []
    span = TimeSpan(BEGAN_AT, BEGAN_AT + 60)
    (dataset,) = reader(recorder)._datasets(EVENTS, span)
    question = (pc.field("key") == "k40") | pc.field("key").is_null()
    for fragment in dataset.get_fragments():
        read += [group.id for part in fragment.split_by_row_group(question) for group in part.row_groups]
    assert read == [1]
    assert len(list(reader(recorder).events("k40", span=span))) == ROW_GROUP_ROWS // 32


def test_what_is_on_record_of_runs_is_counted_over_processes_and_hours(recorder: Recorder) -> None:
    recorder.record([acked(t * 900.0) for t in range(8)], "long")
    recorder.record([acked(7000.0)], "short")
    recorder.save()
    other = Recorder(recorder.location, "p2")
    other.record([acked(1.0), acked(2.0)], "short")
    other.save()
    other.kill()
    assert reader(recorder).run_rows() == {"long": RunRows(8, 8, 1), "short": RunRows(3, 2, 2)}
    assert reader(recorder).run_rows(run_ids=["long"], span=TimeSpan(BEGAN_AT + 1800)) == {"long": RunRows(6, 8, 1)}


# --- runs and findings -------------------------------------------------------------------------------------------------------


def test_runs_come_when_they_ended_and_the_endless_last(recorder: Recorder) -> None:
    endless, long, short = (recorder.begin(name) for name in ("endless", "long", "short"))
    recorder.clock.now = 1.0
    short.ended(result("short", duration_s=1.0))
    recorder.clock.now = 86400.0
    long.ended(result("long", duration_s=86400.0))
    endless.release()
    recorder.save()
    assert [run.run_id for run in reader(recorder).runs()] == ["short", "long", "endless"]
    assert [run.run_id for run in reader(recorder).runs(run_ids=["long"])] == ["long"]
    assert [run.run_id for run in reader(recorder).runs(span=TimeSpan(BEGAN_AT + 3600))] == ["long"]


# --- what cannot be read -----------------------------------------------------------------------------------------------------


def rewritten(recorder: Recorder, **metadata: str) -> str:
    """Gives the file of events other metadata; returns its path."""
    path = next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    rows = pq.read_table(recorder.location / path, schema=schema_of(EVENTS), partitioning=None)
    pq.write_table(rows.replace_schema_metadata(metadata), recorder.location / path)
    return path


def error(recorder: Recorder) -> str:
    with pytest.raises(HistoryError) as caught:
        list(reader(recorder).events("k"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_newer_version_is_refused_in_one_line(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    path = rewritten(recorder, **{VERSION_KEY: "2"})
    assert error(recorder) == (
        f"{recorder.location}/{path}: written under version 2 of the schema, this program knows 1; use a newer one"
    )


def test_a_file_that_is_none_of_a_history_is_refused(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    rewritten(recorder)
    assert "not a file of a probe history" in error(recorder)


def test_a_broken_file_is_refused(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    path = next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    (recorder.location / path).write_bytes(b"PAR1 no")
    assert path in error(recorder)


@pytest.mark.parametrize(
    ("column", "value", "why"), [("key", b"\xd5k", "UTF8"), ("event", b"deliverex", "'deliverex', which is no kind of event")]
)
def test_text_that_a_disk_has_spoiled_is_refused(recorder: Recorder, column: str, value: bytes, why: str) -> None:
    recorder.record([acked(1.0)])
    recorder.save()
    path = recorder.location / next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    rows = pq.read_table(path, schema=schema_of(EVENTS), partitioning=None)
    spoiled = pa.array([value] * len(rows), pa.binary()).view(pa.string())
    place = rows.schema.get_field_index(column)
    pq.write_table(rows.set_column(place, rows.schema.field(place), spoiled), path)
    with pytest.raises(HistoryError, match=why):
        list(reader(recorder).events(None))


def test_a_history_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no such folder"):
        HistoryReader(str(tmp_path / "nowhere"))
    assert list(HistoryReader(str(tmp_path)).events("k")) == []


@pytest.mark.parametrize("flushed_each_time", [True, False])
def test_the_lag_is_written_beside_the_event(tmp_path: Path, flushed_each_time: bool) -> None:
    recorder, events = Recorder(tmp_path), history(LINE)
    log = recorder.begin()
    for number, event in enumerate(events, 1):
        log.record(event, (), 0.5 if number in (4, 9) else 0.0)
        assert not flushed_each_time or recorder.writer.flush()
    log.release()
    recorder.save()
    rows = pq.read_table(tmp_path / "events", columns=["number", "lagged_s"]).to_pylist()
    assert {row["number"]: row["lagged_s"] for row in rows} == {
        number: 0.5 if number in (4, 9) else None for number in range(1, len(events) + 1)
    }
    assert [event for *_, event in numbered(tmp_path)] == events
    recorder.kill()
