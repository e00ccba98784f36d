"""The families that alerts and dashboards of others are built on: names, labels, values from the start, bounded in number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

from prober.brokers.base import AdminOperation, Confirmed
from prober.brokers.calls import ErrorCode, Operation
from prober.config.loading import load
from prober.core.findings import Kind, Status
from prober.probes.catalogue import PROBES
from prober.probes.context import DeliveryKind
from prober.runs.backlog import Backlog
from prober.sinks.metrics import Component, Metrics, SkipReason, exemplar_of
from prober.sinks.metrics.families import (
    FAMILIES,
    FIGURES,
    HEAD_OF_LINE_DELAY,
    HOT_KEYS,
    LEFTOVERS,
    LIBRARY_ANOMALIES,
    PROBE_ASSIGNED,
    REVERIFIED_FINDINGS,
)
from prober.sinks.metrics.family import MetricType
from prober.sinks.metrics.store import SNAPSHOT_FAMILIES
from prober.slo.indicators import DURATIONS, Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts
from tests.unit.sinks.metrics.scraping import OPENMETRICS, embedded, page, samples

TARGET = {"target", "environment", "region"}
PROBE_INSTANCE: dict[str, Set[str] | None] = {"probe": set(PROBES), "vantage": {"wire"}, "part": {""}}
PROMISED: dict[
    str, dict[str, Set[str] | None]
] = {  # as other programs rely on them: name, labels beside target, environment and region, and what these may be
    "oldest_unacked_message_age_seconds": {"subscription": None},
    "num_undelivered_messages": {"subscription": None},
    "stalled_keys": {"subscription": None},
    "publishes_total": {"topic": None, "outcome": {"confirmed", "rejected", "unknown"}},
    "deliveries_total": {"subscription": None, "kind": {"first", "redelivery", "publisher_duplicate", "foreign"}},
    "findings_total": {"subscription": None, "kind": set(Kind), "status": {"violation", "liveness", "indeterminate", "info"}},
    "order_checks_total": {"subscription": None, "result": {"good", "bad", "undecided"}},
    "redelivery_checks_total": {"subscription": None, "result": {"good", "bad", "undecided"}},
    "affinity_checks_total": {"subscription": None, "result": {"good", "bad", "undecided"}},
    "delivery_checks_total": {"subscription": None, "result": {"good", "bad", "undecided"}},
    "affinity_moves_total": {"subscription": None, "outstanding": {"yes", "no", "unknown"}},
    "early_redeliveries_total": {"subscription": None},
    "keys_forgotten_total": {"subscription": None},
    "control_plane_failures_total": {"operation": set(AdminOperation)},
    "deliveries_overdue_total": {"subscription": None},
    "publish_latency_seconds_bucket": {"topic": None, "le": None},
    "end_to_end_latency_seconds_bucket": {"subscription": None, "le": None},
    "redelivery_latency_seconds_bucket": {"subscription": None, "le": None},
    "control_plane_latency_seconds_bucket": {"operation": set(AdminOperation), "le": None},
    "target_errors_total": {"operation": set(Operation), "code": set(ErrorCode)},
    "undecided_durations_total": {"duration": set(DURATIONS)},
    "probe_runs_total": {**PROBE_INSTANCE, "verdict": {"pass", "fail", "unknown"}},
    "probe_runs_expected_total": PROBE_INSTANCE,
    "probe_last_success_timestamp_seconds": PROBE_INSTANCE,
    "scheduler_skips_total": {**PROBE_INSTANCE, "reason": set(SkipReason)},
}
PROMISED_OF_THE_PROBER: dict[str, dict[str, Set[str] | None]] = {
    "internal_errors_total": {"component": set(Component)},
    "job_last_success_timestamp_seconds": {
        "job": {"hot-keys", "slo-burn", "reverify", "retention", "nightly"},
        "job_name": None,
        "environment": {"test"},
    },
}


def watching() -> Metrics:
    config = load(None, {})
    metrics = Metrics(config.objectives, "1.2.3", [config.targets[0].environment])
    metrics.watch(config.targets[0], ["t"], ["s"])
    metrics.errors_at(config.targets[0])
    return metrics


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_family_is_there_with_all_its_combinations_at_0(name: str) -> None:
    check(name, PROMISED[name], TARGET)


@pytest.mark.parametrize("name", PROMISED_OF_THE_PROBER)
def test_a_promised_family_of_the_prober_itself_is_there(name: str) -> None:
    check(name, PROMISED_OF_THE_PROBER[name], set())


def check(name: str, promised: dict[str, Set[str] | None], common: set[str]) -> None:
    found = [sample for sample in samples(watching()) if sample.name == f"pubsub_prober_{name}"]
    assert found
    assert {frozenset(sample.labels) for sample in found} == {frozenset({*common, *promised})}
    assert {sample.value for sample in found} == {0.0}
    combinations = 1
    for label, values in promised.items():
        if values is not None:
            assert {sample.labels[label] for sample in found} == set(map(str, values))
            combinations *= len(values)
    if "le" not in promised:
        assert len(found) == combinations


MEASURED = {*FIGURES.values(), HEAD_OF_LINE_DELAY, LIBRARY_ANOMALIES}
"""Only where a probe measures it, or at the library vantage."""
ABSENT_AT_FIRST = {
    HOT_KEYS,
    LEFTOVERS,
    PROBE_ASSIGNED,
    REVERIFIED_FINDINGS,
    *MEASURED,
    *(family for family in FAMILIES if {"drill", "own_subscription", "candidate", "rank"} & set(family.labels)),
}
"""No report was read, nothing swept, assigned, measured, drilled or observed, no own subscription or comparison configured: nothing is not
0."""


def test_every_family_is_there_from_the_start() -> None:
    metrics = Metrics(environments=["test"])
    metrics.watch(embedded(), ["t"], ["s"])
    metrics.errors_at(embedded())
    found = {sample.name for sample in samples(metrics)}
    for family in set(FAMILIES) - ABSENT_AT_FIRST:
        suffix = "_count" if family.kind is MetricType.HISTOGRAM else ""
        assert family.full_name + suffix in found


def test_times_of_creation_do_not_double_the_series() -> None:
    assert not [sample for sample in samples(watching(), OPENMETRICS) if sample.name.endswith("_created")]


def test_names_carry_their_units() -> None:
    for family in FAMILIES:
        assert not family.name.endswith(("_total", "_info", "_ms", "_count"))
        if family.kind is MetricType.HISTOGRAM:
            assert family.name.endswith("_seconds")


# ---------------------------------------------------------------------------------------------------------------- buckets


@pytest.mark.parametrize(
    ("indicator", "family"),
    [
        (Indicator.PUBLISH_LATENCY, "publish_latency_seconds"),
        (Indicator.END_TO_END_LATENCY, "end_to_end_latency_seconds"),
        (Indicator.REDELIVERY_LATENCY, "redelivery_latency_seconds"),
        (Indicator.CONTROL_PLANE_LATENCY, "control_plane_latency_seconds"),
    ],
)
def test_every_threshold_is_a_bucket_bound(indicator: Indicator, family: str) -> None:
    thresholds = (0.123, 77.5)
    metrics = Metrics([Objective(f"o{at}", indicator, 0.99, 30 * DAY_S, at) for at in thresholds])
    metrics.watch(embedded(), ["t"], ["s"])
    bounds: dict[str, set[float]] = {}
    for sample in samples(metrics):
        if sample.name.endswith("_bucket"):
            bounds.setdefault(sample.name, set()).add(float(sample.labels["le"]))
    holding = {name for name, values in bounds.items() if set(thresholds) <= values}
    assert holding == {f"pubsub_prober_{family}_bucket"}


def test_the_thresholds_of_the_default_objectives_are_bounds() -> None:
    config = load(None, {})
    found = {(sample.name, float(sample.labels["le"])) for sample in samples(watching()) if "le" in sample.labels}
    latencies = [one for one in config.objectives if one.indicator.endswith("_latency")]
    assert latencies
    for one in latencies:
        assert (f"pubsub_prober_{one.indicator}_seconds_bucket", one.threshold_s) in found


# ------------------------------------------------------------------------------------------------------------ cardinality


def series_after(keys: int) -> int:
    metrics = Metrics()
    target = metrics.watch(embedded(), ["t"], ["s"], lambda: {"s": Backlog(float(keys), keys, keys)})
    topic, subscription = target.topic("t"), target.subscription("s")
    for number in range(keys):
        exemplar = exemplar_of(f"run-{number}")
        topic.published(Confirmed(str(number)), number / 1000, exemplar)
        subscription.delivered(DeliveryKind.FIRST, number / 1000, exemplar)
        subscription.checked(Indicator.ORDER, SliCounts(1))
    return len(samples(metrics, OPENMETRICS))


def test_100_000_keys_give_no_more_series_than_10() -> None:
    assert series_after(100_000) == series_after(10)


def test_names_beyond_the_limit_are_counted_together() -> None:
    metrics = Metrics()
    target = metrics.watch(embedded())
    for number in range(150):
        target.subscription(f"s{number}").finding(Kind.ORDER_GAP, Status.VIOLATION)
        target.topic(f"t{number}")
    found = [sample for sample in samples(metrics) if sample.name == "pubsub_prober_findings_total" and sample.value]
    assert len(found) == 101
    assert {sample.labels["subscription"]: sample.value for sample in found}["other"] == 50
    folded = {
        sample.labels["label"]: sample.value for sample in samples(metrics) if sample.name == "pubsub_prober_folded_names_total"
    }
    assert folded == {"topic": 50, "subscription": 50}


def test_every_label_is_a_name_of_ours_or_one_of_a_few_words() -> None:
    named = {
        "target",
        "environment",
        "region",
        "topic",
        "subscription",
        "probe",
        "part",
        "component",
        "job",
        "job_name",
        "drill",
        "step",
        "class",
        "project",
        "own_subscription",
        "baseline",
        "candidate",
        "aspect",
        "rank",
    }
    words = {
        "outcome",
        "kind",
        "status",
        "result",
        "outstanding",
        "operation",
        "verdict",
        "reason",
        "duration",
        "label",
        "code",
        "vantage",
        "who",
        "standing",
        "bound",
    }
    assert {label for family in FAMILIES for label in family.labels} == named | words


# --------------------------------------------------------------------------------------------------------------- promtool


MISSING = "promtool is missing; install it (Debian, Ubuntu: apt install prometheus) or put it on the PATH"


def promtool() -> str:
    folders = [os.environ.get("PATH", ""), str(Path(sys.executable).parent)]
    found = shutil.which("promtool", path=os.pathsep.join(folders))
    if found is None and os.environ.get("CI"):
        pytest.fail(MISSING)
    if found is None:
        pytest.skip(MISSING)
    return found


def checked(text: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([promtool(), "check", "metrics"], input=text, capture_output=True, check=False)


def test_promtool_has_nothing_to_say() -> None:
    metrics = watching()
    _, text = page(metrics)
    result = checked(text)
    assert (result.returncode, result.stdout + result.stderr) == (0, b"")


def test_promtool_would_say_it() -> None:
    assert checked(b"# HELP waiting_ms Waiting.\n# TYPE waiting_ms counter\nwaiting_ms 1\n").returncode != 0


def test_families_are_listed_once() -> None:
    assert len({family.full_name for family in FAMILIES}) == len(FAMILIES)
    assert set(SNAPSHOT_FAMILIES) <= set(FAMILIES)
    assert all(family.help.endswith(".") for family in FAMILIES)
