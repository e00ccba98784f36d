"""Actions of a probe: publishing on keys and consuming with subscribers, all of it recorded.

A `ProbeContext` belongs to one run and to the event loop. It publishes (`publishing`), and calls the probe's decision for each delivery. An
acknowledgement is recorded, then sent.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import count
from math import ceil
from typing import Protocol

from prober.brokers.base import (
    AdminOperation,
    Broker,
    BrokerSession,
    FlowControlSettings,
    Puller,
    Received,
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
    PublishEvent,
)
from prober.errors import BrokerError, BrokerUnavailable, NotSupported
from prober.probes.payload import read
from prober.probes.publishing import SIZES, Publishing
from prober.probes.resources import Administered, Creation, Resources, nobody_times, timed
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

SLOT_S = 0.005
PULL_TIMEOUT_S = 25.0
"""Timeout of a pull, in seconds: longer than Pub/Sub waits for a message before an empty answer (about 18 s were seen,
googleapis/google-cloud-python issue 8087). A pull that timed out may have carried messages, so it excuses missing deliveries."""
PULL_AGAIN_S = 0.2
"""Pause after a failed pull, in seconds."""
IDS_KEPT_MAX = 1_000_000
"""Largest number of message ids whose keys are remembered in a run; the oldest are forgotten first."""


class DeliveryKind(StrEnum):
    """Kind of a delivery, by the earlier deliveries of its message. FOREIGN: not published by the run that received it."""

    FIRST = "first"
    REDELIVERY = "redelivery"
    PUBLISHER_DUPLICATE = "publisher_duplicate"
    FOREIGN = "foreign"


@dataclass(slots=True)
class Delivery:
    """A probe message as a subscriber of this run received it; `again`: it is a redelivery on its subscription."""

    subscription: str
    key: str
    seq: int
    again: bool
    session: BrokerSession
    received: Received
    context: ProbeContext

    def ack(self) -> None:
        """Acknowledge the message, unless its session is over: only sent acknowledgements are recorded."""
        if not self.session.is_over:
            self.context.record(Acked(self.context.now(), *self._place))
            self.session.ack(self.received)

    def nack(self) -> None:
        """Nack the message, unless its session is over: it may be redelivered at once."""
        if not self.session.is_over:
            self.context.record(Nacked(self.context.now(), *self._place))
            self.session.nack(self.received)

    def shorten_lease(self, seconds: int) -> None:
        """Let the lease end in `seconds` and leave the message unanswered."""
        self._modify_lease(seconds)
        self.let_expire()

    def extend_lease(self) -> None:
        """Extend the lease to a whole acknowledgement deadline from now."""
        self._modify_lease(round(self.context.resources.ack_deadline_s))

    def let_expire(self) -> None:
        """Leave the message unanswered for good: its lease expires, and no client extends it."""
        self.session.let_expire(self.received)

    def _modify_lease(self, seconds: int) -> None:
        if not self.session.is_over:
            self.context.record(LeaseModified(self.context.now(), *self._place, seconds))
            self.session.modify_lease(self.received, seconds)

    @property
    def _place(self) -> tuple[str, str, str, str]:
        return self.subscription, self.key, self.session.name, self.received.message_id


Decide = Callable[[Delivery], None]
"""Decision of a probe on a delivery: acknowledge, nack, later, or never. Called on the event loop; must not block."""


class Recorder(Protocol):
    """Receiver of a probe's actions and observations, in the order in which they happen. Belongs to the event loop; raises nothing."""

    def now(self) -> float:
        """Return the time to stamp an event with, in seconds of the monotonic clock."""

    def record(self, event: Event) -> DeliveryKind | None:
        """Record the next event. Return the kind of a delivery, if it is still known."""

    def count(self, name: str, by: int = 1) -> None:
        """Increment a counter of the run that no event feeds."""

    def took(self, indicator: Indicator, seconds: float, since_t: float, until_t: float) -> None:
        """Record a duration that no event shows, measured between two times of the recorder's clock."""

    def measured(self, figure: Figure, value: float) -> None:
        """Record a measurement of the run."""

    def lagged_s(self, taken_s: float) -> float:
        """Return how long the event loop lagged during the last `taken_s` seconds, in seconds."""


class Handover(Protocol):
    """Handover from a run of a long-lived probe to the next: messages published at its end and received by the next.

    So a key lives for days, across restarts of the prober. The messages wait on the subscription, and their publishes are stored
    separately (`prober.runs.handover`), under the epoch of the next run.
    """

    @property
    def epoch(self) -> str:
        """Epoch of the messages that wait for this run; empty without waiting messages."""

    @property
    def waited_s(self) -> float:
        """Waiting time of the messages by the wall clock, in seconds; NaN without waiting messages."""

    @property
    def age_s(self) -> float:
        """Age of the topic by the wall clock, in seconds; NaN if it belongs to this run only."""

    async def take(self) -> Sequence[PublishEvent]:
        """Return the waiting publishes; no later run gets them.

        Raises BrokerError, or CheckpointUnavailable: the messages then keep waiting.
        """

    async def leave(self, epoch: str, publishes: Sequence[PublishEvent]) -> None:
        """Leave the publishes of an epoch for the next run. Raises CheckpointUnavailable."""


class ProbeContext:
    """Actions of a probe; see the module. An async context manager that closes what it opened."""

    def __init__(
        self,
        broker: Broker,
        resources: Resources,
        recording: Recorder,
        epoch: str,
        seed: int,
        administered: Administered = nobody_times,
        handover: Handover | None = None,
    ) -> None:
        self.resources = resources
        self.handover = handover
        """Handover from the previous run and to the next; None: the run has neither."""
        self.recording = recording
        self.unordered_came = asyncio.Event()
        """Set when a message without a key was received."""
        self.creation: Creation | None = None
        """Creation of the first subscription; None if it is not known."""
        self._administered = administered
        self.now = recording.now
        """Time of the recorder, as events carry it, in seconds."""
        self.record = recording.record
        """Records an event; returns the kind of a delivery."""
        self.admin = broker.admin
        self.random = random.Random(seed)
        self.broker = broker
        self.epoch = epoch
        self._key_of: dict[str, str] = {}
        self._slots: dict[int, list[Callable[[], None]]] = {}
        self._resources = AsyncExitStack()
        self.publishing = self.publishing_as(epoch, recording.record)
        self.count = recording.count
        """Increments a counter of the run that no event feeds."""
        self._clients = count(1)
        self.confirmed = asyncio.Event()
        """Set at the first confirmation of an acknowledgement, which the service sends with exactly-once delivery only."""

    async def __aenter__(self) -> ProbeContext:
        self._resources.push_async_callback(self.publishing.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._slots.clear()
        if stops := self.publishing.unexplained_stops:
            self.count("publishes_stopped_unexpectedly", stops)
        await self._resources.aclose()

    # --- publishing ----------------------------------------------------------------------------------------------------------

    async def ticks(self, count: int, period_s: float) -> AsyncIterator[float]:
        """Wait for each of `count` points in time, `period_s` apart, and yield it: the intended send time.

        The points are fixed beforehand. A caller that is late for a point gets it at once, and the next is no later for it. The first point
        is random within the first period, so that keys are not in step.
        """
        first_t = self.now() + self.random.uniform(0, period_s)
        for number in range(count):
            due_t = first_t + number * period_s
            await asyncio.sleep(max(0.0, due_t - self.now()))
            yield due_t

    async def publish(self, key: str, count: int, sizes: Sequence[int] = SIZES, intended_t: float | None = None) -> int:
        """Publish with the first publisher; see `Publishing.publish`. Calls for the same key must not overlap: a key has one writer."""
        return await self.publishing.publish(key, count, sizes, intended_t)

    def publishing_as(self, epoch: str, record: Callable[[Event], object]) -> Publishing:
        """Return a publisher of the topic under an epoch; the caller closes it. `record` is called with every attempt and outcome."""
        resources = self.resources
        publisher = partial(self.broker.publisher, resources.topic)
        return Publishing(publisher, epoch, resources.publish_timeout_s, resources.region, record, self.now, self.random)

    async def at_peer(self) -> ProbeContext:
        """Return the run's context at the target's other endpoint; NotSupported without one. A key is published at one of the two only."""
        if self.broker.peer is None:
            raise NotSupported("the target has one endpoint only: name another one as its peer")
        resources, seed = replace(self.resources, region=self.resources.peer_region), self.random.getrandbits(32)
        peer = ProbeContext(self.broker.peer, resources, self.recording, self.epoch, seed, self._administered)
        peer._clients = self._clients
        return await self._resources.enter_async_context(peer)

    # --- administering -------------------------------------------------------------------------------------------------------

    async def administer(self, operation: AdminOperation, call: Awaitable[object]) -> None:
        """Await an administration call, timed for the control plane's latency. A failed call is an outcome; a refused call raises."""
        with suppress(BrokerUnavailable), timed(operation, self._administered):
            await call

    # --- consuming -----------------------------------------------------------------------------------------------------------

    async def subscribe(self, decide: Decide, flow: FlowControlSettings | None = None, at: str = "") -> Subscriber:
        """Add a subscriber; `decide` is called for each probe message that it receives. Raises as `attach` does."""
        return await self.attach(self.tap(decide, at), flow, at)

    async def attach(self, tap: Tap, flow: FlowControlSettings | None = None, at: str = "") -> Subscriber:
        """Add a subscriber under a client id of its own, which reports to the given tap.

        `at`: the experiment's name for the subscription. Raises BrokerUnavailable, NotThere or PermissionRefused if its stream cannot be
        opened.
        """
        client_id = f"{self.epoch}-{next(self._clients)}"
        subscription = self.resources.named(at)
        subscriber = self.broker.subscriber(subscription, client_id, flow or FlowControlSettings(), self.resources.ack_deadline_s)
        self._resources.push_async_callback(subscriber.close)
        await subscriber.start(tap)
        return subscriber

    def pull(self, decide: Decide, messages_max: int, at: str = "") -> None:
        """Pull repeatedly, at most `messages_max` messages at once, until the context is left."""
        puller = self.broker.puller(self.resources.named(at))
        pulling = asyncio.create_task(_pull_on(puller, self.tap(decide, at), messages_max), name=f"{self.epoch} pulling")
        self._resources.push_async_callback(puller.close)
        self._resources.callback(pulling.cancel)

    def receive_pushes(self, decide: Decide) -> None:
        """Receive push requests until the context is left. Raises NotSupported."""
        self._resources.callback(self.broker.pushes.receive(self.resources.subscription, self.tap(decide)))

    def tap(self, decide: Decide, at: str = "") -> Tap:
        """Return a tap that records the events of a consumer; `decide` is called for each probe message."""
        return ContextTap(self, decide, self.resources.named(at))

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Call `action` on the event loop after about `delay_s`, unless the run is over by then.

        Actions of the same few milliseconds run together, in the order of the calls: a timer per message would cost more than the message.
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


async def comes_within(limit_s: float, event: asyncio.Event) -> bool:
    """Wait for an event for at most `limit_s` seconds. Return whether it is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), limit_s)
    return event.is_set()


async def _pull_on(puller: Puller, tap: Tap, messages_max: int) -> None:
    while True:
        try:
            await puller.pull(tap, messages_max, PULL_TIMEOUT_S)
        except BrokerError:
            await asyncio.sleep(PULL_AGAIN_S)  # the tap has the error; the run checks elsewhere whether the target answers


class ContextTap:
    """Records the events of one subscriber, and calls `decide` for each message of the run."""

    def __init__(self, context: ProbeContext, decide: Decide, subscription: str) -> None:
        self._context, self._decide, self._subscription = context, decide, subscription

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """Record that a session was opened."""
        limits = (None, None) if session.flow is None else (session.flow.messages_max, session.flow.bytes_max)
        context = self._context
        context.record(Opened(context.now(), self._subscription, session.name, session.subscriber, invoked_t, *limits))

    def received(self, session: BrokerSession, received: Received) -> None:
        """Record a message, then call `decide`. Acknowledge messages without a number or of another run."""
        context, key, message_id = self._context, received.ordering_key, received.message_id
        message = read(key, received.data, received.attributes)
        if message is None:
            context.count("deliveries_unreadable" if key else "deliveries_unordered")
            if not key:
                context.unordered_came.set()
            session.ack(received)
            return
        if received.overlaps:
            context.count("callbacks_overlapping")
        stamp = message.stamp
        event = Delivered(
            context.now(),
            self._subscription,
            key,
            session.name,
            stamp.epoch,
            stamp.seq,
            message_id,
            stamp.generation,
            received.delivery_attempt,
            message.defect,
            publish_time=received.publish_time,
        )
        again = context.record(event) is DeliveryKind.REDELIVERY
        context._key_of[message_id] = key
        if len(context._key_of) > IDS_KEPT_MAX:
            del context._key_of[next(iter(context._key_of))]
        delivery = Delivery(self._subscription, key, stamp.seq, again, session, received, context)
        if stamp.epoch == context.epoch:
            self._decide(delivery)
        else:
            delivery.ack()

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Record the confirmation of an acknowledgement (exactly-once delivery)."""
        context = self._context
        context.confirmed.set()
        if (key := context._key_of.get(message_id)) is not None:
            context.record(AckConfirmed(context.now(), self._subscription, key, session.name, message_id))

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Record that a push request ended without an answer."""
        context, message_id = self._context, received.message_id
        context.record(Nacked(context.now(), self._subscription, received.ordering_key, session.name, message_id))

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """Record that a session was closed."""
        del reason
        self._context.record(Closed(self._context.now(), self._subscription, session.name, lost))
