"""Comparisons of what a running service has recorded in its status store; those of the configuration are also metrics."""

from __future__ import annotations

from typing import Final

from prober.clock import wall_s
from prober.comparison.comparison import Comparison, compare_pairs
from prober.comparison.pairs import CommonExperiments, comparisons_of, pairs_of
from prober.config.comparisons import ComparisonSettings
from prober.config.models import Config
from prober.runs.result import RunResult
from prober.sinks.metrics.comparisons import ComparedTargets, ComparisonMetrics
from prober.sinks.status.database import StatusError
from prober.sinks.status.listings import PAGE_MAX, RunFilter
from prober.sinks.status.queries import StatusQueries

RUNS_MAX: Final = 5_000
"""Of more runs of a target within the window, the newest are compared."""


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


class StoredComparisons:
    """Reports the comparisons of a configuration to the metrics. If the store does not answer, they are unknown."""

    def __init__(self, config: Config, metrics: ComparisonMetrics, queries: StatusQueries) -> None:
        self._metrics, self._queries = metrics, queries
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Compares what this configuration says from now on."""
        self._comparisons = comparisons_of(config)
        self._metrics.follow(_targets(each.settings) for each in self._comparisons)

    def look(self) -> None:
        """Compares once. Blocks."""
        for each in self._comparisons:
            targets = _targets(each.settings)
            try:
                found = compare_stored(self._queries, each.settings, each.common, wall_s())
            except StatusError:  # the store's own errors are reported elsewhere
                self._metrics.unknown(targets)
            else:
                self._metrics.report(targets, found.standing, found.aspects)


def _targets(settings: ComparisonSettings) -> ComparedTargets:
    return ComparedTargets(settings.baseline, settings.candidate)
