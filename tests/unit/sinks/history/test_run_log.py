"""The history after the end of a run: its messages, their number, and the proven events if it was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prober.core.events import Opened, Published, PublishInvoked
from prober.core.verdict import Verdict
from prober.runs.sink import KeptHistory, RunEnded
from prober.sinks.history import encoding, run_log, writer
from prober.sinks.history.checking import RunRecord
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.schema import MESSAGES, RUNS, Table
from prober.sinks.history.writer import HistoryRun
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.notation import history
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, numbered, parquet_files, result

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path)
    yield recorder
    recorder.kill()


def refuse(*_: object) -> None:
    raise ValueError("no")


def written(recorder: Recorder) -> tuple[list[dict[str, Any]], int | None]:
    """The rows of messages, and how many the row of the only run says that there are."""
    recorder.save()
    rows = table_of(recorder, MESSAGES).to_pylist() if (recorder.location / MESSAGES.name).is_dir() else []
    (count,) = [row["messages"] for row in table_of(recorder, RUNS).to_pylist() if row["verdict"] is not None]
    return rows, count


def table_of(recorder: Recorder, table: Table) -> pa.Table:
    return pq.read_table(recorder.location / table.name, partitioning=None)


def test_a_run_that_ends_writes_its_messages(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MESSAGES_AT_ONCE", 2)
    recorder.record(history(GAP))
    rows, count = written(recorder)
    assert count == len(rows) == 3
    assert [(row["seq"], row["outcome"], row["received_at"].second) for row in rows] == [
        *[(1, "delivered", 6), (2, "delivered", 6), (3, "delivered", 6)],
    ]
    assert {(row["run_id"], row["process"], row["target"], row["topic"], row["own"]) for row in rows} == {
        ("run-1", "p1", "demo", "topic", False)
    }
    assert {row["waited_until"].timestamp() for row in rows} == {BEGAN_AT + 500.0}


def test_messages_of_two_days_go_to_two_folders(recorder: Recorder) -> None:
    log = recorder.begin()
    for number, at in enumerate((0.0, 21.0 * 3600), 1):
        log.record(PublishInvoked(at, "k", "run-1", number))
    log.ended(result())
    assert written(recorder)[1] == 2
    assert [path.partition("/messages-")[0] for path in parquet_files(recorder.location) if path.startswith("messages")] == [
        "messages/date=2026-01-02",
        "messages/date=2026-01-03",
    ]


def test_the_lag_of_the_loop_comes_along(recorder: Recorder) -> None:
    log = recorder.begin()
    log.record(PublishInvoked(0.0, "k", "run-1", 1))
    log.record(Published(1.0, "k", "run-1", 1, "m"), lagged_s=0.25)
    log.ended(result())
    ((row,), _) = written(recorder)
    assert row["confirmed_lagged_us"] == 250_000


def test_a_run_without_messages_says_so(recorder: Recorder) -> None:
    recorder.begin().ended(result())
    assert written(recorder) == ([], 0)


def test_of_the_runs_that_go_on_the_largest_gives_up_its_messages_if_there_are_too_many(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MESSAGES_MAX", 3)
    logs = {run_id: recorder.begin(run_id) for run_id in ("large", "small", "later")}
    for run_id, number in (("large", 1), ("large", 2), ("small", 1), ("large", 3)):
        logs[run_id].record(PublishInvoked(0.0, "k", run_id, number))
        assert recorder.writer.flush()
    for run_id, log in logs.items():
        log.record(PublishInvoked(1.0, "k", run_id, 9))
        log.ended(result(run_id))
    recorder.save()
    counts = {row["run_id"]: row["messages"] for row in table_of(recorder, RUNS).to_pylist() if row["verdict"] is not None}
    assert counts == {"large": None, "small": 2, "later": 1}


@pytest.mark.parametrize("lost", ["dropped", "not encoded"])
def test_a_run_whose_record_has_a_hole_writes_no_messages(lost: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    log = recorder.begin()
    if lost == "dropped":
        monkeypatch.setattr(run_log, "WAITING_MAX", 0)
        log.record(PublishInvoked(0.0, "k", "run-1", 1))
        monkeypatch.undo()
    else:
        log.record(Opened(0.0, "s", "A", 5))  # type: ignore[arg-type]
    log.record(PublishInvoked(1.0, "k", "run-1", 2))
    log.ended(result())
    assert written(recorder) == ([], None)


def test_a_mistake_in_the_messages_costs_nothing_else(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "message_batches", refuse)
    recorder.record(history(GAP))
    assert written(recorder) == ([], None)
    assert len(list(numbered(recorder.location))) == len(history(GAP))


@pytest.mark.parametrize(("counts", "bad"), [(True, 1), (False, 0)])
def test_a_run_that_goes_on_when_the_prober_is_stopped_ends_then_with_what_was_proven(
    recorder: Recorder, counts: bool, bad: int
) -> None:
    log = recorder.begin()
    for event in history("P1 A<1@1"):
        log.record(event)
    checks = {Indicator.ORDER: SliCounts(good=5, bad=1)}
    stopped = result(verdict=Verdict.UNKNOWN, checks=checks)
    HistoryRun(log).ended(RunEnded(stopped, (), KeptHistory((), {}, 4), 0.0, counts, cut_short=True))
    recorder.save()
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert run.record == RunRecord(events=4, stopped=True)
    assert run.result is not None
    assert sum(checked.bad for checked in run.result.checks.values()) == bad
    assert sum(checked.good for checked in run.result.checks.values()) == 0
