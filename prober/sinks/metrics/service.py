"""All metrics of one prober: their registry, the backlog and top keys of each scrape, and the pages for scrapes.

The backlog grows without events, also while the service hangs. Its state is read on the event loop, where it changes, and kept for the
thread that renders the page. Rendering is outside the loop, since latency is measured on the loop, and a page of a hundred subscriptions
takes a third of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf, nan
from typing import Final, TypeAlias

from prometheus_client import GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prober.brokers.calls import ErrorCode, Operation
from prober.clock import monotonic_s
from prober.config.models import TargetSettings
from prober.monitoring.top_keys import StreamKeys
from prober.runs.backlog import Backlog
from prober.sinks.metrics import families, scopes
from prober.sinks.metrics.comparisons import ComparisonMetrics
from prober.sinks.metrics.family import PREFIX, Family
from prober.sinks.metrics.health import DrillMetrics, ProberHealth
from prober.sinks.metrics.label_values import Component
from prober.sinks.metrics.store import MetricStore, Series, content_type_for, render
from prober.sinks.metrics.targets import OTHER, OwnMetrics, TargetMetrics
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective

RANKS: Final = 5
"""Ranks of top keys that have series: no series carries a key."""

BacklogSource: TypeAlias = Callable[[], Mapping[str, Backlog]]
"""Pending messages by subscription. Called for each scrape, on the event loop: it must be quick, and not call the service."""
KeysSource: TypeAlias = Callable[[], Sequence[StreamKeys]]
"""Observed streams; called like a `BacklogSource`."""
Values: TypeAlias = Iterable[tuple[Family, tuple[str, ...], float]]
"""Family, label values, value."""


class SnapshotCollector(Collector):
    """Collector of the gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        """Start without sources. `failed` is called when a source raises."""
        self._failed: Final = failed
        self._sources: Final[dict[object, Callable[[], Values]]] = {}
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, owner: object, source: Callable[[], Values]) -> None:
        """Read a source with each future `look`, in place of its owner's previous source."""
        self._sources[owner] = source

    def forget(self, owner: object) -> None:
        """Stop reading the source of an owner."""
        self._sources.pop(owner, None)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the families without samples; read no source."""
        return _empty().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges of the last `look`."""
        return iter(self._seen)

    def look(self) -> None:
        """Read all sources. A failure is counted, and the series of the source are absent, since 0 would mean a healthy state."""
        gauges = _empty()
        for source in tuple(self._sources.values()):
            try:
                found = list(source())
            except Exception:
                self._failed()
                continue
            for family, labels, value in found:
                gauges[family].add_metric(labels, value)
        self._seen = tuple(gauges.values())


def _empty() -> dict[Family, GaugeMetricFamily]:
    return {
        family: GaugeMetricFamily(f"{PREFIX}_{family.name}", family.help, labels=family.labels)
        for family in families.FAMILIES
        if family.scraped
    }


def backlog_values(target: TargetMetrics, source: BacklogSource) -> Values:
    """Yield the pending messages of every subscription of a target with series; 0 where the source has none."""
    known: dict[str, Backlog] = {}
    for subscription, backlog in source().items():
        target.subscription(subscription)
        name = subscription if subscription in target.subscriptions else OTHER
        known[name] = known[name].joined(backlog) if name in known else backlog
    for subscription, backlog in (dict.fromkeys(target.subscriptions, Backlog()) | known).items():
        labels = (*target.labels, subscription)
        if backlog.oldest_unacked_age_s < 0.0:
            target.count(families.NEGATIVE_DURATIONS, Indicator.OLDEST_UNACKED_MESSAGE_AGE)
        yield families.OLDEST_UNACKED_AGE, labels, max(0.0, backlog.oldest_unacked_age_s)
        yield families.UNDELIVERED, labels, backlog.undelivered
        yield families.STALLED_KEYS, labels, backlog.stalled_keys


def top_key_values(source: KeysSource) -> Values:
    """Yield lower limits for every rank of each stream: 0 for a rank without a key, NaN if the last minute was not observed."""
    for stream in source():
        known = [(one.minute, one.age_s) for one in stream.top if one.minute is not None]
        for rank in range(1, RANKS + 1):
            load, share, age_s = (0.0, 0.0, None) if known else (nan, nan, None)
            if rank <= len(known):
                minute, age_s = known[rank - 1]
                load, share = minute.bytes_per_s.low, minute.share.low
            labels = (stream.target, stream.environment, stream.region, stream.subscription, str(rank))
            yield families.TOP_KEY_BYTES, labels, load
            yield families.TOP_KEY_SHARE, labels, share
            yield families.TOP_KEY_AGE, labels, nan if age_s is None else age_s


class Metrics:
    """Entry point of the metrics: watched targets, health of the prober, and pages for scrapes.

    `environments` are those of the targets; without them there are no metrics of nightly jobs.
    """

    def __init__(self, objectives: Iterable[Objective] = (), version: str = "", environments: Iterable[str] = ()) -> None:
        self._store: Final = MetricStore(objectives)
        self.health: Final = ProberHealth(self._store, version, environments)
        self.comparisons: Final = ComparisonMetrics(self._store)
        self._snapshots: Final = SnapshotCollector(lambda: self.health.internal_error(Component.METRICS))
        self._store.registry.register(self._snapshots)
        for about_process in (ProcessCollector, PlatformCollector, GCCollector):
            about_process(registry=self._store.registry)

    def watch(
        self,
        target: TargetSettings,
        topics: Iterable[str] = (),
        subscriptions: Iterable[str] = (),
        backlog: BacklogSource = dict,
    ) -> TargetMetrics:
        """Return the metrics of a target. All series of these topics and subscriptions start at 0; others may be added later.

        `backlog` returns the pending messages by subscription, for each `look`.
        """
        metrics = TargetMetrics(self._store, target, topics, subscriptions)
        self._snapshots.watch(metrics, partial(backlog_values, metrics, backlog))
        return metrics

    def watch_keys(self, snapshot: KeysSource) -> None:
        """Read the top keys of observed streams from `snapshot` with each future `look`."""
        self._snapshots.watch(scopes.TOP_KEY, partial(top_key_values, snapshot))

    def forget(self, target: TargetMetrics) -> None:
        """End all series of a target that is no longer probed, as after a restart."""
        self._snapshots.forget(target)
        target.forget()

    def has_bound(self, objective: Objective) -> bool:
        """Return whether the metrics count good events of an objective: its threshold is a bucket bound, or it has none."""
        return self._store.has_bound(objective)

    def errors_at(self, target: TargetSettings) -> Callable[[Operation, ErrorCode], None]:
        """Return a counter of failed calls to a target, for any thread. All its series start at 0."""
        return partial(Series(self._store, scopes.TARGET, target.series).count, families.TARGET_ERRORS)

    def own(self) -> OwnMetrics:
        """Return the metrics of the user's own subscriptions, without any subscription yet."""
        return OwnMetrics(self._store)

    def drills(self, names: Iterable[str]) -> DrillMetrics:
        """Return the metrics of the named fire drills, all at 0."""
        return DrillMetrics(self._store, names)

    def look(self) -> None:
        """Read pending messages and top keys for subsequent pages. To be called on the event loop, where both change."""
        self._snapshots.look()

    def collect(self) -> Iterable[Metric]:
        """Return the families with their samples, like `render`."""
        return self._store.registry.collect()

    def render(self, content_type: str) -> bytes:
        """Return a page in one of the formats of `content_type_for`. Safe in any thread, while metrics are counted."""
        return render(self._store.registry, content_type)


FRESH_S: Final = 1.0
"""A page younger than this is returned again, so that frequent requests cost little."""

ScrapePage: TypeAlias = tuple[str, bytes]
"""Content type and body."""


class Scrapes:
    """Rendering of metrics in one thread, one page at a time. Concurrent and frequent requests share a page.

    Belongs to one event loop, on which the metrics are counted.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = monotonic_s) -> None:
        self._metrics, self._clock = metrics, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._under_way: dict[str, asyncio.Task[ScrapePage]] = {}
        self._made: dict[str, tuple[float, ScrapePage]] = {}

    async def page(self, accept: str) -> ScrapePage:
        """Return the page for a scrape with this Accept header."""
        content_type = content_type_for(accept)
        made_t, page = self._made.get(content_type, (-inf, None))
        if page is not None and self._clock() - made_t < FRESH_S:
            return page
        making = self._under_way.get(content_type)
        if making is None:
            making = self._under_way[content_type] = asyncio.create_task(self._make(content_type))
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # all its waiters may be cancelled
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
