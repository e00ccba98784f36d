"""All metrics of one prober: their registry, the backlog and the top keys that each scrape asks for, and what scrapes get.

The backlog grows while nothing happens, also while the service hangs. It is asked for on the event loop, where it changes, and kept as it
was then for the thread that writes the page. That is done beside the loop, since latency is measured on the loop, and a page of a hundred
subscriptions takes a third of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Final, TypeAlias

from prometheus_client import GCCollector, Metric, PlatformCollector, ProcessCollector

from prober.brokers.calls import ErrorCode, Operation
from prober.clock import monotonic_s
from prober.config.models import TargetSettings
from prober.sinks.metrics import families, scopes
from prober.sinks.metrics.comparisons import ComparisonMetrics
from prober.sinks.metrics.health import DrillMetrics, ProberHealth
from prober.sinks.metrics.label_values import Component
from prober.sinks.metrics.snapshots import BacklogSource, KeysSource, SnapshotCollector, backlog_values, top_key_values
from prober.sinks.metrics.store import MetricStore, Series, content_type_for, render
from prober.sinks.metrics.targets import OwnMetrics, TargetMetrics
from prober.slo.objectives import Objective


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
