"""What happened at a target, told to the metrics. Methods are named after what happened; none of them blocks or raises,
and all belong to the event loop.

Who publishes or consumes a lot keeps the facade of its topic or subscription: there everything is looked up already.

`OwnMetrics` has what Cloud Monitoring says of the user's own subscriptions there. What is not known is not a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import product
from math import nan
from typing import Final

from prometheus_client import Counter

from prober.brokers.base import AdminOperation, Confirmed, Outcome, Rejected
from prober.brokers.calls import ErrorCode, Operation
from prober.config.models import TargetSettings
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.monitoring.comparison import Late, OwnSubscriptionSnapshot, Point, ReadFailure
from prober.probes.context import DeliveryKind
from prober.runs.site import SiteKey
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.label_values import CheckResult, LibraryAnomaly, Outstanding, PublishOutcome, SkipReason
from prober.sinks.metrics.store import Exemplar, MetricStore, Stopwatch
from prober.slo.figures import Figure
from prober.slo.indicators import DURATIONS, Indicator
from prober.slo.objectives import SliCounts

NAMES_MAX: Final = 100  # topics, and subscriptions, per target
OTHER: Final = "other"
_VALUES: Final = {
    families.OWN_OLDEST_UNACKED_AGE: "oldest_unacked_age",
    families.OWN_UNDELIVERED: "undelivered",
    families.OWN_ACKED: "acked",
    families.OWN_EXPIRED: "expired",
}


class TargetErrors:
    """The calls to a target that ended with an error, all of them at 0 from the start. May be told in any thread."""

    def __init__(self, store: MetricStore, target: TargetSettings) -> None:
        labels = (target.name, target.environment, target.region)
        self._errors = {
            (operation, code): store.counter(families.TARGET_ERRORS, *labels, operation, code)
            for operation in Operation
            for code in ErrorCode
        }

    def failed(self, operation: Operation, code: ErrorCode) -> None:
        """A call ended with an error."""
        self._errors[operation, code].inc()


class TopicMetrics:
    """What happened on a topic."""

    def __init__(self, store: MetricStore, labels: tuple[str, ...]) -> None:
        self._outcomes = {outcome: store.counter(families.PUBLISHES, *labels, outcome) for outcome in PublishOutcome}
        clock = store.counter(families.NEGATIVE_DURATIONS, *labels[:-1], Indicator.PUBLISH_LATENCY)
        self._latency = Stopwatch(store.histogram(families.PUBLISH_LATENCY, *labels), clock)
        self._unsent = store.counter(families.PUBLISHES_UNSENT, *labels)

    def unsent(self, count: int) -> None:
        """So many publishes were to be sent and were not, since the target was unreachable."""
        self._unsent.inc(count)

    def published(self, outcome: Outcome, latency_s: float | None = None, exemplar: Exemplar | None = None) -> None:
        """A publish ended. The latency is that of the confirmation; None if there was none."""
        self._outcomes[_outcome(outcome)].inc()
        if latency_s is not None:
            self._latency.took(latency_s, exemplar)


def _outcome(outcome: Outcome) -> PublishOutcome:
    if isinstance(outcome, Confirmed):
        return PublishOutcome.CONFIRMED
    return PublishOutcome.REJECTED if isinstance(outcome, Rejected) else PublishOutcome.UNKNOWN


class SubscriptionMetrics:
    """What happened on a subscription."""

    def __init__(self, store: MetricStore, labels: tuple[str, ...]) -> None:
        self._store, self._labels = store, labels
        self._measured: dict[Indicator, Stopwatch] = {}
        self._anomalies: dict[LibraryAnomaly, Counter] = {}
        self._deliveries = {kind: store.counter(families.DELIVERIES, *labels, kind) for kind in DeliveryKind}
        self._findings = {
            (kind, status): store.counter(families.FINDINGS, *labels, kind, status) for kind in Kind for status in Status
        }
        self._checks = {
            (indicator, result): store.counter(family, *labels, result)
            for indicator, family in families.CHECKS.items()
            for result in CheckResult
        }
        self._keys = store.gauge(families.PROBED_KEYS, *labels)
        self._unreachable = store.gauge(families.UNREACHABLE_RUNS, *labels)
        self._unreachable_runs = 0
        self._overdue = store.counter(families.OVERDUE, *labels)
        self._early_redeliveries = store.counter(families.EARLY_REDELIVERIES, *labels)
        self._forgotten = store.counter(families.KEYS_FORGOTTEN, *labels)
        self._moves = {answer: store.counter(families.AFFINITY_MOVES, *labels, answer) for answer in Outstanding}
        self._latencies = {
            DeliveryKind.FIRST: self._stopwatch(store, families.END_TO_END_LATENCY, labels, Indicator.END_TO_END_LATENCY),
            DeliveryKind.REDELIVERY: self._stopwatch(store, families.REDELIVERY_LATENCY, labels, Indicator.REDELIVERY_LATENCY),
        }

    def measures(self, indicator: Indicator) -> None:
        """Durations that no event shows are measured there from now on."""
        self._measured[indicator] = self._stopwatch(self._store, families.LATENCIES[indicator], self._labels, indicator)

    def through_library(self) -> None:
        """Initialises the anomalies of the client library, which no other vantage has, at 0."""
        self._anomalies = {kind: self._store.counter(families.LIBRARY_ANOMALIES, *self._labels, kind) for kind in LibraryAnomaly}

    def anomalies(self, kind: LibraryAnomaly, count: int) -> None:
        """Counts anomalies of the client library; without a library the same behaviour is none and is not counted."""
        if counter := self._anomalies.get(kind):
            counter.inc(count)

    def took(self, indicator: Indicator, seconds: float, exemplar: Exemplar | None = None) -> None:
        """Such a duration was measured. KeyError for an indicator that is not measured there."""
        self._measured[indicator].took(seconds, exemplar)

    def figures(self, values: Mapping[Figure, float]) -> None:
        """The figures of the last run there; those that it could not measure are absent from now on."""
        for figure, family in families.FIGURES.items():
            if figure in values:
                self._store.gauge(family, *self._labels).set(values[figure])
            else:
                self._store.take_away(family, *self._labels)

    def delivered(self, kind: DeliveryKind, latency_s: float | None = None, exemplar: Exemplar | None = None) -> None:
        """A message came.

        The latency of a first delivery counts from the intended send time, so that a prober that is held up hides nothing; that of
        a redelivery from the refusal or the end of the lease that caused it. Other kinds have none, and None says it is not known.
        """
        self._deliveries[kind].inc()
        if latency_s is not None and kind in self._latencies:
            self._latencies[kind].took(latency_s, exemplar)

    def overdue(self, count: int) -> None:
        """So many messages passed their deadline and never came: no histogram can hold how long they took."""
        self._overdue.inc(count)

    def finding(self, kind: Kind, status: Status) -> None:
        """The checker found something."""
        self._findings[kind, status].inc()

    def checked(self, indicator: Indicator, counts: SliCounts) -> None:
        """So many things were judged, with these results. KeyError for an indicator that no run judges."""
        for result, count in (
            (CheckResult.GOOD, counts.good),
            (CheckResult.BAD, counts.bad),
            (CheckResult.UNDECIDED, counts.undecided),
        ):
            self._checks[indicator, result].inc(count)

    def moved(self, outstanding: Outstanding, count: int = 1) -> None:
        """Keys went to another subscriber."""
        self._moves[outstanding].inc(count)

    def redelivered_early(self, count: int) -> None:
        """Keys were delivered again to another subscriber while their messages were held."""
        self._early_redeliveries.inc(count)

    def forgot(self, keys: int) -> None:
        """A run forgot so many keys, since it remembers no more than it may."""
        self._forgotten.inc(keys)

    def probes(self, keys: int) -> None:
        """A run there uses so many ordering keys; 0: nothing is probed there any more."""
        self._keys.set(keys)
        if not keys:
            self.reached(True)
            self.figures({})

    def reached(self, reachable: bool) -> None:
        """A run there ended that could reach the target or not, or had a publish confirmed."""
        if reachable and not self._unreachable_runs:  # as after almost every publish
            return
        self._unreachable_runs = 0 if reachable else self._unreachable_runs + 1
        self._unreachable.set(self._unreachable_runs)

    def unreadable(self, count: int) -> None:
        """Messages came that no probe of ours has written."""
        self._deliveries[DeliveryKind.FOREIGN].inc(count)

    @staticmethod
    def _stopwatch(store: MetricStore, family: Family, labels: tuple[str, ...], indicator: Indicator) -> Stopwatch:
        return Stopwatch(store.histogram(family, *labels), store.counter(families.NEGATIVE_DURATIONS, *labels[:-1], indicator))


class TargetMetrics:
    """What happened at a target. Everything that can happen there is at 0 from the start, for its probes, topics and subscriptions."""

    def __init__(
        self, store: MetricStore, target: TargetSettings, topics: Iterable[str] = (), subscriptions: Iterable[str] = ()
    ) -> None:
        self._store = store
        self.labels: Final = (target.name, target.environment, target.region)
        self._topics: dict[str, TopicMetrics] = {}
        self._subscriptions: dict[str, SubscriptionMetrics] = {}
        self._sites: set[SiteKey] = set()
        self.follow(target)
        self._maintenance = store.gauge(families.UNDER_MAINTENANCE, *self.labels)
        self._control_plane = {
            operation: Stopwatch(
                store.histogram(families.CONTROL_PLANE_LATENCY, *self.labels, operation),
                store.counter(families.NEGATIVE_DURATIONS, *self.labels, Indicator.CONTROL_PLANE_LATENCY),
            )
            for operation in AdminOperation
        }
        self._administration_failures = {
            operation: store.counter(families.CONTROL_PLANE_FAILURES, *self.labels, operation) for operation in AdminOperation
        }
        self._undecided = {
            indicator: store.counter(families.UNDECIDED_DURATIONS, *self.labels, indicator) for indicator in DURATIONS
        }
        self._negative_ages = store.counter(families.NEGATIVE_DURATIONS, *self.labels, Indicator.OLDEST_UNACKED_MESSAGE_AGE)
        self._folded = {label: store.counter(families.FOLDED_NAMES, *self.labels, label) for label in ("topic", "subscription")}
        for topic in topics:
            self.topic(topic)
        for subscription in subscriptions:
            self.subscription(subscription)

    def topic(self, name: str) -> TopicMetrics:
        """The metrics of a topic. Beyond 100 topics, those of all others together; so its name must not change from run to run."""
        name = self._bounded(name, self._topics, "topic")
        if name not in self._topics:
            self._topics[name] = TopicMetrics(self._store, (*self.labels, name))
        return self._topics[name]

    def subscription(self, name: str) -> SubscriptionMetrics:
        """The metrics of a subscription. Beyond 100 subscriptions, those of all others together."""
        name = self._bounded(name, self._subscriptions, "subscription")
        if name not in self._subscriptions:
            self._subscriptions[name] = SubscriptionMetrics(self._store, (*self.labels, name))
        return self._subscriptions[name]

    def follow(self, target: TargetSettings) -> None:
        """So the target is configured from now on. What only was there stays until it is forgotten."""
        self._store.info(families.TARGET_INFO, self.labels, target.labels)
        for probe, settings in target.probes.items():
            for vantage, part in product(settings.vantages, settings.part_names):
                site = SiteKey(target.name, probe, vantage, part)
                self._add_site(site)
                self._store.gauge(families.PROBE_INTERVAL, *self._of(site)).set(settings.schedule.longest_gap.total_seconds())

    def forget_all_but(self, sites: Collection[SiteKey], names: Collection[str]) -> None:
        """Ends the series of other probe instances, and of topics and subscriptions of other names."""
        about = dict(zip(families.TARGET, self.labels, strict=True))
        for site in self._sites.difference(sites):
            self._sites.discard(site)
            self._store.forget(**dict(zip(families.PROBE_INSTANCE, self._of(site), strict=True)))
        for label, known in (("topic", self._topics), ("subscription", self._subscriptions)):
            for name in known.keys() - {*names, OTHER}:
                del known[name]
                self._store.forget(**about, **{label: name})

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The subscriptions that have series."""
        return tuple(self._subscriptions)

    def assigned(self, site: SiteKey, at: float) -> None:
        """This prober runs a probe from this time on, seconds since 1970."""
        self._store.gauge(families.PROBE_ASSIGNED, *self._of(site)).set(at)

    def given_up(self, site: SiteKey) -> None:
        """This prober runs a probe no more."""
        self._store.take_away(families.PROBE_ASSIGNED, *self._of(site))

    def expected(self, site: SiteKey) -> None:
        """The schedule asked for a run."""
        self._store.counter(families.PROBE_RUNS_EXPECTED, *self._of(site)).inc()

    def skipped(self, site: SiteKey, reason: SkipReason) -> None:
        """A run that the schedule asked for did not start."""
        self._store.counter(families.SCHEDULER_SKIPS, *self._of(site), reason).inc()

    def run(self, site: SiteKey, verdict: Verdict, at: float) -> None:
        """A run ended at a time, seconds since 1970."""
        self._store.counter(families.PROBE_RUNS, *self._of(site), verdict.lower()).inc()
        if verdict is Verdict.PASS:
            self._store.gauge(families.PROBE_LAST_SUCCESS, *self._of(site)).set(at)

    def under_maintenance(self, under_way: bool) -> None:
        """Whether the target is under maintenance at the moment."""
        self._maintenance.set(under_way)

    def administered(self, operation: AdminOperation, latency_s: float, exemplar: Exemplar | None = None) -> None:
        """An administration call came back."""
        self._control_plane[operation].took(latency_s, exemplar)

    def administration_failed(self, operation: AdminOperation) -> None:
        """An administration call failed: no histogram can hold how long it took."""
        self._administration_failures[operation].inc()

    def undecided(self, indicator: Indicator) -> None:
        """Something took too long, perhaps only because the event loop lagged; it is not told as a duration.

        KeyError for an indicator that is no duration.
        """
        self._undecided[indicator].inc()

    def negative_age(self) -> None:
        """The age of the oldest message came out negative."""
        self._negative_ages.inc()

    def _of(self, site: SiteKey) -> tuple[str, ...]:
        return (*self.labels, site.probe, site.vantage, site.part)

    def _add_site(self, site: SiteKey) -> None:
        self._sites.add(site)
        labels = self._of(site)
        for verdict in Verdict:
            self._store.counter(families.PROBE_RUNS, *labels, verdict.lower())
        self._store.counter(families.PROBE_RUNS_EXPECTED, *labels)
        self._store.gauge(families.PROBE_LAST_SUCCESS, *labels)
        for reason in SkipReason:
            self._store.counter(families.SCHEDULER_SKIPS, *labels, reason)

    def _bounded(self, name: str, known: dict[str, TopicMetrics] | dict[str, SubscriptionMetrics], label: str) -> str:
        if name in known or len(known) < NAMES_MAX:
            return name
        self._folded[label].inc()
        return OTHER


class OwnMetrics:
    """The metrics of the user's own subscriptions. The configuration bounds how many there are."""

    def __init__(self, store: MetricStore, watched: Iterable[tuple[TargetSettings, str]]) -> None:
        self._store = store
        for target, name in watched:
            for family in (*_VALUES, families.OWN_POINT_AT):
                store.gauge(family, *target.series, name).set(nan)
            for who in Late:
                store.gauge(families.OWN_LATE, *target.series, name, who).set(who is Late.UNKNOWN)
            for reason in ReadFailure:
                store.counter(families.OWN_READ_FAILURES, *target.series, name, reason)

    def read(self, target: TargetSettings, own: OwnSubscriptionSnapshot) -> None:
        """How a subscription stands now. While it cannot be read, nothing of it is known."""
        labels = (*target.series, own.status.name)
        reading = own.status.reading
        known = not own.status.failure
        for family, field in _VALUES.items():
            point: Point | None = getattr(reading, field)
            self._store.gauge(family, *labels).set(point.value if known and point is not None else nan)
        self._store.gauge(families.OWN_LATE_AFTER, *labels).set(own.status.late_after_s)
        newest = reading.oldest_unacked_age
        self._store.gauge(families.OWN_POINT_AT, *labels).set(nan if newest is None else newest.at)
        for who in Late:
            self._store.gauge(families.OWN_LATE, *labels, who).set(who is own.late)

    def failed(self, target: TargetSettings, name: str, reason: ReadFailure) -> None:
        """A subscription could not be read."""
        self._store.counter(families.OWN_READ_FAILURES, *target.series, name, reason).inc()
