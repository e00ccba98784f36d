"""Traces and metrics reach an OpenTelemetry collector over gRPC and HTTP; one that does not answer disturbs nothing."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from prober.clock import monotonic_s, wall_s
from prober.config.loading import load
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.errors import ConfigError
from prober.logs import span_context_of, trace_id_of
from prober.runs.backlog import Backlog
from prober.runs.result import RunResult
from prober.service import Service
from prober.sinks.metrics import Metrics, exemplar_of, families
from prober.sinks.metrics.label_values import Signal
from prober.sinks.otlp.exporters import exports_of, resource_of
from prober.sinks.otlp.metrics import metrics_export
from prober.sinks.tracing.spans import Tracing
from tests.integration.otlp import LISTENING, Collector, Series, series_of
from tests.notation import history

PATIENCE_S = 60.0
RESULT = RunResult(
    run_id="ordering-1",
    probe="ordering",
    target="local",
    vantage="wire",
    verdict=Verdict.FAIL,
    reason="ORDER_GAP",
    started_at=wall_s(),
    duration_s=10.0,
    topic="projects/p/topics/t",
    subscription="projects/p/subscriptions/s",
)
RESOURCE = resource_of("here", "1.2.3")
VARYING = re.compile(r"(process|python)_|.*_(clock_timestamp_seconds|otlp_export_failures_total)$")
"""What differs between a scrape and the export after it."""

EVERY_PROTOCOL = pytest.mark.parametrize("protocol", sorted(LISTENING))


@contextmanager
def collecting(protocol: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment names."""
    collector = Collector()
    with LISTENING[protocol](collector) as port:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        yield collector


def tracing(metrics: Metrics) -> Tracing:
    return Tracing(exports_of(Signal.TRACES, metrics.health), RESOURCE, 1.0)


def failures(metrics: Metrics, signal: Signal) -> float:
    return scraped(metrics)[series_of("pubsub_prober_otlp_export_failures_total", {"signal": signal})]


def scraped(metrics: Metrics) -> dict[Series, float]:
    """What a scrape gets."""
    metrics.look()
    page = metrics.render("text/plain; version=0.0.4").decode()
    found = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    numbers = [{**one.labels, "le": str(float(one.labels["le"]))} if "le" in one.labels else one.labels for one in found]
    return {series_of(one.name, labels): one.value for one, labels in zip(found, numbers, strict=True)}


def comparable(samples: dict[Series, float]) -> dict[Series, float | None]:
    """Values that can be compared: none for what varies and for what is not a number."""
    return {series: None if isnan(value) or VARYING.match(series[0]) else value for series, value in samples.items()}


def counted() -> Metrics:
    """Metrics of every kind, in more series than fit into one message."""
    config = load(None, {})
    metrics = Metrics(config.objectives, "1.2.3", ["test"])
    target = metrics.watch(config.targets[0], ["t"], ["s"], lambda: {"s": Backlog(2.5, 3, 1)})
    for number in range(60):
        target.subscription(f"s{number}").count(families.FINDINGS, Kind.ORDER_GAP, Status.VIOLATION, by=number)
    for seconds in (0.003, 0.04, 3.0, 1000.0):
        target.subscription("s").took(families.END_TO_END_LATENCY, seconds, exemplar=exemplar_of("run-7"))
    return metrics


async def exported(metrics: Metrics) -> None:
    """Export once, at the end."""
    async with metrics_export(RESOURCE, metrics):
        pass


@EVERY_PROTOCOL
def test_every_family_arrives_as_a_scrape_shows_it(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = counted()
    with collecting(protocol, monkeypatch) as collector:
        asyncio.run(exported(metrics))
    expected = comparable(scraped(metrics))
    assert len(collector.metrics) > 1
    assert comparable(collector.samples()) == expected
    assert {name for name, _ in expected} >= {"pubsub_prober_build_info", "process_cpu_seconds_total", "python_info"}


@EVERY_PROTOCOL
def test_metrics_have_types_times_exemplars_and_a_resource(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = wall_s()
    with collecting(protocol, monkeypatch) as collector:
        asyncio.run(exported(counted()))
    of_name = {metric.name: metric for metric in collector.families}
    publishes, latency = of_name["pubsub_prober_publishes_total"], of_name["pubsub_prober_end_to_end_latency_seconds"]
    assert (publishes.sum.is_monotonic, publishes.sum.aggregation_temporality, publishes.unit) == (True, 2, "")
    (point,) = [point for point in latency.histogram.data_points if point.count]
    assert before <= point.start_time_unix_nano / 1e9 <= point.time_unix_nano / 1e9 <= wall_s()
    assert (latency.histogram.aggregation_temporality, point.HasField("min")) == (2, False)
    context = span_context_of("run-7")
    assert {exemplar.trace_id.hex() for exemplar in point.exemplars} == {trace_id_of("run-7")}
    assert {int.from_bytes(exemplar.span_id) for exemplar in point.exemplars} == {context.span_id}
    assert of_name["pubsub_prober_stalled_keys"].HasField("gauge")
    assert of_name["pubsub_prober_build_info"].HasField("gauge")
    attributes = {item.key: item.value.string_value for item in collector.metrics[0].resource_metrics[0].resource.attributes}
    assert (attributes["service.instance.id"], attributes["service.version"]) == ("here", "1.2.3")


@EVERY_PROTOCOL
def test_a_trace_arrives(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=probers")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with collecting(protocol, monkeypatch) as collector:
        traced = tracing(Metrics())
        began_t = monotonic_s()
        events = [replace(event, t=event.t + began_t) for event in history("P1@1 ok1=m1@1.1 A<1@2 A ack 1@3 end @4")]
        traced.record(RESULT, events)
        traced.shutdown()
    by_name = {span.name: span for span in collector.spans}
    root, publish, process = by_name["run ordering"], by_name["publish"], by_name["process"]
    assert len(collector.spans) == 3
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id_of("ordering-1")}
    assert (root.parent_span_id, publish.parent_span_id, process.parent_span_id) == (b"", root.span_id, root.span_id)
    assert [link.span_id for link in process.links] == [publish.span_id]
    assert (root.status.code, root.status.message) == (2, "ORDER_GAP")
    assert 1.9 < (process.start_time_unix_nano - root.start_time_unix_nano) / 1e9 <= 10.0
    (resource,) = [spans.resource for request in collector.traces for spans in request.resource_spans]
    assert {item.key: item.value.string_value for item in resource.attributes}["service.version"] == "1.2.3"
    assert collector.headers["x-tenant"] == "probers"


def test_a_full_trace_arrives(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting("grpc", monkeypatch) as collector:
        traced = tracing(Metrics())
        for number in range(3):
            traced.record(replace(RESULT, run_id=str(number)), history(" ".join(f"P{seq}@{seq}" for seq in range(1, 1500))))
        traced.shutdown()
    assert len(collector.spans) == 3 * 1001
    assert caplog.messages == []


@EVERY_PROTOCOL
def test_metrics_are_exported_at_the_interval(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")

    async def until_the_second() -> None:
        async with metrics_export(RESOURCE, Metrics()), asyncio.timeout(PATIENCE_S):
            while len(collector.metrics) < 2:
                await asyncio.sleep(0.01)

    with collecting(protocol, monkeypatch) as collector:
        asyncio.run(until_the_second())


@EVERY_PROTOCOL
def test_a_collector_that_is_not_there_is_logged_once_and_counted(
    protocol: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # time for another attempt, which is not to be logged
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    metrics = Metrics()
    traced = tracing(metrics)
    for number in range(600):
        traced.record(replace(RESULT, run_id=str(number)), [])
    traced.shutdown()
    asyncio.run(exported(metrics))
    assert len(caplog.messages) == 2
    for signal, message in zip(Signal, caplog.messages, strict=True):
        assert message.startswith(f"OpenTelemetry {signal} cannot be exported and are lost: Transient error ")
        assert failures(metrics, signal) == 1


@EVERY_PROTOCOL
def test_a_collector_that_does_not_answer_is_not_asked_again_at_the_end(
    protocol: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    metrics = Metrics()
    with collecting(protocol, monkeypatch) as collector:
        collector.answers.clear()
        traced = tracing(metrics)
        for number in range(600):
            traced.record(replace(RESULT, run_id=str(number)), [])
        traced.shutdown()
        assert failures(metrics, Signal.TRACES) == 1
    assert len(caplog.messages) == 1


@EVERY_PROTOCOL
def test_the_service_exports_both_signals(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    variables = {
        "ORDERING_PROBER_TARGETS__0__NAME": "here",
        "ORDERING_PROBER_TARGETS__0__PROBES": "[ordering]",
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db",
    }

    async def until_traced() -> None:
        async with Service(load(None, variables), variables, "1.2.3"), asyncio.timeout(PATIENCE_S):
            while not collector.traces or not collector.metrics:
                await asyncio.sleep(0.05)

    with collecting(protocol, monkeypatch) as collector:
        asyncio.run(until_traced())
    runs = series_of("pubsub_prober_probe_runs_total", {})[0]
    assert sum(value for (name, _), value in collector.samples().items() if name == runs) >= 1
    assert "run ordering" in {span.name for span in collector.spans}


def test_a_wrong_variable_ends_the_service_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1m")
    with pytest.raises(ConfigError, match=r"^OTEL_METRIC_EXPORT_INTERVAL must be a number of milliseconds above 0, not '1m'$"):
        Service(load(None, {}), {}, "1.2.3")
