"""Metrics as a test makes and reads them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from prometheus_client.samples import Sample

from prober.config import TargetSettings, load
from prober.metrics import Metrics

OPENMETRICS = "application/openmetrics-text"
HERE = {"target": "embedded", "environment": "test", "region": "local"}
ON_S = {**HERE, "subscription": "s"}


def embedded() -> TargetSettings:
    return load(None, {}).targets[0]


def samples(metrics: Metrics, accept: str = "") -> list[Sample]:
    """Everything that a scrape gets."""
    _, body = metrics.expose(accept)
    read = read_openmetrics if OPENMETRICS in accept else read_text
    families: Iterable[Metric] = read(body.decode())
    return [sample for family in families for sample in family.samples]


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of one series."""
    (found,) = [
        sample.value
        for sample in samples(metrics)
        if sample.name == f"pubsub_prober_{name}" and labels.items() <= sample.labels.items()
    ]
    return found
