"""All metrics of one prober: their registry, the backlog and the top keys that each scrape asks for, and what scrapes get.

The backlog grows while nothing happens, also while the service hangs. It is asked for on the event loop, where it changes, and kept as it
was then for the thread that writes the page. That is done beside the loop, since latency is measured on the loop, and a page of a hundred
subscriptions takes a third of a second.
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
"""Pending messages by subscription. Called for each scrape, on the event loop: it must be quick, and need no answer of the service."""
KeysSource: TypeAlias = Callable[[], Sequence[StreamKeys]]
"""The streams that are observed; called like a `BacklogSource`."""
Values: TypeAlias = Iterable[tuple[Family, tuple[str, ...], float]]
"""Family, label values, value."""


class SnapshotCollector(Collector):
    """Computes the gauges. `look` is for the event loop, `collect` for any thread."""

    def __init__(self, failed: Callable[[], None]) -> None:
        """`failed` is called if some of them cannot be computed."""
        self._failed: Final = failed
        self._sources: Final[dict[object, Callable[[], Values]]] = {}
        self._seen: tuple[GaugeMetricFamily, ...] = tuple(self.describe())  # replaced as a whole, never changed

    def watch(self, owner: object, source: Callable[[], Values]) -> None:
        """Asks a source with each `look` from now on, instead of the one that its owner had before."""
        self._sources[owner] = source

    def forget(self, owner: object) -> None:
        """Asks the source of an owner no more."""
        self._sources.pop(owner, None)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The families, without asking any source."""
        return _empty().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as they were at the last `look`."""
        return iter(self._seen)

    def look(self) -> None:
        """Asks all sources. The series of one that fails are absent, since 0 would say that all is well, and the failure is counted."""
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
    """The pending messages of every subscription of a target that has series: nothing where the source has none."""
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
    """The values of every rank of each stream, at least; without so many keys there is no load on a rank."""
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
    """Where everything about metrics begins: what is watched, how the prober is, and what a scrape gets.

    `environments` are those of the targets; there are no metrics of nightly jobs without.
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
        """The metrics of a target. What may happen to these topics and subscriptions is at 0 from now on; others may follow.

        `backlog` returns the pending messages by subscription, for each `look`.
        """
        metrics = TargetMetrics(self._store, target, topics, subscriptions)
        self._snapshots.watch(metrics, partial(backlog_values, metrics, backlog))
        return metrics

    def watch_keys(self, snapshot: KeysSource) -> None:
        """Asks `snapshot` for the top keys of observed streams with each `look` from now on."""
        self._snapshots.watch(scopes.TOP_KEY, partial(top_key_values, snapshot))

    def forget(self, target: TargetMetrics) -> None:
        """The target is probed no more: all its series end, as after a restart."""
        self._snapshots.forget(target)
        target.forget()

    def has_bound(self, objective: Objective) -> bool:
        """Whether the metrics say how many were good for an objective: its threshold is a bucket bound, or it has none."""
        return self._store.has_bound(objective)

    def errors_at(self, target: TargetSettings) -> Callable[[Operation, ErrorCode], None]:
        """Counts a call to a target that ended with an error; for any thread. All are at 0 from now on."""
        return partial(Series(self._store, scopes.TARGET, target.series).count, families.TARGET_ERRORS)

    def own(self) -> OwnMetrics:
        """The metrics of the user's own subscriptions, of which there are none yet."""
        return OwnMetrics(self._store)

    def drills(self, names: Iterable[str]) -> DrillMetrics:
        """The metrics of fire drills with these names, at 0 from now on."""
        return DrillMetrics(self._store, names)

    def look(self) -> None:
        """Asks for pending messages and top keys, for the pages that are rendered from now on. To be called on the event loop, where
        both change.
        """
        self._snapshots.look()

    def collect(self) -> Iterable[Metric]:
        """The families with their samples, like `render`."""
        return self._store.registry.collect()

    def render(self, content_type: str) -> bytes:
        """A page in one of the formats of `content_type_for`. May be called in any thread, while metrics are counted."""
        return render(self._store.registry, content_type)


FRESH_S: Final = 1.0
"""A younger page is given again, so that frequent requests cost little."""

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
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # its waiters may all have gone
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
