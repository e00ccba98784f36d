"""The state of one key on one subscription after a send (docs/model.md, section 5): the last send, and the holds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import inf
from operator import itemgetter

from prober.core.facts import Delivery
from prober.core.situation import Hold, held_on

TRIM_AT = 4
"""Number of holds above which acknowledged ones are dropped; afterwards twice the number left."""

_position = itemgetter(0)


class State:
    """The state after a send. `held` are the deliveries that may be outstanding, by ascending position.

    A redelivery ends the holds at and above its own position.

    before, before_position     the send before the next one; None if that is not known.
    releases    whether a redelivery may have left out messages held by others below it: with a dead-letter policy (6.4).
    """

    __slots__ = ("_trim_at", "_unacked", "before", "before_position", "held", "releases")

    def __init__(self, *, releases: bool = False) -> None:
        self.releases = releases
        self.before: Delivery | None = None
        self.before_position = 0
        self.held: list[tuple[int, Delivery]] = []
        self._unacked: list[tuple[int, Delivery]] = []
        self._trim_at = TRIM_AT

    def sent(self, position: int, delivery: Delivery) -> None:
        """Note a send. After an unplaced delivery only the position that it precedes (`bound`) is known."""
        if delivery.unplaced:
            self.reset()
            if delivery.bound:
                self.restart(delivery, delivery.bound - 1)
            return
        if self.releases and not delivery.first:
            self.held = [one for one in self.held if one[1].owner == delivery.owner]
            self._unacked = [one for one in self._unacked if one[1].owner == delivery.owner]
        held, unacked = self.held, self._unacked
        if position <= self.before_position:
            while held and held[-1][0] >= position:
                held.pop()
            while unacked and unacked[-1][0] >= position:
                unacked.pop()
        hold = position, delivery
        held.append(hold)
        unacked.append(hold)
        self.before = delivery
        self.before_position = position
        if len(held) > self._trim_at:
            self._trim(delivery.earliest_t)

    def _trim(self, since_t: float) -> None:
        """Forget holds that were acknowledged before a time: they do not concern later sends."""
        self.held = [one for one in self.held if one[1].acked_t >= since_t]
        self._unacked = self.outstanding()
        self._trim_at = max(TRIM_AT, 2 * len(self.held))

    def forget(self, floor: int) -> None:
        """Forget the holds of forgotten positions."""
        for holds in (self.held, self._unacked):
            del holds[: bisect_right(holds, floor, key=_position)]

    def reset(self) -> None:
        """Forget the last send and the holds."""
        self.before = None
        self.before_position = 0
        self.held, self._unacked = [], []

    def restart(self, before: Delivery, position: int) -> None:
        """Forget the holds; the next send is legal up to the position after `position`, the one of `before`."""
        self.reset()
        self.before, self.before_position = before, position

    def drop(self, token: int) -> None:
        """Forget the holds of a message that left the subscription."""
        self.held = [one for one in self.held if one[1].token != token]
        self._unacked = [one for one in self._unacked if one[1].token != token]

    def copy(self) -> State:
        """Return a copy of the state."""
        other = State(releases=self.releases)
        other.before, other.before_position = self.before, self.before_position
        other.held, other._unacked = list(self.held), list(self._unacked)
        return other

    def outstanding(self) -> list[tuple[int, Delivery]]:
        """Return the holds that were not acknowledged so far."""
        self._unacked = [one for one in self._unacked if one[1].acked_t == inf]
        return self._unacked

    def latest_outstanding(self) -> Iterator[tuple[int, Delivery]]:
        """Yield the holds that were not acknowledged so far, the highest position first."""
        return (one for one in reversed(self._unacked) if one[1].acked_t == inf)

    def hold(self) -> Hold | None:
        """Return the holds in the form of the search."""
        hold = None
        for position, delivery in self.held:
            hold = held_on(hold, position, delivery)
        return hold
