"""Targets come, change and go while the prober runs: their series do the same, and nobody else's."""

from __future__ import annotations

from prober.config.models import ProbeName
from prober.runs.backlog import Backlog
from prober.sinks.metrics import Job, Metrics
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from tests.unit.sinks.metrics.scraping import embedded, samples, value

OTHER = embedded().model_copy(update={"name": "other", "environment": "staging"})


def named(metrics: Metrics, **labels: str) -> set[str]:
    """The series that have these labels."""
    return {sample.name for sample in samples(metrics) if labels.items() <= sample.labels.items()}


def test_a_target_that_is_gone_has_no_series_and_another_keeps_its_own() -> None:
    metrics = Metrics()
    metrics.watch(embedded(), ["t"], ["s"], lambda: {"s": Backlog(1.0, 2, 3)})
    before = {(sample.name, *sample.labels.items()): sample.value for sample in samples(metrics)}
    other = metrics.watch(OTHER, ["t"], ["s"], lambda: {"s": Backlog(4.0, 5, 6)})
    metrics.errors_at(OTHER)
    assert named(metrics, target="other")
    metrics.forget(other)
    after = {(sample.name, *sample.labels.items()): sample.value for sample in samples(metrics) if "pubsub" in sample.name}
    assert after == {name: number for name, number in before.items() if "pubsub" in name[0]}


def test_a_target_that_comes_back_is_counted_once() -> None:
    metrics = Metrics()
    for age_s in (1.0, 2.0):
        known = metrics.watch(OTHER, backlog=lambda age_s=age_s: {"s": Backlog(age_s, 0, 0)})  # type: ignore[misc]
        assert value(metrics, "oldest_unacked_message_age_seconds", target="other") == age_s
        metrics.forget(known)


def test_probes_and_subscriptions_that_are_gone_have_no_series() -> None:
    """A counter that stands still would say that runs are missing."""
    metrics = Metrics()
    target = metrics.watch(embedded(), ["a", "b"], ["a", "b"])
    target.forget_all_but({ProbeName.ORDERING}, {"a"})
    assert {sample.labels["probe"] for sample in samples(metrics) if "probe" in sample.labels} == {"ordering"}
    assert not named(metrics, topic="b") | named(metrics, subscription="b")
    assert named(metrics, topic="a")
    assert named(metrics, subscription="a")
    target.follow(embedded())
    target.subscription("b").overdue(1)
    assert {sample.labels["probe"] for sample in samples(metrics) if "probe" in sample.labels} == set(ProbeName) - {
        ProbeName.OBSERVE
    }
    assert value(metrics, "deliveries_overdue_total", subscription="b") == 1.0


def test_nightly_jobs_are_told_of_the_environments_that_there_are() -> None:
    metrics = Metrics(environments=["test", "staging"])
    metrics.watch(OTHER)
    metrics.health.job_succeeded(Job.NIGHTLY, 7.0)
    metrics.health.follow(["test", "production"])
    about = {sample.labels["environment"]: sample.value for sample in samples(metrics) if sample.labels.get("job") == "nightly"}
    assert about == {"test": 7.0, "production": 0.0}
    assert named(metrics, environment="staging")  # those of the target are another's to forget


def test_only_thresholds_that_are_bucket_bounds_are_measured() -> None:
    def fast(threshold_s: float, indicator: Indicator = Indicator.PUBLISH_LATENCY) -> Objective:
        return Objective("fast", indicator, 0.99, 30 * DAY_S, threshold_s)

    metrics = Metrics([fast(0.123)])
    assert metrics.has_bound(fast(0.123))
    assert metrics.has_bound(fast(0.5))
    assert not metrics.has_bound(fast(0.124))
    assert metrics.has_bound(fast(0.124, Indicator.OLDEST_UNACKED_MESSAGE_AGE))  # which is counted second by second
    assert metrics.has_bound(Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S))
