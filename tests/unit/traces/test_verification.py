"""What records of publishers prove: what is lost or out of order is found, and no hole of a record accuses anybody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.core.events import Delivered, Event, PublishInvoked
from prober.core.findings import FAILING, Kind
from prober.core.rules import Mode, Rules
from prober.core.verdict import Verdict
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError, write_trace
from prober.traces.verification import CLOCKS, MISSING, NOTHING, PublisherRecords, RecordVerification, read_records, verify_with
from tests.notation import history
from tests.simulation.service import simulate_run

TOPIC = "projects/p/topics/t"
OTHERS = Rules(publishes_recorded=False, publish_time_error_s=0.0, delivery_deadline_s=10.0)
_PUBLISH = {"PublishInvoked", "Published", "PublishFailed", "PublishUnknown"}


def divided(line: str) -> tuple[list[Event], list[Event]]:
    """The record, and what was received, of which nobody knows writer or number."""
    events = history(line)
    record = [event for event in events if type(event).__name__ in _PUBLISH]
    received = [event for event in events if type(event).__name__ not in _PUBLISH]
    return record, [replace(one, epoch="", seq=0) if isinstance(one, Delivered) else one for one in received]


def verified(line: str, rules: Rules = OTHERS) -> RecordVerification:
    record, received = divided(line)
    return verify_with(PublisherRecords(record), received, "s", rules, 0.0)  # type: ignore[arg-type]


def kinds(verification: RecordVerification) -> list[Kind]:
    return [made.finding.kind for made in verification.findings if made.finding.status in FAILING]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("P1,2,3 A<1@1 A<3@1.1", Kind.ORDER_GAP),
        ("P1,2,3 A<1@1 A<3@1.1 A<2@1.2", Kind.ORDER_GAP),
        ("P1 P1[e2]@5 ok1=n1@5.1 A<n1(1)[e2]@6 A<1@7 A ack 1@60", Kind.REALTIME_INVERSION),
        ("P1,2 A<1@1 A ack 1@1.1 P1[e2]@60 ok1=n1@60.1 on k2 P1 A<1@60.2", Kind.STUCK),
    ],
)
def test_what_only_the_record_shows(line: str, kind: Kind) -> None:
    verification = verified(line)
    assert kind in kinds(verification)
    assert verification.verdict is Verdict.FAIL
    assert {made.finding.kind for made in verification.findings} <= {kind, Kind.ORDER_INVERSION, Kind.REALTIME_INVERSION}


@pytest.mark.parametrize(
    "line",
    [
        "P1,2,3 A<1,2,3@1 A ack 1,2,3@2",
        "P1@0 ok1=m1@0.1 P2@0.2 info2@0.3 P3@0.4 ok3=m3@0.5 A<1@1 A<3@1.1 A ack 1,3@2",
        "P1@0 ok1=m1@0.1 P2@0.2 P3@0.3 ok3=m3@0.4 A<1@1 A<3@1.1 A ack 1,3@2",
        "P2@0 fail2@5 P4'gen1@5 A<2@6 ok2'gen1=m2@6.1 ok4'gen1=m4@6.1 A<4@6.2 A ack 2,4@6.3",  # of 2 the second attempt is missing
    ],
)
def test_what_is_in_order(line: str) -> None:
    assert (verified(line).verdict, verified(line).findings) == (Verdict.PASS, ())


def test_what_had_not_come_by_the_end_is_undecided() -> None:
    verification = verified("P1,2,3 A<1@1 A<2@1.1 A ack 1,2@1.2")
    assert (verification.verdict, verification.reason) == (Verdict.UNKNOWN, MISSING)
    assert (verification.counts["received"], verification.counts["confirmed"]) == (2, 3)


def test_a_record_of_something_else_proves_nothing() -> None:
    record, _ = divided("P1,2,3")
    _, received = divided("A<x1(1)@1 A<x2(2)@1.1 A ack 1,2@1.2")
    verification = verify_with(PublisherRecords(record[:0]), received, "s", OTHERS, 0.0)  # type: ignore[arg-type]
    assert (verification.verdict, verification.reason) == (Verdict.UNKNOWN, NOTHING)


@pytest.mark.parametrize(("ahead_s", "differ"), [(0.0, False), (0.9, False), (5.0, True), (-5.0, True)])
def test_clocks_that_differ_are_noticed(ahead_s: float, differ: bool) -> None:
    record, received = divided("P1@10 ok1=m1@10.2 A<1~10100000000@11 A ack 1@11.1")
    record = [replace(event, t=event.t + ahead_s) for event in record]
    verification = verify_with(PublisherRecords(record), received, "s", replace(OTHERS, clock_error_s=1.0), 0.0)  # type: ignore[arg-type]
    assert verification.reason.startswith(CLOCKS) is differ
    assert (verification.verdict is Verdict.UNKNOWN) is differ


def test_several_regions_are_no_accusation() -> None:
    assert verified("P1,2,3 A<1@1 A<3@1.1 A<2@1.2", Rules(publishes_recorded=False)).verdict is not Verdict.FAIL


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kept=st.sampled_from((0.0, 0.1, 0.5, 0.9, 0.99, 1.0)),
    writers=st.sampled_from((0.5, 1.0)),
    begun=st.sampled_from((0.0, 0.3, 0.7)),
)
def test_no_hole_of_a_record_accuses_anybody(seed: int, kept: float, writers: float, begun: float) -> None:
    """A record of some of the publishers that begins in the middle and lost lines, of a service that does nothing wrong."""
    run, rng = simulate_run(seed, Mode.STREAMING), Random(seed)
    rules = replace(run.rules, publishes_recorded=False, attempts_observed=False, publish_time_error_s=0.0)
    heard = {epoch: rng.random() < writers for epoch in {event.epoch for event in run.events if isinstance(event, PublishInvoked)}}
    since_t = begun * run.events[-1].t
    invoked = {(one.key, one.epoch, one.seq): one.t for one in reversed(run.events) if isinstance(one, PublishInvoked)}
    record = [
        event
        for event in run.events
        if type(event).__name__ in _PUBLISH
        and heard.get(event.epoch)  # type: ignore[union-attr]
        and invoked.get((event.key, event.epoch, event.seq), 0.0) >= since_t  # type: ignore[union-attr]
        and rng.random() < kept
    ]
    for subscription, known in (run.rules_by_subscription or {"": rules}).items():
        bounds = replace(known, publishes_recorded=False, attempts_observed=False, publish_time_error_s=0.0)
        received = [event for event in run.events if type(event).__name__ not in {*_PUBLISH, "PublishAbandoned"}]
        verification = verify_with(PublisherRecords(list(record)), received, subscription, bounds, 0.0)  # type: ignore[arg-type]
        assert kinds(verification) == []


def test_files_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    record, _ = divided("P1,2,3")
    path = tmp_path / "record.jsonl"
    write_trace(path, TraceHeader("", "", name=TOPIC), record)
    with path.open("ab") as file:
        file.write(b'{"t": 7, "event": "publ')
    every = read_records([str(path)], TOPIC, -1.0, 100.0, str)
    assert (len(every.events), every.counts["publishes"], every.counts["unread"]) == (6, 3, 1)
    later = read_records([str(path)], TOPIC, record[0].t, 100.0, str)
    assert (later.counts["early"], later.counts["publishes"], len(later.events)) == (1, 2, 4)
    assert read_records([str(path)], TOPIC, -1.0, 100.0, lambda _: "").events == []
    sooner = read_records([str(path)], TOPIC, -1.0, record[2].t, str)
    assert len(sooner.events) == 3


def test_a_record_of_another_topic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    write_trace(path, TraceHeader("", "", name="projects/p/topics/other"), [])
    with pytest.raises(TraceError, match="a record of projects/p/topics/other, and projects/p/topics/t is observed"):
        read_records([str(path)], TOPIC, 0.0, 1.0, str)
