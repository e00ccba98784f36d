"""Who has messages that it has not acknowledged, as far as the events tell: the bars of a diagram. For the eye only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from prober.core.events import AckConfirmed, Acked, Closed, Delivered, Event, LeaseModified, Nacked
from prober.evidence.diagram.columns import Columns


class Bar(NamedTuple):
    """A column holds something from one row to another."""

    column: int
    first: int
    last: int


class LeaseEnd(NamedTuple):
    """The leases of some messages in a column may end from then on."""

    t: float
    column: int
    messages: tuple[str, ...]


@dataclass(slots=True)
class _Copy:
    """A delivered message: its column, its session, where it stands among the first deliveries, and when its lease may end."""

    column: int
    session: str
    order: int
    ends_t: float


class Holding:
    """Told each event with the index of the row on which it stands.

    `ack_deadline_s` None: the history is not known to have the acknowledgements, so nothing is said of what is held.
    """

    def __init__(self, columns: Columns, ack_deadline_s: float | None) -> None:
        self._columns = columns
        self._ack_deadline_s = ack_deadline_s
        self._copies: dict[tuple[str, str], _Copy] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._since: dict[int, int] = {}
        self._bars: list[Bar] = []

    def until(self, t: float, row: int) -> list[LeaseEnd]:
        """The leases that may have ended by then, one entry per column, in order; the first will stand on `row`."""
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
        """An event happens on this row, or is left out after it."""
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
        """All bars; those that are still open reach to the last row."""
        yield from self._bars
        yield from (Bar(column, first, rows - 1) for column, first in self._since.items())

    def _deliver(self, event: Delivered) -> None:
        """When a message comes again, the key starts again from there: what was held from there on is held no more."""
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
