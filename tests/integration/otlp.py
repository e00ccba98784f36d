"""An OTLP collector in this process, over gRPC or HTTP, with the services of the protocol's own package."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Series = tuple[str, frozenset[tuple[str, str]]]


@dataclass
class Collector:
    """The requests that arrived, and the headers of the last one. It answers while `answers` is set."""

    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    answers: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    def take(self, request: Any, headers: Mapping[str, str]) -> None:
        """Keep a request; return when the collector answers."""
        kept: list[Any] = self.traces if isinstance(request, ExportTraceServiceRequest) else self.metrics
        kept.append(request)
        self.headers = dict(headers)
        self.arrived.set()
        self.answers.wait(30.0)

    @property
    def spans(self) -> list[Span]:
        """The spans of all requests."""
        resources = [resource for request in self.traces for resource in request.resource_spans]
        return [span for resource in resources for scope in resource.scope_spans for span in scope.spans]

    @property
    def families(self) -> list[Metric]:
        """The metrics of all requests; one that was split among requests is there several times."""
        resources = [resource for request in self.metrics for resource in request.resource_metrics]
        return [metric for resource in resources for scope in resource.scope_metrics for metric in scope.metrics]

    def samples(self) -> dict[Series, float]:
        """The values of all metrics by the names and labels that Prometheus gives them."""
        found: dict[Series, float] = {}
        for metric in self.families:
            if metric.HasField("histogram"):
                for point in metric.histogram.data_points:
                    labels = {item.key: item.value.string_value for item in point.attributes}
                    bounds = [*point.explicit_bounds, float("inf")]
                    for bound, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
                        found[series_of(f"{metric.name}_bucket", {**labels, "le": str(bound)})] = count
                    found[series_of(f"{metric.name}_count", labels)] = point.count
                    found[series_of(f"{metric.name}_sum", labels)] = point.sum
            else:
                for value in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
                    labels = {item.key: item.value.string_value for item in value.attributes}
                    found[series_of(metric.name, labels)] = value.as_double
        return found


def series_of(name: str, labels: Mapping[str, str]) -> Series:
    """A series by its name and labels."""
    return name, frozenset(labels.items())


class _Traces(TraceServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:  # noqa: N802
        self._collector.take(request, {str(key): str(value) for key, value in context.invocation_metadata()})
        return ExportTraceServiceResponse()


class _Metrics(MetricsServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def Export(self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext) -> ExportMetricsServiceResponse:  # noqa: N802
        self._collector.take(request, {str(key): str(value) for key, value in context.invocation_metadata()})
        return ExportMetricsServiceResponse()


@contextmanager
def listening_grpc(collector: Collector) -> Iterator[int]:
    """The collector on loopback; its port. It accepts 4 MB a message, as gRPC servers do by default."""
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(_Traces(collector), server)  # type: ignore[no-untyped-call]
    add_MetricsServiceServicer_to_server(_Metrics(collector), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        collector.answers.set()
        server.stop(None).wait()


@contextmanager
def listening_http(collector: Collector) -> Iterator[int]:
    """The collector on loopback; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kinds: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
            collector.take(kinds[self.path].FromString(body), {name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield server.server_port
    finally:
        collector.answers.set()
        server.shutdown()
        serving.join()
        server.server_close()


LISTENING = {"grpc": listening_grpc, "http/protobuf": listening_http}
"""How to listen, by the value of OTEL_EXPORTER_OTLP_PROTOCOL."""
