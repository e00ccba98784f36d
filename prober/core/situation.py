"""An order of sends that `search` tries, up to some send, and the holds after it (docs/model.md, 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prober.core.facts import Delivery


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
