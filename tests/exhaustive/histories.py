"""Every small delivery history, up to names, and its events.

What is enumerated: arrival sequences of (session, position). Sessions are named in the order of their first appearance, so each pattern
of sessions occurs once; `growth` yields such canonical sequences. Where messages are first received in log order, positions are
canonical in the same way (the n-th new message has position n).

A *grid* says when things happen. With the delay bound 1 and steady gaps between receipts of 0.1, 0.4, 0.6, 1 and 1.5, receipts
provably ordered are: none, those three apart or more, two apart or more, two apart (one apart is exactly the bound, and not more), and
all. The grid "late" has no delay bound at all: there a session is opened, and a message published, at the same instant as the receipt
before it or between the two, and this alone orders sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from prober.core.events import Delivered, Event, Opened, Published, PublishInvoked, PublishUnknown
from prober.core.rules import Mode, Rules
from tests.exhaustive.oracle import Receipt

SUBSCRIPTION = "s"
KEY = "k"
EPOCH = "e1"
START = 100.0


def growth(length: int, limit: int) -> Iterator[tuple[int, ...]]:
    """All sequences over 1..limit in which the n-th new number is n."""
    if not length:
        yield ()
        return
    for head in growth(length - 1, limit):
        for number in range(1, min(max(head, default=0) + 1, limit) + 1):
            yield (*head, number)


@dataclass(frozen=True, slots=True)
class Grid:
    """When the deliveries are received; `late`: sessions are opened and messages published only then, `late` before the receipt."""

    name: str
    gaps: tuple[float, ...]
    delay_max: float = 1.0
    late: float | None = None

    def times(self, count: int) -> list[float]:
        times = [START]
        for place in range(count - 1):
            times.append(times[-1] + self.gaps[place % len(self.gaps)])
        return times


GRIDS = (
    Grid("none certain", (0.1,)),
    Grid("three apart", (0.4,)),
    Grid("two apart", (0.6,)),
    Grid("exactly the bound", (1.0,)),
    Grid("all certain", (1.5,)),
    Grid("mixed", (0.3, 1.2, 0.8)),
    Grid("late", (1.0,), inf, 0.5),
    Grid("late, at the same instant", (1.0,), inf, 1.0),
)


def rules(grid: Grid, mode: Mode = Mode.STREAMING) -> Rules:
    """No liveness: these histories end when they please."""
    return Rules(
        mode=mode,
        delivery_delay_max_s=grid.delay_max,
        delivery_deadline_s=inf,
        stall_deadline_s=inf,
        unacked_deadline_s=inf,
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival sequence: per delivery its session and its position, and how many messages were published."""

    sessions: tuple[int, ...]
    positions: tuple[int, ...]
    grid: Grid

    def receipts(self) -> list[Receipt]:
        return [
            Receipt(f"S{session}", position, time, max(time - self.grid.delay_max, self._existed(place)))
            for place, (session, position, time) in enumerate(
                zip(self.sessions, self.positions, self.grid.times(len(self.sessions)), strict=True)
            )
        ]

    def _existed(self, place: int) -> float:
        """Since when both the session and the message of this delivery existed."""
        return max(self._opened(self.sessions[place]), self._published(self.positions[place]))

    def _opened(self, session: int) -> float:
        return 0.0 if self.grid.late is None else self._first(self.sessions, session) - self.grid.late

    def _published(self, position: int) -> float:
        if self.grid.late is None:
            return float(position)
        return min(self._first(self.positions, p) for p in self.positions if p >= position) - self.grid.late

    def _first(self, names: Sequence[int], name: int) -> float:
        return self.grid.times(len(names))[names.index(name)]

    def events(self, confirmed: bool = True, one_batch: bool = False, one_owner: bool = False) -> list[Event]:
        """The record: every position up to the highest is published (confirmed at once, or never, or all together).

        Every session is a subscriber of its own, or all are streams of one.
        """
        events: list[Event] = []
        for session in sorted(set(self.sessions)):
            events.append(Opened(self._opened(session), SUBSCRIPTION, f"S{session}", "S" if one_owner else f"S{session}"))
        for position in range(1, max(self.positions) + 1):
            events.extend(_publish(self._published(position), position, confirmed, one_batch, max(self.positions)))
        for receipt in self.receipts():
            events.append(delivered(receipt.received, receipt.session, receipt.position))
        return sorted(events, key=lambda event: event.t)


def _publish(invoked: float, position: int, confirmed: bool, one_batch: bool, last: int) -> list[Event]:
    if one_batch:
        invoked = 1.0
    done = invoked if not one_batch else 1.0 + last
    events: list[Event] = [PublishInvoked(invoked, KEY, EPOCH, position)]
    if confirmed:
        events.append(Published(done, KEY, EPOCH, position, f"m{position}"))
    else:
        events.append(PublishUnknown(done, KEY, EPOCH, position))
    return events


def delivered(t: float, session: str, position: int) -> Delivered:
    """The receipt of the record at a position."""
    return Delivered(t, SUBSCRIPTION, KEY, session, EPOCH, position, f"m{position}")
