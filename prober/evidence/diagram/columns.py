"""The columns of a diagram: the publisher, Pub/Sub, and every subscriber, or every response or request if these hold messages.

Sequence numbers name the messages. Ambiguous numbers get a mark: the epoch if there are several, a mark for each republishing, and the
message id of one of several records.

`Holding` contains the rows between which a column has unacknowledged messages, by the recorded events: the bars, for the eye only.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from math import isfinite
from string import ascii_uppercase
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import (
    AckConfirmed,
    Acked,
    Closed,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishEvent,
    SessionEvent,
)
from prober.core.rules import Mode
from prober.evidence.minimise import Numbered
from prober.evidence.naming import HOLDERS

PUBLISHER: Final = 0
SERVICE: Final = 1
REPUBLISHED: Final = "'"
REPUBLISHED_MAX: Final = 3
NAME_LENGTH_MAX: Final = 12
EPOCH_LENGTH_MAX: Final = 6

Answer: TypeAlias = Acked | Nacked | AckConfirmed | LeaseModified
OnSession: TypeAlias = SessionEvent | Delivered | Answer


@dataclass(frozen=True, slots=True)
class DiagramColumn:
    """A column: `role` is its sort, `name` its name; `subscription` is empty unless there are several.

    `short`: the name without its run prefix, which many subscribers share.
    """

    role: str
    name: str
    subscription: str = ""
    short: str = ""


class Columns:
    """The columns of all sessions, and the names of messages and sessions in them. `epochs`: short names, if there are several.

    At most `subscribers_max` have a separate column; if there are more, one fewer, and the others share a last column. The columns of the
    events in `marked` come first. `opened` contains the starts of sessions from before the history.
    """

    def __init__(
        self, history: Iterable[Numbered], opened: Iterable[Opened], mode: Mode, subscribers_max: int, marked: Container[int]
    ) -> None:
        numbered = tuple(history)
        shown = [event for _, event in numbered]
        begun = [*opened, *(event for event in shown if isinstance(event, Opened))]
        self._subscribers = {(event.subscription, event.session): event.subscriber for event in begun}
        self._sessions = dict.fromkeys((event.subscription, event.session) for event in shown if isinstance(event, OnSession))
        owners = list(dict.fromkeys((subscription, self._owner(subscription, session)) for subscription, session in self._sessions))
        several = len({subscription for subscription, _ in owners}) > 1
        alone = owners
        if len(owners) > subscribers_max:
            on_session = ((number, event) for number, event in numbered if isinstance(event, OnSession))
            needed = {(e.subscription, self._owner(e.subscription, e.session)) for number, e in on_session if number in marked}
            first = sorted(owners, key=lambda owner: owner not in needed)[: subscribers_max - 1]
            alone = [owner for owner in owners if owner in first]
        self._places = {owner: place for place, owner in enumerate(alone, SERVICE + 1)}
        epochs = dict.fromkeys(event.epoch for event in shown if isinstance(event, PublishEvent | Delivered))
        named = [
            DiagramColumn(HOLDERS[mode], name, subscription if several else "", _without_run(name, epochs))
            for subscription, name in alone
        ]
        rest = len(owners) - len(alone)
        others = [DiagramColumn(f"{HOLDERS[mode]}s", f"{rest:,} more")] if rest else []
        self.all = (DiagramColumn("", "publisher"), DiagramColumn("", "Pub/Sub"), *named, *others)
        self.epochs = _short_names(epochs) if len(epochs) > 1 else {}
        self._numbers: dict[str, set[str]] = {}
        self._ids: dict[str, set[str]] = {}
        for event in shown:
            if isinstance(event, Published | Delivered):
                self._numbers.setdefault(event.message_id, set()).add(self.message(event))
                self._ids.setdefault(self.message(event), set()).add(event.message_id)

    def of(self, subscription: str, session: str) -> int:
        """Return the column of a session."""
        return self._places.get((subscription, self._owner(subscription, session)), len(self.all) - 1)

    def session(self, subscription: str, session: str) -> str:
        """Return the name of a session among others in its column; empty if it is alone there."""
        column = self.of(subscription, session)
        if sum(self.of(*other) == column for other in self._sessions) == 1:
            return ""
        rest = session.removeprefix(self._owner(subscription, session))
        return short(session if not rest or rest[0].isalnum() else rest)

    def any_of(self, subscription: str) -> int | None:
        """Return a column of a subscription, for a missing message; None if it has no session."""
        return next((self.of(*one) for one in self._sessions if one[0] == subscription), None)

    def message(self, event: PublishEvent | Delivered) -> str:
        """Return the number of a message, with the marks that distinguish it."""
        epoch = f"{self.epochs[event.epoch]}:" if self.epochs else ""
        return f"{epoch}{event.seq}{REPUBLISHED * min(event.generation, REPUBLISHED_MAX)}"

    def named(self, message_id: str) -> str:
        """Return the displayed name of the message of an id; the id itself if the message is unknown."""
        numbers = self._numbers.get(message_id, set())
        return min(numbers) if len(numbers) == 1 else short(message_id)

    def record(self, message_id: str) -> str:
        """Return the id of a record if the number is ambiguous: a message with several ids, or an id with several messages. Else ""."""
        numbers = self._numbers.get(message_id, set())
        return short(message_id) if len(numbers) > 1 or any(len(self._ids[number]) > 1 for number in numbers) else ""

    def _owner(self, subscription: str, session: str) -> str:
        return self._subscribers.get((subscription, session), session)


def _without_run(name: str, epochs: Iterable[str]) -> str:
    return next((name.removeprefix(f"{epoch}-") for epoch in epochs if name.startswith(f"{epoch}-")), name)


def _short_names(epochs: Iterable[str]) -> Mapping[str, str]:
    """Return the names of epochs before a number: unchanged if all are short, else letters that are no names of epochs."""
    names = list(epochs)
    if all(len(name) <= EPOCH_LENGTH_MAX for name in names):
        return {name: name for name in names}
    letters = (letter * times for times in count(1) for letter in ascii_uppercase)
    return dict(zip(names, (label for label in letters if label not in names), strict=False))


def short(name: str) -> str:
    """Shorten a message id or the name of a session to fit a column: the last characters distinguish real ones."""
    return name if len(name) <= NAME_LENGTH_MAX else ".." + name[-8:]


class Bar(NamedTuple):
    """A column with outstanding messages from one row to another."""

    column: int
    first: int
    last: int


class LeaseEnd(NamedTuple):
    """The possible end of the leases of some messages in a column."""

    t: float
    column: int
    messages: tuple[str, ...]


@dataclass(slots=True)
class _Copy:
    """A delivered message: its column, its session, its place among the first deliveries, and the possible end of its lease."""

    column: int
    session: str
    order: int
    ends_t: float


class Holding:
    """The outstanding messages of each column, from the events of a history.

    Callers pass each event with the index of its row. `ack_deadline_s` None: the history may lack acknowledgements, so the diagram shows no
    outstanding messages.
    """

    def __init__(self, columns: Columns, ack_deadline_s: float | None) -> None:
        self._columns = columns
        self._ack_deadline_s = ack_deadline_s
        self._copies: dict[tuple[str, str], _Copy] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._since: dict[int, int] = {}
        self._bars: list[Bar] = []

    def until(self, t: float, row: int) -> list[LeaseEnd]:
        """Return the leases that may have ended by `t`, one entry per column, in order; the first entry is drawn on `row`."""
        ended: dict[int, list[tuple[float, str]]] = {}
        for ends_t, column, name in sorted(
            (copy.ends_t, copy.column, name) for name, copy in self._copies.items() if copy.ends_t < t
        ):
            ended.setdefault(column, []).append((ends_t, self._columns.named(name[1])))
            del self._copies[name]
        for place, column in enumerate(ended, row):
            self._end_bar(column, place)
        return [LeaseEnd(leases[0][0], column, tuple(named for _, named in leases)) for column, leases in ended.items()]

    def take(self, event: Event, row: int) -> None:
        """Process an event that is drawn on this row, or omitted after it."""
        match event:
            case Delivered():
                self._deliver(event)
            case Acked() | Nacked() | AckConfirmed():
                self._copies.pop((event.subscription, event.message_id), None)
            case LeaseModified():
                copy = self._copies.get((event.subscription, event.message_id))
                if copy is not None and isfinite(event.seconds):
                    copy.ends_t = event.t + event.seconds
            case Closed():
                self._drop(event.subscription, lambda copy: copy.session == event.session)
        holding = {copy.column for copy in self._copies.values()}
        for column in self._since.keys() - holding:
            self._end_bar(column, row)
        for column in holding - self._since.keys():
            self._since[column] = max(0, row)

    def bars(self, rows: int) -> Iterator[Bar]:
        """Yield all bars; open ones extend to the last row."""
        yield from self._bars
        yield from (Bar(column, first, rows - 1) for column, first in self._since.items())

    def _deliver(self, event: Delivered) -> None:
        """Add a delivery; a redelivery restarts the key and ends the holds of this message and later ones."""
        name = event.subscription, event.message_id
        order = self._order.setdefault(name, len(self._order))
        self._drop(event.subscription, lambda copy: copy.order >= order)
        if self._ack_deadline_s is None:
            return
        column = self._columns.of(event.subscription, event.session)
        self._copies[name] = _Copy(column, event.session, order, event.t + self._ack_deadline_s)

    def _drop(self, subscription: str, ends: Callable[[_Copy], bool]) -> None:
        for name in [name for name, copy in self._copies.items() if name[0] == subscription and ends(copy)]:
            del self._copies[name]

    def _end_bar(self, column: int, row: int) -> None:
        if not any(copy.column == column for copy in self._copies.values()) and column in self._since:
            self._bars.append(Bar(column, self._since.pop(column), max(0, row)))
