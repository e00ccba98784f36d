"""A diagram as ASCII: publisher, Pub/Sub and every subscriber as columns, one line per event, time downwards.

    line        time  publisher                 Pub/Sub                   A
       5       0.200    |-- publish 3 ----------->|                         |
      10       1.100    |                         |-- 3 ------------------->|   X <-- wrong

Made for short histories (`minimise`), and still readable for a long one: what does not fit is left out in counted lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prober.core.events import Opened
from prober.core.findings import Finding, Status
from prober.core.rules import Rules
from prober.evidence.diagram.collapse import collapsed
from prober.evidence.diagram.columns import Columns, DiagramColumn
from prober.evidence.diagram.rows import Arrow, Banner, Mark, Note, Omission, Pause, Row, Sign, Sort, diagram_of
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
    """The diagram of a history in lines of at most `WIDTH` characters, without a line end at the end.

    `history` holds events in order, numbered as the lines of their trace, which the finding's witnesses name. `opened` are further
    beginnings of sessions: not drawn, they tell whose the sessions are. Beyond `events_max` events the least relevant ones are left out,
    each run of them as one counted line. An empty history gives an empty text.
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
    """Places rows between the columns."""

    def __init__(self, columns: Columns) -> None:
        self._gap = min(_GAP_MAX, (WIDTH - _GUTTER - _MARGIN) // (len(columns.all) - 1))
        self._at = [place * self._gap for place in range(len(columns.all))]
        self._names = [_name(column) for column in columns.all]

    def title(self) -> str:
        """The line with the names of the columns, each beginning a little left of its column."""
        title = f"{'line':>8} {'time':>11}  "
        begin, rooms = len(title), [min(self._gap - 1, WIDTH - len(title) - at) for at in self._at]
        for at, room, name in zip(self._at, rooms, self._names, strict=True):
            title = title.ljust(begin + at) + _cut_within(name, room)
        return title

    def line(self, row: Row, mark: str) -> str:
        """One row."""
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
        """Into the gap on the left of a column, where a reader looks for what reaches that column."""
        start = right - self._gap + margin
        cells[start : start + len(text)] = text


def _is_reported(row: Row) -> bool:
    """Whether the text shows a row: not if it is a pause for the eye only."""
    return row.shape.in_vain if isinstance(row.shape, Pause) else True


def _name(column: DiagramColumn) -> str:
    return f"{column.subscription}/{column.name}" if column.subscription else column.name


def _words(arrow: Arrow) -> Iterator[str]:
    """What stands on an arrow: a confirmation says which record it made, others do where the number does not tell."""
    if arrow.verb:
        yield _SHORT.get(arrow.verb, arrow.verb)
    yield arrow.message
    if arrow.record and arrow.record != arrow.message:
        yield f"= {arrow.record}" if arrow.sort is Sort.REPLY else f"({arrow.record})"
    yield from arrow.details


def _cut_within(name: str, length: int) -> str:
    """A name without its middle if it is too long: names of subscribers differ at their ends."""
    end = (length - 1) // 2
    return name if len(name) <= length else f"{name[: length - 1 - end]}~{name[-end:]}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "~"
