"""`observe`: a stream of other publishers is received in order, as far as provable without a record of its publishes.

The probe publishes nothing. It creates a subscription of its own on a topic of another publisher, reads it for a while, and deletes it;
other topics and subscriptions are left alone. Every message with an ordering key is recorded, and every message is acknowledged at once.
`prober.core.unrecorded` documents the properties that the checker can prove. Order and age of messages are measured, too (`observed`), also
for messages without an ordering key.

The subscription is created for the run and has delivered no message before: so its first message and its redeliveries are known. The price:
nothing is observed between two runs.

Messages without a group, without a number, or on keys that are not sampled are counted, never verified. If all of the first `SAMPLES`
messages lack a group or a number, the path is wrong, and the run ends with the reason.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Final
from zlib import crc32

from prober.brokers.base import BrokerSession, Received
from prober.brokers.fields import FieldPath, Message, NoValue
from prober.clock import wall_s
from prober.core.events import Delivered
from prober.errors import NotSupported
from prober.monitoring.comparison import ProberAges
from prober.ordering.measurement import OrderMeasurement, OrderReport
from prober.probes.context import ContextTap, Delivery, DeliveryKind, ProbeContext
from prober.probes.cost import Traffic
from prober.probes.experiment import Experiment, SubscriptionPlan, Workload
from prober.probes.unverified import UnverifiedTap

SKETCH_K: Final = 1000
"""Size of the sketch of ages: quantile ranks are exact up to that many messages, and off by at most 0.3 % beyond."""


class Ages:
    """Ages of messages at their receipt, by their publish times. A sketch bounds the memory."""

    def __init__(self) -> None:
        from datasketches import kll_doubles_sketch  # imports numpy, which no help text needs

        self._sketch = kll_doubles_sketch(SKETCH_K)

    @property
    def count(self) -> int:
        """Number of received messages."""
        return int(self._sketch.n)

    @property
    def max_s(self) -> float:
        """Largest age in seconds; 0 without messages."""
        return float(self._sketch.get_max_value()) if self.count else 0.0

    def came(self, age_s: float) -> None:
        """Add the age of one message."""
        self._sketch.update(age_s)

    def quantile_s(self, share: float) -> float | None:
        """Return the age that this share of the messages did not exceed, in seconds; None without messages."""
        return float(self._sketch.get_quantile(share, True)) if self.count else None


class ObservedStream:
    """Measurements of the messages of one stream.

    Order is measured by group as in `prober.ordering`: the numbers of a resequencer, and RFC 4737. `prober.sinks.top_keys` counts the load
    by ordering key.

    counts          messages by kind: `received`, `ungrouped`, `unnumbered`, `without_key`, `not_sampled`, `above_maximum`.
    unread          first message without a group or a number, with the reason.
    unreadable      reason why no message could be read.
    waits           recent ages of messages at their receipt.
    observed_until  time until which all published messages were to be observed, in seconds since 1970; 0 before.
    """

    def __init__(self, wait_timeout_s: float, idle_timeout_s: float, initial: int | None = None) -> None:
        """Create empty measurements. `initial`: first number of every group; None: the first number received."""
        self.counts: Counter[str] = Counter()
        self.ages = Ages()
        self._order = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, initial=initial)
        self._unordered = OrderMeasurement(wait_timeout_s, idle_timeout_s, start_known=False, initial=initial)
        self.unread = self.unreadable = ""
        self.observed_until = 0.0
        self.waits = ProberAges()

    def came(self, age_s: float | None) -> None:
        """Count a message; `age_s` is None if the service does not report its publish time."""
        self.counts["received"] += 1
        if age_s is not None:
            self.ages.came(max(0.0, age_s))

    def numbered(self, group: str, number: int, t: float) -> None:
        """Record group and number of a message of the ordered subscription."""
        self._order.observe(Delivered(t, "", group, "", "", number, ""))

    def unordered(self, group: str, number: int, t: float) -> None:
        """Record group and number of a message of the subscription without ordering."""
        self._unordered.observe(Delivered(t, "", group, "", "", number, ""))

    def order(self) -> OrderReport:
        """Return the order of messages on the ordered subscription so far."""
        return self._order.report()

    def order_without_ordering(self) -> OrderReport:
        """Return the order of messages on the subscription without ordering so far."""
        return self._unordered.report()


NAME: Final = "observe"
UNORDERED: Final = "unordered"
SAMPLES: Final = 10
LOOK_S: Final = 0.1
HASH_BYTES: Final = 8
_HASHES: Final = 1 << 32


class KeysKept(StrEnum):
    """Form in which ordering keys and groups are kept, since they may name people."""

    PLAIN = "plain"
    HASHED = "hashed"


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Settings of an observed stream; times in seconds. docs/configuration.md documents each (`observe`)."""

    group: FieldPath
    sequence: FieldPath | None
    initial: int | None
    maximum: int | None
    duration_s: float
    wait_timeout_s: float
    idle_timeout_s: float
    share: float | None
    keys_kept: KeysKept
    unordered: bool


class ObservingTap(ContextTap):
    """Records the messages that a subscriber of a foreign stream receives, and acknowledges them.

    unreadable  reason why none of the first messages could be read; empty if one could.
    """

    def __init__(self, context: ProbeContext, settings: StreamPlan, stream: ObservedStream) -> None:
        super().__init__(context, Delivery.ack, context.resources.subscription)
        self.unreadable = ""
        self._settings, self._stream = settings, stream
        self._group, self._sequence = settings.group, settings.sequence
        self._looked_at = 0
        self._read = False

    def received(self, session: BrokerSession, received: Received) -> None:
        """Record a message and acknowledge it, if its key is sampled; measure its order and age."""
        key = received.ordering_key
        if not _is_sampled(key or received.message_id, self._settings.share):
            self._stream.counts["not_sampled"] += 1
            session.ack(received)
            return
        group, number = self._identify(received)
        again = self._record(session, received, group, number)
        wall = wall_s()
        age_s = None if received.publish_time is None else wall - received.publish_time / 1e9
        if age_s is not None and not again:
            self._stream.waits.aged(age_s, wall)
        if not again:
            self._stream.came(age_s)
        if group and number is not None:
            self._stream.numbered(self._kept(group), number, self._context.now())

    def _record(self, session: BrokerSession, received: Received, group: str, number: int | None) -> bool:
        """Record and acknowledge a message. Return whether it was delivered before.

        A message without an ordering key is not recorded, since its order is not guaranteed.
        """
        key, now = received.ordering_key, self._context.now
        if not key:
            self._stream.counts["without_key"] += 1
            self._context.count("deliveries_unordered")
            session.ack(received)
            return False
        kept, seq = self._kept(key), max(0, number or 0)
        epoch = "" if group == key else self._kept(group)
        event = Delivered(
            now(),
            self._subscription,
            kept,
            session.name,
            epoch,
            seq,
            received.message_id,
            publish_time=received.publish_time,
            data_size=len(received.data),
        )
        again = self._context.record(event) is DeliveryKind.REDELIVERY
        Delivery(self._subscription, kept, seq, again, session, received, self._context).ack()
        return again

    def _identify(self, received: Received) -> tuple[str, int | None]:
        """Return group and number of a message; empty and None if missing. Count missing values."""
        self._looked_at += 1
        message, counts, why = Message(received), self._stream.counts, ""
        group, number = "", None
        try:
            group = message.group(self._group)
        except NoValue as error:
            counts["ungrouped"] += 1
            why = str(error)
        if self._sequence is not None and group:
            try:
                number = message.number(self._sequence)
            except NoValue as error:
                counts["unnumbered"] += 1
                why = str(error)
        if number is not None and self._settings.maximum is not None and number > self._settings.maximum:
            counts["above_maximum"] += 1
            number = None
        self._check_sample(received, why)
        return group, number

    def _check_sample(self, received: Received, why: str) -> None:
        if why and not self._stream.unread:
            self._stream.unread = f"message {received.message_id} {why}"
        self._read |= not why
        if self._looked_at == SAMPLES and not self._read:
            self.unreadable = f"none of the first {SAMPLES} messages has what the paths name: {self._stream.unread}"

    def _kept(self, name: str) -> str:
        return _as_kept(name, self._settings.keys_kept)


class UnorderedTap(UnverifiedTap):
    """Measures the messages that a subscriber receives without ordering.

    They are not recorded, since no order is guaranteed.
    """

    def __init__(self, settings: StreamPlan, stream: ObservedStream, now: Callable[[], float]) -> None:
        super().__init__("")
        self._settings, self._stream, self._now = settings, stream, now

    def received(self, session: BrokerSession, received: Received) -> None:
        """Acknowledge a message and measure its order."""
        session.ack(received)
        sequence, message = self._settings.sequence, Message(received)
        if sequence is None or not _is_sampled(received.ordering_key or received.message_id, self._settings.share):
            return
        with suppress(NoValue):  # the tap of the ordered subscription counts it
            self._stream.unordered(message.group(self._settings.group), message.number(sequence), self._now())


def stream_of(settings: StreamPlan) -> ObservedStream:
    """Return empty measurements for one run."""
    return ObservedStream(settings.wait_timeout_s, settings.idle_timeout_s, settings.initial)


async def _without_stream(context: ProbeContext, workload: Workload) -> None:
    raise NotSupported("the observe probe has no stream to observe")


PROBE = Experiment(
    name=NAME,
    guarantee="A stream that others publish is received in order, as far as that can be proven without their record.",
    act=_without_stream,  # `observing` replaces it
    workload=Workload(keys=1, bursts=0, burst_messages=1, subscribers=1),
    interval_s=300.0,
    ack_deadline_s=60.0,
    traffic=lambda _workload: Traffic(0, 0, 0),
    requires={
        "deliveries_unrecorded": (
            "no message with an ordering key was delivered, so order was not verified; if this persists, check that the publisher "
            "sets ordering keys, and observe for longer"
        )
    },
    fresh=True,
    own_messages=False,
)
_UNORDERED_PLAN: Final = SubscriptionPlan(UNORDERED, ordering=False)


def observing(settings: StreamPlan, stream: ObservedStream, stop: asyncio.Event | None = None, linger_s: float = 0.0) -> Experiment:
    """Return the experiment that observes a stream into `stream`, until `stop` is set or its duration is over.

    It reads for `linger_s` longer, so that messages published by then have time to arrive.
    """

    async def act(context: ProbeContext, workload: Workload) -> None:
        tap = ObservingTap(context, settings, stream)
        for _ in range(workload.subscribers):
            await context.attach(tap)
            if settings.unordered:
                await context.attach(UnorderedTap(settings, stream, context.now), at=UNORDERED)
        until_t = context.now() + settings.duration_s
        while context.now() < until_t and not tap.unreadable and not (stop is not None and stop.is_set()):
            await asyncio.sleep(min(LOOK_S, max(0.0, until_t - context.now())))
        if tap.unreadable:
            stream.unreadable = tap.unreadable
            raise NotSupported(tap.unreadable)
        stream.observed_until = wall_s()
        await asyncio.sleep(linger_s)

    return replace(PROBE, act=act, subscriptions=(*PROBE.subscriptions, *([_UNORDERED_PLAN] if settings.unordered else [])))


def observed_key(key: str, settings: StreamPlan) -> str:
    """Return the recorded name of an ordering key; empty if it is not observed."""
    return _as_kept(key, settings.keys_kept) if _is_sampled(key, settings.share) else ""


def _as_kept(name: str, how: KeysKept) -> str:
    if not name or how is KeysKept.PLAIN:
        return name
    return blake2b(name.encode(), digest_size=HASH_BYTES).hexdigest()


def _is_sampled(name: str, share: float | None) -> bool:
    return share is None or crc32(name.encode()) < share * _HASHES
