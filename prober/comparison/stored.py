"""Comparisons of what a running service has recorded in its status store, and those of the configuration told to the metrics
every minute.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from prober.clock import wall_s
from prober.comparison.comparison import Comparison, compare_pairs
from prober.comparison.pairs import CommonExperiments, comparisons_of, pairs_of
from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config
from prober.runs.result import RunResult
from prober.sinks.metrics import Component, Metrics
from prober.sinks.metrics.comparisons import ComparedTargets
from prober.sinks.status.database import StatusError
from prober.sinks.status.listings import PAGE_MAX, RunFilter
from prober.sinks.status.queries import StatusQueries

RUNS_MAX: Final = 5_000
"""Of more runs of a target within the window, the newest are compared."""
EVERY_S: Final = 60.0
_log = logging.getLogger(__name__)


def compare_stored(queries: StatusQueries, settings: ComparisonSettings, common: CommonExperiments, now: float) -> Comparison:
    """Compares two targets by their runs of the last `window` before `now`, seconds since 1970. Blocks. Raises what the store raises."""
    since = now - settings.window.total_seconds()
    baseline, candidate = (_runs(queries, target, since) for target in (settings.baseline, settings.candidate))
    pairs = pairs_of(baseline, candidate, common.apart_max_s)
    began = min((pair.baseline.started_at for pair in pairs), default=now)
    return compare_pairs(settings, pairs, tuple(common.apart_max_s), max(0.0, now - began))


def _runs(queries: StatusQueries, target: str, since: float) -> list[RunResult]:
    found: list[RunResult] = []
    cursor: str | None = None
    while len(found) < RUNS_MAX:
        page = queries.runs(RunFilter(target=target, since=since), limit=PAGE_MAX, cursor=cursor)
        found += [record.result for record in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


class ComparisonWatch:
    """Compares again and again while it is entered, in a thread. Where the store does not answer, nothing is known any more."""

    def __init__(self, config: Config, metrics: Metrics, queries: StatusQueries) -> None:
        self._metrics, self._health, self._queries = metrics.comparisons, metrics.health, queries
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Compares what this configuration says from now on."""
        self._comparisons = comparisons_of(config)
        self._metrics.follow(_targets(each.settings) for each in self._comparisons)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch(), name="comparisons")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._task.cancel()

    def look(self) -> None:
        """Compares once. Blocks."""
        for each in self._comparisons:
            targets = _targets(each.settings)
            try:
                found = compare_stored(self._queries, each.settings, each.common, wall_s())
            except StatusError:  # the store's own trouble is told elsewhere
                self._metrics.unknown(targets)
            else:
                self._metrics.told(targets, found.standing, found.aspects)

    async def _watch(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception:  # a mistake of ours must not end the watch
                self._health.internal_error(Component.METRICS)
                _log.exception("internal error while targets were compared")
            await asyncio.sleep(EVERY_S)


def _targets(settings: ComparisonSettings) -> ComparedTargets:
    return ComparedTargets(settings.baseline, settings.candidate)
