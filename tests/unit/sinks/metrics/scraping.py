"""Metrics as a test makes and reads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from prometheus_client.samples import Sample

from prober.config.loading import load
from prober.config.models import TargetSettings
from prober.sinks.metrics import Metrics, store
from prober.sinks.metrics.store import content_type_for

PATIENCE_S = 30.0
OPENMETRICS = "application/openmetrics-text"
HERE = {"target": "embedded", "environment": "test", "region": "local"}
ON_S = {**HERE, "subscription": "s"}


def embedded() -> TargetSettings:
    return load(None, {}).targets[0]


def page(metrics: Metrics, accept: str = "") -> tuple[str, bytes]:
    """What a scrape with this Accept header gets: content type and body."""
    metrics.look()
    content_type = content_type_for(accept)
    return content_type, metrics.render(content_type)


def samples(metrics: Metrics, accept: str = "") -> list[Sample]:
    """Everything that a scrape gets."""
    _, body = page(metrics, accept)
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


class Renderings:
    """Stands in for the text format: counts, notes the threads, and holds each rendering up until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        self.went_on: list[bool] = []
        self._known = generate_latest
        monkeypatch.setattr(store, "choose_encoder", self._chosen)

    def _chosen(self, accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
        encode, content_type = choose_encoder(accept)
        return (self if encode is generate_latest else encode), content_type

    def __call__(self, registry: object) -> bytes:
        self.threads.append(threading.get_ident())
        self.begun.set()
        self.went_on.append(self.may_go_on.wait(PATIENCE_S))
        return self._known(registry)  # type: ignore[arg-type]
