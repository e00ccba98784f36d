"""What stands on each line of a diagram: the events of a history in their order, and what follows from them.

Three things are added that nobody recorded: where a lease may have run out (its length is known, its end is not seen), what should have
come and did not, and how long nothing happened. A bar next to a subscriber says that it has messages which it has not acknowledged; it is
drawn for the reader's eye and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Final, TypeAlias

from api.lanes.captions import Caption
from api.lanes.columns import PUBLISHER, SERVICE, Columns
from api.lanes.holding import Bar, Holding
from prober.core import events
from prober.core.events import Event
from prober.core.findings import Finding, Status
from prober.core.rules import Rules
from prober.evidence.diagram import deciding, short, shown_indices
from prober.sinks.status.records import FindingRecord

ROWS_MAX: Final = 80
PAUSE_MIN_SHARE: Final = 0.08
PAUSE_MIN_STEPS: Final = 4

Numbered: TypeAlias = tuple[int, Event]


class Mark(StrEnum):
    """What an event is to the finding."""

    NONE = ""
    WITNESS = "witness"
    SETTLES = "settles"
    """Only after it was it certain."""
    WRONG = "wrong"
    """What should not have happened, or the end of a wait that was in vain."""


class Sort(StrEnum):
    """What an arrow stands for."""

    PUBLISH = "publish"
    REPLY = "reply"
    DELIVERY = "delivery"
    ANSWER = "answer"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Arrow:
    """Something sent from one lane to another. `message` stands in a box, as many of `words` beside it as there is room for."""

    source: int
    target: int
    sort: Sort
    message: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happens in one lane. `sign` names its shape."""

    lane: int
    sign: str
    words: str


@dataclass(frozen=True, slots=True)
class Banner:
    """Something that concerns every lane."""

    words: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing happens for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Omission:
    """So many events are left out here."""

    count: int


Shape: TypeAlias = Arrow | Note | Banner | Pause | Omission


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `number` is that of the trace, 0 for what is not in it; `t` is None for what has no time of its own."""

    shape: Shape
    t: float | None = None
    number: int = 0
    mark: Mark = Mark.NONE


@dataclass(frozen=True, slots=True)
class Rows:
    """All lines, and the bars beside them: a lane, the index of the first line and of the last."""

    lines: tuple[Row, ...]
    bars: tuple[Bar, ...]
    omitted: int


def rows(history: Sequence[Numbered], columns: Columns, rules: Rules, said: Caption, record: FindingRecord) -> Rows:
    """The lines of a history, at most `ROWS_MAX` events of it: those next to what matters to the finding, and to both ends."""
    witnesses = record.evidence.witnesses if record.evidence is not None else ()
    last = deciding(history, replace(record.finding, witnesses=witnesses)) or history[-1][0]
    wrong = _wrong(history, record.finding, witnesses) or last
    marks = {**dict.fromkeys(witnesses, Mark.WITNESS), last: Mark.SETTLES, wrong: Mark.WRONG}
    marked = [index for index, (number, _) in enumerate(history) if number in marks]
    shown = {history[index][0] for index in shown_indices(len(history), marked, ROWS_MAX)}
    holding = Holding(columns, rules.ack_deadline_s)
    seen: set[tuple[str, str]] = set()
    lines: list[Row] = []
    omitted = 0
    for number, event in history:
        for ended in holding.until(event.t, len(lines)):
            lines.append(Row(Note(ended.lane, "lease", _leases(ended.messages)), ended.t))
        if number in shown:
            _close_omission(lines, omitted)
            omitted = 0
            if number == wrong and said.missing:
                lines.append(Row(_missing(columns, record.finding.subscription, event, said)))
            lines.append(Row(_SHAPES[type(event)](columns, event, seen), event.t, number, marks.get(number, Mark.NONE)))
        else:
            omitted += 1
        holding.take(event, len(lines) - 1)
        if isinstance(event, events.Delivered):
            seen.add((event.subscription, event.message_id))
    _close_omission(lines, omitted)
    return _with_pauses(Rows(tuple(lines), tuple(holding.bars(len(lines))), len(history) - len(shown)))


# --- what is shown -----------------------------------------------------------------------------------------------------------


def _wrong(history: Sequence[Numbered], finding: Finding, witnesses: Container[int]) -> int:
    """The witness that is the delivery which should not have been; 0 if what is wrong is that nothing came."""
    if finding.status is Status.LIVENESS:
        return 0
    seq = finding.facts.get("seq")
    deliveries = (
        number for number, event in history if number in witnesses and isinstance(event, events.Delivered) and event.seq == seq
    )
    return max(deliveries, default=0)


def _close_omission(lines: list[Row], omitted: int) -> None:
    if omitted:
        lines.append(Row(Omission(omitted)))


def _with_pauses(drawn: Rows) -> Rows:
    """The same with a line wherever nothing happened for much longer than usual; the bars move along."""
    times = [row.t for row in drawn.lines if row.t is not None]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    if not steps:
        return drawn
    least = max(PAUSE_MIN_STEPS * median(steps), PAUSE_MIN_SHARE * (times[-1] - times[0]))
    lines: list[Row] = []
    place: list[int] = []
    latest = times[0]
    for row in drawn.lines:
        if row.t is not None:
            if row.t - latest >= least:
                lines.append(Row(Pause(row.t - latest)))
            latest = row.t
        place.append(len(lines))
        lines.append(row)
    bars = tuple(Bar(bar.lane, place[bar.first], place[bar.last]) for bar in drawn.bars)
    return replace(drawn, lines=_missing_last(lines), bars=bars)


def _missing_last(lines: Iterable[Row]) -> tuple[Row, ...]:
    """What should have come in a pause is drawn after it."""
    ordered = list(lines)
    for index, (row, following) in enumerate(pairwise(ordered)):
        if isinstance(row.shape, Arrow) and row.shape.sort is Sort.MISSING and isinstance(following.shape, Pause):
            ordered[index], ordered[index + 1] = following, row
    return tuple(ordered)


# --- one line each -----------------------------------------------------------------------------------------------------------

Seen: TypeAlias = set[tuple[str, str]]


def _missing(columns: Columns, subscription: str, event: Event, said: Caption) -> Arrow:
    lane = columns.of(event.subscription, event.session) if isinstance(event, events.Delivered) else columns.any_of(subscription)
    more = said.missing_count - 1
    return Arrow(SERVICE, lane, Sort.MISSING, str(said.missing[0]), (f"and {more:,} more missing",) if more else ("missing",))


def _leases(messages: tuple[str, ...]) -> str:
    if len(messages) == 1:
        return f"lease of {messages[0]} may end"
    return f"leases of {' and '.join(messages)} may end" if len(messages) == 2 else f"{len(messages):,} leases may end"


def _delivered(columns: Columns, event: events.Delivered, seen: Seen) -> Arrow:
    lane = columns.of(event.subscription, event.session)
    words = [
        f"bad {event.defect}" if event.defect else "",
        "" if event.matches_filter else "filtered",
        "again" if (event.subscription, event.message_id) in seen else "",
        _on(columns, event),
        f"attempt {event.delivery_attempt}" if event.delivery_attempt > 1 else "",
    ]
    return Arrow(SERVICE, lane, Sort.DELIVERY, columns.message(event), tuple(filter(None, words)))


def _on(
    columns: Columns, event: events.Delivered | events.Acked | events.Nacked | events.AckConfirmed | events.LeaseModified
) -> str:
    session = columns.session(event.subscription, event.session)
    return f"on {session}" if session else ""


def _published(columns: Columns, event: events.Published, _: Seen) -> Arrow:
    return Arrow(SERVICE, PUBLISHER, Sort.REPLY, columns.message(event), ("confirmed", f"as {short(event.message_id)}"))


def _reply(words: str) -> Callable[[Columns, events.PublishEvent, Seen], Arrow]:
    return lambda columns, event, _: Arrow(SERVICE, PUBLISHER, Sort.REPLY, columns.message(event), (words,))


def _answer(words: str, *, from_service: bool = False) -> Callable[[Columns, events.Acked, Seen], Arrow]:
    def shape(columns: Columns, event: events.Acked, _: Seen) -> Arrow:
        lane = columns.of(event.subscription, event.session)
        ends = (SERVICE, lane) if from_service else (lane, SERVICE)
        return Arrow(*ends, Sort.ANSWER, columns.named(event.message_id), tuple(filter(None, (words, _on(columns, event)))))

    return shape


def _lease_modified(columns: Columns, event: events.LeaseModified, _: Seen) -> Arrow:
    lane = columns.of(event.subscription, event.session)
    return Arrow(lane, SERVICE, Sort.ANSWER, columns.named(event.message_id), (f"lease of {event.seconds:g} s",))


def _at_session(sign: str) -> Callable[[Columns, events.SessionEvent, Seen], Note]:
    def shape(columns: Columns, event: events.SessionEvent, _: Seen) -> Note:
        session = columns.session(event.subscription, event.session)
        return Note(columns.of(event.subscription, event.session), sign, f"{session} {sign}".strip())

    return shape


def _in_service(words: str, message: Callable[[Columns, Event], str]) -> Callable[[Columns, Event, Seen], Note]:
    return lambda columns, event, _: Note(SERVICE, "gone", f"{message(columns, event)} {words}")


def _settling(words: str) -> Callable[[Columns, events.Sought | events.FilterChanged, Seen], Banner]:
    def shape(_: Columns, event: events.Sought | events.FilterChanged, __: Seen) -> Banner:
        until = f"; for {event.settle_s:g} s nothing is certain" if isfinite(event.settle_s) else ""
        return Banner(f"{words}{until}")

    return shape


_SHAPES: Final[Mapping[type, Callable[..., Shape]]] = {
    events.PublishInvoked: lambda columns, event, _: Arrow(PUBLISHER, SERVICE, Sort.PUBLISH, columns.message(event), ("publish",)),
    events.Published: _published,
    events.PublishFailed: _reply("failed"),
    events.PublishUnknown: _reply("outcome unknown"),
    events.PublishAbandoned: _in_service("given up", lambda columns, event: columns.message(event)),  # type: ignore[arg-type]
    events.Opened: _at_session("opened"),
    events.Closed: _at_session("closed"),
    events.Delivered: _delivered,
    events.Acked: _answer("ack"),
    events.Nacked: _answer("nack"),
    events.AckConfirmed: _answer("ack confirmed", from_service=True),
    events.LeaseModified: _lease_modified,
    events.DeadLettered: _in_service("dead-lettered", lambda columns, event: columns.named(event.message_id)),  # type: ignore[union-attr]
    events.Sought: _settling("sought"),
    events.FilterChanged: _settling("filter changed"),
    events.Interrupted: lambda columns, event, _: Banner("the record may have a hole here"),
    events.Ended: lambda columns, event, _: Banner("the run ended" if event.drained else "the run was stopped"),
}
