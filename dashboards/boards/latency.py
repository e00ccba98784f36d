"""Latency: how long things take, how that is distributed, and which run was slow."""

from __future__ import annotations

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import CONTROL_PLANE, END_TO_END, HEAD_OF_LINE, PUBLISH, REDELIVERY, duration_panels
from dashboards.thresholds import Thresholds


def board(thresholds: Thresholds) -> Board:
    """The dashboard."""
    return Board(
        "okp-latency",
        "Ordering keys / Latency",
        "How long things take, from the time at which they were to begin: a prober that is held up hides nothing.",
        tuple(
            PanelRow(durations.name, duration_panels(durations, thresholds))
            for durations in (END_TO_END, PUBLISH, REDELIVERY, HEAD_OF_LINE, CONTROL_PLANE)
        ),
        by=("target", "region", "environment", "instance"),
    )
