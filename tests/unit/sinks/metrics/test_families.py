"""The families that alerts and dashboards of others are built on: names, labels, values from the start, bounded in number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from prometheus_client.samples import Sample

from prober.config.loading import load
from prober.core.findings import Kind, Status
from prober.sinks.metrics import Metrics, families
from prober.sinks.metrics.comparisons import ComparedTargets
from prober.sinks.metrics.families import FAMILIES
from prober.sinks.metrics.family import Family, MetricType
from prober.slo.indicators import UNRECORDED, Indicator
from prober.slo.objectives import DAY_S, Objective
from tests.unit.sinks.metrics.scraping import OPENMETRICS, embedded, page, samples

OPEN = {
    *("target", "environment", "region", "topic", "subscription", "probe", "vantage", "part", "project", "own_subscription"),
    *("baseline", "candidate", "aspect", "rank", "drill", "step", "job", "job_name"),
}
"""Labels whose values the configuration or the code bounds; all others have a closed list of values."""


def watching() -> Metrics:
    config = load(None, {})
    metrics = Metrics(config.objectives, "1.2.3", [config.targets[0].environment])
    metrics.watch(config.targets[0], ["t"], ["s"])
    metrics.errors_at(config.targets[0])
    return metrics


def starting() -> Metrics:
    """Everything that has series from the start, if it is there."""
    metrics = watching()
    metrics.own().follow({"own": embedded()})
    metrics.drills(["drop"])
    metrics.comparisons.follow([ComparedTargets("a", "b")])
    return metrics


def of(family: Family, found: list[Sample]) -> dict[tuple[str, ...], float]:
    """The values of its series by those of their labels."""
    suffix = "_count" if family.kind is MetricType.HISTOGRAM else ""
    return {
        tuple(one.labels[label] for label in family.labels): one.value for one in found if one.name == family.full_name + suffix
    }


def test_a_family_has_every_combination_of_its_values_with_its_first_value() -> None:
    found = samples(starting())
    set_at_once = {families.CLOCK, families.OWN_LATE, families.COMPARISON_STANDING, families.PROBE_INTERVAL, families.LEFTOVERS}
    for family in set(FAMILIES) - set_at_once:
        if family.start is None or family.scraped:
            continue
        series = of(family, found)
        things = {labels[: len(family.scope)] for labels in series}
        assert things, family.name
        wanted = {(*thing, *map(str, values)) for thing in things for values in product(*family.values.values())}
        assert series.keys() == wanted, family.name
        assert all(str(value) == str(float(family.start)) for value in series.values()), family.name


def test_what_is_not_measured_yet_has_no_series() -> None:
    found = samples(starting())
    given = {families.TARGET_INFO, families.BUILD, families.COMPARISON_RATIO, families.COMPARISON_SECONDS}
    absent = {family for family in FAMILIES if family.start is None} - given
    assert {family.name: of(family, found) for family in absent if of(family, found)} == {}


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
    latencies = [one for one in config.objectives if one.indicator.endswith("_latency") and one.indicator not in UNRECORDED]
    assert latencies
    for one in latencies:
        assert (f"pubsub_prober_{one.indicator}_seconds_bucket", one.threshold_s) in found


# ------------------------------------------------------------------------------------------------------------ cardinality


def test_names_beyond_the_limit_are_counted_together() -> None:
    metrics = Metrics()
    target = metrics.watch(embedded())
    for number in range(150):
        target.subscription(f"s{number}").count(families.FINDINGS, Kind.ORDER_GAP, Status.VIOLATION)
        target.topic(f"t{number}")
    scraped = samples(metrics)
    found = [sample for sample in scraped if sample.name == "pubsub_prober_findings_total" and sample.value]
    assert len(found) == 101
    assert {sample.labels["subscription"]: sample.value for sample in found}["other"] == 50
    folded = {sample.labels["label"]: sample.value for sample in scraped if sample.name == "pubsub_prober_folded_names_total"}
    assert folded == {"topic": 50, "subscription": 50}


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


def test_no_other_label_may_have_any_value() -> None:
    assert {label for family in FAMILIES for label in family.scope} == OPEN


def test_families_are_listed_once() -> None:
    assert len({family.full_name for family in FAMILIES}) == len(FAMILIES)
    assert all(family.help.endswith(".") for family in FAMILIES)
