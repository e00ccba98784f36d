"""Steps that repeat with the next message, as one row each: `publish 61-80 x20`. Rows that matter to the finding stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from prober.evidence.diagram.columns import Bar
from prober.evidence.diagram.rows import Arrow, Diagram, Mark, Row, Sort

TIMES_MIN: Final = 4
"""Fewer repetitions keep their rows."""
PERIOD_MAX: Final = 4
"""At most so many steps repeat by turns, such as a publish and its confirmation."""
_NUMBERED: Final = re.compile(r"(?P<before>|.*:)(?P<number>\d+)(?P<behind>'*)", re.ASCII)


def collapsed(diagram: Diagram) -> Diagram:
    """The same diagram with one row for each step that is repeated; bars move along."""
    rows: list[Row] = []
    places: list[int] = []
    index = 0
    while index < len(diagram.rows):
        period, times = _repetition(diagram.rows, index)
        places += [len(rows) + step % period for step in range(period * times)]
        end = index + period * times
        rows += [_as_one(diagram.rows[first:end:period]) for first in range(index, index + period)]
        index = end
    bars = dict.fromkeys(Bar(bar.column, *sorted((places[bar.first], places[bar.last]))) for bar in diagram.bars)
    return replace(diagram, rows=tuple(rows), bars=tuple(bars))


def _repetition(rows: Sequence[Row], index: int) -> tuple[int, int]:
    """How many steps repeat from a row on, and how often they occur; (1, 1): that row stands alone."""
    for period in range(1, PERIOD_MAX + 1):
        end = index + period
        while end < len(rows) and _follows(rows[end], rows[end - period]):
            end += 1
        times = (end - index) // period
        if times >= TIMES_MIN:
            return period, times
    return 1, 1


def _follows(row: Row, before: Row) -> bool:
    """Whether a row is the same step with the next message."""
    if row.mark is not Mark.NONE or before.mark is not Mark.NONE or not row.number or not before.number:
        return False
    match row.shape, before.shape:
        case Arrow() as arrow, Arrow() as earlier:
            return _step(arrow) == _step(earlier) and arrow.message == _next(earlier.message)
    return False


def _step(arrow: Arrow) -> Arrow:
    """The arrow without what differs from message to message: the id in a reply does, elsewhere an id tells two records apart."""
    return replace(arrow, message="", record="" if arrow.sort is Sort.REPLY else arrow.record)


def _next(message: str) -> str | None:
    found = _NUMBERED.fullmatch(message)
    return None if found is None else f"{found['before']}{int(found['number']) + 1}{found['behind']}"


def _as_one(rows: Sequence[Row]) -> Row:
    first, last = rows[0].shape, rows[-1].shape
    if len(rows) == 1 or not isinstance(first, Arrow) or not isinstance(last, Arrow):
        return rows[0]
    shape = replace(_step(first), message=f"{first.message}-{last.message}", details=(f"x{len(rows)}", *first.details))
    return replace(rows[0], shape=shape, events=len(rows))
