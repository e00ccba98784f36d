"""What a probe is, and where it acts: it publishes on keys and consumes with subscribers; everything it does or sees is recorded.

An `Experiment` says what a probe does, and what has to have happened for its outcome to mean anything; a `Workload` how much a run does.

A `ProbeContext` belongs to one run and to the event loop. It hands out sequence numbers (1, 2, 3, ... per key, never used twice), turns
outcomes into events, republishes what ended unknown under the next generation until it is confirmed or given up explicitly, and lets a
probe decide for each delivery what becomes of it. An acknowledgement is recorded, then sent.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import Protocol

from prober.brokers.base import (
    Broker,
    BrokerSession,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    Publisher,
    Received,
    Rejected,
    Subscriber,
    Tap,
)
from prober.core.events import (
    AckConfirmed,
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
from prober.probes.payload import Stamp, read

SLOT_S = 0.005
GENERATIONS_MAX = 5
"""How often a message is published in all before an unknown outcome is given up."""

IDS_KEPT_MAX = 1_000_000
"""Message ids whose keys are remembered per run; beyond that the oldest are forgotten."""


class DeliveryKind(StrEnum):
    """Whether a message came before. FOREIGN: not published by the run that received it."""

    FIRST = "first"
    REDELIVERY = "redelivery"
    PUBLISHER_DUPLICATE = "publisher_duplicate"
    FOREIGN = "foreign"


@dataclass(slots=True)
class Delivery:
    """One probe message as a subscriber of this run received it; `again`: it is a redelivery."""

    key: str
    seq: int
    again: bool
    session: BrokerSession
    received: Received
    context: ProbeContext

    def ack(self) -> None:
        """Acknowledges it."""
        self.context.ack(self)

    def nack(self) -> None:
        """Refuses it: it may come again at once."""
        self.context.nack(self)

    def shorten_lease(self, seconds: int) -> None:
        """Lets its lease end in `seconds` and leaves it unanswered."""
        self.context.shorten_lease(self, seconds)

    def let_expire(self) -> None:
        """Leaves it unanswered for good: its lease ends by itself, and no client makes it longer."""
        self.session.let_expire(self.received)


Decide = Callable[[Delivery], None]
"""What a probe does with a delivery: acknowledge, refuse, later, or never. Called on the event loop; must not block."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run uses: a topic, one ordered subscription of it, and how long one call may take.

    `region` is the one that it publishes in, empty if that is not known.
    """

    topic: str
    subscription: str
    ack_deadline_s: int
    publish_timeout_s: float
    region: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """How much a run does. Times in seconds, sizes in bytes.

    keys            ordering keys of the run.
    bursts          how often each key is published on.
    burst_messages  messages per burst, published together.
    rate            messages per second over all keys; 0: everything at once.
    sizes           sizes of messages, used in turn.
    subscribers     subscribers that share the subscription.
    ack_after_s     how long a subscriber takes to acknowledge.
    part, parts     all keys are divided among so many runs, of which this is one; `keys` are those of this run.
    """

    keys: int = 8
    bursts: int = 5
    burst_messages: int = 10
    rate: float = 0.0
    sizes: tuple[int, ...] = (64,)
    subscribers: int = 3
    ack_after_s: float = 0.05
    part: int = 0
    parts: int = 1

    @property
    def numbers(self) -> range:
        """The numbers of its keys: of all keys every `parts`th, so that each belongs to one part."""
        return range(self.part, self.part + self.keys * self.parts, self.parts)

    @property
    def period_s(self) -> float:
        """From one burst of a key to its next, so that all keys together keep the rate."""
        return self.keys * self.burst_messages / self.rate if self.rate else 0.0


class Recorder(Protocol):
    """Where what a probe does and sees goes, in the order in which it happens. Belongs to the event loop; raises nothing."""

    def now(self) -> float:
        """The time to stamp an event with, in seconds of the monotonic clock."""

    def record(self, event: Event) -> DeliveryKind | None:
        """Takes the next event; says of a delivery what kind it is, if that is still known."""

    def count(self, name: str) -> None:
        """Counts something that is no event, under a name of its own among the counters of the run."""


class ProbeContext:
    """What a probe needs to act; see the head of this file. Entered as an async context manager, it closes what it opened."""

    def __init__(self, broker: Broker, resources: Resources, recording: Recorder, epoch: str, seed: int) -> None:
        self.resources = resources
        self._recording = recording
        self.now = recording.now
        """The time of the recorder, which events carry."""
        self._record = recording.record
        self.random = random.Random(seed)
        self._broker = broker
        self._epoch = epoch
        self._seqs: dict[str, int] = {}
        self._key_of: dict[str, str] = {}
        self._slots: dict[int, list[Callable[[], None]]] = {}
        self._resources = AsyncExitStack()
        self._publisher: Publisher = broker.publisher(resources.topic)
        self._subscribers = 0

    async def __aenter__(self) -> ProbeContext:
        self._resources.push_async_callback(self._publisher.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._slots.clear()
        await self._resources.aclose()

    # --- publishing ----------------------------------------------------------------------------------------------------------

    async def beats(self, count: int, period_s: float) -> AsyncIterator[float]:
        """Waits for each of `count` points in time, `period_s` apart, and gives it: when something is meant to be sent.

        The points are fixed beforehand. Who comes late to one is not waited for, and the next is no later for it. The first lies
        somewhere within the first period, so that keys do not march in step.
        """
        first_t = self.now() + self.random.uniform(0, period_s)
        for number in range(count):
            due_t = first_t + number * period_s
            await asyncio.sleep(max(0.0, due_t - self.now()))
            yield due_t

    async def publish(self, key: str, count: int, sizes: Sequence[int] = (64,), intended_t: float | None = None) -> int:
        """Publishes the next `count` messages of a key together, until every outcome is settled; the sizes in bytes are used in turn.

        Returns how many were confirmed. Calls for one key must not overlap: a key has one writer. `intended_t` is when the schedule
        of the experiment wanted them sent, in seconds of the recorder's clock. Raises no BrokerError: a failure is an outcome.
        """
        first = self._seqs.get(key, 0) + 1
        self._seqs[key] = first + count - 1
        seqs: Sequence[int] = range(first, first + count)
        confirmed = 0
        for generation in range(GENERATIONS_MAX):
            batch = [self._message(key, seq, generation, sizes[seq % len(sizes)]) for seq in seqs]
            unknown = await self._attempt(key, seqs, generation, batch, intended_t)
            confirmed += len(seqs) - len(unknown)
            if not unknown:
                return confirmed
            seqs = unknown
            await self._publisher.resume(key)
        for seq in seqs:
            self._record(PublishAbandoned(self.now(), key, self._epoch, seq, GENERATIONS_MAX - 1))
        return confirmed

    def _message(self, key: str, seq: int, generation: int, size: int) -> Outgoing:
        data = self.random.randbytes(size)
        return Outgoing(key, data, Stamp(self._epoch, seq, generation).attributes(key, data))

    async def _attempt(
        self, key: str, seqs: Sequence[int], generation: int, batch: Sequence[Outgoing], intended_t: float | None
    ) -> list[int]:
        """One attempt for these sequence numbers; returns those whose outcome is unknown."""
        region = self.resources.region
        for seq, message in zip(seqs, batch, strict=True):
            self._record(PublishInvoked(self.now(), key, self._epoch, seq, generation, intended_t, len(message.data), region))
        outcomes = await self._publisher.publish(batch, self.resources.publish_timeout_s)
        unknown = []
        rejected = False
        for seq, outcome in zip(seqs, outcomes, strict=True):
            t = self.now()
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

    async def subscribe(self, decide: Decide, flow: FlowControlSettings | None = None) -> Subscriber:
        """Adds a subscriber under a client id of its own; `decide` is called for each probe message that it receives.

        Raises BrokerUnavailable, NotThere or PermissionRefused if its stream cannot be opened.
        """
        self._subscribers += 1
        client_id = f"{self._epoch}-{self._subscribers}"
        resources = self.resources
        subscriber = self._broker.subscriber(
            resources.subscription, client_id, flow or FlowControlSettings(), resources.ack_deadline_s
        )
        self._resources.push_async_callback(subscriber.close)
        await subscriber.start(self.tap(decide))
        return subscriber

    def tap(self, decide: Decide) -> Tap:
        """Records what a consumer of the subscription tells it; `decide` is called for each probe message."""
        return _ContextTap(self, decide)

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Does something on the event loop after about `delay_s`, unless the run is over by then.

        What falls into the same few milliseconds is done together, in the order of asking: a timer per message would cost more than
        the message.
        """
        loop = asyncio.get_running_loop()
        slot = ceil((loop.time() + delay_s) / SLOT_S)
        actions = self._slots.get(slot)
        if actions is None:
            actions = self._slots[slot] = []
            loop.call_at(slot * SLOT_S, self._act, slot)
        actions.append(action)

    def _act(self, slot: int) -> None:
        for action in self._slots.pop(slot, ()):
            action()

    def ack(self, delivery: Delivery) -> None:
        """Records and sends an acknowledgement."""
        resources, session = self.resources, delivery.session
        self._record(Acked(self.now(), resources.subscription, delivery.key, session.name, delivery.received.message_id))
        session.ack(delivery.received)

    def nack(self, delivery: Delivery) -> None:
        """Records and sends a refusal."""
        resources, session = self.resources, delivery.session
        self._record(Nacked(self.now(), resources.subscription, delivery.key, session.name, delivery.received.message_id))
        session.nack(delivery.received)

    def shorten_lease(self, delivery: Delivery, seconds: int) -> None:
        """Records and sends a lease modification, and leaves the message unanswered."""
        resources, session, received = self.resources, delivery.session, delivery.received
        t = self.now()
        self._record(LeaseModified(t, resources.subscription, delivery.key, session.name, received.message_id, seconds))
        session.modify_lease(received, seconds)
        session.let_expire(received)

    # --- what the tap tells --------------------------------------------------------------------------------------------------

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """A session of this run began."""
        flow = session.flow
        limits = (None, None) if flow is None else (flow.messages_max, flow.bytes_max)
        self._record(Opened(self.now(), self.resources.subscription, session.name, session.subscriber, invoked_t, *limits))

    def closed(self, session: BrokerSession, *, lost: bool) -> None:
        """A session of this run ended."""
        self._record(Closed(self.now(), self.resources.subscription, session.name, lost))

    def received(self, session: BrokerSession, received: Received, decide: Decide) -> None:
        """A message came: recorded first, then decided upon. What is not a probe's, or another run's, is acknowledged and left."""
        key, message_id = received.ordering_key, received.message_id
        message = read(key, received.data, received.attributes)
        if message is None:
            self._recording.count("deliveries_unreadable")
            session.ack(received)
            return
        stamp, attempt = message.stamp, received.delivery_attempt
        subscription = self.resources.subscription
        kind = self._record(
            Delivered(
                self.now(),
                subscription,
                key,
                session.name,
                stamp.epoch,
                stamp.seq,
                message_id,
                stamp.generation,
                attempt,
                message.defect,
                publish_time=received.publish_time,
            )
        )
        self._key_of[message_id] = key
        if len(self._key_of) > IDS_KEPT_MAX:
            del self._key_of[next(iter(self._key_of))]
        delivery = Delivery(key, stamp.seq, kind is DeliveryKind.REDELIVERY, session, received, self)
        if stamp.epoch == self._epoch:
            decide(delivery)
        else:
            self.ack(delivery)

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Exactly-once: an acknowledgement was confirmed."""
        key = self._key_of.get(message_id)
        if key is not None:
            self._record(AckConfirmed(self.now(), self.resources.subscription, key, session.name, message_id))


class _ContextTap:
    """Tells a context what one subscriber sees."""

    def __init__(self, context: ProbeContext, decide: Decide) -> None:
        self._context = context
        self._decide = decide

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        self._context.opened(session, invoked_t)

    def received(self, session: BrokerSession, received: Received) -> None:
        self._context.received(session, received, self._decide)

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        self._context.ack_confirmed(session, message_id)

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        del reason
        self._context.closed(session, lost=lost)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What one probe does.

    promise     the promise under test, in one sentence.
    act         does it: publishes and consumes through its context, and returns when publishing is over.
    requires    counters of the checker that must not be 0, or the run proved nothing: name -> what did not happen.
    messages    how many messages it publishes with a workload, if nothing keeps it from doing so.
    """

    name: str
    promise: str
    act: Callable[[ProbeContext, Workload], Awaitable[None]]
    workload: Workload = field(default_factory=Workload)
    requires: Mapping[str, str] = field(default_factory=dict)
    messages: Callable[[Workload], int] = lambda workload: workload.keys * workload.bursts * workload.burst_messages
