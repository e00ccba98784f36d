"""What drills tell to the metrics."""

from __future__ import annotations

from math import isnan

import pytest
from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.metrics import DrillMetrics, Metrics, families, store
from tests.unit.sinks.metrics.scraping import embedded, page

ACCUSING = (Status.VIOLATION, Status.LIVENESS)


def drilling() -> tuple[DrillMetrics, Metrics]:
    metrics = Metrics()
    return metrics.drills(["drop", "control"]), metrics


def series(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """The values of a family, by those of its labels."""
    families = text_string_to_metric_families(page(metrics)[1].decode())
    samples = [sample for family in families for sample in family.samples if sample.name == f"pubsub_prober_{name}"]
    return {tuple(sample.labels.values()): sample.value for sample in samples}


def test_everything_that_drills_count_is_at_0_from_the_start() -> None:
    _, metrics = drilling()
    assert series(metrics, "drill_runs_total") == {
        (drill, verdict): 0.0 for drill in ("drop", "control") for verdict in ("pass", "fail", "unknown")
    }
    assert series(metrics, "drill_findings_total") == {
        (drill, kind, status): 0.0 for drill in ("drop", "control") for kind in Kind for status in Status
    }
    assert series(metrics, "drill_last_success_timestamp_seconds") == {("drop",): 0.0, ("control",): 0.0}
    assert series(metrics, "drill_last_failure_timestamp_seconds") == {("drop",): 0.0, ("control",): 0.0}
    assert series(metrics, "drill_step_seconds") == {}


def test_a_passed_drill_counts_and_a_failed_one_is_no_success() -> None:
    drills, metrics = drilling()
    drills.ended("drop", Verdict.PASS, {"finding": 0.25, "rule": 12.5}, 1000.0)
    drills.ended("drop", Verdict.FAIL, {"finding": 0.5, "rule": None}, 2000.0)
    assert series(metrics, "drill_last_success_timestamp_seconds")["drop",] == 1000.0
    assert series(metrics, "drill_last_failure_timestamp_seconds")["drop",] == 2000.0
    drills.ended("control", Verdict.UNKNOWN, {}, 3000.0)
    assert series(metrics, "drill_last_failure_timestamp_seconds")["control",] == 3000.0, "nobody knows that it would page"
    assert {verdict: value for (drill, verdict), value in series(metrics, "drill_runs_total").items() if drill == "drop"} == {
        "pass": 1.0,
        "fail": 1.0,
        "unknown": 0.0,
    }
    steps = series(metrics, "drill_step_seconds")
    assert steps["drop", "finding"] == 0.5
    assert isnan(steps["drop", "rule"]), "what did not come has no seconds, and not those of the drill before"


def test_what_a_scrape_shows_is_read_by_drill_and_status() -> None:
    drills, _ = drilling()
    drills.of("drop").count(families.DRILL_FINDINGS, Kind.ORDER_GAP, Status.VIOLATION, by=2)
    drills.of("drop").count(families.DRILL_FINDINGS, Kind.STUCK, Status.LIVENESS)
    drills.of("drop").count(families.DRILL_FINDINGS, Kind.AFFINITY_MOVE, Status.INFO, by=9)
    drills.of("control").count(families.DRILL_FINDINGS, Kind.ORDER_GAP, Status.VIOLATION)
    assert drills.scraped("drop", ACCUSING) == 3.0
    assert drills.scraped("control", ACCUSING) == 1.0


def test_to_read_what_a_scrape_shows_of_drills_nothing_else_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    drills, metrics = drilling()
    metrics.watch(embedded(), ["t"], ["s"])
    texts: list[bytes] = []

    def written(registry: Collector) -> bytes:
        texts.append(generate_latest(registry))
        return texts[-1]

    monkeypatch.setattr(store, "choose_encoder", lambda accept: (written, choose_encoder(accept)[1]))
    drills.scraped("drop", ACCUSING)
    (text,) = texts
    assert {line.partition("{")[0] for line in text.decode().splitlines() if line[0] != "#"} == {
        "pubsub_prober_drill_findings_total"
    }
