"""What is owed right now, asked for when it is scraped: it grows while nothing happens, also while the service hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.metrics.families import PREFIX, Family
from prober.metrics.store import SNAPSHOT_FAMILIES
from prober.metrics.targets import OTHER, TargetMetrics


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is owed on a subscription at one time."""

    oldest_unacked_age_s: float = 0.0
    undelivered: int = 0
    stalled_keys: int = 0

    def joined(self, other: Backlog) -> Backlog:
        """That of two subscriptions together."""
        return Backlog(
            max(self.oldest_unacked_age_s, other.oldest_unacked_age_s),
            self.undelivered + other.undelivered,
            self.stalled_keys + other.stalled_keys,
        )


# By subscription. Called for each scrape: it must be quick, and need no answer of the service.
Snapshot: TypeAlias = Callable[[], Mapping[str, Backlog]]


class BacklogCollector(Collector):
    """Turns the snapshots of all targets into gauges."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed: Final = failed
        self._sources: Final[list[tuple[TargetMetrics, Snapshot]]] = []

    def watch(self, target: TargetMetrics, snapshot: Snapshot) -> None:
        """Asks a target's snapshot from now on."""
        self._sources.append((target, snapshot))

    def describe(self) -> list[GaugeMetricFamily]:
        """The families, without asking anybody."""
        return [_gauge(family) for family in SNAPSHOT_FAMILIES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges now. A snapshot that fails leaves its target out, since 0 would say that all is well, and is reported."""
        age, undelivered, stalled = gauges = self.describe()
        for target, snapshot in self._sources:
            try:
                backlogs = _folded(target, snapshot())
            except Exception:
                self._failed()
                continue
            for subscription, backlog in backlogs.items():
                labels = (*target.labels, subscription)
                if backlog.oldest_unacked_age_s < 0.0:
                    target.negative_age()
                age.add_metric(labels, max(0.0, backlog.oldest_unacked_age_s))
                undelivered.add_metric(labels, backlog.undelivered)
                stalled.add_metric(labels, backlog.stalled_keys)
        yield from gauges


def _gauge(family: Family) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{family.name}", family.help, labels=family.labels)


def _folded(target: TargetMetrics, backlogs: Mapping[str, Backlog]) -> dict[str, Backlog]:
    """One backlog per subscription that has series, nothing owed where none is told; the rest together."""
    told: dict[str, Backlog] = {}
    for subscription, backlog in backlogs.items():
        target.subscription(subscription)
        name = subscription if subscription in target.subscriptions else OTHER
        told[name] = told[name].joined(backlog) if name in told else backlog
    return dict.fromkeys(target.subscriptions, Backlog()) | told
