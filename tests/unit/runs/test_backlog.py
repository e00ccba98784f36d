"""What waits for an acknowledgement, asked for at some time of a history."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from prober.core.events import Acked, Delivered, Event, Published, PublishInvoked
from prober.runs import backlog as backlog_module
from prober.runs.backlog import Backlog, BacklogTracker
from tests.notation import history

STALLED_AFTER_S = 10.0


def after(*lines: str, key: str = "k") -> BacklogTracker:
    """The backlog after these histories, one run after the other."""
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    for line in lines:
        epochs = set()
        for event in history(line, key=key):
            backlog_tracker.listen(event)
            epochs |= {event.epoch} if isinstance(event, PublishInvoked) else set()
        for epoch in epochs:
            backlog_tracker.settle(epoch)
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
        ("P1@0 info1@1 abandon1@2", 4, Backlog(4.0, 0, 0)),
        ("P1@0 info1@1 P1'gen1@2 ok1'gen1=m1@3", 4, Backlog(4.0, 1, 0)),
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
def test_what_waits(line: str, now: float, expected: Backlog) -> None:
    backlog = after(line).backlog(now)
    assert backlog.oldest_unacked_age_s == pytest.approx(expected.oldest_unacked_age_s)
    assert (backlog.undelivered, backlog.stalled_keys) == (expected.undelivered, expected.stalled_keys)


def test_a_message_is_as_old_as_it_should_be() -> None:
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    for event in history("P1@3 ok1=m1@3.1"):
        backlog_tracker.listen(intended(event, 1.0))
    assert backlog_tracker.backlog(4.0).oldest_unacked_age_s == 3.0


def test_keys_are_told_apart() -> None:
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    for key in ("a", "b"):
        for event in history("P1,2 A<1,2@1", key=key):
            backlog_tracker.listen(event)
    for event in history("P1,2 A<1,2@1 A ack 1,2@2", key="a")[-2:]:
        backlog_tracker.listen(event)
    assert backlog_tracker.backlog(20.0).undelivered == 2
    assert backlog_tracker.backlog(20.0).stalled_keys == 1


def test_what_is_missing_was_confirmed_and_not_delivered() -> None:
    assert after("P1,2,3 A<1,2,3@9 A ack 1@9.5 P5@10 info5@11").missing("e1") == {}
    assert after("P1,2,3 A<1@1").missing("e1") == {"k": 2}
    assert after("P1,2,3 A<1@1").missing("e2") == {}


def test_a_later_run_on_which_the_key_moves_writes_off_what_was_lost() -> None:
    lost = "P1,2 A<1@1 A ack 1@1.1"
    assert after(lost).backlog(9.0).undelivered == 1
    moves = after(lost, "P1[e2]@10 ok1=n1@10.1 A<n1(1)[e2]@11 A ack 1@11.1")
    assert moves.backlog(20.0) == Backlog(0.0, 0, 0)
    assert moves.written_off == 1


def test_while_a_key_stands_still_nothing_is_written_off() -> None:
    hangs = after("P1,2 A<1@1 A ack 1@1.1", "P1[e2]@10 info1@15")
    assert hangs.backlog(20.0).oldest_unacked_age_s == pytest.approx(19.9)
    assert hangs.written_off == 0


def test_a_subscription_made_anew_owes_nothing() -> None:
    backlog_tracker = after("P1,2 P3@5")
    backlog_tracker.clear()
    assert backlog_tracker.backlog(9.0) == Backlog(0.0, 0, 0)
    assert backlog_tracker.written_off == 3


def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "WAITING_MAX", 2)
    backlog_tracker = after("P1,2,3")
    assert backlog_tracker.backlog(9.0).undelivered == 2
    assert [backlog_tracker.take_dropped(), backlog_tracker.take_dropped()] == [1, 0]


def test_early_deliveries_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "EARLY_KEPT_MAX", 1)
    backlog_tracker = after("P1@0 P2@0.1 A<1@1 A ack 1@1.1 A<2@1.2 A ack 2@1.3 ok1=m1@2 ok2=m2@2.1")
    assert backlog_tracker.backlog(9.0).undelivered == 1


def test_what_came_again_is_not_remembered_after_the_run() -> None:
    backlog_tracker = BacklogTracker(STALLED_AFTER_S)
    line = history("P1 A<1@1 A ack 1@1.1 A<1@2 A ack 1@2.1")
    tracemalloc.start()
    try:
        for number in range(2000):
            for event in line:
                named = replace(event, message_id=f"m{number}") if isinstance(event, Published | Delivered | Acked) else event
                backlog_tracker.listen(named)
            backlog_tracker.settle("e1")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000
