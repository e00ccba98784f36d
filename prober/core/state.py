"""The state of one key on one subscription after a send (docs/model.md, sections 5 and 7): the last send, and the holds.

`State` is that of the accepted deliveries; `Situation` that of an order of sends that `search` tries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from operator import itemgetter

from prober.core.facts import Delivery

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


class Hold:
    """Deliveries that may be held, as a list from the highest position down.

    signature   equal for lists of the same deliveries, without those that do not count: no other subscriber is connected.
    owner       of all of them, None if there are several.
    lowest      the lowest position.
    """

    __slots__ = ("delivery", "lowest", "owner", "position", "rest", "signature")

    def __init__(self, position: int, delivery: Delivery, rest: Hold | None, *, counts: bool = True) -> None:
        self.position = position
        self.delivery = delivery
        self.rest = rest
        self.lowest: int = position if rest is None else rest.lowest
        self.owner: str | None = delivery.owner if rest is None or rest.owner == delivery.owner else None
        below = rest.signature if rest is not None else 0
        self.signature: int = hash((position, delivery.number, below)) if counts else below

    def __iter__(self) -> Iterator[tuple[int, Delivery]]:
        hold: Hold | None = self
        while hold is not None:
            yield hold.position, hold.delivery
            hold = hold.rest


def held_below(held: Iterable[tuple[int, Delivery]], owner: str | None, position: int) -> Iterator[tuple[int, Delivery]]:
    """Yield the possible holds of others below a position, the highest first, down to the first hold of the owner itself."""
    for at, delivery in held:
        if delivery.owner == owner:
            return
        if at < position:
            yield at, delivery


def held_on(hold: Hold | None, position: int, delivery: Delivery, *, counts: bool = True) -> Hold:
    """Return the holds after a send: a redelivery ends the holds at and above its position."""
    while hold is not None and hold.position >= position:
        hold = hold.rest
    return Hold(position, delivery, hold, counts=counts)


def held_at(hold: Hold | None, owner: str | None) -> Hold | None:
    """Return the holds of one owner."""
    if hold is None or hold.owner == owner:
        return hold
    kept = None
    for position, delivery in reversed([one for one in hold if one[1].owner == owner]):
        kept = held_on(kept, position, delivery)
    return kept


class Situation:
    """An order of sends up to some send.

    sent        how many deliveries of each session were sent, in order.
    learned     the new records, in order.
    complete    how many of the publications, in their order, are in the log without a gap.
    before, before_position, hold   the last send, and the deliveries that may be held.
    key         situations with the same key have the same continuations.
    """

    __slots__ = ("_order", "before", "before_position", "complete", "hold", "key", "learned", "sent")

    def __init__(self, before: Delivery | None, before_position: int, hold: Hold | None, sessions: int) -> None:
        self.sent: tuple[int, ...] = (0,) * sessions
        self.learned: tuple[int, ...] = ()
        self._order = self.complete = 0
        self._set_state(before, before_position, hold)

    def _set_state(self, before: Delivery | None, before_position: int, hold: Hold | None) -> None:
        self.before = before
        self.before_position = before_position
        self.hold = hold
        number = None if before is None else before.number
        self.key = self.sent, self._order, number, None if hold is None else hold.signature

    def after(self, session: int, learned: int | None, before: Delivery | None, position: int, hold: Hold | None) -> Situation:
        """Return the situation after the next send of a session; `learned`: its record, if that is new."""
        after = object.__new__(Situation)
        after.sent = (*self.sent[:session], self.sent[session] + 1, *self.sent[session + 1 :])
        after.complete = self.complete
        after.learned = self.learned if learned is None else (*self.learned, learned)
        after._order = self._order if learned is None else hash((self._order, learned))
        after._set_state(before, position, hold)
        return after
