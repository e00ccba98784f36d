"""A collector that fails is told once per change, and not tried again at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from prober.config.sections import Telemetry
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.tracing.spans import EXPORTER, Tracing

RESULT = RunResult("ordering-1", "ordering", "local", "wire", Verdict.FAIL, "ORDER_GAP", started_at=0.0, duration_s=1.0)


class Failing(SpanExporter):
    """An exporter that fails as long as it is told to."""

    def __init__(self, ways: Sequence[str]) -> None:
        self.ways = list(ways)
        self.tries = 0
        self.received = 0
        self.closed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.tries += 1
        way = self.ways.pop(0) if self.ways else "received"
        if way == "raises":
            raise ZeroDivisionError
        if way == "fails":
            logging.getLogger(EXPORTER).warning("again in 1 s")
            logging.getLogger(EXPORTER).error("nobody there")
            return SpanExportResult.FAILURE
        self.received += len(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.closed += 1


def tell_each(exporter: Failing, runs: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Tells runs one by one, and returns what was logged."""
    traced = Tracing(Telemetry(), "1", exporter)
    for _ in range(runs):
        traced.told(RESULT, [])
        assert traced._provider.force_flush()
    traced.shutdown()
    return [record.getMessage() for record in caplog.records]


def test_a_collector_that_fails_is_told_once_per_change(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Failing(["received", "fails", "fails", "fails", "received", "fails"])
    assert tell_each(exporter, 6, caplog) == [
        "nobody there",
        "traces cannot be exported and are lost",
        "traces are exported again; lost spans: 3",
        "nobody there",
        "traces cannot be exported and are lost",
        "traces could not be exported to the end; lost spans: 1",
    ]


def test_an_exporter_that_raises_is_told_once_too(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Failing(["raises", "raises"])
    assert tell_each(exporter, 3, caplog) == [
        "traces cannot be exported and are lost",
        "traces are exported again; lost spans: 2",
    ]
    assert "ZeroDivisionError" in caplog.text
    assert (exporter.received, exporter.closed) == (1, 1)


def test_at_the_end_a_dead_collector_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Failing(["fails"] * 10)
    traced = Tracing(Telemetry(), "1", exporter)
    traced.told(RESULT, [])
    assert traced._provider.force_flush()
    assert exporter.tries == 1
    traced.told(RESULT, [])
    traced.shutdown()
    assert (exporter.tries, exporter.closed) == (1, 2), "closed at once, to end what it is doing, and at the end"
    assert caplog.messages[-1] == "traces could not be exported to the end; lost spans: 2"
