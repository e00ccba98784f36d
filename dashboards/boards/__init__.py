"""All dashboards, made from objectives: one module each, whose `board` makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dashboards.board import Board, LinkTargets, dashboard_json
from dashboards.boards import control_plane, jobs, keys, latency, ordering, overview, prober, publisher
from dashboards.thresholds import Thresholds
from prober.slo.objectives import Objective

BOARDS: Final = (overview, ordering, latency, keys, publisher, control_plane, prober, jobs)
UID_PREFIX: Final = "okp-"


def boards(objectives: Iterable[Objective]) -> tuple[Board, ...]:
    """Every dashboard."""
    thresholds = Thresholds.of(objectives)
    return tuple(one.board(thresholds) for one in BOARDS)


def files(objectives: Iterable[Objective], places: LinkTargets) -> dict[str, str]:
    """Every dashboard's file: name to content. The same input gives the same text."""
    return {f"{board.uid.removeprefix(UID_PREFIX)}.json": dashboard_json(board, places) for board in boards(objectives)}
