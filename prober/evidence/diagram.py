"""A history as an ASCII sequence diagram: publisher, Pub/Sub and every subscriber as columns, one line per event, time downwards.

    event        time  publisher                 Pub/Sub                   A
        7       0.300      |-- publish 3 ----------->|                         |
       10       1.100      |                         |-- 3 (m3) -------------->|   X <-- decides

Made for short histories (`minimise`), and still readable for a long one: what does not fit is left out in counted lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from prober.core import events
from prober.core.events import Event
from prober.core.findings import Finding, Status

WIDTH: Final = 116
LINES_MAX: Final = 60
SUBSCRIBERS_MAX: Final = 4  # further ones share a last column

Numbered: TypeAlias = tuple[int, Event]

_GUTTER: Final = 24  # number and time
_MARGIN: Final = 17  # the markers
_GAP_MAX: Final = 26  # a wider column helps nobody
_PUBLISHER: Final = 0
_SERVICE: Final = 1
_OTHERS: Final = "(others)"


@dataclass(frozen=True, slots=True)
class _Arrow:
    """Something sent from one column to another."""

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class _Note:
    """Something that happens at one column: a sign in the column and words to the left of it."""

    column: int
    sign: str
    label: str


@dataclass(frozen=True, slots=True)
class _Banner:
    """Something that concerns every column."""

    label: str


_Row: TypeAlias = _Arrow | _Note | _Banner
OnSession: TypeAlias = (
    events.SessionEvent | events.Delivered | events.Acked | events.Nacked | events.AckConfirmed | events.LeaseModified
)


class _Columns:
    """Which column each session of each subscription belongs to, and how messages are called."""

    def __init__(self, history: Iterable[Numbered], opened: Iterable[events.Opened]) -> None:
        shown = [event for _, event in history]
        begun = [*opened, *(event for event in shown if isinstance(event, events.Opened))]
        self._owner = {(event.subscription, event.session): event.subscriber for event in begun}
        self._several_epochs = len({event.epoch for event in shown if hasattr(event, "epoch")}) > 1
        sessions = dict.fromkeys((e.subscription, e.session) for e in shown if isinstance(e, OnSession))
        self._several_subscriptions = len({subscription for subscription, _ in sessions}) > 1
        owners = list(dict.fromkeys((subscription, self._owner.get((subscription, s), s)) for subscription, s in sessions))
        too_many = len(owners) > SUBSCRIBERS_MAX
        alone = owners[: SUBSCRIBERS_MAX - 1] if too_many else owners
        self.names = ["publisher", "Pub/Sub", *(self._title(*owner) for owner in alone), *([_OTHERS] if too_many else [])]
        self._column = {owner: column for column, owner in enumerate(alone, _SERVICE + 1)}

    def _title(self, subscription: str, subscriber: str) -> str:
        return f"{subscription}/{subscriber}" if self._several_subscriptions else subscriber

    def of(self, subscription: str, session: str) -> tuple[int, str]:
        """The column of a session, and what its labels begin with: its name, as far as the head of the column does not say it."""
        owner = (subscription, self._owner.get((subscription, session), session))
        column = self._column.get(owner)
        if column is None:
            return len(self.names) - 1, self._title(subscription, session) + ": "
        rest = session.removeprefix(owner[1])
        label = session if rest[:1].isalnum() else rest
        return column, f"{label}: " if label else ""

    def message(self, event: events.PublishEvent | events.Delivered) -> str:
        """The sequence number, with what tells it apart: its epoch if there are several, and which republishing it is."""
        epoch = f"{event.epoch}:" if self._several_epochs else ""
        again = f" again{event.generation}" if event.generation else ""
        return f"{epoch}{event.seq}{again}"


def short(message_id: str) -> str:
    """A message id that fits a column: its last digits tell real ones apart."""
    return message_id if len(message_id) <= 12 else ".." + message_id[-8:]


def _reply(words: str) -> Callable[[_Columns, events.PublishEvent], _Row]:
    return lambda columns, event: _Arrow(_SERVICE, _PUBLISHER, f"{words} {columns.message(event)}")


def _published(columns: _Columns, event: events.Published) -> _Row:
    return _Arrow(_SERVICE, _PUBLISHER, f"ok {columns.message(event)} = {short(event.message_id)}")


def _at_session(sign: str, words: str) -> Callable[[_Columns, events.SessionEvent], _Row]:
    def row(columns: _Columns, event: events.SessionEvent) -> _Row:
        column, prefix = columns.of(event.subscription, event.session)
        return _Note(column, sign, f"{prefix}{words}")

    return row


def _delivered(columns: _Columns, event: events.Delivered) -> _Row:
    column, prefix = columns.of(event.subscription, event.session)
    attempt = f" attempt {event.delivery_attempt}" if event.delivery_attempt else ""
    defect = f" BAD {event.defect}" if event.defect else ""
    leak = "" if event.matches_filter else " FILTERED"
    return _Arrow(_SERVICE, column, f"{prefix}{columns.message(event)} ({short(event.message_id)}){attempt}{defect}{leak}")


def _about(words: str, *, from_service: bool = False) -> Callable[[_Columns, events.Acked], _Row]:
    def row(columns: _Columns, event: events.Acked) -> _Row:
        column, prefix = columns.of(event.subscription, event.session)
        ends = (_SERVICE, column) if from_service else (column, _SERVICE)
        return _Arrow(*ends, f"{prefix}{words} {short(event.message_id)}")

    return row


def _lease_modified(columns: _Columns, event: events.LeaseModified) -> _Row:
    column, prefix = columns.of(event.subscription, event.session)
    return _Arrow(column, _SERVICE, f"{prefix}lease {short(event.message_id)} {event.seconds:g}s")


_ROWS: Final[Mapping[type, Callable[..., _Row]]] = {
    events.PublishInvoked: lambda columns, event: _Arrow(_PUBLISHER, _SERVICE, f"publish {columns.message(event)}"),
    events.Published: _published,
    events.PublishFailed: _reply("failed"),
    events.PublishUnknown: _reply("unknown"),
    events.PublishAbandoned: lambda columns, event: _Note(_SERVICE, "|", f"{columns.message(event)} given up"),
    events.Opened: _at_session("o", "opened"),
    events.Closed: _at_session("x", "closed"),
    events.Delivered: _delivered,
    events.Acked: _about("ack"),
    events.Nacked: _about("nack"),
    events.AckConfirmed: _about("ack ok", from_service=True),
    events.LeaseModified: _lease_modified,
    events.DeadLettered: lambda columns, event: _Note(_SERVICE, "x", f"{short(event.message_id)} dead-lettered"),
    events.Sought: lambda columns, event: _Banner(f"sought: settles for {event.settle_s:g} s"),
    events.FilterChanged: lambda columns, event: _Banner(f"filter changed: settles for {event.settle_s:g} s"),
    events.Interrupted: lambda columns, event: _Banner("the record may have a hole here"),
    events.Ended: lambda columns, event: _Banner("ended, drained" if event.drained else "ended, not drained"),
}


class _Canvas:
    """Places rows between the columns; every line is at most `width` characters."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self._gap = min(_GAP_MAX, (width - _GUTTER - _MARGIN) // (len(names) - 1))
        self._at = [column * self._gap for column in range(len(names))]
        self._names = names

    def title(self, numbers: str) -> str:
        """The line with the names of the columns, each beginning a little left of its column."""
        cells = "".join(_cut(name, self._gap - 1).ljust(self._gap) for name in self._names)
        return f"{numbers:>8} {'time':>11}  {cells}".rstrip()

    def line(self, number: int, t: float, row: _Row, mark: str) -> str:
        """One event."""
        return f"{number:>8} {t:>11.3f}    {self._drawn(row)}   {mark}".rstrip()

    def omission(self, count: int) -> str:
        """A line that stands for events which are not shown."""
        return f"{'...':>8} {'':>11}    ... {count:,} event{'s' * (count != 1)} left out ..."

    def _drawn(self, row: _Row) -> str:
        cells = [" "] * (self._at[-1] + 1)
        for at in self._at:
            cells[at] = "|"
        match row:
            case _Arrow():
                self._draw_arrow(cells, row)
            case _Note():
                self._draw_note(cells, row)
            case _Banner():
                cells[:] = f" {row.label} ".center(len(cells), "=")
        return "".join(cells)

    def _draw_arrow(self, cells: list[str], arrow: _Arrow) -> None:
        left, right = sorted((self._at[arrow.source], self._at[arrow.target]))
        cells[left + 1 : right] = "-" * (right - left - 1)
        cells[right - 1 if arrow.target > arrow.source else left + 1] = ">" if arrow.target > arrow.source else "<"
        narrow = len(arrow.label) > self._gap - 7
        self._write(cells, right, f" {_cut(arrow.label, self._gap - 5)} ", 2 if narrow else 3)

    def _draw_note(self, cells: list[str], note: _Note) -> None:
        cells[self._at[note.column]] = note.sign
        self._write(cells, self._at[note.column], _cut(note.label, self._gap - 5), 3)

    def _write(self, cells: list[str], right: int, text: str, margin: int) -> None:
        """Into the gap on the left of a column, where a reader looks for what reaches that column."""
        start = right - self._gap + margin
        cells[start : start + len(text)] = text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "~"


def shown_indices(count: int, marked: Sequence[int], lines_max: int) -> list[int]:
    """The indices to show: those next to the marked ones and to both ends, at most `lines_max`."""
    if count <= lines_max:
        return list(range(count))
    half = lines_max // 3
    anchors = {0, count - 1, *marked[:half], *marked[-half:]}
    return sorted(sorted(range(count), key=lambda i: min(abs(i - anchor) for anchor in anchors))[:lines_max])


def deciding(history: Sequence[Numbered], finding: Finding) -> int:
    """The event that settles the finding: its last witness, or the end of a wait that was in vain."""
    return history[-1][0] if finding.status is Status.LIVENESS else max(finding.witnesses, default=0)


def _mark(number: int, finding: Finding, decisive: int) -> str:
    if number == decisive:
        return "X <-- decides"
    return "<-- witness" if number in finding.witnesses else ""


def draw(
    history: Sequence[Numbered],
    finding: Finding,
    *,
    numbers: str = "event",
    opened: Iterable[events.Opened] = (),
    width: int = WIDTH,
    lines_max: int = LINES_MAX,
) -> str:
    """The diagram of a history in lines of at most `width` characters (at least 80), without a line end at the end.

    `history` holds numbered events in order, in the numbers of the finding's witnesses; `numbers` says what these count and heads
    their column. `opened` are further beginnings of sessions: not drawn, they tell whose the sessions are. The witnesses and the
    event that decides are marked. Beyond `lines_max` events the least relevant ones are left out, each run of them as one counted
    line. An empty history gives an empty text.
    """
    if not history:
        return ""
    columns = _Columns(history, opened)
    canvas = _Canvas(columns.names, width)
    decisive = deciding(history, finding)
    marks = [_mark(number, finding, decisive) for number, _ in history]
    lines = [canvas.title(numbers)]
    previous = -1
    for index in shown_indices(len(history), [i for i, mark in enumerate(marks) if mark], lines_max):
        if index > previous + 1:
            lines.append(canvas.omission(index - previous - 1))
        number, event = history[index]
        lines.append(canvas.line(number, event.t, _ROWS[type(event)](columns, event), marks[index]))
        previous = index
    return "\n".join(lines)
