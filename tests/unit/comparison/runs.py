"""Runs to compare."""

from __future__ import annotations

from collections.abc import Mapping

from prober.comparison.comparison import Comparison, compare_pairs
from prober.comparison.pairs import ComparedExperiment, PairOfRuns
from prober.config.comparisons import ComparisonSettings
from prober.core.verdict import Verdict
from prober.runs.result import Durations, RunResult
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

ORDERING = ComparedExperiment("ordering", "wire", "")
SETTINGS = ComparisonSettings(baseline="production", candidate="canary")


def run(
    at: float = 0.0,
    *,
    target: str = "production",
    probe: str = "ordering",
    counters: Mapping[str, int] | None = None,
    checks: Mapping[Indicator, SliCounts] | None = None,
    latency_s: float | None = None,
    internal_error: bool = False,
) -> RunResult:
    """A run that passed."""
    return RunResult(
        run_id=f"{target}-{probe}-{at}",
        probe=probe,
        target=target,
        vantage="wire",
        verdict=Verdict.PASS,
        reason="",
        started_at=at,
        duration_s=1.0,
        counters=counters or {},
        checks={Indicator.ORDER: SliCounts(1000)} if checks is None else checks,
        durations={}
        if latency_s is None
        else {Indicator.END_TO_END_LATENCY: Durations(9, latency_s, 2 * latency_s, 3 * latency_s)},
        internal_error=internal_error,
    )


def pair(at: float = 0.0, *, bad: int = 0, slower_s: float = 0.0, ours: bool = False) -> PairOfRuns:
    """A run of each, of which the candidate may be worse."""
    worse = {Indicator.ORDER: SliCounts(1000 - bad, bad)}
    return PairOfRuns(run(at, latency_s=0.1), run(at, target="canary", checks=worse, latency_s=0.1 + slower_s, internal_error=ours))


def compared(*pairs: PairOfRuns, wanted: tuple[ComparedExperiment, ...] = (ORDERING,), took_s: float = 60.0) -> Comparison:
    """What these say."""
    return compare_pairs(SETTINGS, pairs, wanted, took_s)
