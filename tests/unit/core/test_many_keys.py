"""A key of which nothing comes for a while, as others do: nothing is forgotten of it, and nothing is missed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from prober.core.events import Acked, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import observe, words

SETTLED = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4"


class Topic:
    """A checker with one key in question, `k`."""

    def __init__(self, line: str, **rules: Any) -> None:
        self.verifier = Verifier(Rules(**rules), subscriptions=("s",))
        self.names = (f"other {number}" for number in count())
        self.found = observe(self.verifier, history(line))

    def elsewhere(self, t: float) -> None:
        """Another key comes."""
        self.found += self.verifier.observe(PublishInvoked(t, next(self.names), "e", 1))

    def go_on(self, line: str) -> set[str]:
        """What is said about the history from here on; sessions are open already."""
        events = [event for event in history(line) if not isinstance(event, Opened) or event.t > 0]
        later = Opened(events[-1].t + 40.0, "s", "later", "later")
        return words(observe(self.verifier, [*events, later]))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SETTLED, "A<1@5 A<3@5.1", "V:REDELIVERY_SKIP"),
        (SETTLED, "A<1,2,3@5", ""),
        (SETTLED, "P5@5 ok5=m5@5.1 P6@5.2 ok6=m6@5.3 A<6@6", "V:ORDER_GAP"),
        (SETTLED, "P4@5 ok4=m2@5.1 A<4[e1]@6", "V:ID_CONFLICT"),
        (SETTLED, "A<9@5", "V:PHANTOM"),
        (SETTLED, "A<m2(3)@5", "V:ID_CONFLICT"),
        ("P1 A<1@1 A ack 1@1.1 P2@1.2 fail2@1.3", "A<2@5", "V:GHOST"),
        ("P1 A<1@1 A ack 1@1.1 P2@1.2 info2@1.3", "A<2@5 ok2=m2@5.1", ""),
    ],
)  # fmt: skip
def test_a_key_comes_back_with_what_it_knew(before: str, after: str, expected: str) -> None:
    topic = Topic(before)
    topic.elsewhere(4.0)
    assert topic.go_on(after) == set(expected.split())


def test_what_is_pending_is_found_in_time_among_keys_that_are_idle() -> None:
    topic = Topic("P1,2 A<1@1 A ack 1@1.1")
    for number in range(50):
        observe(topic.verifier, [*_settled(f"key {number}", 2.0 + number / 10)])
    topic.elsewhere(500.0)
    assert words(topic.found) == {"L:STUCK"}
    assert topic.verifier.pending


def test_idle_keys_are_counted_and_have_nothing_pending() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    assert topic.verifier.finish() == []
    assert topic.verifier.counters["keys"] == 2
    assert not topic.verifier.pending


def test_a_seek_reaches_idle_keys() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("seek 60@5"))
    found = observe(topic.verifier, [event for event in history("A<1@10 A<3@10.1") if isinstance(event, Delivered)])
    assert words(found) == {"I:REDELIVERY_SKIP"}


def test_a_seek_that_has_settled_meanwhile_excuses_nothing_new() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("seek 5@5"))
    said = topic.go_on("P4@20 ok4=m4@20.1 P5@20.2 ok5=m5@20.3 A<5@21")
    assert said == {"V:ORDER_GAP"}


def test_a_hole_reaches_idle_keys() -> None:
    topic = Topic(SETTLED)
    topic.elsewhere(4.0)
    observe(topic.verifier, history("hole@5"))
    assert topic.go_on("open B of client B@5.5 B<3@6 B<1@6.1") == set()


def test_a_subscription_that_shows_itself_late_is_pending_by_idle_keys() -> None:
    """A seek of the first subscription excuses what it did not deliver, so nothing is pending there; the second one still waits for it."""
    topic = Topic("P1 A<1@1 A ack 1@1.1 P2@1.2 ok2=m2@1.3 seek 1@2")
    topic.elsewhere(10.0)
    topic.verifier.observe(Opened(11.0, "late", "L", "L"))
    topic.elsewhere(500.0)
    assert {(finding.kind, finding.subscription) for finding in topic.found} == {("STUCK", "late")}


def _settled(key: str, t: float, seq: int = 1) -> Iterator[Event]:
    message_id = f"{key} {seq}"
    yield PublishInvoked(t, key, "e", seq)
    yield Published(t, key, "e", seq, message_id)
    yield Delivered(t, "s", key, "A", "e", seq, message_id)
    yield Acked(t, "s", key, "A", message_id)
