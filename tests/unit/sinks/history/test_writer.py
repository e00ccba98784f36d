"""What runs record becomes Parquet, and what is in the way of that is counted and overcome."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.config.sections import HistorySettings
from prober.core.events import Acked, Delivered, Ended, Event, Interrupted, Opened, PublishInvoked
from prober.core.verdict import Verdict
from prober.sinks.history import run_log, writer
from prober.sinks.history.arrow import ROW_GROUP_ROWS
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.spool import Spool
from prober.sinks.history.store import HistoryError, HistoryStore
from prober.sinks.history.writer import HistoryWriter, spool_root
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from prober.traces.trace import read_trace
from tests.commands import VECTORS
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder, context, findings_in, numbered, parquet_files, result
from tests.unit.traces.test_trace import HISTORIES

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path)
    yield recorder
    recorder.kill()


def refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


# --- what was recorded is there ----------------------------------------------------------------------------------------------


def test_a_run_makes_one_file_per_table_in_the_folder_of_its_time(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    assert parquet_files(recorder.location) == [
        "events/date=2026-01-02/hour=03/events-p1-00000001.parquet",
        "findings/date=2026-01-02/findings-p1-00000001.parquet",
        "messages/date=2026-01-02/messages-p1-00000001.parquet",
        "runs/date=2026-01-02/runs-p1-00000001.parquet",
    ]


@given(drawn=HISTORIES, cuts=st.sets(st.integers(0, 20)))
def test_every_kind_of_event_comes_back_however_it_was_flushed(
    drawn: list[Event], cuts: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    recorder = Recorder(tmp_path_factory.mktemp("history"))
    events = [replace(event, t=event.t / 1e6) for event in drawn]
    log = recorder.begin()
    for resources, event in enumerate(events):
        log.record(event)
        if resources in cuts:
            assert recorder.writer.flush()
        if resources * 2 in cuts:
            recorder.writer.end_segment()
    log.release()
    recorder.save()
    keys = {getattr(event, "key", None) for event in events} | {"k"}
    recorder.kill()
    found = {number: event for key in keys - {None} for _, number, event in numbered(recorder.location, str(key))}
    assert found == dict(enumerate(events, 1))


def test_a_file_is_sorted_and_says_so(recorder: Recorder) -> None:
    events: list[Event] = [Acked(t / 100, f"s{t % 3}", f"k{t % 7}", "A", "m") for t in range(100)]
    events += [PublishInvoked(2.0 + t / 100, f"k{t % 7}", "e", t + 1) for t in range(100)]
    recorder.record(events)
    recorder.save()
    path = next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    rows = pq.ParquetFile(recorder.location / path).read(["subscription", "key", "run_id", "number"]).to_pylist()
    order = [(row["subscription"] or "", row["key"], row["run_id"], row["number"]) for row in rows]
    assert order == sorted(order)
    metadata = pq.read_metadata(recorder.location / path).row_group(0)
    assert [rows_by.nulls_first for rows_by in metadata.sorting_columns] == [True] * 4


def test_events_of_two_hours_go_to_two_folders_under_one_name(recorder: Recorder) -> None:
    recorder.record([Acked(t, "s", "k", "A", "m") for t in (0.0, 3355.0, 3500.0)])  # 04:00:00 is 3355 s later
    recorder.save()
    assert parquet_files(recorder.location)[:2] == [
        "events/date=2026-01-02/hour=03/events-p1-00000001.parquet",
        "events/date=2026-01-02/hour=04/events-p1-00000001.parquet",
    ]
    assert [number for _, number, _ in numbered(recorder.location)] == [1, 2, 3]


def test_a_run_and_its_findings_come_back(recorder: Recorder) -> None:
    outcome = recorder.record(history(GAP))
    assert outcome.findings
    recorder.save()
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert run.result is not None
    assert replace(run.result, findings=outcome.findings) == outcome
    assert run.context == context()
    assert (run.record.events, run.record.dropped, run.record.verified) == (len(history(GAP)), 0, None)
    found = findings_in(recorder.location)
    assert [one.made for one in found] == list(outcome.findings)
    assert all(one.explanation for one in found)


def test_findings_made_at_the_end_of_a_run_are_written_once(recorder: Recorder) -> None:
    with read_trace(VECTORS / "t29-redelivered-to-b-but-a-not-b-gets-4-long-after.jsonl") as trace:
        events = list(trace)
        events.append(Ended(events[-1].t, drained=True))  # its violation is on hold until then
        outcome = recorder.record(events, rules=trace.header.rules)
    afters = [made.after for made in outcome.findings]
    assert max(afters) == len(events) > min(afters)
    recorder.save()
    found = [found.made for found in findings_in(recorder.location)]
    assert sorted(found, key=lambda made: made.after) == sorted(outcome.findings, key=lambda made: made.after)


def test_the_rest_of_a_result_comes_back(recorder: Recorder) -> None:
    outcome = result(
        verdict=Verdict.UNKNOWN,
        counters={"acks": 3},
        checks={Indicator.ORDER: SliCounts(5, 1, 2), Indicator.AFFINITY: SliCounts()},
        internal_error=True,
    )
    recorder.begin().ended(replace(outcome, reason="why"), verified_events=17)
    recorder.save()
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert run.result == replace(outcome, reason="why")
    assert run.record.verified == 17


def test_a_run_that_did_not_end_has_only_begun(recorder: Recorder) -> None:
    log = recorder.begin()
    log.record(Acked(0.0, "s", "k", "A", "m"))
    recorder.save()
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert run.result is None
    assert run.context == context()


def test_a_number_that_only_a_stranger_can_claim_becomes_the_nearest_that_fits(recorder: Recorder) -> None:
    recorder.record([Delivered(0.0, "s", "k", "A", "e", 10**30, "m", -(10**30)), Acked(0.0, "s", "k", "A\ud800", "m")])
    recorder.save()
    (_, _, delivered), (_, _, acked) = numbered(recorder.location)
    assert isinstance(delivered, Delivered)
    assert (delivered.seq, delivered.generation) == (2**63 - 1, -(2**63 - 1))
    assert acked == Acked(0.0, "s", "k", "A?", "m")


def test_a_run_that_is_over_is_forgotten(recorder: Recorder) -> None:
    log = recorder.begin()
    log.record(Acked(0.0, "s", "k", "A", "m"))
    log.ended(result())
    recorder.writer.flush()
    recorder.writer.flush()
    assert recorder.writer._logs == []


# --- segments ----------------------------------------------------------------------------------------------------------------


def test_a_segment_ends_when_it_is_old(recorder: Recorder) -> None:
    log = recorder.begin()
    for now in (0.0, 100.0, writer.SEGMENT_AGE_MAX_S):
        recorder.clock.now = now
        log.record(Acked(now, "s", "k", "A", "m"))
        recorder.writer.flush()
        assert recorder.writer.ship()
        assert bool(parquet_files(recorder.location)) == (now == writer.SEGMENT_AGE_MAX_S)


def test_a_segment_ends_when_it_is_large(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SEGMENT_BYTES_MAX", 100)
    log = recorder.begin()
    for number in range(3):
        log.record(Acked(float(number), "s", "k", "A", "m"))
        recorder.writer.flush()
    assert recorder.writer.ship()
    assert len(parquet_files(recorder.location)) == 4  # the first one has the run's beginning
    assert [number for _, number, _ in numbered(recorder.location)] == [1, 2, 3]


def test_row_groups_are_small_enough_to_skip(recorder: Recorder) -> None:
    recorder.record(Acked(t / 1e6, "s", f"k{t % 64:02}", "A", f"m{t}") for t in range(2 * ROW_GROUP_ROWS))
    recorder.save()
    path = next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    metadata = pq.read_metadata(recorder.location / path)
    key = metadata.schema.to_arrow_schema().get_field_index("key")
    statistics = [metadata.row_group(group).column(key).statistics for group in range(metadata.num_row_groups)]
    assert [(one.min, one.max) for one in statistics] == [("k00", "k31"), ("k32", "k63")]


# --- what is in the way ------------------------------------------------------------------------------------------------------


def test_a_full_disk_costs_nothing_if_it_passes(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    log = recorder.begin()
    log.record(Acked(0.0, "s", "k", "A", "1"))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        log.record(Acked(1.0, "s", "k", "A", "2"))
        assert not recorder.writer.flush()
        assert "No space left" in recorder.writer.state().spool_error
        assert recorder.losses.failures == 1
    log.record(Acked(2.0, "s", "k", "A", "3"))
    assert recorder.writer.flush()
    assert recorder.writer.state().spool_error == ""
    recorder.save()
    assert [number for _, number, _ in numbered(recorder.location)] == [1, 2, 3]
    assert recorder.losses.dropped == 0


def test_what_cannot_wait_is_dropped_counted_and_marked_in_the_record(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "WAITING_MAX", 3)
    log = recorder.begin()
    for number in range(1, 9):  # 1, 2 and 3 fit, the others do not
        log.record(Acked(float(number), "s", "k", "A", str(number)))
    assert recorder.losses.dropped == recorder.writer.state().dropped == 5
    recorder.writer.flush()
    for number in range(9, 12):  # the interruption, 9 and 10 fit
        log.record(Acked(float(number), "s", "k", "A", str(number)))
    recorder.writer.flush()
    log.record(Acked(12.0, "s", "k", "A", "12"))
    log.ended(result())
    recorder.save()
    found = [(number, event.message_id if isinstance(event, Acked) else event) for _, number, event in numbered(recorder.location)]
    assert found == [
        *[(1, "1"), (2, "2"), (3, "3"), (8, Interrupted(9.0)), (9, "9"), (10, "10")],
        *[(11, Interrupted(12.0)), (12, "12")],
    ]
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert (run.record.events, run.record.dropped) == (12, 4)


def test_a_store_that_refuses_costs_nothing_if_it_passes(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.record(history(GAP))
    recorder.writer.flush()
    recorder.writer.end_segment()
    with monkeypatch.context() as unreachable:
        unreachable.setattr(HistoryStore, "write", refuse)
        assert not recorder.writer.ship()
        assert "No space left" in recorder.writer.state().store_error
        assert recorder.losses.failures == 1
    assert recorder.writer.ship()
    assert recorder.writer.state().store_error == ""
    assert len(list(numbered(recorder.location))) == len(history(GAP))


def test_a_spool_that_is_full_takes_up_again_when_the_store_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path, settings=HistorySettings(location=str(tmp_path)).model_copy(update={"size_max": 100_000}))
    log = recorder.begin()
    monkeypatch.setattr(HistoryStore, "write", refuse)
    filled = 0
    while True:
        log.record(Acked(float(filled), "s", "k", "A", "m" * 5000))
        if not recorder.writer.flush():
            break
        recorder.writer.end_segment()
        assert not recorder.writer.ship()
        filled += 1
    assert 3 < filled < 20
    assert "is full" in recorder.writer.state().spool_error
    monkeypatch.undo()
    assert recorder.writer.ship()
    recorder.save()
    recorder.kill()
    assert [number for _, number, _ in numbered(recorder.location)] == list(range(1, filled + 2))


def test_a_segment_that_makes_no_sense_is_put_aside_and_the_others_go_on(recorder: Recorder) -> None:
    dead = Spool(spool_root(HistorySettings(location=str(recorder.location))), "dead", 10**6)
    dead.append([b"no such thing"])
    dead.close()
    recorder.record(history(GAP))
    recorder.save()
    assert recorder.losses.failures == 1
    assert len(list(numbered(recorder.location))) == len(history(GAP))
    assert [path.name for path in recorder.location.rglob("*.unreadable")] == ["00000001.unreadable"]


def test_a_history_that_somebody_deletes_is_begun_again(recorder: Recorder) -> None:
    log = recorder.begin()
    log.record(Acked(0.0, "s", "k", "A", "1"))
    recorder.writer.flush()
    for path in sorted(recorder.location.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    recorder.location.rmdir()
    log.record(Acked(1.0, "s", "k", "A", "2"))
    recorder.save()
    assert [number for _, number, _ in numbered(recorder.location)] == [2]


def test_what_cannot_be_encoded_leaves_a_hole_and_the_others_alone(recorder: Recorder) -> None:
    log, other = recorder.begin(), recorder.begin("run-2")
    log.record(Opened(0.0, "s", "A", 5))  # type: ignore[arg-type]
    other.record(Acked(0.0, "s", "k", "A", "m"))
    recorder.save()
    assert list(numbered(recorder.location)) == [("run-1", 1, Interrupted(0.0)), ("run-2", 1, Acked(0.0, "s", "k", "A", "m"))]
    assert recorder.losses.dropped == 1


def test_a_history_needs_a_location() -> None:
    with pytest.raises(HistoryError, match=r"set history\.location"):
        HistoryWriter(HistorySettings())


# --- processes ---------------------------------------------------------------------------------------------------------------


def test_what_a_dead_process_left_is_brought_home_by_the_next_once(tmp_path: Path) -> None:
    dead = Recorder(tmp_path, "dead")
    dead.record(history(GAP))
    dead.writer.flush()
    dead.kill()
    heir = Recorder(tmp_path, "heir")
    assert heir.writer.ship()
    assert len(list(numbered(tmp_path))) == len(history(GAP))
    assert not list((tmp_path / "_spool").iterdir())
    heir.record(history(GAP), "run-2")
    heir.save()
    heir.kill()
    assert len(list(numbered(tmp_path))) == 2 * len(history(GAP))


def test_two_that_live_do_not_touch_each_other(tmp_path: Path) -> None:
    one, other = Recorder(tmp_path, "one"), Recorder(tmp_path, "other")
    one.record(history(GAP))
    one.writer.flush()
    assert other.writer.ship()
    assert parquet_files(tmp_path) == []
    one.save()
    one.kill()
    assert all("-one-" in path for path in parquet_files(tmp_path))


def test_a_crash_between_writing_and_clearing_away_leaves_no_duplicate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Recorder(tmp_path, "dead")
    dead.record(history(GAP))
    dead.writer.flush()
    dead.writer.end_segment()
    with monkeypatch.context() as crash:
        crash.setattr(Path, "unlink", refuse)
        assert not dead.writer.ship()
    written = {path: (tmp_path / path).read_bytes() for path in parquet_files(tmp_path)}
    assert len(written) == 4
    dead.kill()
    assert Recorder(tmp_path, "heir").writer.ship()
    assert {path: (tmp_path / path).read_bytes() for path in parquet_files(tmp_path)} == written


def test_a_closed_writer_has_written_everything(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.writer.start()
    recorder.record([*history(GAP)])
    state = recorder.writer.close()
    assert (state.dropped, state.spool_error, state.store_error) == (0, "", "")
    assert len(list(numbered(tmp_path))) == len(history(GAP))
    assert not list((tmp_path / "_spool").iterdir())


def test_processes_have_names_of_their_own() -> None:
    assert writer.new_process(0.0).startswith("19700101t000000z-")
    assert writer.new_process(0.0) != writer.new_process(0.0)


def test_the_spool_is_inside_a_local_history_and_elsewhere_for_another() -> None:
    assert spool_root(HistorySettings(location="somewhere")) == Path("somewhere/_spool")
    assert spool_root(HistorySettings(location=Path("/somewhere").as_uri())) == Path("/somewhere/_spool")
    far, farther = spool_root(HistorySettings(location="gs://a/b")), spool_root(HistorySettings(location="gs://a/c"))
    assert far != farther
    assert far.name.startswith("ordering-prober-spool-")
    chosen = spool_root(HistorySettings(location="gs://a/b", spool="here"))
    assert chosen.parent == Path("here")
