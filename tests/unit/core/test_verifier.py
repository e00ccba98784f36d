"""The checker as a whole: numbers, time, routing, counters, and what is still pending."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf

import pytest

from prober.core.collector import WITNESSES_MAX
from prober.core.events import Delivered, Event, Opened, PublishInvoked
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import across, findings, merged, observe, only, words
from tests.verification import verify


def test_events_are_numbered_from_one() -> None:
    assert only("P1 A<1@1 A<q7(7)@1.1", "PHANTOM").witnesses == (5,)


def test_witnesses_ascend_and_are_not_too_many() -> None:
    finding = only("P" + ",".join(map(str, range(1, 40))) + " A<1@5 A<39@6", "ORDER_GAP")
    assert list(finding.witnesses) == sorted(set(finding.witnesses))
    assert len(finding.witnesses) <= WITNESSES_MAX
    assert finding.facts["missing_count"] == 37
    assert finding.facts["missing"] == tuple(range(2, 22))


def test_nothing_is_said_of_nothing() -> None:
    verifier = Verifier(Rules())
    assert list(verifier.finish()) == []
    assert not verifier.pending


def test_findings_are_returned_by_the_event_that_decides_them_and_once() -> None:
    verifier = Verifier(Rules())
    *before, last = history("P1,2,3 A<1@1 A<3@1.1")
    assert observe(verifier, before) == []
    assert words(verifier.observe(last)) == {"V:ORDER_GAP"}
    assert list(verifier.finish()) == []


def test_keys_are_verified_apart() -> None:
    one, other = history("P1,2 A<1,2@1", key="one"), history("P1,2 A<2@1.5", key="other")
    found = verify(Rules(), merged(one, [event for event in other if not isinstance(event, Opened)]))
    assert {(finding.key, finding.kind.value) for finding in found} == {("other", "ORDER_GAP")}


def test_subscriptions_are_verified_apart_and_publishes_concern_all() -> None:
    found = across(("s", "P1,2,3 A<1,2,3@1"), ("t", "B<1@1 B<3@1.1"))
    assert {(f.subscription, f.kind.value) for f in found} == {("t", "ORDER_GAP"), ("s", "ORDER_DIVERGENCE")}


def test_streams_of_another_subscription_do_not_count() -> None:
    """B is of another subscription: A is alone, and the skip is decided at once."""
    verifier = Verifier(Rules(), subscriptions=("s", "t"))
    events = merged(history("P1,2,3 A<1,2,3@1 A<1@2 A<3@2.1"), history("open B of client B", subscription="t"))
    assert "V:REDELIVERY_SKIP" in words(observe(verifier, events))


def test_rules_by_subscription() -> None:
    found = across(
        ("s", "P1,2 A<1,2@1 A ack 1@1.3 A ackOK 1@1.5 A<1@30 A<2@30.1"),
        ("t", "B<1,2@1 B ack 1@1.3 B ackOK 1@1.5 B<1@30 B<2@30.1"),
        by_subscription={"t": Rules(exactly_once=True)},
    )
    assert {(f.subscription, f.kind.value) for f in found} == {("t", "EOD_REDELIVERY_AFTER_ACK")}


@pytest.mark.parametrize(
    ("line", "pending"),
    [
        ("P1,2 A<1,2@1 A ack 1,2@1.2 end @2", False),
        ("P1,2 A<1@1 A ack 1@1.2 end @2", True),
        ("P1,2 A<1,2@1 A ack 1@1.2 end @2", True),
        ("P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @2", True),
        ("P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 A<1@2 end @3", True),
        ("P1@0 info1@0.1 P2@0.2 ok2=m2@0.3 A<2@1 A ack 2@1.1 end @2", False),
        ("P1@0 P2@0.2 ok2=m2@0.3 A<2@1 A ack 2@1.1 end @2", False),
        ("P1 end @2", True),
        ("end @2", False),
    ],
)
def test_what_is_still_pending(line: str, pending: bool) -> None:
    verifier = Verifier(Rules(), subscriptions=("s",))
    observe(verifier, history(line))
    assert verifier.pending is pending


def test_a_subscription_that_never_showed_itself_is_not_pending_beside_one_that_did() -> None:
    verifier = Verifier(Rules(), subscriptions=("s", "silent"))
    observe(verifier, history("P1 A<1@1 A ack 1@1.1 end @2"))
    assert not verifier.pending


def test_an_unacknowledged_message_is_not_pending_where_that_is_not_verified() -> None:
    verifier = Verifier(Rules(unacked_deadline_s=inf))
    observe(verifier, history("P1 A<1@1 end @2"))
    assert not verifier.pending


def test_what_is_due_is_decided_before_the_first_later_event() -> None:
    """The message arrives after its deadline, when the end of a stream that was dead until then would have been noticed."""
    found = findings("P1,2 A<1@1 A ack 1@1.1 A<2@151.5 A ack 2@151.6", Rules())
    assert words(found, times=True) == {"L:STUCK@121"}
    assert findings("P1,2 A<1@1 A ack 1@1.1 A<2@151 A ack 2@151.6", Rules()) == []


def test_a_clock_that_stands_still_is_no_matter() -> None:
    assert findings("P1@1 P2@1 ok1=m1@1 ok2=m2@1 A<1@1 A<2@1 A ack 1@1", Rules(unacked_deadline_s=inf)) == []


def test_findings_are_counted_by_status() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1,2,3,4,5 A<1@1 A<3@1.1 A<z1(1)@1.2 A ack 1,3@1.3 B<5@2 end @500"))
    verifier.finish()
    counted = {name: count for name, count in verifier.counters.items() if name.startswith("findings_")}
    assert counted["findings_violation"] >= 2
    assert counted["findings_info"] == 1
    assert counted["findings_liveness"] >= 1
    assert set(counted) <= {f"findings_{status}" for status in ("violation", "liveness", "indeterminate", "info")}


def test_what_was_seen_is_counted() -> None:
    verifier = Verifier(Rules())
    line = "P1,2,3 A<1,2,3@1 A ack 1,2@1.4 A nack 3@1.5 A<1@2 A<2@2.1 A<1@2.2 A<2,3@2.3 A ack 1,2@2.5 A<9[e9]@3 dlq m3@3.1 close A@4 seek 1@5 hole @20"
    observe(verifier, history(line))
    verifier.finish()
    expected = {
        "acks": 4,
        "nacks": 1,
        "deliveries_first": 3,
        "deliveries_redelivery": 5,
        "deliveries_foreign": 1,
        "redeliveries_of_acked": 4,
        "rewinds": 2,
        "rewinds_to_acked": 2,
        "rewinds_inside_a_run": 1,
        "dead_lettered": 1,
        "sessions_closed": 1,
        "seeks": 1,
        "interruptions": 1,
        "keys": 1,
    }
    assert {name: verifier.counters[name] for name in expected} == expected


def test_lease_expiries_are_counted() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1,2 A<1,2@1 A ack 2@1.3 A<1,2@70 A ack 2@70.5 A nack 1@71 A<1,2@140"))
    assert verifier.counters["lease_expiries"] == 1  # the second time it had been refused


def test_two_streams_and_concurrent_pulls_are_counted() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("open B of client B P1,2 A<1@1 close B@1.05 A<2@1.1"))
    assert verifier.counters["deliveries_among_several"] == 1
    pulls = Verifier(Rules(mode=Mode.PULL))
    observe(pulls, history("pull a@1 pull b@2 close a@3 close b@3 pull c@4", Mode.PULL))
    assert pulls.counters["pulls_concurrent"] == 1


def test_what_makes_no_sense_is_not_verified() -> None:
    nonsense = [
        *history("A ack 1@1 A nack 1@1 A ackOK 1@1 A modack 1 5s@1 dlq m1@1 close A@1 close A@1"),
        PublishInvoked(2.0, "k", "e", 0),
        PublishInvoked(2.0, "k", "e", -5),
        *history("ok7=m7@2 info7@2 fail7@2 abandon7@2"),
        Delivered(5.0, "s", "k", "A", "other", 1 << 80, ""),
    ]
    assert verify(Rules(), nonsense) == []


def test_a_key_is_only_waited_for_while_there_is_something_to_decide() -> None:
    """A settled key gives up its place in the queue: the queue does not grow with time."""
    verifier = Verifier(Rules(idle_after_s=10))
    observe(verifier, history("P1 A<1@1 A ack 1@1.1"))
    for t in range(100, 5000, 100):
        verifier.observe(Opened(float(t), "s", f"S{t}", "A"))
    assert verifier._queue == []


def test_a_window_must_hold_something() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Rules(window=0)


def test_a_subscription_that_shows_itself_late_waits_for_what_was_published_before() -> None:
    """With a strict baseline it existed before the first publish, whenever its first session is recorded."""
    events: list[Event] = [event for event in history("P1,2 end @500") if not isinstance(event, Opened)]
    events.insert(-1, Opened(1.0, "late", "L", "L"))
    verifier = Verifier(Rules())
    found = [finding.kind for event in events for finding in verifier.observe(event)]
    assert found == ["STUCK"]
