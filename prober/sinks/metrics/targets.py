"""Metrics of targets, with their topics, subscriptions and probe instances; and of the user's own subscriptions.

Unknown values are NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import product
from math import nan
from typing import Final

from prober.config.models import TargetSettings
from prober.monitoring.comparison import Late, OwnSubscriptionSnapshot, ReadFailure
from prober.runs.probe_instance import InstanceKey
from prober.sinks.metrics import families, scopes
from prober.sinks.metrics.label_values import CheckResult, DiscoveryState
from prober.sinks.metrics.store import MetricStore, Series
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

NAMES_MAX: Final = 100  # topics, and subscriptions, per target
OTHER: Final = "other"


class SubscriptionMetrics(Series):
    """Series of a subscription."""

    _unreachable_runs = 0

    def checked(self, indicator: Indicator, counts: SliCounts) -> None:
        """Count good, bad and undecided checks of an indicator. Raises KeyError for an indicator without checks in runs."""
        family = families.CHECKS[indicator]
        self.count(family, CheckResult.GOOD, by=counts.good)
        self.count(family, CheckResult.BAD, by=counts.bad)
        self.count(family, CheckResult.UNDECIDED, by=counts.undecided)

    def figures(self, values: Mapping[Figure, float]) -> None:
        """Set the measurements of the last run; remove those that it could not measure."""
        for figure, family in families.FIGURES.items():
            if figure in values:
                self.set(family, values[figure])
            else:
                self.remove(family)

    def probes(self, keys: int) -> None:
        """Set the number of ordering keys of a run on the subscription; 0: it is no longer probed."""
        self.set(families.PROBED_KEYS, keys)
        if not keys:
            self.reached(True)
            self.figures({})

    def reached(self, reachable: bool) -> None:
        """Record whether a run reached the target; a confirmed publish proves that it did."""
        if reachable and not self._unreachable_runs:  # as after almost every publish
            return
        self._unreachable_runs = 0 if reachable else self._unreachable_runs + 1
        self.set(families.UNREACHABLE_RUNS, self._unreachable_runs)


class TargetMetrics(Series):
    """Series of a target, of its probe instances, topics and subscriptions."""

    def __init__(
        self, store: MetricStore, target: TargetSettings, topics: Iterable[str] = (), subscriptions: Iterable[str] = ()
    ) -> None:
        super().__init__(store, scopes.TARGET, target.series)
        self._topics: dict[str, Series] = {}
        self._subscriptions: dict[str, SubscriptionMetrics] = {}
        self._instances: dict[InstanceKey, Series] = {}
        self.follow(target)
        for topic in topics:
            self.topic(topic)
        for subscription in subscriptions:
            self.subscription(subscription)

    def topic(self, name: str) -> Series:
        """Return the series of a topic; beyond 100 topics they share one, so a topic's name must not change from run to run."""
        name = self._bounded(name, self._topics, "topic")
        if name not in self._topics:
            self._topics[name] = Series(self._store, scopes.TOPIC, (*self.labels, name))
        return self._topics[name]

    def subscription(self, name: str) -> SubscriptionMetrics:
        """Return the series of a subscription; beyond 100 subscriptions they share one."""
        name = self._bounded(name, self._subscriptions, "subscription")
        if name not in self._subscriptions:
            self._subscriptions[name] = SubscriptionMetrics(self._store, scopes.SUBSCRIPTION, (*self.labels, name))
        return self._subscriptions[name]

    def probe_instance(self, instance: InstanceKey) -> Series:
        """Return the series of a probe instance."""
        if instance not in self._instances:
            labels = (*self.labels, instance.probe, instance.vantage, instance.part)
            self._instances[instance] = Series(self._store, scopes.PROBE_INSTANCE, labels)
        return self._instances[instance]

    def follow(self, target: TargetSettings) -> None:
        """Apply the configuration of the target. Series of removed probe instances stay until `forget_all_but`."""
        self._store.info(families.TARGET_INFO, self.labels, target.labels)
        for probe, settings in target.probes.items():
            for vantage, part in product(settings.vantages, settings.part_names):
                instance = self.probe_instance(InstanceKey(target.name, probe, vantage, part))
                instance.set(families.PROBE_INTERVAL, settings.schedule.longest_gap.total_seconds())

    def forget_all_but(self, instances: Collection[InstanceKey], names: Collection[str]) -> None:
        """End the series of other probe instances, and of topics and subscriptions with other names."""
        for instance in self._instances.keys() - instances:
            self._instances.pop(instance).forget()
        for known in (self._topics, self._subscriptions):
            for name in known.keys() - {*names, OTHER}:
                known.pop(name).forget()

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Subscriptions that have series."""
        return tuple(self._subscriptions)

    def _bounded(self, name: str, known: Mapping[str, Series], label: str) -> str:
        if name in known or len(known) < NAMES_MAX:
            return name
        self.count(families.FOLDED_NAMES, label)
        return OTHER


class OwnMetrics:
    """Metrics of the user's own subscriptions, whose number the configuration limits."""

    def __init__(self, store: MetricStore) -> None:
        self._store = store
        self._series: dict[str, Series] = {}

    def follow(self, watched: Mapping[str, TargetSettings]) -> None:
        """Replace the watched subscriptions, by name, each with its target. New ones are unknown; the series of others end."""
        for gone in self._series.keys() - watched.keys():
            self._series.pop(gone).forget()
        for name in watched.keys() - self._series.keys():
            self._series[name] = Series(self._store, scopes.OWN, (*watched[name].series, name))
            self._series[name].choose(families.OWN_LATE, Late.UNKNOWN)

    def discovered(self, target: TargetSettings, watched: float, left_out: float) -> None:
        """Report the numbers of discovered subscriptions: those compared with a target, and those left out; NaN: unknown."""
        for state, count in ((DiscoveryState.WATCHED, watched), (DiscoveryState.LEFT_OUT, left_out)):
            self._store.gauge(families.OWN_DISCOVERED, *target.series, state).set(count)

    def read(self, own: OwnSubscriptionSnapshot) -> None:
        """Report the state of a subscription; NaN while it cannot be read."""
        series, reading = self._series[own.status.name], own.status.reading
        for family, point in (
            (families.OWN_OLDEST_UNACKED_AGE, reading.oldest_unacked_age),
            (families.OWN_UNDELIVERED, reading.undelivered),
            (families.OWN_ACKED, reading.acked),
            (families.OWN_EXPIRED, reading.expired),
        ):
            series.set(family, nan if own.status.failure or point is None else point.value)
        series.set(families.OWN_LATE_AFTER, own.status.late_after_s)
        newest = reading.oldest_unacked_age
        series.set(families.OWN_POINT_AT, nan if newest is None else newest.at)
        series.choose(families.OWN_LATE, own.late)

    def failed(self, name: str, reason: ReadFailure) -> None:
        """Count a failed attempt to read a subscription."""
        self._series[name].count(families.OWN_READ_FAILURES, reason)
