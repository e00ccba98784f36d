"""Traces reach a collector over OTLP/gRPC; one that is not there, or does not answer, is told once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from prober.clock import monotonic_s, wall_s
from prober.config.sections import Telemetry
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.tracing.spans import Tracing, trace_id_of
from tests.notation import history

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
LOST_TO_THE_END = ["traces cannot be exported and are lost", "traces could not be exported to the end; lost spans: 600"]


class Collector(TraceServiceServicer):
    """Keeps what it is sent, and answers once it may."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: dict[str, str] = {}
        self.answers = threading.Event()
        self.answers.set()

    def Export(  # noqa: N802  # the name in the protocol
        self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        self.requests.append(request)
        self.headers = {str(key): str(value) for key, value in context.invocation_metadata()}
        self.answers.wait(30.0)
        return ExportTraceServiceResponse()

    @property
    def spans(self) -> list[Span]:
        resources = [resource for request in self.requests for resource in request.resource_spans]
        return [span for resource in resources for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def listening(collector: Collector, port: int = 0) -> Iterator[int]:
    """A collector on loopback; its port."""
    server = grpc.server(ThreadPoolExecutor(1))
    add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield port
    finally:
        collector.answers.set()
        server.stop(None).wait()


def telemetry(port: int) -> Telemetry:
    return Telemetry.model_validate({"otlp_endpoint": f"http://127.0.0.1:{port}"})


def test_a_trace_reaches_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=probers")
    collector = Collector()
    with listening(collector) as port:
        tracing = Tracing(telemetry(port), "1.2.3")
        began_t = monotonic_s()
        events = [replace(event, t=event.t + began_t) for event in history("P1@1 ok1=m1@1.1 A<1@2 A ack 1@3 end @4")]
        tracing.told(RESULT, events)
        tracing.shutdown()
    by_name = {span.name: span for span in collector.spans}
    root, publish, process = by_name["run ordering"], by_name["publish"], by_name["process"]
    assert len(collector.spans) == 3
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id_of("ordering-1")}
    assert (root.parent_span_id, publish.parent_span_id, process.parent_span_id) == (b"", root.span_id, root.span_id)
    assert [link.span_id for link in process.links] == [publish.span_id]
    assert (root.status.code, root.status.message) == (2, "ORDER_GAP")
    assert 1.9 < (process.start_time_unix_nano - root.start_time_unix_nano) / 1e9 <= 10.0
    (resource,) = [spans.resource for request in collector.requests for spans in request.resource_spans]
    assert {item.key: item.value.string_value for item in resource.attributes}["service.version"] == "1.2.3"
    assert collector.headers["x-tenant"] == "probers"


def test_a_full_trace_is_received(caplog: pytest.LogCaptureFixture) -> None:
    collector = Collector()
    with listening(collector) as port:
        tracing = Tracing(telemetry(port), "1.2.3")
        for number in range(3):
            tracing.told(replace(RESULT, run_id=str(number)), history(" ".join(f"P{seq}@{seq}" for seq in range(1, 1500))))
        tracing.shutdown()
    assert len(collector.spans) == 3 * 1001
    assert caplog.messages == []


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "prober.sinks.tracing.spans"]


def test_a_collector_that_is_not_there_is_told_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # time for another try, which is not to be told
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    tracing = Tracing(telemetry(port), "1.2.3")
    for number in range(600):
        tracing.told(replace(RESULT, run_id=str(number)), [])
    tracing.shutdown()
    assert [record.levelname for record in caplog.records if record.name != "prober.sinks.tracing.spans"] == ["ERROR"]
    assert f"Failed to export traces to 127.0.0.1:{port}, error code: StatusCode.UNAVAILABLE" in caplog.text
    assert said(caplog) == LOST_TO_THE_END


def test_a_collector_that_does_not_answer_is_not_asked_again_at_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    collector = Collector()
    collector.answers.clear()
    with listening(collector) as port:
        tracing = Tracing(telemetry(port), "1.2.3")
        for number in range(600):
            tracing.told(replace(RESULT, run_id=str(number)), [])
        tracing.shutdown()
        assert len(collector.requests) == 1
    assert said(caplog) == LOST_TO_THE_END
