"""Runs verified again from the history: in one pass, with the findings of the service, and only as far as the record goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from prober.core.events import DeliveryEvent, Event, PublishEvent
from prober.core.findings import Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.sinks.history import reader as reader_module
from prober.sinks.history.reader import HistoryReader, Recorded, TimeSpan
from prober.sinks.history.reverify import HistorySelection, Reverified, reverify
from prober.traces.trace import read_trace
from tests.commands import VECTORS
from tests.notation import history
from tests.unit.sinks.history.recording import BEGAN_AT, Recorder, as_recorded, held_up, parquet_files, result

GAP = "P1,2,3 A<1@1 A<3@1.2 A<2@1.4 end @500"
RIGHT = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 end @500"
EVERYTHING = HistorySelection()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "history")
    yield recorder
    recorder.kill()


def verified_again(recorder: Recorder, asked: HistorySelection = EVERYTHING) -> list[Reverified]:
    return list(reverify(HistoryReader(str(recorder.location)), asked))


def verdicts(recorder: Recorder, asked: HistorySelection = EVERYTHING) -> dict[str, Verdict]:
    return {one.run_id: one.verification.verdict for one in verified_again(recorder, asked)}


def later(events: list[Event], by_s: float) -> list[Event]:
    return [replace(event, t=event.t + by_s) for event in events]


def of_other_key(events: list[Event]) -> list[Event]:
    return [replace(event, key="other") for event in events if isinstance(event, PublishEvent | DeliveryEvent)]


def two_keys(gap_key_first: bool = True) -> list[Event]:
    first, second = (GAP, RIGHT) if gap_key_first else (RIGHT, GAP)
    return sorted([*history(first), *of_other_key(history(second))], key=lambda event: event.t)


@pytest.mark.parametrize("vector", sorted(path.name for path in VECTORS.glob("*.jsonl")))
def test_every_vector_is_verified_as_online(vector: str, recorder: Recorder) -> None:
    with read_trace(VECTORS / vector) as trace:
        events = [as_recorded(event) for event in trace]
        rules = replace(trace.header.rules)
    online = recorder.record(events, rules=rules)
    recorder.save()
    (again,) = verified_again(recorder)
    assert again.verification.findings == online.findings
    assert again.verification.counts == online.counts
    assert again.verification.counters == online.counters
    assert again.verification.events == len(events)


@pytest.mark.parametrize("messages_max", [None, 1], ids=["held", "used up"])
def test_another_key_that_delayed_this_one_counts_as_it_did_online(messages_max: int | None, recorder: Recorder) -> None:
    online = recorder.record(held_up(messages_max=messages_max))
    recorder.save()
    (verified,) = verified_again(recorder, HistorySelection(key="k"))
    assert verified.verification.findings == tuple(made for made in online.findings if made.finding.key == "k")
    assert verified.verification.verdict is not Verdict.FAIL


def test_findings_are_about_the_key_and_the_subscription_that_are_asked_for(recorder: Recorder) -> None:
    online = recorder.record(two_keys())
    recorder.save()
    (verified,) = verified_again(recorder, HistorySelection(key="k", subscription="s"))
    assert verified.verification.findings == online.findings
    assert verified.verification.events == len(two_keys())
    assert verdicts(recorder, HistorySelection(key="other")) == {"run-1": Verdict.PASS}
    assert verdicts(recorder, HistorySelection(key="unheard-of")) == {}
    assert verdicts(recorder, HistorySelection(subscription="s")) == {"run-1": Verdict.FAIL}


def test_a_subscription_of_several_is_verified_by_its_own_rules(recorder: Recorder) -> None:
    log = recorder.begin(rules={"s": Rules(), "t": Rules(window=3)})
    received: list[Any] = [event for event in history(GAP) if hasattr(event, "subscription")]
    for event in sorted([*history(GAP), *(replace(event, subscription="t") for event in received)], key=lambda event: event.t):
        log.record(event)
    log.ended(result())
    recorder.save()
    for name in ("s", "t"):
        (verified,) = verified_again(recorder, HistorySelection(subscription=name))
        assert {made.finding.subscription for made in verified.verification.findings} == {name}
        assert Kind.ORDER_GAP in {made.finding.kind for made in verified.verification.findings}


def test_each_run_is_verified_by_itself_under_its_own_rules(recorder: Recorder) -> None:
    recorder.record(history(GAP), "gap")
    recorder.record(later(history("P1,2 A<2@1.2 A ack 2@1.3 end @500"), 600), "strict")
    recorder.record(
        later(history("P1,2 A<2@1.2 A ack 2@1.3 end @500"), 1200), "adopting", Rules(subscription_predates_first_publish=False)
    )
    recorder.save()
    assert verdicts(recorder) == {"gap": Verdict.FAIL, "strict": Verdict.FAIL, "adopting": Verdict.PASS}


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_runs_that_overlap_over_files_and_hours_are_verified_in_one_pass(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(reader_module, "ROWS_AT_ONCE_MAX", at_once)
    events = history("P1,2,3 A<1@1 A ack 1@1.1 A<3@3300 A<2@3400 A ack 2@3500 A ack 3@3501 end @4000")
    logs = {name: recorder.begin(name) for name in ("b", "a")}
    for place, event in enumerate(events):
        recorder.clock.now = event.t
        for log in logs.values():
            log.record(event)
        if place % 4 == 0:
            recorder.save()
    for name, log in logs.items():
        log.ended(result(name, duration_s=4000.0))
    recorder.save()
    assert len([path for path in parquet_files(recorder.location) if path.startswith("events")]) > 3
    seen: list[tuple[str, int]] = []

    def watched(passing: Iterable[Recorded], number: int) -> Iterator[Recorded]:
        assert number == 2 * len(events)
        for one in passing:
            seen.append((one.run_id, one.number))
            yield one

    again = list(reverify(HistoryReader(str(recorder.location)), EVERYTHING, watched))
    assert [(one.verification.verdict, one.verification.events) for one in again] == [(Verdict.FAIL, len(events))] * 2
    assert again[0].verification.findings == again[1].verification.findings
    assert sorted(seen) == [(name, number) for name in ("a", "b") for number in range(1, len(events) + 1)]


def test_a_run_that_the_time_span_touches_is_verified_whole(recorder: Recorder) -> None:
    recorder.record(history(GAP), "first")
    recorder.clock.now = 4000.0
    recorder.record(later(history(GAP), 4000), "second")
    recorder.save()
    verified = verified_again(recorder, HistorySelection(span=TimeSpan(BEGAN_AT + 1.1, BEGAN_AT + 1.3)))
    assert [(one.run_id, one.verification.verdict, one.verification.events) for one in verified] == [
        ("first", Verdict.FAIL, len(history(GAP)))
    ]


def test_a_run_that_was_cut_short_is_unknown(recorder: Recorder) -> None:
    """Nobody knows what was still to come, and what was on hold stays so."""
    for name, line in (("pending", "P1,2 A<1@1 stop @2"), ("held", "open A of client c open B of client c P1,2 B<2@1")):
        log = recorder.begin(name)
        for event in history(line):
            log.record(event)
    recorder.save()
    for verified in verified_again(recorder):
        assert (verified.verification.verdict, verified.verification.findings) == (Verdict.UNKNOWN, ())
        assert "cut short" in verified.why


def test_what_was_not_verified_online_is_not_verified_later(recorder: Recorder) -> None:
    log = recorder.begin()
    for event in history(GAP):
        log.record(event)
    log.ended(result(), verified_events=7)
    recorder.save()
    (verified,) = verified_again(recorder)
    assert verified.verification.verdict is Verdict.UNKNOWN
    assert (verified.verification.findings, verified.verification.events) == ((), 7)
    assert verified.why.startswith("only the first part of the run was verified, as online")


def test_after_a_hole_nothing_from_before_counts(recorder: Recorder) -> None:
    """The gap is in it: message 2 may have been delivered there."""
    log = recorder.begin()
    events = history("P1,2,3 A<1@1 A<2@1.2 A<3@1.4 A ack 1,2,3@1.5 end @500")
    for event in events:
        log.record(event)
    log.ended(result())
    recorder.save()
    place = next(number for number, event in enumerate(events, 1) if getattr(event, "t", 0.0) == 1.2)
    drop(recorder, place)
    (verified,) = verified_again(recorder)
    assert verified.verification.verdict is Verdict.UNKNOWN
    assert {made.finding.status for made in verified.verification.findings} == {Status.INDETERMINATE}
    assert verified.verification.events == len(events)  # an interruption stands for the hole
    assert "missing" in verified.why


def test_a_run_without_a_row_is_unknown(recorder: Recorder) -> None:
    recorder.record(history(GAP))
    recorder.save()
    for path in (recorder.location / "runs").rglob("*.parquet"):
        path.unlink()
    (verified,) = verified_again(recorder)
    assert verified.run is None
    assert verified.verification.verdict is Verdict.UNKNOWN
    assert "its rules are unknown" in verified.verification.malformed


def test_a_run_without_an_event_is_unknown(recorder: Recorder) -> None:
    recorder.begin().ended(replace(result(verdict=Verdict.UNKNOWN), reason="nobody answers"))
    recorder.save()
    (verified,) = verified_again(recorder)
    assert verified.verification.verdict is Verdict.UNKNOWN
    assert verified.why == "the history has no event of the run, which ended UNKNOWN: nobody answers"


def test_a_run_of_two_processes_is_unknown(tmp_path: Path) -> None:
    for process in ("p1", "p2"):
        recorder = Recorder(tmp_path, process)
        recorder.record(history(GAP))
        recorder.save()
        recorder.kill()
    (verified,) = verified_again(recorder)
    assert (verified.verification.verdict, verified.verification.events) == (Verdict.UNKNOWN, 0)
    assert verified.why.startswith("several processes recorded the run")


def test_a_fault_of_the_checker_is_unknown(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.record(history(GAP))
    recorder.save()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("prober.core.verifier.Verifier.observe", fail)
    (verified,) = verified_again(recorder)
    assert verified.verification.verdict is Verdict.UNKNOWN
    assert "the checker failed at event 1" in verified.verification.crash


def drop(recorder: Recorder, number: int) -> None:
    """Takes an event out of the history."""
    path = recorder.location / next(path for path in parquet_files(recorder.location) if path.startswith("events"))
    rows = pq.read_table(path, partitioning=None)
    pq.write_table(rows.filter(pc.field("number") != number), path)
