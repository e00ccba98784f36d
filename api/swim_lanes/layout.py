"""Positions in a diagram: its sheet, its columns and its rows. Sizes are in pixels.

There are two sheets. The wide one is for a window of 1280 pixels, with the words beside the arrows. The narrow one is for a phone, with the
words above the arrows, so that arrows may be short, and with fewer columns of subscribers. No letter is smaller than 11 pixels on either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from api.swim_lanes.lettering import BOLD, clean, wrapped
from prober.evidence.diagram.rows import Arrow, Banner, Mark, Pause, Row

LETTER: Final = 13.0
SMALL: Final = 12.0
LINE: Final = 18.0
PAUSE: Final = 34.0
NOTE: Final = 30.0
"""Height of a row with one line."""
LINES_MAX: Final = 3
ICON: Final = 30.0
"""Distance from the edge of the frame around a fault to the reason in it; the icon is in between."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Sheet of a diagram. `width`: maximum width. `before` and `after`: from the times to the first column, and after the last one.

    marks         width of words on the right, such as "evidence"; 0: only a dot.
    gap_max       maximum distance of columns; with few columns the diagram is narrower than the sheet.
    is_stacked    words of an arrow are above it, and names of columns alternate between two levels.
    """

    width: float
    margin: float
    gutter: float
    before: float
    after: float
    marks: float
    row: float
    head: float
    gap_max: float
    subscribers_max: int
    is_stacked: bool = False


WIDE: Final = Sheet(1166.0, 16.0, 74.0, 50.0, 66.0, 110.0, NOTE, 52.0, 212.0, subscribers_max=6)
NARROW: Final = Sheet(326.0, 8.0, 52.0, 30.0, 14.0, 14.0, 44.0, 88.0, 120.0, subscribers_max=4, is_stacked=True)


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of columns and rows, and the origin of times, in milliseconds if the whole takes less than a second.

    at, gap      centre of each column, and their distance.
    edges        start of each row, and end of the last one.
    y            line of each row with its arrow and time.
    reason       lines of the reason, below the row of the fault.
    """

    sheet: Sheet
    at: tuple[float, ...]
    gap: float
    top: float
    edges: tuple[float, ...]
    y: tuple[float, ...]
    width: float
    start: float
    in_ms: bool
    reason: tuple[str, ...]

    def time(self, t: float) -> str:
        """Return a time in the form of the left column."""
        return f"{(t - self.start) * 1000.0:,.3f}" if self.in_ms else f"{t - self.start:,.3f}"

    @property
    def bottom(self) -> float:
        """Lower end of the columns."""
        return self.edges[-1] + 8.0

    @property
    def left(self) -> float:
        """Right end of the column of times."""
        return self.sheet.margin + self.sheet.gutter

    @property
    def times_end(self) -> float:
        """End of the times; close to the columns on a narrow sheet."""
        return self.left - (3.0 if self.sheet.is_stacked else 12.0)

    @property
    def right(self) -> float:
        """Right end of the last column, where the marks start."""
        return self.at[-1] + self.sheet.after

    def banner(self, words: str) -> list[str]:
        """Return the lines of words that concern every column."""
        left, right = self.across()
        return list(wrapped(clean(words), right - left - 12.0, SMALL, LINES_MAX))

    def across(self) -> tuple[float, float]:
        """Return the horizontal extent of such words."""
        return max(self.left, self.at[0] - 40.0), min(self.width - self.sheet.margin, self.at[-1] + 40.0)

    def room_of_name(self, number: int) -> float:
        """Return the maximum width of a column's name."""
        apart = self.gap * 2.0 if self.sheet.is_stacked else self.gap
        to_edge = min(self.at[number], self.width - self.at[number]) * 2.0
        return min(apart - (8.0 if self.sheet.is_stacked else 16.0), to_edge - 8.0)


def columns_on(sheet: Sheet, count: int) -> tuple[tuple[float, ...], float, float]:
    """Return the positions of `count` columns, their distance, and the width of the diagram."""
    first = sheet.margin + sheet.gutter + sheet.before
    behind = sheet.after + sheet.marks + sheet.margin
    gap = min(sheet.gap_max, (sheet.width - first - behind) / (count - 1))
    at = tuple(first + gap * number for number in range(count))
    return at, gap, at[-1] + behind


def plan_of(sheet: Sheet, columns: int, rows: Sequence[Row], reason: str, top: float) -> Layout:
    """Return the layout of a diagram whose column names start at `top`."""
    at, gap, total = columns_on(sheet, columns)
    lines = tuple(wrapped(reason, total - 2 * sheet.margin - ICON, LETTER * BOLD, LINES_MAX))
    times = [row.t for row in rows if row.t is not None]
    plan = Layout(sheet, at, gap, top, (), (), total, times[0], times[-1] - times[0] < 1.0, lines)
    edges, y = [top + sheet.head], []
    for row in rows:
        high = _height(plan, row)
        is_stacked = sheet.is_stacked and isinstance(row.shape, Arrow)
        y.append(edges[-1] + (high - 12.0 if is_stacked else high / 2))
        edges.append(edges[-1] + high + (LINE * len(lines) + 4.0 if row.mark is Mark.WRONG else 0.0))
    return replace(plan, edges=tuple(edges), y=tuple(y))


def _height(plan: Layout, row: Row) -> float:
    if isinstance(row.shape, Pause):
        return PAUSE
    if isinstance(row.shape, Banner):
        return NOTE + (LINE - 2.0) * (len(plan.banner(row.shape.words)) - 1)
    return plan.sheet.row if isinstance(row.shape, Arrow) else NOTE
