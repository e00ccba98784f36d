"""A diagram as ASCII: publisher, Pub/Sub and every subscriber as columns, one line per event, time downwards.

    line        time  publisher                 Pub/Sub                   A
       5       0.200    |-- publish 3 ----------->|                         |
      10       1.100    |                         |-- 3 ------------------->|   X <-- wrong

Made for short histories (`minimise`), and readable for long ones: rows that do not fit are omitted, as counted lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from prober.core.events import Opened
from prober.core.findings import Finding, Status
from prober.core.rules import Rules
from prober.evidence.diagram.columns import Bar, Columns, DiagramColumn
from prober.evidence.diagram.rows import Arrow, Banner, Diagram, Mark, Note, Omission, Pause, Row, Sign, Sort, diagram_of
from prober.evidence.minimise import Numbered
from prober.evidence.naming import lasting

WIDTH: Final = 116
EVENTS_MAX: Final = 60
SUBSCRIBERS_MAX: Final = 4

_GUTTER: Final = 24  # number and time
_MARGIN: Final = 17  # the marks
_GAP_MAX: Final = 26  # a wider column does not help a reader
_SIGNS: Final[Mapping[Sign, str]] = {Sign.OPENED: "o", Sign.CLOSED: "x", Sign.GONE: "x", Sign.LEASE: "~"}
_SHORT: Final[Mapping[str, str]] = {"confirmed": "ok", "ack confirmed": "ack ok", "outcome unknown": "unknown"}
_WRONG: Final[Mapping[Status, str]] = {
    Status.VIOLATION: "X <-- wrong",
    Status.LIVENESS: "X <-- not delivered",
    Status.INDETERMINATE: "? <-- perhaps",
    Status.INFO: "<-- here",
}


def diagram_as_text(
    history: Sequence[Numbered],
    finding: Finding,
    rules: Rules,
    *,
    opened: Iterable[Opened] = (),
    events_max: int = EVENTS_MAX,
) -> str:
    """Draw a history as lines of at most `WIDTH` characters, without a line end at the end.

    `history` contains events in order, numbered as the lines of their trace, which the finding's witnesses name. `opened` are further
    starts of sessions: they are not drawn, but identify the subscribers of the sessions. Beyond `events_max` the least relevant events are
    omitted, each run of them as one counted line. An empty history gives an empty text.
    """
    if not history:
        return ""
    diagram = collapsed(diagram_of(history, finding, rules, opened=opened, subscribers_max=SUBSCRIBERS_MAX, rows_max=events_max))
    canvas = _Canvas(diagram.columns)
    marks = {Mark.NONE: "", Mark.WITNESS: "<-- witness", Mark.SETTLES: "<-- settles", Mark.WRONG: _WRONG[finding.status]}
    lines = [canvas.line(row, marks[row.mark]) for row in diagram.rows if _is_reported(row)]
    notes = [" " * _GUTTER + note for note in diagram.notes]
    return "\n".join(_cut(line.rstrip(), WIDTH) for line in [canvas.title(), *lines, *notes])


class _Canvas:
    """The placement of rows between the columns."""

    def __init__(self, columns: Columns) -> None:
        self._gap = min(_GAP_MAX, (WIDTH - _GUTTER - _MARGIN) // (len(columns.all) - 1))
        self._at = [place * self._gap for place in range(len(columns.all))]
        self._names = [_name(column) for column in columns.all]

    def title(self) -> str:
        """Return the line with the names of the columns, each starting a little left of its column."""
        title = f"{'line':>8} {'time':>11}  "
        begin, rooms = len(title), [min(self._gap - 1, WIDTH - len(title) - at) for at in self._at]
        for at, room, name in zip(self._at, rooms, self._names, strict=True):
            title = title.ljust(begin + at) + _cut_within(name, room)
        return title

    def line(self, row: Row, mark: str) -> str:
        """Return the line of a row."""
        if isinstance(row.shape, Pause):
            return f"{'...':>8} {'':>11}    ... {lasting(row.shape.seconds)} without it ..."
        if isinstance(row.shape, Omission):
            count = row.shape.count
            return f"{'...':>8} {'':>11}    ... {count:,} event{'s' * (count != 1)} left out ..."
        number, t = row.number or "", "" if row.t is None else f"{row.t:.3f}"
        return f"{number:>8} {t:>11}    {self._drawn(row)}   {mark}"

    def _drawn(self, row: Row) -> str:
        cells = [" "] * (self._at[-1] + 1)
        for at in self._at:
            cells[at] = "|"
        match row.shape:
            case Arrow():
                self._draw_arrow(cells, row.shape)
            case Note():
                cells[self._at[row.shape.column]] = _SIGNS[row.shape.sign]
                self._write(cells, self._at[row.shape.column], _cut(row.shape.words, self._gap - 5), 3)
            case Banner():
                return f" {row.shape.words} ".center(len(cells), "=")
        return "".join(cells)

    def _draw_arrow(self, cells: list[str], arrow: Arrow) -> None:
        left, right = sorted((self._at[arrow.source], self._at[arrow.target]))
        cells[left + 1 : right] = ("." if arrow.sort is Sort.MISSING else "-") * (right - left - 1)
        cells[right - 1 if arrow.target > arrow.source else left + 1] = ">" if arrow.target > arrow.source else "<"
        label = " ".join(_words(arrow))
        narrow = len(label) > self._gap - 7
        self._write(cells, right, f" {_cut(label, self._gap - 5)} ", 2 if narrow else 3)

    def _write(self, cells: list[str], right: int, text: str, margin: int) -> None:
        """Write a text into the gap left of a column, where readers look for transmissions to that column."""
        start = right - self._gap + margin
        cells[start : start + len(text)] = text


def _is_reported(row: Row) -> bool:
    """Return whether the text shows a row: all except pauses, unless a wait failed."""
    return row.shape.in_vain if isinstance(row.shape, Pause) else True


def _name(column: DiagramColumn) -> str:
    return f"{column.subscription}/{column.name}" if column.subscription else column.name


def _words(arrow: Arrow) -> Iterator[str]:
    """Yield the words on an arrow: a confirmation names its record, other arrows do if the number is ambiguous."""
    if arrow.verb:
        yield _SHORT.get(arrow.verb, arrow.verb)
    yield arrow.message
    if arrow.record and arrow.record != arrow.message:
        yield f"= {arrow.record}" if arrow.sort is Sort.REPLY else f"({arrow.record})"
    yield from arrow.details


def _cut_within(name: str, length: int) -> str:
    """Shorten a name in its middle if it is too long: names of subscribers differ at their ends."""
    end = (length - 1) // 2
    return name if len(name) <= length else f"{name[: length - 1 - end]}~{name[-end:]}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "~"


# --- steps that repeat with the next message, as one row each: `publish 61-80 x20`. Rows that matter to the finding stay as they are ---


TIMES_MIN: Final = 4
"""Smallest number of repetitions that are merged."""
PERIOD_MAX: Final = 4
"""Largest number of alternating steps that repeat together, such as a publish and its confirmation."""
_NUMBERED: Final = re.compile(r"(?P<before>|.*:)(?P<number>\d+)(?P<behind>'*)", re.ASCII)


def collapsed(diagram: Diagram) -> Diagram:
    """Return the diagram with one row for each repeated step; bars keep their rows."""
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
    """Return how many steps repeat from a row on, and how often; (1, 1) if the row does not repeat."""
    for period in range(1, PERIOD_MAX + 1):
        end = index + period
        while end < len(rows) and _follows(rows[end], rows[end - period]):
            end += 1
        times = (end - index) // period
        if times >= TIMES_MIN:
            return period, times
    return 1, 1


def _follows(row: Row, before: Row) -> bool:
    """Return whether a row is the same step with the next message."""
    if row.mark is not Mark.NONE or before.mark is not Mark.NONE or not row.number or not before.number:
        return False
    match row.shape, before.shape:
        case Arrow() as arrow, Arrow() as earlier:
            return _step(arrow) == _step(earlier) and arrow.message == _next(earlier.message)
    return False


def _step(arrow: Arrow) -> Arrow:
    """Return the arrow without the parts that differ between messages: in a reply also its message id."""
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
