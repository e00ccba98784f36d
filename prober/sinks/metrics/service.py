"""All metrics of one prober: their registry, the backlog and the top keys that each scrape asks for, and what scrapes get.

The backlog grows while nothing happens, also while the service hangs. It is asked for on the event loop, where it changes, and kept as it
was then for the thread that writes the page. That is done beside the loop, since latency is measured on the loop, and a page of a hundred
subscriptions takes a third of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Final, TypeAlias

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.clock import monotonic_s
from prober.config.models import TargetSettings
from prober.runs.backlog import Backlog
from prober.sinks.metrics.comparisons import ComparisonMetrics
from prober.sinks.metrics.families import TARGET
from prober.sinks.metrics.health import DrillMetrics, ProberHealth
from prober.sinks.metrics.label_values import Component
from prober.sinks.metrics.store import BACKLOG_FAMILIES, MetricStore, content_type_for, gauge_of, render
from prober.sinks.metrics.targets import OTHER, OwnMetrics, TargetErrors, TargetMetrics
from prober.sinks.metrics.top_keys import KeysSource, TopKeysCollector
from prober.slo.objectives import Objective

# By subscription. Called for each scrape, on the event loop: it must be quick, and need no answer of the service.
BacklogSource: TypeAlias = Callable[[], Mapping[str, Backlog]]


class BacklogCollector(Collector):
    """Turns the snapshots of all targets into gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed: Final = failed
        self._sources: Final[list[tuple[TargetMetrics, BacklogSource]]] = []
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, target: TargetMetrics, snapshot: BacklogSource) -> None:
        """Asks a target's snapshot with each `look` from now on."""
        self._sources.append((target, snapshot))

    def forget(self, target: TargetMetrics) -> None:
        """Asks it no more."""
        self._sources[:] = [source for source in self._sources if source[0] is not target]

    def describe(self) -> list[GaugeMetricFamily]:
        """The families, without asking anybody."""
        return [gauge_of(family) for family in BACKLOG_FAMILIES]

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


def _folded(target: TargetMetrics, backlogs: Mapping[str, Backlog]) -> dict[str, Backlog]:
    """One backlog per subscription that has series, nothing owed where none is told; the rest together."""
    told: dict[str, Backlog] = {}
    for subscription, backlog in backlogs.items():
        target.subscription(subscription)
        name = subscription if subscription in target.subscriptions else OTHER
        told[name] = told[name].joined(backlog) if name in told else backlog
    return dict.fromkeys(target.subscriptions, Backlog()) | told


class Metrics:
    """Where everything about metrics begins: what is watched, how the prober is, and what a scrape gets.

    `environments` are those of the targets; there are no metrics of nightly jobs without.
    """

    def __init__(self, objectives: Iterable[Objective] = (), version: str = "", environments: Iterable[str] = ()) -> None:
        self._store: Final = MetricStore(objectives)
        self.health: Final = ProberHealth(self._store, version, environments)
        self.comparisons: Final = ComparisonMetrics(self._store)
        self._backlogs: Final = BacklogCollector(lambda: self.health.internal_error(Component.METRICS))
        self._top_keys: Final = TopKeysCollector(lambda: self.health.internal_error(Component.METRICS))
        for computed in (self._backlogs, self._top_keys):
            self._store.registry.register(computed)
        for about_process in (ProcessCollector, PlatformCollector, GCCollector):
            about_process(registry=self._store.registry)

    def watch(
        self,
        target: TargetSettings,
        topics: Iterable[str] = (),
        subscriptions: Iterable[str] = (),
        backlog: BacklogSource = dict,
    ) -> TargetMetrics:
        """The metrics of a target. What may happen to these topics and subscriptions is at 0 from now on; others may follow.

        `backlog` is asked by each `look` what is owed, by subscription.
        """
        metrics = TargetMetrics(self._store, target, topics, subscriptions)
        self._backlogs.watch(metrics, backlog)
        return metrics

    def watch_keys(self, snapshot: KeysSource) -> None:
        """Asks `snapshot` for the top keys of observed streams with each `look` from now on."""
        self._top_keys.watch(snapshot)

    def forget(self, target: TargetMetrics) -> None:
        """The target is probed no more: all its series end, as after a restart."""
        self._backlogs.forget(target)
        self._store.forget(**dict(zip(TARGET, target.labels, strict=True)))

    def has_bound(self, objective: Objective) -> bool:
        """Whether the metrics say how many were good for an objective: its threshold is a bucket bound, or it has none."""
        return self._store.has_bound(objective)

    def errors_at(self, target: TargetSettings) -> TargetErrors:
        """The metrics of calls to a target that end with an error, at 0 from now on."""
        return TargetErrors(self._store, target)

    def own(self, watched: Iterable[tuple[TargetSettings, str]]) -> OwnMetrics:
        """The metrics of the user's own subscriptions, each with the target that it is compared with; from now on, and not known yet."""
        return OwnMetrics(self._store, watched)

    def drills(self, names: Iterable[str]) -> DrillMetrics:
        """The metrics of fire drills with these names, at 0 from now on."""
        return DrillMetrics(self._store, names)

    def look(self) -> None:
        """Asks what is owed, and for the top keys, for the pages that are rendered from now on. To be called on the event loop, where
        both change.
        """
        self._backlogs.look()
        self._top_keys.look()

    def render(self, content_type: str) -> bytes:
        """A page in one of the formats of `content_type_for`. May be called in any thread, while metrics are counted."""
        return render(self._store.registry, content_type)


FRESH_S: Final = 1.0
"""A page that is younger is given again, so that whoever asks without a pause does not keep the thread busy."""

ScrapePage: TypeAlias = tuple[str, bytes]
"""Content type and body."""


class Scrapes:
    """Renders metrics in one thread, one page at a time; who asks for one that is being made, or was just made, gets the same.

    Belongs to one event loop, on which the metrics are counted.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = monotonic_s) -> None:
        self._metrics, self._clock = metrics, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._under_way: dict[str, asyncio.Task[ScrapePage]] = {}
        self._made: dict[str, tuple[float, ScrapePage]] = {}

    async def page(self, accept: str) -> ScrapePage:
        """What a scrape with this Accept header gets."""
        content_type = content_type_for(accept)
        made_t, page = self._made.get(content_type, (-inf, None))
        if page is not None and self._clock() - made_t < FRESH_S:
            return page
        making = self._under_way.get(content_type)
        if making is None:
            making = self._under_way[content_type] = asyncio.create_task(self._make(content_type))
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # which nobody may be left to be told
        return await asyncio.shield(making)

    async def _make(self, content_type: str) -> ScrapePage:
        try:
            self._metrics.look()
            body = await asyncio.get_running_loop().run_in_executor(self._thread, self._metrics.render, content_type)
        finally:
            del self._under_way[content_type]
        page = content_type, body
        self._made[content_type] = self._clock(), page
        return page
