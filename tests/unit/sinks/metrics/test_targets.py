"""What happened, and what a scrape says about it. Targets come, change and go: so do their series, and nobody else's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random

import pytest

from prober.brokers.base import AdminOperation, Vantage
from prober.clock import Machine, on_machine
from prober.config.loading import load
from prober.logs import trace_id_of
from prober.probes.catalogue import ProbeName
from prober.runs.backlog import Backlog
from prober.runs.probe_instance import InstanceKey
from prober.sinks.metrics import Component, Job, Metrics, SkipReason, TargetMetrics, exemplar_of, families
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from tests.unit.sinks.metrics.scraping import HERE, ON_S, OPENMETRICS, embedded, page, samples, value

PROMETHEUS = ",".join(
    [
        "application/openmetrics-text;version=1.0.0;q=0.5",
        "application/openmetrics-text;version=0.0.1;q=0.4",
        "text/plain;version=0.0.4;q=0.3",
        "*/*;q=0.2",
    ]
)

ORDERING = InstanceKey("embedded", "ordering", "wire")
OTHER = embedded().model_copy(update={"name": "other", "environment": "staging"})


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(load(None, {}).objectives, "1.2.3", ("production", "test"))


@pytest.fixture
def target(metrics: Metrics) -> TargetMetrics:
    return metrics.watch(embedded(), ["t"], ["s"])


def test_runs(metrics: Metrics, target: TargetMetrics) -> None:
    instance = target.probe_instance(ORDERING)
    instance.count(families.PROBE_RUNS_EXPECTED, by=2)
    instance.count(families.SCHEDULER_SKIPS, SkipReason.OVERLAP)
    instance.count(families.PROBE_RUNS, "pass")
    assert value(metrics, "probe_runs_expected_total", **HERE, probe="ordering") == 2
    assert value(metrics, "scheduler_skips_total", **HERE, probe="ordering", reason="overlap") == 1
    assert value(metrics, "probe_runs_total", **HERE, probe="ordering", verdict="pass") == 1
    assert value(metrics, "probe_last_success_timestamp_seconds", probe="affinity") == 0.0


def test_runs_are_counted_by_vantage_and_part() -> None:
    config = load(None, {"ORDERING_PROBER_PROBES__ORDERING__PARTS": "2"})
    ordering = config.targets[0].probes[ProbeName.ORDERING].model_copy(update={"vantages": (Vantage.WIRE, Vantage.LIBRARY)})
    metrics = Metrics()
    target = metrics.watch(config.targets[0].model_copy(update={"probes": {ProbeName.ORDERING: ordering}}))
    target.probe_instance(ORDERING._replace(vantage="library", part="2/2")).count(families.PROBE_RUNS, "unknown")
    counted = {
        (sample.labels["vantage"], sample.labels["part"]): sample.value
        for sample in samples(metrics)
        if sample.name == "pubsub_prober_probe_runs_total" and sample.labels["verdict"] == "unknown"
    }
    assert counted == {("wire", "1/2"): 0, ("wire", "2/2"): 0, ("library", "1/2"): 0, ("library", "2/2"): 1}


def test_a_probe_that_is_given_up_is_assigned_no_more(metrics: Metrics, target: TargetMetrics) -> None:
    target.probe_instance(ORDERING).set(families.PROBE_ASSIGNED, 1000.0)
    assert value(metrics, "probe_assigned_timestamp_seconds", **HERE, probe="ordering", vantage="wire") == 1000.0
    target.probe_instance(ORDERING).remove(families.PROBE_ASSIGNED)
    assert "pubsub_prober_probe_assigned_timestamp_seconds" not in {sample.name for sample in samples(metrics)}


def test_a_scrape_has_the_clock_of_that_moment(metrics: Metrics) -> None:
    times = iter((1000.0, 2000.0))
    with on_machine(Machine(lambda: 0.0, lambda: next(times), Random(0), count())):
        assert [value(metrics, "clock_timestamp_seconds") for _ in range(2)] == [1000.0, 2000.0]


def test_the_prober_itself(metrics: Metrics) -> None:
    metrics.health.internal_error(Component.RECORDER)
    metrics.health.dropped(Component.HISTORY, 7)
    metrics.health.count(families.HISTORY_FAILURES)
    metrics.health.took(families.LOOP_LAG, 0.02)
    metrics.health.job_succeeded(Job.HOT_KEYS, 5000.0)
    assert value(metrics, "internal_errors_total", component="recorder") == 1
    assert value(metrics, "events_dropped_total", component="history") == 7
    assert value(metrics, "history_failures_total") == 1
    assert value(metrics, "loop_lag_seconds_count") == 1
    for environment in ("production", "test"):
        assert value(metrics, "job_last_success_timestamp_seconds", job="hot-keys", environment=environment) == 5000.0
    assert value(metrics, "build_info", version="1.2.3") == 1


def test_a_negative_duration_is_counted_and_not_dropped(metrics: Metrics, target: TargetMetrics) -> None:
    target.topic("t").took(families.PUBLISH_LATENCY, -0.5)
    target.subscription("s").took(families.END_TO_END_LATENCY, -2.0)
    target.subscription("s").took(families.REDELIVERY_LATENCY, -1e-9)
    target.took(families.CONTROL_PLANE_LATENCY, -1.0, AdminOperation.DELETE)
    for duration in ("publish_latency", "end_to_end_latency", "redelivery_latency", "control_plane_latency"):
        assert value(metrics, "negative_durations_total", **HERE, duration=duration) == 1
    assert value(metrics, "end_to_end_latency_seconds_count", **ON_S) == 1
    assert value(metrics, "end_to_end_latency_seconds_sum", **ON_S) == 0.0


def test_targets_show_their_labels() -> None:
    target = embedded().model_copy(update={"labels": {"team": "messaging"}})
    metrics = Metrics()
    metrics.watch(target)
    assert value(metrics, "target_info", **HERE, team="messaging") == 1


# ---------------------------------------------------------------------------------------------------------------- backlog


def test_what_is_pending_is_asked_for_at_each_scrape() -> None:
    clock = [0.0]
    metrics = Metrics()
    metrics.watch(embedded(), [], ["s", "idle"], lambda: {"s": Backlog(clock[0], 5, 2)})
    assert value(metrics, "oldest_unacked_message_age_seconds", **ON_S) == 0.0
    clock[0] = 61.5  # nothing happened, only time went by
    assert value(metrics, "oldest_unacked_message_age_seconds", **ON_S) == 61.5
    assert value(metrics, "num_undelivered_messages", **ON_S) == 5
    assert value(metrics, "stalled_keys", **ON_S) == 2
    assert value(metrics, "num_undelivered_messages", subscription="idle") == 0


def test_a_snapshot_that_fails_says_nothing_rather_than_that_all_is_well() -> None:
    def broken() -> Mapping[str, Backlog]:
        raise RuntimeError("no ledger")

    metrics = Metrics()
    metrics.watch(embedded(), ["t"], ["s"], broken)
    assert not [sample for sample in samples(metrics) if sample.name == "pubsub_prober_num_undelivered_messages"]
    assert value(metrics, "internal_errors_total", component="metrics") >= 1
    assert value(metrics, "publishes_total", outcome="confirmed") == 0  # the rest of the page is there


def test_subscriptions_beyond_the_limit_are_pending_together() -> None:
    metrics = Metrics()
    metrics.watch(embedded(), [], [], lambda: {f"s{number}": Backlog(float(number), 1, 1) for number in range(150)})
    assert value(metrics, "num_undelivered_messages", subscription="other") == 50
    assert value(metrics, "oldest_unacked_message_age_seconds", subscription="other") == 149


def test_a_negative_age_is_0_and_counted() -> None:
    metrics = Metrics()
    metrics.watch(embedded(), [], ["s"], lambda: {"s": Backlog(-1.0)})
    assert value(metrics, "oldest_unacked_message_age_seconds", **ON_S) == 0.0
    assert value(metrics, "negative_durations_total", duration="oldest_unacked_message_age") >= 1


# ------------------------------------------------------------------------------------------------------------- exposition


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("application/openmetrics-text", True),
        (PROMETHEUS, True),
        ("text/plain;version=0.0.4;q=0.6,*/*;q=0.5", False),
        ("application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.3", False),
        ("application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; q=0.6,text/plain;version=1.0.0;q=0.5", True),
        ("application/openmetrics-text;version=nonsense", False),
        ("text/plain;version=,application/openmetrics-text;version=1.x", False),
        (";;,,;q=", False),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(metrics: Metrics, target: TargetMetrics, accept: str, openmetrics: bool) -> None:
    content_type, body = page(metrics, accept)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain; version=0.0.4")
    assert body.endswith(b"# EOF\n") is openmetrics
    assert target.subscriptions == ("s",)


def test_the_newer_text_format_is_there_too(metrics: Metrics) -> None:
    content_type, body = page(metrics, "text/plain;version=1.0.0;escaping=allow-utf-8,application/openmetrics-text;version=1.0.0")
    assert content_type == "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
    assert body.startswith(b"# HELP ")


def test_exemplars_lead_from_a_slow_message_to_its_run(metrics: Metrics, target: TargetMetrics) -> None:
    slow = exemplar_of("run-7")
    target.subscription("s").took(families.END_TO_END_LATENCY, 3.0, exemplar=slow)
    target.topic("t").took(families.PUBLISH_LATENCY, 0.1, exemplar=slow)
    found = [sample for sample in samples(metrics, OPENMETRICS) if sample.exemplar]
    assert {(sample.name, sample.labels["le"]) for sample in found} == {
        ("pubsub_prober_end_to_end_latency_seconds_bucket", "5.0"),
        ("pubsub_prober_publish_latency_seconds_bucket", "0.1"),
    }
    exemplars = [sample.exemplar.labels for sample in found if sample.exemplar]
    assert exemplars == [{"run_id": "run-7", "trace_id": trace_id_of("run-7")}] * 2
    assert b"run-7" not in page(metrics, "text/plain")[1]


def test_an_exemplar_that_is_too_long_is_left_out(metrics: Metrics, target: TargetMetrics) -> None:
    assert exemplar_of("x" * 82)["run_id"] == "x" * 82
    assert exemplar_of("x" * 83) == {}
    target.topic("t").took(families.PUBLISH_LATENCY, 0.1, exemplar=exemplar_of("x" * 500))
    assert value(metrics, "publish_latency_seconds_count", topic="t") == 1


def named(metrics: Metrics, **labels: str) -> set[str]:
    """The series that have these labels."""
    return {sample.name for sample in samples(metrics) if labels.items() <= sample.labels.items()}


def about_targets(metrics: Metrics) -> dict[tuple[object, ...], float]:
    return {(sample.name, *sample.labels.items()): sample.value for sample in samples(metrics) if "target" in sample.labels}


def test_a_target_that_is_gone_has_no_series_and_another_keeps_its_own() -> None:
    metrics = Metrics()
    metrics.watch(embedded(), ["t"], ["s"], lambda: {"s": Backlog(1.0, 2, 3)})
    before = about_targets(metrics)
    other = metrics.watch(OTHER, ["t"], ["s"], lambda: {"s": Backlog(4.0, 5, 6)})
    metrics.errors_at(OTHER)
    assert named(metrics, target="other")
    metrics.forget(other)
    assert about_targets(metrics) == before


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
    target.forget_all_but({ORDERING}, {"a"})
    assert {sample.labels["probe"] for sample in samples(metrics) if "probe" in sample.labels} == {"ordering"}
    assert not named(metrics, topic="b") | named(metrics, subscription="b")
    assert named(metrics, topic="a")
    assert named(metrics, subscription="a")
    target.follow(embedded())
    target.subscription("b").count(families.OVERDUE)
    assert {sample.labels["probe"] for sample in samples(metrics) if "probe" in sample.labels} == set(ProbeName) - {
        ProbeName.OBSERVE
    }
    assert value(metrics, "deliveries_overdue_total", subscription="b") == 1.0


def test_nightly_jobs_know_the_environments_that_there_are() -> None:
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
