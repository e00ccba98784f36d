"""The rules that are compared with, on deliveries whose verdicts are known: those of Google's prober from reading its source."""

from __future__ import annotations

import pytest

from prober.core.events import Delivered, Event, Opened
from prober.simulation.other_rules import ArrivalOrder, GooglesProber, OtherRule


def alarms(rule: OtherRule, deliveries: str) -> int:
    """`3` is message 3, `3@b` at subscriber b, `3'` another message with that number."""
    events: list[Event] = [Opened(0.0, "s", name, name) for name in ("a", "b")]
    for number, word in enumerate(deliveries.split()):
        what, _, session = word.partition("@")
        seq = int(what.rstrip("'"))
        events.append(Delivered(float(number), "s", "k", session or "a", "e", seq, f"id {what}"))
    for event in events:
        rule.event(event)
    return rule.alarms


@pytest.mark.parametrize(
    ("deliveries", "expected"),
    [
        ("1 2 3", 0),
        ("1 3 2 4", 3),
        ("1 3 4 5", 2),
        ("4 5 6", 0),
        ("1@a 3@b 2@b 4@b", 2),
        ("1 2 3 4 5 6 3 7", 1),
        ("1 2 3 4 2 5", 1),
        ("1 2 3 4 5 6 3@b 5@a 6@b", 0),
        ("1 2 3 2' 4", 0),
        ("1 2 3 4 5 3 4 5 6", 0),
    ],
)
def test_googles_prober(deliveries: str, expected: int) -> None:
    assert alarms(GooglesProber(), deliveries) == expected


@pytest.mark.parametrize(
    ("deliveries", "expected"), [("1 2 3", 0), ("1 3 2 4", 2), ("2 3", 1), ("1 2 3 1 2 3", 0), ("1 2 3 1 3", 1), ("1 2 3 2 4", 1)]
)
def test_arrival_order(deliveries: str, expected: int) -> None:
    assert alarms(ArrivalOrder(), deliveries) == expected
