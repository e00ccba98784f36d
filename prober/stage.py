"""Where a probe acts: it publishes on keys and consumes with subscribers, and everything it does or sees is recorded.

A `Stage` belongs to one run. It hands out sequence numbers (1, 2, 3, ... per key, never used twice), turns outcomes into events,
republishes what ended unknown under the next generation until it is confirmed or given up explicitly, and lets a probe decide for each
delivery what becomes of it. An acknowledgement is recorded, then sent.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from prober.brokers.base import Broker, Confirmed, Flow, Outgoing, Publisher, Received, Rejected, Session, Subscriber
from prober.core.events import (
    Acked,
    Closed,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    PublishAbandoned,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.payload import Stamp, read
from prober.recorder import Recording

GENERATIONS_MAX = 5
"""How often a message is published in all before an unknown outcome is given up."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One probe message as a subscriber of this run received it; `again` says that its id was received before."""

    key: str
    seq: int
    again: bool
    session: Session
    received: Received
    stage: Stage

    def ack(self) -> None:
        """Acknowledges it."""
        self.stage.ack(self)

    def nack(self) -> None:
        """Refuses it: it may come again at once."""
        self.stage.nack(self)

    def shorten_lease(self, seconds: int) -> None:
        """Lets its lease end in `seconds` and leaves it unanswered."""
        self.stage.shorten_lease(self, seconds)


Decide = Callable[[Delivery], None]
"""What a probe does with a delivery: acknowledge, refuse, later, or never. Called on the event loop; must not block."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run takes place: a topic, one ordered subscription of it, and how long one call may take."""

    topic: str
    subscription: str
    ack_deadline_s: int
    publish_timeout_s: float


class Stage:
    """What a probe needs to act; see the head of this file. Entered as an async context manager, it closes what it opened."""

    def __init__(self, broker: Broker, place: Place, recording: Recording, epoch: str, seed: int) -> None:
        self.place = place
        self.recording = recording
        self.random = random.Random(seed)
        self._broker = broker
        self._epoch = epoch
        self._seqs: dict[str, int] = {}
        self._seen: set[str] = set()
        self._resources = AsyncExitStack()
        self._publisher: Publisher = broker.publisher(place.topic)
        self._subscribers = 0

    async def __aenter__(self) -> Stage:
        self._resources.push_async_callback(self._publisher.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._resources.aclose()

    # --- publishing ----------------------------------------------------------------------------------------------------------

    async def publish(self, key: str, count: int, size: int = 64) -> int:
        """Publishes the next `count` messages of a key together, each of `size` bytes, until every outcome is settled.

        Returns how many were confirmed. Calls for one key must not overlap: a key has one writer.
        """
        first = self._seqs.get(key, 0) + 1
        self._seqs[key] = first + count - 1
        seqs: Sequence[int] = range(first, first + count)
        confirmed = 0
        for generation in range(GENERATIONS_MAX):
            unknown = await self._attempt(key, seqs, generation, size)
            confirmed += len(seqs) - len(unknown)
            if not unknown:
                return confirmed
            seqs = unknown
            await self._publisher.resume(key)
        for seq in seqs:
            self._record(PublishAbandoned(self._now(), key, self._epoch, seq, GENERATIONS_MAX - 1))
        return confirmed

    async def _attempt(self, key: str, seqs: Sequence[int], generation: int, size: int) -> list[int]:
        """One attempt for these sequence numbers; returns those whose outcome is unknown."""
        messages = []
        for seq in seqs:
            data = self.random.randbytes(size)
            stamp = Stamp(self._epoch, seq, generation)
            messages.append(Outgoing(key, data, stamp.attributes(key, data)))
            self._record(PublishInvoked(self._now(), key, self._epoch, seq, generation))
        outcomes = await self._publisher.publish(messages, self.place.publish_timeout_s)
        unknown = []
        rejected = False
        for seq, outcome in zip(seqs, outcomes, strict=True):
            t = self._now()
            if isinstance(outcome, Confirmed):
                self._record(Published(t, key, self._epoch, seq, outcome.message_id, generation))
            elif isinstance(outcome, Rejected):
                rejected = True
                self._record(PublishFailed(t, key, self._epoch, seq, generation))
            else:
                unknown.append(seq)
                self._record(PublishUnknown(t, key, self._epoch, seq, generation))
        if rejected:
            await self._publisher.resume(key)
        return unknown

    # --- consuming -----------------------------------------------------------------------------------------------------------

    async def subscribe(self, decide: Decide, flow: Flow | None = None) -> Subscriber:
        """Adds a subscriber under a client id of its own; `decide` is called for each probe message that it receives."""
        self._subscribers += 1
        client_id = f"{self._epoch}-{self._subscribers}"
        place = self.place
        subscriber = self._broker.subscriber(place.subscription, client_id, flow or Flow(), place.ack_deadline_s)
        self._resources.push_async_callback(subscriber.close)
        await subscriber.start(_StageTap(self, decide))
        return subscriber

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Does something on the event loop after `delay_s`, unless the run is over by then."""
        handle = asyncio.get_running_loop().call_later(delay_s, action)
        self._resources.callback(handle.cancel)

    def ack(self, delivery: Delivery) -> None:
        """Records and sends an acknowledgement."""
        place, session = self.place, delivery.session
        self._record(Acked(self._now(), place.subscription, delivery.key, session.name, delivery.received.message_id))
        session.ack(delivery.received)

    def nack(self, delivery: Delivery) -> None:
        """Records and sends a refusal."""
        place, session = self.place, delivery.session
        self._record(Nacked(self._now(), place.subscription, delivery.key, session.name, delivery.received.message_id))
        session.nack(delivery.received)

    def shorten_lease(self, delivery: Delivery, seconds: int) -> None:
        """Records and sends a lease modification, and leaves the message unanswered."""
        place, session, received = self.place, delivery.session, delivery.received
        t = self._now()
        self._record(LeaseModified(t, place.subscription, delivery.key, session.name, received.message_id, seconds))
        session.modify_lease(received, seconds)
        session.let_expire(received)

    # --- what the tap tells --------------------------------------------------------------------------------------------------

    def opened(self, session: Session, invoked_t: float | None) -> None:
        """A session of this run began."""
        self._record(Opened(self._now(), self.place.subscription, session.name, session.subscriber, invoked_t))

    def closed(self, session: Session) -> None:
        """A session of this run ended."""
        self._record(Closed(self._now(), self.place.subscription, session.name))

    def received(self, session: Session, received: Received, decide: Decide) -> None:
        """A message came: recorded first, then decided upon. What is not a probe's, or another run's, is acknowledged and left."""
        message = read(received.ordering_key, received.data, received.attributes)
        key = received.ordering_key
        if message is None:
            self.recording.counters["deliveries_unreadable"] += 1
            session.ack(received)
            return
        stamp = message.stamp
        self._record(
            Delivered(
                self._now(),
                self.place.subscription,
                key,
                session.name,
                stamp.epoch,
                stamp.seq,
                received.message_id,
                stamp.generation,
                received.delivery_attempt,
                message.defect,
            )
        )
        delivery = Delivery(key, stamp.seq, received.message_id in self._seen, session, received, self)
        self._seen.add(received.message_id)
        if stamp.epoch == self._epoch:
            decide(delivery)
        else:
            self.ack(delivery)

    def _now(self) -> float:
        return self.recording.now()

    def _record(self, event: Event) -> None:
        self.recording.record(event)


class _StageTap:
    """Tells a stage what one subscriber sees."""

    def __init__(self, stage: Stage, decide: Decide) -> None:
        self._stage = stage
        self._decide = decide

    def opened(self, session: Session, invoked_t: float | None) -> None:
        self._stage.opened(session, invoked_t)

    def received(self, session: Session, received: Received) -> None:
        self._stage.received(session, received, self._decide)

    def ack_confirmed(self, session: Session, message_id: str) -> None:
        """Which key it was is not told; exactly-once probes keep that themselves."""

    def closed(self, session: Session, reason: str) -> None:
        del reason
        self._stage.closed(session)
