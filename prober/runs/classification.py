"""Classification of deliveries and latencies, once for each event, as it is recorded.

Latencies count from the intended send time, so that a slow service or prober cannot hide by sending later. Latencies of redeliveries count
from the nack, or the end of the lease, that caused them.
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
"""Message ids remembered in a run, to distinguish redeliveries from publisher duplicates; the oldest are forgotten first."""


class Latency(NamedTuple):
    """A latency in seconds, its indicator, and how long the event loop lagged meanwhile (`runs.recorder`)."""

    indicator: Indicator
    seconds: float
    lagged_s: float = 0.0


class Observation(NamedTuple):
    """One event of a run, with its classification.

    kind       kind of a delivery; None for any other event, and for a delivery whose earlier deliveries are forgotten.
    latency    latency of a confirmation or a delivery; None if it shows none.
    findings   findings of the checker at this event.
    """

    event: Event
    kind: DeliveryKind | None
    latency: Latency | None
    findings: Sequence[Finding]


class Classifier:
    """Classifies the events of one run, in order. Its memory is bounded: keys, outstanding messages, and message ids.

    Latencies of deliveries are measured on the first subscription of the run; on other subscriptions only redeliveries are classified.

    unclassified deliveries whose earlier deliveries are forgotten.
    attempts    publish attempts; each attempt of a message counts.
    answered_t  time of the latest confirmed publish or received message; minus infinity before the first.
    """

    def __init__(self, epoch: str, subscription: str = "") -> None:
        """Create the classifier of a run.

        `epoch`: epoch of the run's own messages; empty if every message is its own. `subscription`: first subscription of the run; empty if
        there is only one.
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
        """Return the kind of a delivery, and the latency that the event shows."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler is not None else (None, None)

    def overdue(self, keys: Container[str]) -> int:
        """Return the number of undelivered confirmed messages on `keys`, whose deadline has passed according to the checker."""
        return sum(1 for key, _ in self._undelivered.keys() - self._unconfirmed.keys() if key in keys)

    def undecided(self, overdue_keys: Container[str] = frozenset()) -> dict[Indicator, int]:
        """Return the number of undecided events: attempts without an answer, messages without a delivery.

        Messages on `overdue_keys` are not undecided: they are too late whatever their end.
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
        # A redelivery before it was due has another cause, such as a broken stream.
        latency = Latency(Indicator.REDELIVERY_LATENCY, event.t - due_t) if due_t <= event.t else None
        return DeliveryKind.REDELIVERY, latency

    def _received_elsewhere(self, event: Delivered) -> DeliveryKind:
        """Classify a delivery on another subscription than the first; a forgotten message counts as new.

        Publisher duplicates are recognized on the first subscription only.
        """
        message = event.subscription, event.message_id
        kind = DeliveryKind.REDELIVERY if message in self._elsewhere else DeliveryKind.FIRST
        self._elsewhere[message] = None
        if len(self._elsewhere) > RECEIVED_KEPT_MAX:
            del self._elsewhere[next(iter(self._elsewhere))]
        return kind

    def _received_first(self, event: Delivered) -> tuple[DeliveryKind | None, Latency | None]:
        """Classify a message id that is new, or was forgotten.

        The first id of a sequence number is its message, any other a duplicate.
        """
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
