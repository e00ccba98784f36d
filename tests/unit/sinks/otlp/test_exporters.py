"""The standard environment variables select exporters; failed exports are logged once per change, and counted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcTraces
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpTraces
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExportResult
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExportResult

from prober.errors import ConfigError
from prober.sinks.metrics.label_values import Signal
from prober.sinks.otlp.exporters import LOGGERS, Exports, export_interval_s, exporter_of, sampled_share

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
HTTP = {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def given(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def chosen(signal: Signal) -> type | None:
    exporter = exporter_of(signal)
    if exporter is None:
        return None
    exporter.shutdown()
    return type(exporter)


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, None, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None, None),
        (ENDPOINT, GrpcTraces, GrpcMetrics),
        (HTTP, HttpTraces, HttpMetrics),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf"}, GrpcTraces, HttpMetrics),
        ({**HTTP, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, GrpcTraces, HttpMetrics),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, GrpcTraces, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, GrpcTraces, None),
        ({**ENDPOINT, "OTEL_METRICS_EXPORTER": "none"}, GrpcTraces, None),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}, ConsoleSpanExporter, ConsoleMetricExporter),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, None, None),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "false"}, GrpcTraces, GrpcMetrics),
    ],
)
def test_the_environment_selects_exporters(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], traces: type | None, metrics: type | None
) -> None:
    given(monkeypatch, variables)
    assert (chosen(Signal.TRACES), chosen(Signal.METRICS)) == (traces, metrics)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER must be otlp, console, none, not 'zipkin'"),
        (
            {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL must be grpc, http/protobuf, not 'http/json'",
        ),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4317"},
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must begin with http:// or https://",
        ),
        (
            {**ENDPOINT, "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
            "the variables OTEL_* make no exporter of traces: could not convert string to float: 'soon'",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none.pem"},
            "the variables OTEL_* make no exporter of traces: "
            "Failed to read file: /none.pem. Please check if the file exists and is accessible.",
        ),
    ],
)
def test_a_wrong_value_is_one_line(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str) -> None:
    given(monkeypatch, variables)
    with pytest.raises(ConfigError) as refused:
        exporter_of(Signal.TRACES)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("sampler", "argument", "share"),
    [
        ("", "", 0.1),
        ("always_on", "", 1.0),
        ("parentbased_always_off", "", 0.0),
        ("traceidratio", "", 1.0),
        ("parentbased_traceidratio", "0.25", 0.25),
    ],
)
def test_the_sampler_is_the_share_of_passed_runs(
    monkeypatch: pytest.MonkeyPatch, sampler: str, argument: str, share: float
) -> None:
    given(monkeypatch, {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument})
    assert sampled_share(0.1) == share


def test_wrong_samplers_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"})
    with pytest.raises(ConfigError, match=r"^OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1, not '10%'$"):
        sampled_share(0.1)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "jaeger_remote")
    with pytest.raises(ConfigError, match=r"^OTEL_TRACES_SAMPLER must be always_on, .*, not 'jaeger_remote'$"):
        sampled_share(0.1)


def test_the_interval_is_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert export_interval_s() == 60.0
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "2500")
    assert export_interval_s() == 2.5
    for wrong in ("0", "-1", "5s", "inf"):
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", wrong)
        with pytest.raises(ConfigError, match=rf"milliseconds above 0, not '{wrong}'$"):
            export_interval_s()


class Failing:
    """An exporter that fails in the given ways, one after the other, and then succeeds."""

    def __init__(self, ways: Sequence[str]) -> None:
        self.ways = list(ways)
        self.tries = self.closed = 0

    def export(self, data: Any) -> SpanExportResult | MetricExportResult:
        self.tries += 1
        way = self.ways.pop(0) if self.ways else "succeeds"
        if way == "raises":
            raise ZeroDivisionError("mistake")
        if way == "fails":
            logging.getLogger(LOGGERS[0]).warning("refused, again in 1 s")
            logging.getLogger(LOGGERS[0]).error("refused for good")
            return SpanExportResult.FAILURE
        return MetricExportResult.SUCCESS

    def shutdown(self) -> None:
        self.closed += 1


def test_failures_are_logged_once_per_change_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[None] = []
    exports = Exports(Signal.TRACES, Failing(["", "fails", "fails", "raises", "", "raises"]), lambda: failures.append(None))
    assert [exports.export([]) for _ in range(6)] == [True, False, False, False, True, False]
    assert caplog.messages == [
        "OpenTelemetry traces cannot be exported and are lost: refused, again in 1 s",
        "OpenTelemetry traces are exported again; failed exports: 3",
        "OpenTelemetry traces cannot be exported and are lost: ZeroDivisionError('mistake')",
    ]
    assert len(failures) == 4


def test_at_the_end_a_dead_collector_is_not_tried_again() -> None:
    exporter = Failing(["fails", "fails"])
    exports = Exports(Signal.METRICS, exporter, lambda: None)
    exports.export([])
    exports.hurry()
    assert exporter.closed == 1, "which ends what it is doing"
    assert not exports.export([])
    assert exporter.tries == 1


def test_at_the_end_a_live_collector_gets_the_rest() -> None:
    exporter = Failing([])
    exports = Exports(Signal.METRICS, exporter, pytest.fail)
    exports.hurry()
    assert exports.export([])
    assert (exporter.tries, exporter.closed) == (1, 0)
