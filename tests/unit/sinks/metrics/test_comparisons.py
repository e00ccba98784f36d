"""What comparisons tell to the metrics: nothing that nobody knows is a number."""

from __future__ import annotations

from math import isnan

from prober.sinks.metrics import Metrics
from prober.sinks.metrics.comparisons import ComparedTargets
from prober.slo.comparison import Aspect, Measured, Standing, Statistic, compare_aspect
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.sinks.metrics.scraping import samples

TARGETS = ComparedTargets("production", "canary")
ORDER = compare_aspect(
    Measured(Aspect(Indicator.ORDER, Statistic.SHARE), counts=[(SliCounts(1000), SliCounts(900, 100))] * 6), margin=0.001
)


def reported(metrics: Metrics, family: str, label: str, **labels: str) -> dict[str, float]:
    found = [one for one in samples(metrics) if one.name == f"pubsub_prober_comparison_{family}"]
    return {one.labels[label]: one.value for one in found if labels.items() <= one.labels.items()}


def test_nothing_is_known_at_first() -> None:
    metrics = Metrics()
    assert reported(metrics, "standing", "standing") == {}
    metrics.comparisons.follow([TARGETS])
    assert reported(metrics, "standing", "standing") == {"no_worse": 0, "worse": 0, "unknown": 1}
    assert all(map(isnan, reported(metrics, "difference_ratio", "bound", aspect="order").values()))
    assert all(map(isnan, reported(metrics, "difference_seconds", "bound", aspect="publish_latency_p99").values()))


def test_what_was_found_is_reported_with_its_interval_and_margin() -> None:
    metrics = Metrics()
    metrics.comparisons.follow([TARGETS])
    metrics.comparisons.report(TARGETS, Standing.WORSE, [ORDER])
    assert reported(metrics, "standing", "standing") == {"no_worse": 0, "worse": 1, "unknown": 0}
    bounds = reported(metrics, "difference_ratio", "bound", aspect="order")
    assert bounds["margin"] == 0.001 < bounds["low"] < bounds["estimate"] < bounds["high"]
    assert all(map(isnan, reported(metrics, "difference_ratio", "bound", aspect="affinity").values()))


def test_what_is_known_no_more_is_taken_back() -> None:
    metrics = Metrics()
    metrics.comparisons.follow([TARGETS])
    metrics.comparisons.report(TARGETS, Standing.WORSE, [ORDER])
    metrics.comparisons.unknown(TARGETS)
    assert reported(metrics, "standing", "standing") == {"no_worse": 0, "worse": 0, "unknown": 1}
    assert all(map(isnan, reported(metrics, "difference_ratio", "bound", aspect="order").values()))


def test_series_end_with_the_comparison() -> None:
    metrics = Metrics()
    metrics.comparisons.follow([TARGETS])
    metrics.comparisons.follow([])
    metrics.comparisons.report(TARGETS, Standing.WORSE, [ORDER])
    assert reported(metrics, "standing", "standing") == {}
