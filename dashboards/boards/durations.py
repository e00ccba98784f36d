"""Durations: the dashboards of latency (distributions, slow runs) and of the control plane (durations of administrative calls, failed calls
of all kinds).
"""

from __future__ import annotations

from typing import Final

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import (
    CONTROL_PLANE,
    CREATION_TO_RECEIPT,
    END_TO_END,
    HEAD_OF_LINE,
    PUBLISH,
    PULL,
    PUSH,
    REDELIVERY,
    duration_panels,
)
from dashboards.panels import COUNT, PER_SECOND, SECONDS, Look, Panel, TableColumn, Words, graph_panel, table_panel
from dashboards.queries import RANGE, Query, increase, increase_of, quantile, rate, select
from dashboards.thresholds import Thresholds
from prober.alerting.promql import aggregate
from prober.alerting.rules import Dashboard
from prober.sinks.metrics import families
from prober.sinks.metrics.scopes import TARGET
from prober.slo.indicators import Indicator

REFUSED: Final = ("PubsubProberNotPermitted", "PubsubProberQuotaExceeded")
FAILED: Final = "Calls of any kind to a target that ended with an error, repetitions of the client library included"


def latency_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of latency."""
    return Board(
        Dashboard.LATENCY,
        "Ordering keys / Latency",
        "How long things take, from the time at which they were to begin: a prober that is held up hides nothing.",
        tuple(
            PanelRow(durations.name, duration_panels(durations, thresholds))
            for durations in (END_TO_END, PULL, PUSH, PUBLISH, REDELIVERY, HEAD_OF_LINE, CONTROL_PLANE, CREATION_TO_RECEIPT)
        ),
        by=("target", "region", "environment", "instance"),
    )


def control_plane_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of the control plane."""
    return Board(
        Dashboard.CONTROL_PLANE,
        "Ordering keys / Control plane",
        "How long administration calls take: topics and subscriptions created, listed, deleted, seeks. And which calls of any kind fail.",
        (
            PanelRow("Calls", (_calls(), _by_operation(thresholds))),
            PanelRow("Errors", (_errors(), _errors_by_code())),
            PanelRow("Durations", duration_panels(CONTROL_PLANE, thresholds)),
            PanelRow("By operation", (_operations(thresholds),)),
        ),
        by=("operation", "target", "region", "environment", "instance"),
    )


def _calls() -> Panel:
    words = Words(
        "Calls by operation",
        "Administration calls that came back, per second. Most are those of the probe control_plane.",
    )
    calls = aggregate(rate(select(families.CONTROL_PLANE_LATENCY, "_count")), "operation")
    return graph_panel(words, Look(PER_SECOND, bars=True), calls)


def _by_operation(thresholds: Thresholds) -> Panel:
    words = Words("99 % latency by operation", "99 % of the calls took at most this long, by operation.")
    look = Look(SECONDS, thresholds.duration(Indicator.CONTROL_PLANE_LATENCY))
    return graph_panel(words, look, quantile(0.99, families.CONTROL_PLANE_LATENCY, "operation"))


def _errors() -> Panel:
    words = Words(
        "Errors of calls, by what they are for",
        f"{FAILED}, by what they are for. Calls that the prober ends itself do not count.",
        REFUSED,
    )
    return graph_panel(words, Look(COUNT, bars=True), Query(_failed("operation"), "{{operation}}"))


def _errors_by_code() -> Panel:
    words = Words(
        "Errors of calls, by code", f"{FAILED}, by gRPC status code. Empty: none did, if the panel on the left says 0.", REFUSED
    )
    return graph_panel(words, Look(COUNT, bars=True), Query(f"{_failed('code')} > 0", "{{code}}"))


def _failed(by: str) -> str:
    return increase_of(families.TARGET_ERRORS, by)


def _operations(thresholds: Thresholds) -> Panel:
    words = Words(
        "Operations",
        "Calls in the time range that succeeded, and how long they took; and how many failed, or could not be made, since the target did "
        "not answer or answered with an error of its own.",
    )
    by = ("operation", *TARGET)
    buckets = aggregate(increase(select(families.CONTROL_PLANE_LATENCY, "_bucket"), RANGE), ("le", *by))
    steps = thresholds.duration(Indicator.CONTROL_PLANE_LATENCY)
    columns = [
        TableColumn("Calls", aggregate(increase(select(families.CONTROL_PLANE_LATENCY, "_count"), RANGE), by), COUNT),
        TableColumn("Failed", increase_of(families.CONTROL_PLANE_FAILURES, by, RANGE), COUNT),
        *(TableColumn(f"{at:.0%}", f"histogram_quantile({at:g}, {buckets})", SECONDS, steps) for at in (0.5, 0.95, 0.99)),
    ]
    return table_panel(words, Look(COUNT, width=24, height=8), by, columns)
