"""Control plane: how long do administration calls take?"""

from __future__ import annotations

from dashboards.board import Board, Row
from dashboards.boards.subjects import CONTROL_PLANE, duration_panels
from dashboards.limits import Limits
from dashboards.panels import COUNT, PER_SECOND, SECONDS, Column, Look, Panel, Words, graph, rows
from dashboards.promql import RANGE, Query, increase, quantile, rate, select, total
from prober.sinks.metrics import families
from prober.slo.indicators import Indicator


def board(limits: Limits) -> Board:
    """The dashboard."""
    return Board(
        "okp-control-plane",
        "Ordering keys / Control plane",
        "How long administration calls take: topics and subscriptions created, listed, deleted, seeks.",
        (
            Row("Calls", (_calls(), _by_operation(limits))),
            Row("Durations", duration_panels(CONTROL_PLANE, limits)),
            Row("By operation", (_operations(limits),)),
        ),
        by=("operation", "target", "region", "environment", "instance"),
    )


def _calls() -> Panel:
    words = Words(
        "Calls by operation",
        "Administration calls that came back, a second. Topics and subscriptions are made when a prober starts and every few hours.",
    )
    calls = total(rate(select(families.CONTROL_PLANE_LATENCY, "_count")), "operation")
    return graph(words, Look(PER_SECOND, bars=True), Query(calls))


def _by_operation(limits: Limits) -> Panel:
    words = Words("99 % by operation", "The 99 % quantile of the duration, by operation.")
    look = Look(SECONDS, limits.duration(Indicator.CONTROL_PLANE_LATENCY))
    return graph(words, look, Query(quantile(0.99, families.CONTROL_PLANE_LATENCY, "operation")))


def _operations(limits: Limits) -> Panel:
    words = Words("Operations", "Calls in the time range, and how long they took.")
    by = "environment, region, target, operation"
    buckets = total(increase(select(families.CONTROL_PLANE_LATENCY, "_bucket"), RANGE), f"le, {by}")
    steps = limits.duration(Indicator.CONTROL_PLANE_LATENCY)
    columns = [
        Column("Calls", total(increase(select(families.CONTROL_PLANE_LATENCY, "_count"), RANGE), by), COUNT),
        *(Column(f"{at:.0%}", f"histogram_quantile({at:g}, {buckets})", SECONDS, steps) for at in (0.5, 0.95, 0.99)),
    ]
    headings = {"operation": "Operation", "target": "Target", "environment": "Environment", "region": "Region"}
    return rows(words, Look(COUNT, width=24, height=8), headings, columns)
