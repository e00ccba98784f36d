"""What a run does and sees becomes events that hold everything the checker needs to know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from prober.brokers.base import Confirmed, FlowControlSettings, Outgoing, Received
from prober.core.events import Acked, Closed, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.probes.context import Decide, ProbeContext
from prober.probes.payload import Stamp
from prober.probes.resources import Resources
from prober.probes.unverified import UnverifiedTap
from prober.runs.recorder import Recording

SUBSCRIPTION = "projects/p/subscriptions/s"
PUBLISHED_AT = 1_767_323_045_123_456_789


class Topic:
    """A broker that stores nothing and confirms everything."""

    admin = None
    unexplained_stops = 0

    def publisher(self, topic: str) -> Topic:
        return self

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Confirmed]:
        return [Confirmed(f"m{number}") for number, _ in enumerate(messages, 1)]

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Channel:
    """A session that takes every answer."""

    name: str
    flow: FlowControlSettings | None
    subscriber: str = "one"
    is_over: bool = False

    def ack(self, received: Received) -> None:
        """Sends nothing."""

    def nack(self, received: Received) -> None:
        """Sends nothing."""

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Sends nothing."""

    def let_expire(self, received: Received) -> None:
        """Does nothing."""


def recording() -> Recording:
    return Recording({SUBSCRIPTION: Rules()}, lambda: 1.0)


def context_on(recorded: Recording, region: str = "", topic: Topic | None = None) -> ProbeContext:
    broker: Any = topic or Topic()
    return ProbeContext(broker, Resources("projects/p/topics/t", SUBSCRIPTION, 10, 1.0, region), recorded, "e", seed=0)


def acknowledge(delivery: Any) -> None:
    delivery.ack()


def reported(*sessions: Channel, decide: Decide = acknowledge, lost: bool = False) -> list[Event]:
    """What is recorded when each session opens, brings a message and ends."""
    recorded = recording()
    tap = context_on(recorded).tap(decide)
    for session in sessions:
        tap.opened(session, None)
        if not lost:
            tap.received(session, Received("m1", "a1", "k", b"x", Stamp("e", 1, 0).attributes("k", b"x"), 0, PUBLISHED_AT))
        tap.closed(session, "over", lost=lost)
    return recorded.events


@pytest.mark.parametrize("region", ["", "europe-west1"])
def test_a_publish_says_its_region_as_far_as_it_is_known(region: str) -> None:
    recorded = recording()
    asyncio.run(context_on(recorded, region).publish("k", 1))
    invoked, published = recorded.events
    assert isinstance(invoked, PublishInvoked)
    assert (invoked.region, invoked.size) == (region, 64)
    assert isinstance(published, Published)


def test_a_delivery_says_when_the_message_was_stored() -> None:
    _, delivered, acked, closed = reported(Channel("A", FlowControlSettings()))
    assert delivered == Delivered(1.0, SUBSCRIPTION, "k", "A", "e", 1, "m1", publish_time=PUBLISHED_AT)
    assert acked == Acked(1.0, SUBSCRIPTION, "k", "A", "m1")
    assert closed == Closed(1.0, SUBSCRIPTION, "A", lost=False)


def test_what_is_answered_when_the_session_is_over_was_not_answered() -> None:
    def answer(delivery: Any) -> None:
        delivery.ack()
        delivery.nack()
        delivery.shorten_lease(1)

    assert [type(event) for event in reported(Channel("A", None, is_over=True), decide=answer)] == [Opened, Delivered, Closed]


def test_a_stream_says_how_much_may_be_outstanding_and_a_pull_does_not() -> None:
    opened = [
        event for event in reported(Channel("A", FlowControlSettings(7, 800)), Channel("b", None)) if isinstance(event, Opened)
    ]
    assert opened == [
        Opened(1.0, SUBSCRIPTION, "A", "one", max_outstanding_messages=7, max_outstanding_bytes=800),
        Opened(1.0, SUBSCRIPTION, "b", "one"),
    ]


def test_a_pull_without_its_answer_is_lost() -> None:
    assert reported(Channel("b", None), lost=True) == [
        Opened(1.0, SUBSCRIPTION, "b", "one"),
        Closed(1.0, SUBSCRIPTION, "b", lost=True),
    ]


def test_a_message_that_is_no_probes_is_counted_and_acknowledged_not_recorded() -> None:
    recorded = recording()
    tap = context_on(recorded).tap(acknowledge)
    for number in range(2):
        tap.received(Channel("A", None), Received(f"m{number}", f"a{number}", "k", b"x", {}, 0, PUBLISHED_AT))
    assert recorded.counters["deliveries_unreadable"] == 2
    assert recorded.events == []


def test_what_is_not_verified_is_acknowledged_and_reported_and_leaves_no_event() -> None:
    acked: list[str] = []
    read: list[tuple[str, int]] = []

    class Answering(Channel):
        def ack(self, received: Received) -> None:
            acked.append(received.message_id)

    tap, session = UnverifiedTap("e", lambda key, stamp: read.append((key, stamp.seq))), Answering("A", None)
    tap.opened(session, None)
    for number, attributes in enumerate((Stamp("e", 5).attributes("k", b"x"), Stamp("other", 6).attributes("k", b"x"), {})):
        tap.received(session, Received(f"m{number}", "a", "k", b"x", attributes, 0, PUBLISHED_AT))
    tap.closed(session, "over")
    assert acked == ["m0", "m1", "m2"]
    assert read == [("k", 5)]


def test_a_message_given_out_before_the_last_one_of_its_key_was_answered_is_counted() -> None:
    recorded = recording()
    tap = context_on(recorded).tap(lambda _: None)
    for seq, overlaps in enumerate((False, True), 1):
        attributes = Stamp("e", seq, 0).attributes("k", b"x")
        tap.received(Channel("A", None), Received(f"m{seq}", f"a{seq}", "k", b"x", attributes, 0, PUBLISHED_AT, overlaps))
    assert recorded.counters["callbacks_overlapping"] == 1


@pytest.mark.parametrize(("stops", "counted"), [(0, {}), (2, {"publishes_stopped_unexpectedly": 2})])
def test_stops_of_keys_that_no_failed_publish_explains_are_counted(stops: int, counted: dict[str, int]) -> None:
    recorded, topic = recording(), Topic()
    topic.unexplained_stops = stops

    async def scenario() -> None:
        async with context_on(recorded, topic=topic):
            pass

    asyncio.run(scenario())
    assert {name: count for name, count in recorded.counters.items() if "stopped" in name} == counted
