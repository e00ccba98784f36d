"""The lines of a diagram: the events of a history in their order, and their consequences.

Three unrecorded things are added: the possible end of a lease (its length is known, its end is not observed), missing messages, and
pauses. A bar next to a subscriber shows that it has unacknowledged messages; it is drawn for the reader's eye and decides nothing. The
renderers decide about the looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Final, NamedTuple, TypeAlias

from prober.core import events
from prober.core.events import Event
from prober.core.findings import Facts, Finding, Kind
from prober.core.kinds import KINDS
from prober.core.rules import Rules
from prober.evidence.diagram.columns import PUBLISHER, REPUBLISHED, SERVICE, Answer, Bar, Columns, Holding, short
from prober.evidence.minimise import Numbered, are_answers_kept
from prober.evidence.naming import lasting, seqs_of, whole

PAUSE_MIN_SHARE: Final = 0.08
PAUSE_MIN_STEPS: Final = 4


class Mark(StrEnum):
    """The role of an event in the finding."""

    NONE = ""
    WITNESS = "witness"
    SETTLES = "settles"
    """The event that made the finding certain."""
    WRONG = "wrong"
    """An event that should not have happened, or the end of a wait for a missing event."""


class Sort(StrEnum):
    """The meaning of an arrow."""

    PUBLISH = "publish"
    REPLY = "reply"
    DELIVERY = "delivery"
    ANSWER = "answer"
    MISSING = "missing"


class Sign(StrEnum):
    """An event within one column."""

    OPENED = "opened"
    CLOSED = "closed"
    GONE = "gone"
    LEASE = "lease"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transmission from one column to another.

    message   its message. `verb` names the action, if the direction does not.
    record    its message id, if the number alone does not identify the record.
    details   further words, the most important ones first.
    """

    source: int
    target: int
    sort: Sort
    message: str
    verb: str = ""
    record: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """An event within one column."""

    column: int
    sign: Sign
    words: str


@dataclass(frozen=True, slots=True)
class Banner:
    """An event that concerns every column."""

    words: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A period without events. `in_vain`: up to the missed deadline of an expected event."""

    seconds: float
    in_vain: bool = False


@dataclass(frozen=True, slots=True)
class Omission:
    """A number of omitted events."""

    count: int


Shape: TypeAlias = Arrow | Note | Banner | Pause | Omission


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `number` is that of the event, 0 for other lines; `t` is None for a line without a time.

    `events`: the number of events that it represents. For several merged events, `number` and `t` are those of the first.
    """

    shape: Shape
    t: float | None = None
    number: int = 0
    mark: Mark = Mark.NONE
    events: int = 1


class Absent(NamedTuple):
    """The first missing message, and the number of missing messages."""

    first: int
    total: int


@dataclass(frozen=True, slots=True)
class Diagram:
    """A history that proves a finding. `omitted`: the number of its events without a row."""

    finding: Finding
    columns: Columns
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    omitted: int

    @property
    def notes(self) -> list[str]:
        """The meanings of message names in the diagram."""
        arrows = (row.shape for row in self.rows if isinstance(row.shape, Arrow))
        again = [f"{REPUBLISHED} behind a number: the prober published the message again."]
        renamed = {name: epoch for epoch, name in self.columns.epochs.items() if name != epoch}
        epochs = [", ".join(f"{name}: epoch {epoch}" for name, epoch in renamed.items())] if renamed else []
        return (again if any(REPUBLISHED in arrow.message for arrow in arrows) else []) + epochs


def diagram_of(
    history: Sequence[Numbered],
    finding: Finding,
    rules: Rules,
    *,
    opened: Iterable[events.Opened],
    subscribers_max: int,
    rows_max: int,
) -> Diagram:
    """Return the diagram of a history: not empty, in order, numbered like the finding's witnesses.

    At most `rows_max` of its events have a row: those next to the marked events, and to both ends. Before each of them there may be rows
    for omitted events, a pause, a missing message, and in each column one for leases. `opened` are sessions that started before.
    """
    marks = _marks(history, finding)
    columns = Columns(history, opened, rules.mode, subscribers_max, marks)
    marked = [index for index, (number, _) in enumerate(history) if number in marks]
    shown = _shown(len(history), marked, rows_max)
    holding = Holding(columns, rules.ack_deadline_s if are_answers_kept(finding.kind) else None)
    seen: set[tuple[str, str]] = set()
    rows: list[Row] = []
    last_shown = -1
    for index, (number, event) in enumerate(history):
        if index in shown:
            rows += _omission(index - last_shown - 1)
            last_shown = index
            for ended in holding.until(event.t, len(rows)):
                rows.append(Row(Note(ended.column, Sign.LEASE, _leases(ended.messages)), ended.t))
            mark = marks.get(number, Mark.NONE)
            if mark is Mark.WRONG:
                rows += _missing(columns, finding, event)
            passed = mark is Mark.WRONG and KINDS[finding.kind].is_wait
            rows.append(Row(_deadline(finding) if passed else _shape(columns, event, seen), event.t, number, mark))
        holding.take(event, len(rows) - 1)
        if isinstance(event, events.Delivered):
            seen.add((event.subscription, event.message_id))
    rows += _omission(len(history) - last_shown - 1)
    bars = tuple(holding.bars(len(rows)))
    return Diagram(finding, columns, *_with_pauses(rows, bars, in_vain=KINDS[finding.kind].is_wait), len(history) - len(shown))


def absent(kind: Kind, facts: Facts) -> Absent | None:
    """Return the missing messages from the facts of a finding of this kind; None if none is missing."""
    names, count = _ABSENT.get(kind, ("", ""))
    seqs = seqs_of(facts.get(names)) or tuple(filter(None, [whole(facts.get(names))]))
    return Absent(seqs[0], max(len(seqs), whole(facts.get(count)))) if seqs else None


_ABSENT: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.ORDER_GAP: ("missing", "missing_count"),
    Kind.REDELIVERY_SKIP: ("skipped", "skipped_count"),
    Kind.PULL_BATCH_ORDER: ("skipped", "skipped_count"),
    Kind.PUSH_ADVANCE_PAST_NACK: ("nacked", ""),
    Kind.STUCK: ("seqs", "count"),
    Kind.LOST_OVERTAKEN: ("seq", ""),
    Kind.REDELIVERY_STALL: ("target", ""),
    Kind.UNACKED_STALL: ("seqs", "count"),
}


# --- which rows there are ----------------------------------------------------------------------------------------------------


def _marks(history: Sequence[Numbered], finding: Finding) -> Mapping[int, Mark]:
    """Return the marks of the witnesses, of the settling event, and of the wrong event.

    The wrong event is the delivery that should not have happened. If there is none, it is the event that settles the finding: its last
    witness, or the end of the wait for a missing message.
    """
    in_vain = KINDS[finding.kind].is_wait
    last = max(finding.witnesses) if finding.witnesses and not in_vain else history[-1][0]
    seq = finding.facts.get("seq")
    deliveries = (n for n, event in history if n in finding.witnesses and isinstance(event, events.Delivered) and event.seq == seq)
    wrong = last if in_vain else max(deliveries, default=last)
    return {**dict.fromkeys(finding.witnesses, Mark.WITNESS), last: Mark.SETTLES, wrong: Mark.WRONG}


def _shown(count: int, marked: Sequence[int], rows_max: int) -> set[int]:
    """Return the indices of the events to show: those next to the marked ones and to both ends."""
    half = rows_max // 3
    anchors = {0, count - 1, *marked[:half], *marked[-half:]} if count > rows_max else {0}
    return set(sorted(range(count), key=lambda index: min(abs(index - anchor) for anchor in anchors))[:rows_max])


def _omission(count: int) -> list[Row]:
    return [Row(Omission(count))] if count else []


def _missing(columns: Columns, finding: Finding, event: Event) -> list[Row]:
    """Return the row of the message that was missing before an event, or at the end of a wait.

    Empty if no session could have received it.
    """
    missing, column = absent(finding.kind, finding.facts), columns.any_of(finding.subscription)
    if isinstance(event, events.Delivered):
        column = columns.of(event.subscription, event.session)
    if missing is None or column is None:
        return []
    words = f"and {missing.total - 1:,} more missing" if missing.total > 1 else "missing"
    return [Row(Arrow(SERVICE, column, Sort.MISSING, str(missing.first), details=(words,)))]


def _with_pauses(rows: Sequence[Row], bars: Iterable[Bar], *, in_vain: bool) -> tuple[tuple[Row, ...], tuple[Bar, ...]]:
    """Insert a row at each unusually long pause, before the missing message there; bars keep their rows.

    `in_vain`: the finding is about a wait, so the pause before its end has a row of any length.
    """
    times = [row.t for row in rows if row.t is not None]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    least = max(PAUSE_MIN_STEPS * median(steps), PAUSE_MIN_SHARE * (times[-1] - times[0])) if steps else 0.0
    lines: list[Row] = []
    places: list[int] = []
    latest = latest_event = times[0]
    for row in rows:
        if row.t is not None:
            waited = in_vain and row.mark is Mark.WRONG and row.t > latest_event
            if waited or (steps and row.t - latest >= least):
                is_missing = isinstance(lines[-1].shape, Arrow) and lines[-1].shape.sort is Sort.MISSING
                pause = Pause(row.t - (latest_event if waited else latest), waited)
                lines.insert(len(lines) - 1 if is_missing else len(lines), Row(pause))
            latest, latest_event = row.t, row.t if row.number else latest_event
        places.append(len(lines))
        lines.append(row)
    return tuple(lines), tuple(Bar(bar.column, places[bar.first], places[bar.last]) for bar in bars)


# --- one row each ------------------------------------------------------------------------------------------------------------


def _leases(messages: Sequence[str]) -> str:
    if len(messages) == 1:
        return f"lease of {messages[0]} may end"
    return f"leases of {' and '.join(messages)} may end" if len(messages) == 2 else f"{len(messages):,} leases may end"


def _deadline(finding: Finding) -> Shape:
    """Return the row at the end of a wait, which any event marks, whatever it is about."""
    seconds = finding.facts.get("seconds")
    waited = f", {lasting(seconds)} after the wait began" if isinstance(seconds, float | int) else ""
    return Banner(f"the deadline passed{waited}")


def _shape(columns: Columns, event: Event, seen: set[tuple[str, str]]) -> Shape:
    if not isinstance(event, events.Delivered):
        return _SHAPES[type(event)](columns, event)
    details = [
        f"bad {event.defect}" if event.defect else "",
        "" if event.matches_filter else "filtered",
        "again" if (event.subscription, event.message_id) in seen else "",
        _on(columns, event),
        f"attempt {event.delivery_attempt}" if event.delivery_attempt > 1 else "",
    ]
    column, record = columns.of(event.subscription, event.session), columns.record(event.message_id)
    return Arrow(SERVICE, column, Sort.DELIVERY, columns.message(event), "", record, tuple(filter(None, details)))


def _on(columns: Columns, event: events.Delivered | Answer) -> str:
    session = columns.session(event.subscription, event.session)
    return f"on {session}" if session else ""


def _reply(columns: Columns, event: events.PublishEvent, verb: str) -> Arrow:
    record = short(event.message_id) if isinstance(event, events.Published) else ""
    return Arrow(SERVICE, PUBLISHER, Sort.REPLY, columns.message(event), verb, record)


def _answer(columns: Columns, event: Answer, verb: str) -> Arrow:
    column = columns.of(event.subscription, event.session)
    ends = (SERVICE, column) if isinstance(event, events.AckConfirmed) else (column, SERVICE)
    detail = f"of {event.seconds:g} s" if isinstance(event, events.LeaseModified) else _on(columns, event)
    message, record = columns.named(event.message_id), columns.record(event.message_id)
    return Arrow(*ends, Sort.ANSWER, message, verb, record, (detail,) if detail else ())


def _at_session(columns: Columns, event: events.SessionEvent, sign: Sign) -> Note:
    session = columns.session(event.subscription, event.session)
    return Note(columns.of(event.subscription, event.session), sign, f"{session} {sign}".strip())


def _settling(event: events.Sought | events.FilterChanged, words: str) -> Banner:
    return Banner(f"{words}; for {event.settle_s:g} s nothing is certain" if isfinite(event.settle_s) else words)


_SHAPES: Final[Mapping[type, Callable[..., Shape]]] = {
    events.PublishInvoked: lambda columns, event: Arrow(PUBLISHER, SERVICE, Sort.PUBLISH, columns.message(event), "publish"),
    events.Published: lambda columns, event: _reply(columns, event, "confirmed"),
    events.PublishFailed: lambda columns, event: _reply(columns, event, "failed"),
    events.PublishUnknown: lambda columns, event: _reply(columns, event, "outcome unknown"),
    events.PublishAbandoned: lambda columns, event: Note(SERVICE, Sign.GONE, f"{columns.message(event)} given up"),
    events.Opened: lambda columns, event: _at_session(columns, event, Sign.OPENED),
    events.Closed: lambda columns, event: _at_session(columns, event, Sign.CLOSED),
    events.Acked: lambda columns, event: _answer(columns, event, "ack"),
    events.Nacked: lambda columns, event: _answer(columns, event, "nack"),
    events.AckConfirmed: lambda columns, event: _answer(columns, event, "ack confirmed"),
    events.LeaseModified: lambda columns, event: _answer(columns, event, "lease"),
    events.DeadLettered: lambda columns, event: Note(SERVICE, Sign.GONE, f"{columns.named(event.message_id)} dead-lettered"),
    events.Sought: lambda _, event: _settling(event, "sought"),
    events.FilterChanged: lambda _, event: _settling(event, "filter changed"),
    events.Interrupted: lambda *_: Banner("the record may have a hole here"),
    events.Ended: lambda _, event: Banner("the run ended" if event.drained else "the run was stopped"),
}
