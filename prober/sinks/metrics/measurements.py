"""What a run tells to the metrics and tallies: publishes, deliveries and findings as they happen, and the checks when it is over.

Latencies count from the intended send time, so that neither a slow service nor a slow prober can hide by sending later; those of
redeliveries from the refusal, or the end of the lease, that caused them. What is good, bad and undecided says `prober.slo.indicators`.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from prober.brokers.base import Confirmed, Rejected, Unknown
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
from prober.runs.result import Durations, RunResult
from prober.sinks.metrics import DeliveryKind, Exemplar, Outstanding, SubscriptionMetrics, TopicMetrics
from prober.slo.counts import Tallies
from prober.slo.indicators import DISTURBED, UNPUBLISHED, Indicator
from prober.traces.judgement import Sort

EXEMPLAR_STEP: Final = 1.2

DURATIONS_KEPT_MAX: Final = 100_000
"""Durations remembered per run and indicator, for its quantiles; those that come later are only counted in the metrics."""

RECEIVED_KEPT_MAX: Final = 1_000_000
"""Message ids remembered per run, to tell a redelivery from a publisher's duplicate; beyond that the oldest are forgotten."""

_CONFIRMED: Final = Confirmed("")
_REJECTED: Final = Rejected("")
_UNKNOWN: Final = Unknown("")
_MOVES: Final = {
    "affinity_moves_outstanding_yes": Outstanding.YES,
    "affinity_moves_outstanding_no": Outstanding.NO,
    "affinity_moves_outstanding_unknown": Outstanding.UNKNOWN,
}


class Measurements:
    """Listens to one run. What it remembers goes with it, and is bounded: its keys, what is outstanding, and ids of received messages."""

    def __init__(
        self,
        topic: TopicMetrics,
        subscription: SubscriptionMetrics,
        tallies: Tallies,
        epoch: str,
        exemplar: Exemplar,
        probe: str = "",
    ) -> None:
        """`probe`: its name. What its experiment disturbs itself (`indicators.DISTURBED`) is not measured."""
        self._disturbed = frozenset(indicator for indicator, probes in DISTURBED.items() if probe in probes)
        self._topic, self._subscription, self._tallies = topic, subscription, tallies
        self._epoch, self._exemplar = epoch, exemplar
        self.untold = 0
        """Deliveries of which it is not known any more whether they came before; no metric has them."""
        self._published_up_to: dict[str, int] = {}
        self._unconfirmed: dict[tuple[str, int], float] = {}
        self._undelivered: dict[tuple[str, int], float] = {}
        self._unanswered: Counter[tuple[str, int]] = Counter()
        self._received: dict[str, None] = {}
        self._forgot = False
        self._due: dict[str, float] = {}
        self._told: Counter[Sort] = Counter()
        self._slowest: dict[Indicator, float] = {}
        self._taken: defaultdict[Indicator, array[float]] = defaultdict(lambda: array("d"))
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            PublishInvoked: self._invoked,
            Published: self._published,
            **dict.fromkeys(UNPUBLISHED, self._unpublished),
            Delivered: self._delivered,
            Nacked: self._due_again,
            LeaseModified: self._due_again,
            Acked: self._acked,
        }

    def listen(self, event: Event, findings: Iterable[Finding]) -> None:
        """Takes in one event and what the checker says to it."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        for finding in findings:
            self._told[finding.kind, finding.status] += 1
            self._subscription.finding(finding.kind, finding.status)

    def ended(self, result: RunResult) -> None:
        """The run is over: tells the findings that only its end decided, the checks and the moves."""
        for (kind, status), count in result.counts.items():
            for _ in range(count - self._told[kind, status]):
                self._subscription.finding(kind, status)
        for indicator, tally in result.checks.items():
            self._subscription.checked(indicator, tally)
        self._end_undecided()
        for name, outstanding in _MOVES.items():
            self._subscription.moved(outstanding, result.counters.get(name, 0))
        self._subscription.redelivered_early(result.counters.get("early_redeliveries", 0))
        self._subscription.unreadable(result.counters.get("deliveries_unreadable", 0))

    def aged(self, oldest_unacked_age_s: float) -> None:
        """The oldest unacknowledged message is so old now; to be told about once a second."""
        self._remember(Indicator.OLDEST_UNACKED_MESSAGE_AGE, oldest_unacked_age_s)

    def durations(self) -> dict[Indicator, Durations]:
        """How long things took so far."""
        return {indicator: Durations.of(taken) for indicator, taken in self._taken.items()}

    def _took(self, indicator: Indicator, latency_s: float) -> None:
        self._tallies.took(indicator, latency_s)
        self._remember(indicator, latency_s)

    def _remember(self, indicator: Indicator, duration_s: float) -> None:
        taken = self._taken[indicator]
        if len(taken) < DURATIONS_KEPT_MAX:
            taken.append(duration_s)

    def _invoked(self, event: PublishInvoked) -> None:
        self._unanswered[event.key, event.seq] += 1
        if event.generation == 0:
            resources, intended_t = (event.key, event.seq), event.t if event.intended_t is None else event.intended_t
            self._published_up_to[event.key] = event.seq
            self._unconfirmed[resources] = self._undelivered[resources] = intended_t

    def _published(self, event: Published) -> None:
        self._answered(event)
        self._tallies.ended(Indicator.PUBLISH_AVAILABILITY, good=1)
        intended_t = self._unconfirmed.pop((event.key, event.seq), None)
        if intended_t is None:
            self._topic.published(_CONFIRMED)
            return
        latency_s = event.t - intended_t
        self._topic.published(_CONFIRMED, latency_s, self._exemplar_of(Indicator.PUBLISH_LATENCY, latency_s))
        self._took(Indicator.PUBLISH_LATENCY, latency_s)

    def _unpublished(self, event: PublishFailed | PublishUnknown) -> None:
        self._answered(event)
        self._topic.published(_REJECTED if isinstance(event, PublishFailed) else _UNKNOWN)
        self._tallies.ended(Indicator.PUBLISH_AVAILABILITY, bad=1)

    def _answered(self, event: Published | PublishFailed | PublishUnknown) -> None:
        message = event.key, event.seq
        self._unanswered[message] -= 1
        if self._unanswered[message] <= 0:
            del self._unanswered[message]

    def _end_undecided(self) -> None:
        """What was under way when the run ended: nobody knows what became of it."""
        self._tallies.ended(Indicator.PUBLISH_AVAILABILITY, undecided=self._unanswered.total())
        self._tallies.ended(Indicator.PUBLISH_LATENCY, undecided=len(self._unanswered.keys() & self._unconfirmed.keys()))
        if Indicator.END_TO_END_LATENCY not in self._disturbed:
            self._tallies.ended(Indicator.END_TO_END_LATENCY, undecided=len(self._undelivered.keys() - self._unconfirmed.keys()))

    def _due_again(self, event: Nacked | LeaseModified) -> None:
        self._due[event.message_id] = event.t + (event.seconds if isinstance(event, LeaseModified) else 0.0)

    def _acked(self, event: Acked) -> None:
        self._due.pop(event.message_id, None)

    def _delivered(self, event: Delivered) -> None:
        message_id = event.message_id
        if event.epoch != self._epoch:
            self._subscription.delivered(DeliveryKind.FOREIGN)
        elif message_id in self._received:
            due_t = self._due.pop(message_id, event.t + 1.0)
            # What comes before it was due has another cause, such as a stream that broke.
            latency_s = event.t - due_t if due_t <= event.t else None
            self._delivered_after(DeliveryKind.REDELIVERY, Indicator.REDELIVERY_LATENCY, latency_s)
        else:
            self._received_first(event)

    def _received_first(self, event: Delivered) -> None:
        """A message id that is new, or was forgotten. The first one of a sequence number is its message, any other a duplicate."""
        intended_t = self._undelivered.pop((event.key, event.seq), None)
        never_published = not 0 < event.seq <= self._published_up_to.get(event.key, 0)
        if intended_t is not None:
            self._delivered_after(DeliveryKind.FIRST, Indicator.END_TO_END_LATENCY, event.t - intended_t)
        elif never_published:
            self._subscription.delivered(DeliveryKind.FIRST)
        elif self._forgot:
            self.untold += 1
        else:
            self._subscription.delivered(DeliveryKind.PUBLISHER_DUPLICATE)
        self._received[event.message_id] = None
        if len(self._received) > RECEIVED_KEPT_MAX:
            del self._received[next(iter(self._received))]
            self._forgot = True

    def _delivered_after(self, kind: DeliveryKind, indicator: Indicator, latency_s: float | None) -> None:
        if latency_s is None or indicator in self._disturbed:
            self._subscription.delivered(kind)
            return
        self._subscription.delivered(kind, latency_s, self._exemplar_of(indicator, latency_s))
        self._took(indicator, latency_s)

    def _exemplar_of(self, indicator: Indicator, latency_s: float) -> Exemplar | None:
        """The run's own exemplar, for what is much slower than anything of it so far: one per message would cost more than counting."""
        if latency_s <= EXEMPLAR_STEP * self._slowest.get(indicator, -1.0):
            return None
        self._slowest[indicator] = latency_s
        return self._exemplar
