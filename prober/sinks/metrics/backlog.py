"""What is owed right now, asked for when it is scraped: it grows while nothing happens, also while the service hangs.

It is asked for on the event loop, where it changes, and kept as it was then for the thread that writes the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.runs.backlog import Backlog
from prober.sinks.metrics.families import PREFIX, Family
from prober.sinks.metrics.store import SNAPSHOT_FAMILIES
from prober.sinks.metrics.targets import OTHER, TargetMetrics

# By subscription. Called for each scrape, on the event loop: it must be quick, and need no answer of the service.
Snapshot: TypeAlias = Callable[[], Mapping[str, Backlog]]


class BacklogCollector(Collector):
    """Turns the snapshots of all targets into gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed: Final = failed
        self._sources: Final[list[tuple[TargetMetrics, Snapshot]]] = []
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, target: TargetMetrics, snapshot: Snapshot) -> None:
        """Asks a target's snapshot with each `look` from now on."""
        self._sources.append((target, snapshot))

    def describe(self) -> list[GaugeMetricFamily]:
        """The families, without asking anybody."""
        return [_gauge(family) for family in SNAPSHOT_FAMILIES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as they were at the last `look`."""
        return iter(self._seen)

    def look(self) -> None:
        """Asks all snapshots. One that fails leaves its target out, since 0 would say that all is well, and is reported."""
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
        self._seen = tuple(gauges)


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
