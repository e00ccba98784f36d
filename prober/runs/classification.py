"""What came before: each delivery of a run is classified once, as it is recorded, and every latency is taken once.

Latencies count from the intended send time, so that neither a slow service nor a slow prober can hide by sending later; those of
redeliveries from the refusal, or the end of the lease, that caused them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from prober.core.events import (
    Acked,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.findings import Finding
from prober.probes.context import DeliveryKind
from prober.slo.indicators import UNPUBLISHED, Indicator

RECEIVED_KEPT_MAX: Final = 1_000_000
"""Message ids remembered per run, to tell a redelivery from a publisher's duplicate; beyond that the oldest are forgotten."""


class Latency(NamedTuple):
    """How long something took, in seconds, and what it counts for; for how long of that the event loop lagged (`runs.recorder`)."""

    indicator: Indicator
    seconds: float
    lagged_s: float = 0.0


class Observation(NamedTuple):
    """One event of a run, with its classification.

    kind       of a delivery; None for any other event, and for a delivery of which it is not known any more whether it came before.
    latency    of a confirmation or a delivery; None where it shows none.
    findings   what the checker found with it.
    """

    event: Event
    kind: DeliveryKind | None
    latency: Latency | None
    findings: Sequence[Finding]


class Classifier:
    """Classifies the events of one run, in order. What it remembers is bounded: its keys, what is outstanding, and ids of messages.

    Latencies of deliveries are those on the first subscription of the run; on any other subscription only repeated deliveries are reported.

    unclassified deliveries of which it is not known any more whether they came before.
    attempts    publishes that were tried; a message counts each time.
    answered_t  when a publish was confirmed last, or a message received; before the first, minus infinity.
    """

    def __init__(self, epoch: str, subscription: str = "") -> None:
        """`epoch`: that of the run's own messages; empty if every message is its own.

        `subscription`: the first one of the run; empty if there is but one.
        """
        self.unclassified = 0
        self.attempts = 0
        self.answered_t = -inf
        self._epoch, self._subscription = epoch, subscription
        self._elsewhere: dict[tuple[str, str], None] = {}
        self._published_up_to: dict[str, int] = {}
        self._unconfirmed: dict[tuple[str, int], float] = {}
        self._undelivered: dict[tuple[str, int], float] = {}
        self._unanswered: Counter[tuple[str, int]] = Counter()
        self._received: dict[str, None] = {}
        self._forgot = False
        self._due: dict[str, float] = {}
        self._handlers: Mapping[type[Any], Callable[[Any], tuple[DeliveryKind | None, Latency | None]]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            **dict.fromkeys(UNPUBLISHED, self._unpublished),
            Delivered: self._delivered,
            Nacked: self._due_again,
            LeaseModified: self._due_again,
            Acked: self._acked,
        }

    def classify(self, event: Event) -> tuple[DeliveryKind | None, Latency | None]:
        """What kind of delivery an event is, and the latency that it shows."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler is not None else (None, None)

    def overdue(self, keys: Container[str]) -> int:
        """Confirmed messages that did not come, on keys of which the checker says that what is missing there passed its deadline."""
        return sum(1 for key, _ in self._undelivered.keys() - self._unconfirmed.keys() if key in keys)

    def undecided(self, overdue_keys: Container[str] = frozenset()) -> dict[Indicator, int]:
        """The undecided: attempts without an answer, messages without a delivery.

        Without those on `overdue_keys`, which are too late whatever their end.
        """
        return {
            Indicator.PUBLISH_AVAILABILITY: self._unanswered.total(),
            Indicator.PUBLISH_LATENCY: len(self._unanswered.keys() & self._unconfirmed.keys()),
            Indicator.END_TO_END_LATENCY: len(self._undelivered.keys() - self._unconfirmed.keys()) - self.overdue(overdue_keys),
        }

    def _invoked(self, event: PublishInvoked) -> tuple[None, None]:
        self.attempts += 1
        self._unanswered[event.key, event.seq] += 1
        if event.generation == 0:
            message, intended_t = (event.key, event.seq), event.t if event.intended_t is None else event.intended_t
            self._published_up_to[event.key] = event.seq
            self._unconfirmed[message] = self._undelivered[message] = intended_t
        return None, None

    def _unpublished(self, event: PublishFailed | PublishUnknown) -> tuple[None, None]:
        self._answered(event)
        return None, None

    def _answered(self, event: Published | PublishFailed | PublishUnknown) -> None:
        message = event.key, event.seq
        self._unanswered[message] -= 1
        if self._unanswered[message] <= 0:
            del self._unanswered[message]

    def _published(self, event: Published) -> tuple[None, Latency | None]:
        self._answered(event)
        self.answered_t = event.t
        intended_t = self._unconfirmed.pop((event.key, event.seq), None)
        return None, None if intended_t is None else Latency(Indicator.PUBLISH_LATENCY, event.t - intended_t)

    def _due_again(self, event: Nacked | LeaseModified) -> tuple[None, None]:
        self._due[event.message_id] = event.t + (event.seconds if isinstance(event, LeaseModified) else 0.0)
        return None, None

    def _acked(self, event: Acked) -> tuple[None, None]:
        self._due.pop(event.message_id, None)
        return None, None

    def _delivered(self, event: Delivered) -> tuple[DeliveryKind | None, Latency | None]:
        self.answered_t = event.t
        if self._epoch and event.epoch != self._epoch:
            return DeliveryKind.FOREIGN, None
        if self._subscription and event.subscription != self._subscription:
            return self._received_elsewhere(event), None
        if event.message_id not in self._received:
            return self._received_first(event)
        due_t = self._due.pop(event.message_id, event.t + 1.0)
        # What comes before it was due has another cause, such as a stream that broke.
        latency = Latency(Indicator.REDELIVERY_LATENCY, event.t - due_t) if due_t <= event.t else None
        return DeliveryKind.REDELIVERY, latency

    def _received_elsewhere(self, event: Delivered) -> DeliveryKind:
        """What is forgotten counts as new. Whether a new id is a duplicate of the publisher's, the first subscription says."""
        message = event.subscription, event.message_id
        kind = DeliveryKind.REDELIVERY if message in self._elsewhere else DeliveryKind.FIRST
        self._elsewhere[message] = None
        if len(self._elsewhere) > RECEIVED_KEPT_MAX:
            del self._elsewhere[next(iter(self._elsewhere))]
        return kind

    def _received_first(self, event: Delivered) -> tuple[DeliveryKind | None, Latency | None]:
        """A message id that is new, or was forgotten. The first one of a sequence number is its message, any other a duplicate."""
        intended_t = self._undelivered.pop((event.key, event.seq), None)
        never_published = not 0 < event.seq <= self._published_up_to.get(event.key, 0)
        forgot = self._forgot
        self._received[event.message_id] = None
        if len(self._received) > RECEIVED_KEPT_MAX:
            del self._received[next(iter(self._received))]
            self._forgot = True
        if intended_t is not None:
            return DeliveryKind.FIRST, Latency(Indicator.END_TO_END_LATENCY, event.t - intended_t)
        if never_published:
            return DeliveryKind.FIRST, None
        if forgot:
            self.unclassified += 1
            return None, None
        return DeliveryKind.PUBLISHER_DUPLICATE, None
