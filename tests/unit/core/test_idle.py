"""Idle keys: what is kept of them, what is reported of them all the same, and which are forgotten where there are too many."""

from __future__ import annotations

from typing import Any

import pytest

from prober.core.events import Acked, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import listed

SETTLED = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4"
LATER = 5_000


class Topic:
    """A checker with the key `k`, on which nothing happens until `LATER`; another key comes meanwhile."""

    def __init__(self, line: str, **rules: Any) -> None:
        self.verifier = Verifier(Rules(**rules), subscriptions=("s",))
        self.found = [finding for event in history(line) for finding in self.verifier.observe(event)]
        self.found += self.verifier.observe(PublishInvoked(LATER - 1.0, "another", "e", 1))

    def go_on(self, line: str) -> list[str]:
        """What is said about the history from here on, whose times begin at `LATER`; the stream A stays open."""
        events = [event for event in history(line) if not isinstance(event, Opened)]
        found = [finding for event in events for finding in self.verifier.observe(event)]
        return [word.split("@")[0] for word in listed([*found, *self.verifier.finish()])]

    @property
    def rests(self) -> bool:
        return "k" in self.verifier._resting


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (f"P4@{LATER} ok4=m4@{LATER}.1 A<4@{LATER}.2", []),
        (f"P4@{LATER} ok4=m4@{LATER}.1 P5@{LATER}.2 ok5=m5@{LATER}.3 A<5@{LATER}.4", ["V:ORDER_GAP"]),
        (f"A<9@{LATER}", ["V:PHANTOM"]),
        (f"A<1@{LATER}", []),
        (f"P4@{LATER} ok4=m4@{LATER}.1 A<4@{LATER}.2 A<2@{LATER}.3 A<4@{LATER}.4", []),
    ],
)  # fmt: skip
def test_a_key_goes_on_where_it_was(after: str, expected: list[str]) -> None:
    topic = Topic(SETTLED)
    assert topic.rests
    assert [word for word in topic.go_on(after) if word[0] in "VL"] == expected
    assert not topic.rests


def test_what_was_forgotten_is_counted_if_it_is_redelivered() -> None:
    topic = Topic(SETTLED)
    topic.go_on(f"A<2@{LATER}")
    assert topic.verifier.counters["deliveries_unplaced"] == 1


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("P1,2 A<1@1 A ack 1@1.1", {"delivery_deadline_s": float("inf"), "unacked_deadline_s": float("inf")}),
        ("P1 A<1@1", {"unacked_deadline_s": float("inf")}),
    ],
    ids=["undelivered", "unacknowledged"],
)
def test_a_key_with_something_pending_stays(line: str, rules: dict[str, float]) -> None:
    assert not Topic(line, **rules).rests


def test_a_confirmed_acknowledgement_is_remembered() -> None:
    topic = Topic("P1 A<1@1 A ack 1@1.1 A ackOK 1@1.2", exactly_once=True)
    assert topic.rests
    assert "V:EOD_REDELIVERY_AFTER_ACK" in topic.go_on(f"A<1@{LATER}")


def test_a_hole_in_the_record_reaches_a_key_that_rests() -> None:
    topic = Topic(SETTLED)
    assert [word for word in topic.go_on(f"hole@{LATER} A<9@{LATER + 1}") if word[0] == "V"] == []


def test_an_idle_key_rests_on_every_subscription() -> None:
    verifier = Verifier(Rules(), subscriptions=("s", "other"))
    for subscription in ("s", "other"):
        for event in history("P1 A<1@1 A ack 1@1.1" if subscription == "s" else "A<1@1 A ack 1@1.1", subscription=subscription):
            assert not verifier.observe(event)
    verifier.observe(PublishInvoked(LATER, "another", "e", 1))
    assert list(verifier._resting) == ["k"]
    assert verifier.counters["findings_violation"] == 0


def settled(key: str, t: float) -> list[Event]:
    """A message that is published, delivered and acknowledged."""
    return [
        PublishInvoked(t, key, "e", 1),
        Published(t, key, "e", 1, f"{key}-1"),
        Delivered(t, "s", key, "stream", "e", 1, f"{key}-1"),
        Acked(t, "s", key, "stream", f"{key}-1"),
    ]


def test_beyond_the_bound_the_key_that_rested_longest_is_forgotten_and_counted() -> None:
    verifier = Verifier(Rules(keys_max=10), subscriptions=("s",))
    verifier.observe(Opened(0.0, "s", "stream", "client"))
    for number in range(25):
        for event in settled(f"key-{number}", 1_000.0 * number + 1):
            assert not verifier.observe(event)
    assert len(verifier._groups) + len(verifier._resting) <= 10
    assert "key-0" not in verifier._resting
    verifier.finish()
    assert verifier.counters["keys_forgotten"] == 15
    assert verifier.counters["keys"] == 10
