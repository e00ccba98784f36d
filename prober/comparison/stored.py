"""Comparisons of what a running service has recorded in its status store."""

from __future__ import annotations

from typing import Final

from prober.comparison.comparison import Comparison, compare_pairs
from prober.comparison.experiments import Common
from prober.comparison.pairs import pairs_of
from prober.config.comparisons import ComparisonSettings
from prober.runs.result import RunResult
from prober.sinks.status.queries import PAGE_MAX, StatusQueries
from prober.sinks.status.records import RunFilter

RUNS_MAX: Final = 5_000
"""Of more runs of a target within the window, the newest are compared."""


def compare_stored(queries: StatusQueries, settings: ComparisonSettings, common: Common, now: float) -> Comparison:
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
