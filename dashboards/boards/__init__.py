"""All dashboards, made from objectives: each module contains the dashboard, or the two dashboards, of one subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dashboards.board import Board, LinkTargets, dashboard_json
from dashboards.boards.durations import control_plane_board, latency_board
from dashboards.boards.jobs import jobs_board
from dashboards.boards.keys import keys_board
from dashboards.boards.ordering import ordering_board
from dashboards.boards.overview import overview_board
from dashboards.boards.prober import prober_board
from dashboards.boards.publisher import publisher_board
from dashboards.thresholds import Thresholds
from prober.slo.objectives import Objective

BOARDS: Final[tuple[Callable[[Thresholds], Board], ...]] = (
    overview_board,
    ordering_board,
    latency_board,
    keys_board,
    publisher_board,
    control_plane_board,
    prober_board,
    jobs_board,
)
UID_PREFIX: Final = "okp-"


def boards(objectives: Iterable[Objective]) -> tuple[Board, ...]:
    """Return all dashboards."""
    thresholds = Thresholds(tuple(objectives))
    return tuple(board(thresholds) for board in BOARDS)


def files(objectives: Iterable[Objective], places: LinkTargets) -> dict[str, str]:
    """Return the files of all dashboards: name to content. The same input returns the same text."""
    return {f"{board.uid.removeprefix(UID_PREFIX)}.json": dashboard_json(board, places) for board in boards(objectives)}
