"""The measurements of a run for the metrics and the counters of the objectives.

Publishes, deliveries and findings are counted immediately, checks at the end of the run.

`prober.slo.indicators` defines good, bad and undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from prober.brokers.base import Vantage
from prober.core.events import Delivered, Published, PublishFailed
from prober.core.findings import Finding
from prober.core.verdict import Verdict
from prober.probes.catalogue import DISTURBED, is_fed
from prober.runs.classification import Latency, Observation
from prober.runs.probe_instance import InstanceKey
from prober.runs.result import RunResult
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from prober.sinks.metrics.health import ProberHealth
from prober.sinks.metrics.label_values import Component, PublishOutcome
from prober.sinks.metrics.store import Exemplar, Series, exemplar_of
from prober.sinks.metrics.targets import SubscriptionMetrics, TargetMetrics
from prober.slo.counts import SloCounters
from prober.slo.indicators import UNPUBLISHED, UNRECORDED, Indicator

EXEMPLAR_STEP: Final = 1.2

_OURS: Final = (families.KEYS_FORGOTTEN, families.LIBRARY_ANOMALIES)
"""Behaviour of the prober and its client library, counted in every run, also under maintenance of the service."""
_SERVICE: Final = tuple(family for family in families.FAMILIES if family.counters and family not in _OURS)


class MetricsSink:
    """Sink that reports the runs of one probe instance to the metrics."""

    def __init__(
        self,
        target: TargetMetrics,
        names: Sequence[str],
        counters: SloCounters,
        health: ProberHealth,
        probe: str,
        vantage: str,
    ) -> None:
        """Start the series. `names`: metric names of the subscriptions, the first also of the topic. `probe`: name of the probe."""
        self._target, self._health, self._counters = target, health, counters
        self._topic, self._subscriptions = target.topic(names[0]), tuple(map(target.subscription, names))
        for indicator in UNRECORDED:
            if is_fed(indicator, {probe}):
                self._subscriptions[0].start(families.LATENCIES[indicator])
        if vantage == Vantage.LIBRARY:
            self._subscriptions[0].start(families.LIBRARY_ANOMALIES)

    def begin(self, run: RunBegun) -> Measurements:
        """Return the listener of a run that starts."""
        exemplar = exemplar_of(run.run_id)
        subscriptions = dict(zip(run.rules, self._subscriptions, strict=True))
        return Measurements(
            self._target, self._topic, subscriptions, self._counters, exemplar, run.probe_instance.key, health=self._health
        )


class Measurements:
    """Listener that measures one run."""

    def __init__(
        self,
        target: TargetMetrics,
        topic: Series,
        subscriptions: Mapping[str, SubscriptionMetrics],
        counters: SloCounters,
        exemplar: Exemplar,
        instance: InstanceKey,
        *,
        health: ProberHealth | None = None,
    ) -> None:
        """Prepare the measurements. `subscriptions`: those of the run, by full name.

        Counts of the run as a whole are attributed to the first subscription. `instance`: its probe instance. Indicators that the probe's
        own experiment disturbs (`Experiment.disturbs`) are not measured.
        """
        self._disturbed = frozenset(indicator for indicator, probes in DISTURBED.items() if instance.probe in probes)
        self._target, self._topic, self._counters = target, topic, counters
        self._subscriptions, self._subscription = subscriptions, next(iter(subscriptions.values()))
        self._exemplar, self._instance, self._health = exemplar, instance, health
        self._slowest: dict[Indicator, float] = {}
        self._publishes = Indicator.PUBLISH_AVAILABILITY not in self._disturbed
        self._handlers: Mapping[type[Any], Callable[[Observation], None]] = {
            Published: self._published,
            **(dict.fromkeys(UNPUBLISHED, self._unpublished) if self._publishes else {}),
            Delivered: self._delivered,
        }

    def event(self, seen: Observation) -> None:
        """Count an event and its findings."""
        handler = self._handlers.get(type(seen.event))
        if handler is not None:
            handler(seen)
        self._found(seen.findings)

    def ended(self, end: RunEnded) -> None:
        """Count the findings that only the end decided, the checks, the run's counters and the other measurements."""
        result = end.result
        if end.counts:
            self._found(end.findings)
        if self._health is not None:
            self._health.dropped(Component.RECORDER, end.unfollowed)
            if result.internal_error:
                self._health.internal_error(Component.PROBE)
        self._count_overdue(end.overdue)
        self._count_up(_OURS, result.counters)
        for indicator, count in end.undecided.items() if not (end.counts and end.cut_short) else ():
            if indicator not in self._disturbed:
                self._counters.ended(indicator, undecided=count)
        if not end.is_counted:
            for indicator, counts in end.checks.items():
                self._subscription.checked(indicator, counts)
            return
        instance = self._target.probe_instance(self._instance)
        instance.count(families.PROBE_RUNS, result.verdict.lower())
        if result.verdict is Verdict.PASS:
            instance.set(families.PROBE_LAST_SUCCESS, end.ended_at)
        self._count(result)
        self._subscription.figures(result.figures)
        for measurement in end.measurements:
            self._measure(self._subscription, measurement)

    def _found(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._at(finding.subscription).count(families.FINDINGS, finding.kind, finding.status)

    def _at(self, subscription: str) -> SubscriptionMetrics:
        return self._subscriptions.get(subscription, self._subscription)

    def _count_overdue(self, count: int) -> None:
        if count and Indicator.END_TO_END_LATENCY not in self._disturbed:
            self._counters.ended(Indicator.END_TO_END_LATENCY, bad=count)
            self._subscription.count(families.OVERDUE, by=count)

    def _count_up(self, added: Iterable[Family], counters: Mapping[str, int]) -> None:
        for family in added:
            if family is families.LIBRARY_ANOMALIES and self._instance.vantage != Vantage.LIBRARY:
                continue  # without a library the behaviour is no anomaly
            for name, values in family.counters.items():
                count = counters.get(name, 0)
                if count or family.start is not None:  # other families are absent until their first count
                    self._subscription.count(family, *values, by=count)

    def _count(self, result: RunResult) -> None:
        self._subscription.reached(not result.unreachable)
        for indicator, counts in result.checks.items():
            if indicator is Indicator.PUBLISH_AVAILABILITY:
                self._topic.count(families.PUBLISHES_UNSENT, by=counts.bad if self._publishes else 0)
            else:
                self._subscription.checked(indicator, counts)
        self._count_up(_SERVICE, result.counters)

    def _published(self, seen: Observation) -> None:
        self._subscription.reached(True)
        if not self._publishes:
            return
        self._counters.ended(Indicator.PUBLISH_AVAILABILITY, good=1)
        self._topic.count(families.PUBLISHES, PublishOutcome.CONFIRMED)
        self._measure(self._topic, seen.latency)

    def _unpublished(self, seen: Observation) -> None:
        outcome = PublishOutcome.REJECTED if isinstance(seen.event, PublishFailed) else PublishOutcome.UNKNOWN
        self._topic.count(families.PUBLISHES, outcome)
        self._counters.ended(Indicator.PUBLISH_AVAILABILITY, bad=1)

    def _delivered(self, seen: Observation) -> None:
        event = seen.event
        if seen.kind is not None and isinstance(event, Delivered):
            subscription = self._at(event.subscription)
            subscription.count(families.DELIVERIES, seen.kind)
            self._measure(subscription, seen.latency)

    def _measure(self, series: Series, latency: Latency | None) -> None:
        """Add a decided latency to its histogram; count others as undecided, in the metrics and for the objectives.

        Latencies start at the intended send time, so that a delayed prober hides nothing; the latency of a redelivery starts at the nack or
        the end of the lease that caused it.
        """
        if latency is None or latency.indicator in self._disturbed:
            return
        if self._counters.took(*latency):
            series.took(families.LATENCIES[latency.indicator], latency.seconds, exemplar=self._exemplar_for(latency))
        else:
            self._target.count(families.UNDECIDED_DURATIONS, latency.indicator)

    def _exemplar_for(self, latency: Latency) -> Exemplar | None:
        """Return the run's exemplar for a latency much above all earlier ones of the run; exemplars of all messages would be too costly."""
        indicator, seconds, _ = latency
        if seconds <= EXEMPLAR_STEP * self._slowest.get(indicator, -1.0):
            return None
        self._slowest[indicator] = seconds
        return self._exemplar
