"""Who has messages that it has not acknowledged, as far as the events tell: the bars of a diagram. For the eye only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import NamedTuple

from api.lanes.columns import Columns
from prober.core.events import AckConfirmed, Acked, Closed, Delivered, Event, LeaseModified, Nacked


class Bar(NamedTuple):
    """A lane holds something from one line to another."""

    lane: int
    first: int
    last: int


class LeaseEnd(NamedTuple):
    """The leases of some messages in a lane may end from then on."""

    t: float
    lane: int
    messages: tuple[str, ...]


@dataclass(slots=True)
class _Copy:
    """A delivered message: its lane, its session, where it stands among the first deliveries, and when its lease may end."""

    lane: int
    session: str
    order: int
    ends_t: float


class Holding:
    """Told each event with the line on which it stands."""

    def __init__(self, columns: Columns, ack_deadline_s: float) -> None:
        self._columns = columns
        self._ack_deadline_s = ack_deadline_s
        self._copies: dict[tuple[str, str], _Copy] = {}
        self._order: dict[tuple[str, str], int] = {}
        self._since: dict[int, int] = {}
        self._bars: list[Bar] = []

    def until(self, t: float, line: int) -> list[LeaseEnd]:
        """The leases that may have ended by then, one entry per lane, in order; the first will stand on `line`."""
        ended = sorted((copy.lane, copy.ends_t, name) for name, copy in self._copies.items() if copy.ends_t < t)
        ends = []
        for lane, group in groupby(ended, key=lambda copy: copy[0]):
            copies = list(group)
            for _, _, name in copies:
                del self._copies[name]
            ends.append(LeaseEnd(copies[0][1], lane, tuple(self._columns.named(name[1]) for _, _, name in copies)))
        ends.sort()
        for number, end in enumerate(ends):
            self._update(end.lane, line + number)
        return ends

    def take(self, event: Event, line: int) -> None:
        """An event happens on this line, or on one that is left out after it."""
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
        for lane in {*self._since, *(copy.lane for copy in self._copies.values())}:
            self._update(lane, line)

    def bars(self, lines: int) -> Iterator[Bar]:
        """All bars; those that are still open reach to the last line."""
        yield from self._bars
        yield from (Bar(lane, first, lines - 1) for lane, first in self._since.items())

    def _deliver(self, event: Delivered) -> None:
        """When a message comes again, the key starts again from there: what was held from there on is held no more."""
        name = event.subscription, event.message_id
        order = self._order.setdefault(name, len(self._order))
        self._drop(event.subscription, lambda copy: copy.order >= order)
        lane = self._columns.of(event.subscription, event.session)
        self._copies[name] = _Copy(lane, event.session, order, event.t + self._ack_deadline_s)

    def _drop(self, subscription: str, ends: Callable[[_Copy], bool]) -> None:
        for name in [name for name, copy in self._copies.items() if name[0] == subscription and ends(copy)]:
            del self._copies[name]

    def _update(self, lane: int, line: int) -> None:
        held = any(copy.lane == lane for copy in self._copies.values())
        if held and lane not in self._since:
            self._since[lane] = max(0, line)
        elif not held and lane in self._since:
            self._bars.append(Bar(lane, self._since.pop(lane), max(0, line)))
