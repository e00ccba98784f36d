"""Pending messages at some time of a history."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from prober.core.events import Acked, Delivered, Event, Published, PublishInvoked
from prober.core.rules import Rules
from prober.runs import backlog as backlog_module
from prober.runs.backlog import Backlog, BacklogTracker
from tests.notation import history

STALLED_AFTER_S = 10.0


def tracker(**settings: Any) -> BacklogTracker:
    return BacklogTracker(STALLED_AFTER_S, **settings)


def after(*lines: str, key: str = "k", end: bool = True, **settings: Any) -> BacklogTracker:
    """The backlog after these histories, one run after the other; each run ends with its last event."""
    backlog_tracker = tracker(**settings)
    for line in lines:
        events = history(line, key=key)
        for event in events:
            backlog_tracker.listen(event)
        for epoch in {event.epoch for event in events if isinstance(event, PublishInvoked)} if end else ():
            backlog_tracker.end_run(epoch, events[-1].t)
    return backlog_tracker


def intended(event: Event, t: float) -> Event:
    return replace(event, intended_t=t) if isinstance(event, PublishInvoked) else event


@pytest.mark.parametrize(
    ("line", "now", "expected"),
    [
        ("", 5, Backlog()),
        ("P1,2", 4, Backlog(4.0, 2, 0)),
        ("P1,2 A<1,2@1 A ack 1@1.5", 4, Backlog(3.9, 1, 0)),
        ("P1,2 A<1,2@1 A ack 1,2@1.5", 4, Backlog(0.0, 0, 0)),
        ("P1@0", 4, Backlog(4.0, 0, 0)),
        ("P1@0 info1@1", 4, Backlog(4.0, 0, 0)),
        ("P1@0 fail1@1", 4, Backlog(0.0, 0, 0)),
        ("P1@0 info1@1 abandon1@2", 4, Backlog(0.0, 0, 0)),
        ("P1@0 info1@1 P1'gen1@2 fail1'gen1@3", 4, Backlog(4.0, 0, 0)),
        ("P1@0 info1@1 P1'gen1@2 ok1'gen1=m1@3", 4, Backlog(4.0, 1, 0)),
        ("P1@0 info1@1 P1'gen1@2 ok1'gen1=m1@3 A<m1(1)@3.1 A ack 1@3.2", 4, Backlog(0.0, 0, 0)),
        ("P1@0 P1'gen1@0.1 ok1=m1@0.2 ok1'gen1=m2@0.3 A<m1(1)@1 A ack 1@1.1", 4, Backlog(4.0, 1, 0)),
        ("P1@0 info1@1 A<1@2", 4, Backlog(4.0, 1, 0)),
        ("P1@0 info1@1 A<1@2 A ack 1@2.1", 4, Backlog(0.0, 0, 0)),
        ("P1@0 A<1@1 A ack 1@1.1 A<1@1.5 A ack 1@1.6 ok1=m1@2", 4, Backlog(0.0, 0, 0)),
        ("P1,2 A<1,2@1 A ack 2@1.5 A nack 1@1.6 dlq m1@2", 4, Backlog(0.0, 0, 0)),
        ("P1,2 A<1@1 A nack 1@1.1 dlq m1@15", 20, Backlog(19.9, 1, 0)),
        ("P1,2 A<1@1 seek 1@2 P3@3 ok3=m3@3.1", 4, Backlog(1.0, 1, 0)),
        ("P1,2 A<1@1 filter 1@2", 4, Backlog(0.0, 0, 0)),
        ("P1,2 A<1@1 hole @2", 4, Backlog(0.0, 0, 0)),
        ("P1@0 A<1@1 A ack 1@1.1 ok1=m1@2", 4, Backlog(0.0, 0, 0)),
        ("P1@0 A<1@1 ok1=m1@2", 4, Backlog(4.0, 1, 0)),
        ("P1 A<1@1 A nack 1@1.1", 4, Backlog(4.0, 1, 0)),
        ("P1", 20, Backlog(20.0, 1, 1)),
        ("P1@0 info1@5", 20, Backlog(20.0, 0, 0)),
        ("P1@0 ok1=m1@15", 20, Backlog(20.0, 1, 0)),
        ("P1@0 ok1=m1@5", 20, Backlog(20.0, 1, 1)),
        ("P1,2,3 A<1@15", 20, Backlog(20.0, 3, 0)),
        ("P1@0 P2@0 ok1=m1@0.1 ok2=m1@0.2 A<1@1 A ack 1@1.1", 4, Backlog(0.0, 0, 0)),
        ("P1,2 A<1@1 A ack 1@1 A<1@2 A ack 1@3", 4, Backlog(3.9, 1, 0)),
    ],
)
def test_pending_during_a_run(line: str, now: float, expected: Backlog) -> None:
    assert_backlog(after(line, end=False).backlog(now), expected)


def assert_backlog(backlog: Backlog, expected: Backlog) -> None:
    assert backlog.oldest_unacked_age_s == pytest.approx(expected.oldest_unacked_age_s)
    assert (backlog.undelivered, backlog.stalled_keys) == (expected.undelivered, expected.stalled_keys)


def test_what_the_filter_excludes_is_not_pending() -> None:
    assert after("P1,2,3 A<2@1", end=False, excludes=Rules(filter_every=2).excludes).backlog(4) == Backlog(3.9, 1, 0)


def test_a_message_is_as_old_as_it_should_be() -> None:
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    for event in history("P1@3 ok1=m1@3.1"):
        backlog_tracker.listen(intended(event, 1.0))
    assert backlog_tracker.backlog(4.0).oldest_unacked_age_s == 3.0


def test_keys_are_distinguished() -> None:
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    for key in ("a", "b"):
        for event in history("P1,2 A<1,2@1", key=key):
            backlog_tracker.listen(event)
    for event in history("P1,2 A<1,2@1 A ack 1,2@2", key="a")[-2:]:
        backlog_tracker.listen(event)
    assert backlog_tracker.backlog(20.0).undelivered == 2
    assert backlog_tracker.backlog(20.0).stalled_keys == 1


def test_a_seek_back_makes_acknowledged_messages_pending_from_the_seek_on() -> None:
    line = "P1@0 ok1=m1@0.1 A<1@1 A ack 1@1.1 P2@2 ok2=m2@2.1 A<2@3 A ack 2@3.1 seek 0/1.5@10"
    sought = after(line, end=False, retains_acked=True)
    assert sought.backlog(12.0) == Backlog(2.0, 1, 0)
    assert sought.missing("e1") == {}
    for event in history(f"{line} A<2@13 A ack 2@13.1")[-2:]:
        sought.listen(event)
    assert sought.backlog(14.0) == Backlog()


def test_a_message_is_not_pending_after_the_retention() -> None:
    backlog_tracker = after("P1@0 ok1=m1@0.1 P2@50 ok2=m2@50.1", end=False, retention_s=60.0)
    assert backlog_tracker.backlog(59.0).undelivered == 2
    assert backlog_tracker.backlog(61.0) == Backlog(11.0, 1, 1)
    assert backlog_tracker.written_off == 1


def test_missing_messages_were_stored_and_not_delivered() -> None:
    assert after("P1,2,3 A<1,2,3@9 A ack 1@9.5 P5@10 info5@11", end=False).missing("e1") == {}
    assert after("P1,2,3 A<1@1", end=False).missing("e1") == {"k": 2}
    assert after("P1,2,3 A<1@1", end=False).missing("e2") == {}


@pytest.mark.parametrize(
    ("line", "end", "pending", "written_off"),
    [
        ("P1,2 A<1@1", {}, 0, 2),
        ("P1,2 A<1@1 end @20", {}, 2, 0),
        ("P1,2 A<1@1 end @20", {"paused": True}, 0, 2),
        ("P1,2 A<1@1", {"unreachable": True}, 2, 0),
        ("P1,2,3 A<1@1 A ack 1@1.1 A<3@1.2", {}, 1, 1),
        ("P1,2,3 A<1@1 A ack 1@1.1 A<3@1.2 A ack 3@1.3", {"paused": True}, 1, 0),
        ("P1@0 info1@5", {"unreachable": True}, 0, 1),
        ("P1@0", {}, 0, 1),
        ("P1,2 A<1#5@1 A nack 1@1.1 end @20", {}, 1, 1),
        ("P1,2 A<1#4@1 A nack 1@1.1 end @20", {}, 2, 0),
    ],
)
def test_after_a_run_only_late_messages_are_pending(line: str, end: dict[str, bool], pending: int, written_off: int) -> None:
    backlog_tracker = after(line, end=False, attempts_max=5)
    assert backlog_tracker.end_run("e1", history(line)[-1].t, **end) == written_off
    assert backlog_tracker.backlog(1000.0).undelivered == pending


def test_a_lost_message_ages_until_a_later_run_in_which_the_key_moves() -> None:
    lost = "P1,2,3 A<1@1 A ack 1@1.1 A<3@1.2 A ack 3@1.3"
    assert_backlog(after(lost).backlog(9.0), Backlog(8.9, 1, 0))
    assert_backlog(after(lost, "P1[e2]@10 info1@15").backlog(20.0), Backlog(19.9, 1, 1))
    moves = after(lost, "P1[e2]@10 ok1=n1@10.1 A<n1(1)[e2]@11 A ack 1@11.1")
    assert moves.backlog(20.0) == Backlog()
    assert moves.written_off == 1


def test_a_message_that_a_later_run_receives_is_not_pending() -> None:
    unreachable = after("P1,2 A<1@1 A ack 1@1.1", end=False)
    unreachable.end_run("e1", 2.0, unreachable=True)
    assert unreachable.backlog(9.0).undelivered == 1
    for event in history("P1,2 A<1@1 A ack 1@1.1 A<2@20 A ack 2@20.1")[-2:]:
        unreachable.listen(event)
    assert unreachable.backlog(21.0) == Backlog()


def test_a_deleted_subscription_has_no_pending_messages() -> None:
    backlog_tracker = after("P1,2 P3@5", end=False)
    backlog_tracker.clear()
    assert backlog_tracker.backlog(9.0) == Backlog()
    assert backlog_tracker.written_off == 3


def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "PENDING_MAX", 2)
    backlog_tracker = after("P1,2,3", end=False)
    assert backlog_tracker.backlog(9.0).undelivered == 2
    assert [backlog_tracker.take_dropped(), backlog_tracker.take_dropped()] == [1, 0]


def test_nothing_settled_is_remembered() -> None:
    backlog_tracker = tracker(retains_acked=True)
    line = history("P1 A<1@1 A ack 1@1.1 A<1@2 A ack 1@2.1")
    tracemalloc.start()
    try:
        for number in range(2000):
            for event in line:
                named = replace(event, message_id=f"m{number}") if isinstance(event, Published | Delivered | Acked) else event
                backlog_tracker.listen(named)
            backlog_tracker.end_run("e1", 3.0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000
