"""Where the service began again, lately: what was sent before that may arrive after it.

A delivery takes up to Delta from the service to the recorder. So one that arrives while another subscriber holds the key may have been
sent before that one's run began: the key was let go in between, unseen by any client. It was if

* the run is a repetition that began at the delivery's position or below: what was sent before is dropped then, whatever it was;
* everything below the delivery had been received before that run began, else it would have been a skip;
* nothing below it was certainly held elsewhere just before that run began: then it was no split either.

A `Break` is the beginning of such a run: of a redelivery that does not continue the run of its own session.
"""

from __future__ import annotations

from typing import Final

from prober.core.positions import LearnedLog
from prober.core.sessions import Arrival, Tracks

BREAKS_KEPT: Final = 8
"""Breaks remembered per key; beyond that the two oldest become one that explains what either explains."""


class Break:
    """The service began again at `position` on a session, seen at `t`, when the log was known up to `frontier`.

    `held`: the lowest position that each subscriber certainly held just before.
    """

    __slots__ = ("frontier", "held", "position", "session", "t")

    def __init__(self, t: float, session: str, position: int, frontier: int, held: tuple[tuple[int, str], ...]) -> None:
        self.t = t
        self.session = session
        self.position = position
        self.frontier = frontier
        self.held = held

    def explains(self, arrival: Arrival, sent_t: float) -> bool:
        """Whether a delivery, sent at `sent_t` or later, may have been sent before the break."""
        position, session = arrival.position, arrival.track.session
        if self.t < sent_t or self.session == session.name or not self.position <= position <= self.frontier + 1:
            return False
        return not any(held < position and holder != session.subscriber for held, holder in self.held)

    def join(self, other: Break) -> Break:
        """One that explains whatever either does, and perhaps more."""
        return Break(max(self.t, other.t), "", min(self.position, other.position), max(self.frontier, other.frontier), ())


def with_break(kept: tuple[Break, ...], arrival: Arrival, tracks: Tracks, log: LearnedLog, oldest_t: float) -> tuple[Break, ...]:
    """The breaks of a key when a redelivery begins a run; those before `oldest_t` explain nothing any more."""
    lowest = ((track.lowest_held(arrival.t, log.floor), track.session.subscriber) for track in tracks)
    held = tuple((position, subscriber) for position, subscriber in lowest if position)
    session = arrival.track.session.name
    kept = (*(one for one in kept if one.t >= oldest_t), Break(arrival.t, session, arrival.position, log.frontier, held))
    return kept if len(kept) <= BREAKS_KEPT else (kept[0].join(kept[1]), *kept[2:])
