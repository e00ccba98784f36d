"""A stand-in for Cloud Monitoring that answers `ListTimeSeries` over gRPC in the form of its API, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import grpc
from google.cloud.monitoring_v3 import ListTimeSeriesRequest, ListTimeSeriesResponse

from prober.clock import wall_s

METHOD: Final = "/google.monitoring.v3.MetricService/ListTimeSeries"
AGE, UNDELIVERED, ACKED, EXPIRED = (
    "oldest_unacked_message_age",
    "num_undelivered_messages",
    "ack_message_count",
    "expired_ack_deadlines_count",
)


@dataclass(slots=True)
class Recorded:
    """What is answered: by metric and subscription the values of minutes, newest first; None is a minute without a point.

    `newest_s`: so old is the newest point. `refusal`: what every request ends with instead.
    """

    values: dict[tuple[str, str], Sequence[int | None]] = field(default_factory=dict)
    newest_s: float = 120.0
    refusal: grpc.StatusCode | None = None
    asked: list[str] = field(default_factory=list)

    def answer(self, request: ListTimeSeriesRequest) -> dict[str, Any]:
        """The body, as JSON has it."""
        self.asked.append(request.filter)
        found = [
            self._series(metric, subscription, values)
            for (metric, subscription), values in self.values.items()
            if f'subscription/{metric}"' in request.filter and f'"{subscription}"' in request.filter
        ]
        return {"timeSeries": found}

    def _series(self, metric: str, subscription: str, values: Sequence[int | None]) -> dict[str, Any]:
        newest = wall_s() - self.newest_s
        return {
            "metric": {"type": f"pubsub.googleapis.com/subscription/{metric}"},
            "resource": {"type": "pubsub_subscription", "labels": {"project_id": "p", "subscription_id": subscription}},
            "metricKind": "GAUGE",
            "valueType": "INT64",
            "points": [
                {"interval": {"endTime": _rfc3339(newest - 60 * at)}, "value": {"int64Value": str(value)}}
                for at, value in enumerate(values)
                if value is not None
            ],
        }


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


@contextmanager
def cloud_monitoring(recorded: Recorded) -> Iterator[str]:
    """Serves what is recorded; the address."""

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        if recorded.refusal is not None:
            context.abort(recorded.refusal, "not for you")
        body = json.dumps(recorded.answer(ListTimeSeriesRequest.deserialize(request)))
        return bytes(ListTimeSeriesResponse.serialize(ListTimeSeriesResponse.from_json(body)))

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
            return grpc.unary_unary_rpc_method_handler(answer) if details.method == METHOD else None

    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((Handler(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()
