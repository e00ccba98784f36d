"""The writer: a store that fails costs time, never a run, until the bounds are reached; and then what is lost is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.runs.sink import KeptHistory
from prober.sinks.live.condition import Condition
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.status import writer as writer_module
from prober.sinks.status.database import Database, NotStorable, StoreUnavailable
from prober.sinks.status.listings import FindingFilter
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry
from prober.sinks.status.store import StatusStore
from prober.sinks.status.writer import TIDY_EVERY_S, StatusWriter, StatusWriterState
from prober.slo.objectives import HOUR_S, SliCounts
from tests.unit.sinks.history.recording import Clock, Losses
from tests.unit.sinks.status.examples import (
    INSTANCE,
    ORDER_IN_EUROPE,
    PROBER,
    RETENTION,
    START,
    entry,
    failed,
    result,
    snapshot,
    sqlite_url,
)


class Fragile(StatusStore):
    """A store that can be down, and that can lose the answer to a commit."""

    down = False
    answers_lost = 0

    def record(self, entries: Iterable[Entry], at: float = 0.0) -> None:
        self._answer()
        super().record(entries, at)
        if self.answers_lost:
            self.answers_lost -= 1
            raise StoreUnavailable("the connection broke after COMMIT was sent")

    def heartbeat(self, prober: ProberRecord, instances: Iterable[InstanceSnapshot] = (), slices: Sequence[Slice] = ()) -> None:
        self._answer()
        super().heartbeat(prober, instances, slices)

    def _answer(self) -> None:
        if self.down:
            raise StoreUnavailable("nobody answers")


@dataclass
class Bench:
    """A writer without a thread: a test writes when it wants to."""

    database: Database
    losses: Losses = field(default_factory=Losses)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store, self.queries = Fragile(self.database), StatusQueries(self.database)
        self.writer = StatusWriter(
            self.store,
            PROBER,
            RETENTION,
            dropped=self.losses.drop,
            failed=self.losses.fail,
            clock=self.clock,
            wall_clock=lambda: START + self.clock.now,
        )

    def end(self, run_id: str, verdict: Verdict = Verdict.PASS, at: float = START) -> None:
        self.writer.ended(INSTANCE, result(run_id, verdict, at), at + 2.0)

    def fail(self, run_id: str) -> None:
        outcome, recorded = failed(run_id)
        self.writer.ended(INSTANCE, outcome, START + 2.0, recorded)

    @property
    def names(self) -> list[str]:
        return sorted(record.run_id for record in self.queries.runs(limit=500).items)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(Database(sqlite_url(tmp_path)))
    yield made
    made.database.close()


def test_a_run_is_written_with_its_findings_and_their_evidence(bench: Bench) -> None:
    bench.fail("run-1")
    assert bench.writer.write()
    (record,) = bench.queries.findings(FindingFilter(kind=Kind.REDELIVERY_SKIP)).items
    found = bench.queries.finding(record.finding_id)
    assert found is not None
    assert found.evidence is not None
    assert found.evidence.proven
    run = bench.queries.run("run-1")
    assert run is not None
    assert (run.prober.instance, run.prober.clock_offset_s) == ("prober-0", START)
    state = bench.writer.state()
    assert (state.dropped, state.error, bench.writer.is_waiting("run-1")) == (0, "", False)


def test_a_store_that_is_down_costs_time_only(bench: Bench) -> None:
    bench.store.down = True
    for number in range(5):
        bench.end(f"run-{number}")
        assert not bench.writer.write()
    assert (bench.writer.state().error, bench.losses.failures) == ("nobody answers", 5)
    assert all(bench.writer.is_waiting(f"run-{number}") for number in range(5))
    bench.store.down = False
    assert bench.writer.write()
    assert bench.names == [f"run-{number}" for number in range(5)]
    assert (bench.writer.state().error, bench.losses.dropped) == ("", 0)


def test_a_commit_that_nobody_confirmed_is_done_again_and_changes_nothing(bench: Bench) -> None:
    bench.fail("run-1")
    bench.end("run-2", at=START + 10.0)
    bench.store.answers_lost = 2
    assert [bench.writer.write() for _ in range(3)] == [False, False, True]
    assert bench.names == ["run-1", "run-2"]
    assert len(bench.queries.findings().items) == 1
    assert bench.losses.dropped == 0
    assert not any(map(bench.writer.is_waiting, bench.names))


def test_what_waits_is_bounded_and_the_oldest_goes_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "BYTES_WAITING_MAX", 20_000)
    bench.store.down = True
    for number in range(15):
        bench.end(f"run-{number:02}")
        bench.writer.write()
    assert bench.writer.state().dropped == bench.losses.dropped == 5
    assert [bench.writer.is_waiting(f"run-{number:02}") for number in range(15)] == [False] * 5 + [True] * 10
    assert "5 runs and findings are missing from the status store" in bench.writer.state().troubles
    bench.store.down = False
    bench.writer.write()
    assert bench.names == [f"run-{number:02}" for number in range(5, 15)]


def test_so_is_what_a_thread_that_stands_still_is_given(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ENDED_WAITING_MAX", 3)
    for number in range(5):
        bench.end(f"run-{number}")
    bench.writer.write()
    assert bench.names == ["run-2", "run-3", "run-4"]
    assert bench.losses.dropped == 2


def test_with_too_many_events_waiting_a_run_is_kept_without_evidence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "EVENTS_WAITING_MAX", 20)
    bench.fail("run-1")
    bench.fail("run-2")
    bench.writer.write()
    kept = [bench.queries.finding(record.finding_id) for record in bench.queries.findings().items]
    assert sorted((one.run_id, one.evidence is None) for one in kept if one is not None) == [("run-1", False), ("run-2", True)]
    bench.fail("run-3")
    bench.writer.write()
    third = bench.queries.finding("run-3-1")
    assert third is not None
    assert third.evidence is not None, "there is room again"


def test_a_run_that_the_store_refuses_does_not_hold_up_the_others(bench: Bench) -> None:
    bench.end("run-1")
    bench.writer.ended(INSTANCE, replace(result("odd"), seed=2**70), START)
    bench.end("run-2")
    assert bench.writer.write()
    assert bench.names == ["run-1", "run-2"]
    assert (bench.losses.dropped, bench.losses.failures) == (1, 1)


def test_neither_does_one_that_we_make_a_mistake_with(bench: Bench) -> None:
    outcome, _ = failed("odd")
    bench.writer.ended(INSTANCE, outcome, START, KeptHistory([], {}, 0))
    bench.end("run-1")
    assert bench.writer.write()
    assert "run-1" in bench.names


def test_what_is_reported_is_how_it_stands_now(bench: Bench) -> None:
    bench.writer.heartbeat(snapshot(SliCounts(5), START + 1.0, result(verdict=Verdict.FAIL)))
    bench.writer.heartbeat(snapshot(SliCounts(8, 1), START + 3.0, result()))
    assert bench.writer.write()
    (reported,) = bench.queries.probe_instances()
    assert (reported.status, reported.last_heartbeat_at) == (Condition.PASS, START + 3.0)
    assert bench.queries.counts(HOUR_S, START + 4.0) == {ORDER_IN_EUROPE: SliCounts(8, 1)}


def test_a_fail_is_reported_before_its_evidence_is_made(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Condition] = []
    others: list[object] = []

    def slow(*_: object, waiting: int, **_named: object) -> Entry:
        others.append(waiting)
        seen.extend(reported.status for reported in bench.queries.probe_instances())
        bench.clock.now += 9.0
        return entry("run-1")

    monkeypatch.setattr("prober.sinks.status.writer.entry_of", slow)
    for number in range(3):
        bench.end(f"run-{number}", Verdict.FAIL)
    bench.writer.heartbeat(snapshot(SliCounts(), START + 1.0, result(verdict=Verdict.FAIL)))
    assert bench.writer.write()
    assert seen == [Condition.FAIL] * 3
    assert others == [2, 1, 0]


def test_a_heartbeat_that_is_refused_leaves_its_trace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotStorable("a label is no text")

    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "heartbeat", refuse)
        bench.writer.heartbeat(snapshot(SliCounts(), START + 1.0))
        assert bench.writer.write()
        assert bench.writer.state().error == "a label is no text"
    bench.writer.heartbeat(snapshot(SliCounts(), START + 2.0))
    assert bench.writer.write()
    assert bench.writer.state().error == ""


def test_an_instance_that_is_not_reported_of_any_more_is_gone_and_so_are_all_of_a_prober_that_leaves(bench: Bench) -> None:
    shown = snapshot(SliCounts(), START + 1.0, result())
    bench.writer.heartbeat(shown)
    assert bench.writer.write()
    bench.writer.heartbeat(replace(shown, at=START + 2.0, probe_instances=(), troubles=("the disk is full",)))
    assert bench.writer.write()
    assert bench.queries.probe_instances() == ()
    assert [reported.troubles for reported in bench.queries.probers()] == [("the disk is full",)]
    bench.writer.heartbeat(replace(shown, at=START + 3.0))
    assert bench.writer.write()
    bench.writer.leave()
    assert (bench.queries.probe_instances(), bench.queries.probers()) == ((), ())


def test_what_was_counted_survives_an_outage_and_a_restart(bench: Bench) -> None:
    bench.store.down = True
    bench.writer.heartbeat(snapshot(SliCounts(5), START + 1.0))
    assert not bench.writer.write()
    bench.writer.heartbeat(snapshot(SliCounts(9), START + 400.0))
    bench.store.down = False
    assert bench.writer.write()
    restarted = Bench(bench.database)
    restarted.writer.heartbeat(snapshot(SliCounts(3, 1), START + 405.0))
    assert restarted.writer.write()
    assert bench.queries.counts(HOUR_S, START + 406.0) == {ORDER_IN_EUROPE: SliCounts(12, 1)}


def test_retention_is_seen_to_from_time_to_time(bench: Bench) -> None:
    bench.end("old", at=START - 2 * RETENTION.retention_s)
    bench.end("new")
    bench.writer.write()
    assert bench.names == ["new", "old"]
    bench.clock.now = TIDY_EVERY_S
    bench.writer.write()
    assert bench.names == ["new"]


def test_the_thread_writes_by_itself_and_ends_with_everything_written(bench: Bench) -> None:
    bench.writer.start()
    for number in range(50):
        bench.end(f"run-{number:02}")
    assert bench.writer.close() == StatusWriterState(0, 0, "")
    assert bench.names == [f"run-{number:02}" for number in range(50)]


def test_closing_one_that_was_never_started_is_allowed(bench: Bench) -> None:
    assert bench.writer.close() == StatusWriterState(0, 0, "")


def test_what_is_not_written_when_the_prober_stops_is_counted(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.store.down = True
    bench.fail("run-1")
    assert not bench.writer.write()
    bench.end("run-2")
    assert bench.writer.close().dropped == bench.losses.dropped == 2 + len(failed("run-1")[0].findings)
    assert "did not take 2 runs before the prober stopped" in caplog.text


def test_what_was_given_up_is_said_in_words() -> None:
    fine = StatusWriterState(0, 0, "")
    assert fine.troubles == ()
    assert replace(fine, error="disk full", dropped=1200, slices_dropped=3).troubles == (
        "the status store cannot be written: disk full",
        "1,200 runs and findings are missing from the status store",
        "3 counts of objectives are missing from the status store",
    )


def test_a_run_waits_from_its_end_until_it_is_written(bench: Bench) -> None:
    bench.store.down = True
    assert not bench.writer.is_waiting("run-1")
    bench.fail("run-1")
    assert bench.writer.is_waiting("run-1")
    assert not bench.writer.write()
    assert bench.writer.is_waiting("run-1"), "its evidence is made"
    bench.store.down = False
    assert bench.writer.write()
    assert not bench.writer.is_waiting("run-1")
