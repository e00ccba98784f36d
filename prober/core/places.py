"""How certain it is where a record stands in the learned log, and so what is promised to come before what.

Where sessions race, the order in which records are first received need not be that of the log. What certainly had to come first was waited
for (`racing`); beyond that, a record may have changed places with those of other sessions that were received within the race of it. These
are marked RACED, so a record without the mark stands where it is, and everything before and behind it does too:

*two records stand in the order in which they were learned if one between them, or one of the two, is not marked;* or if they were first
received on one session, or further apart than the race. Some have no certain place at all (PLACELESS): nothing is concluded from those.

Beyond that, the writer's own order binds what it handed over one after the other, whatever raced; and order holds within a publishing
region only.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.positions import OLDER, PLACELESS, PRIMARY, RACED, SENT_BESIDE, SHARED, UNPROVEN, LearnedLog
from prober.core.racing import Abreast, First
from prober.core.rules import Rules
from prober.core.sessions import Arrival

if TYPE_CHECKING:
    from prober.core.order import OrderCheck

RACING: Final = "they arrived on several sessions at about the same time, so in which order they were sent is not known"
SOONER_MAX: Final = 256
"""Records remembered that may stand sooner than they were learned; the oldest have no certain place beyond that."""


CAME_MAX: Final = 256
"""Records whose first receipt is remembered where sessions race; of older ones nobody knows what was published after that."""


class Places:
    """The places of the records of one key on one subscription.

    _sooner     those that may stand sooner than they were learned.
    _came_t     when the latest came for the first time, at the latest by any clock.
    """

    __slots__ = ("_abreast", "_came_t", "_log", "_sooner")

    def __init__(self, log: LearnedLog) -> None:
        self._log = log
        self._abreast: Abreast | None = None
        self._sooner: dict[int, None] | None = None
        self._came_t: dict[int, float] | None = None

    def learned(self, first: First, session: str, waiting: Iterable[First], eps: float, unsettled_until_t: float) -> None:
        """Where sessions race: a record was learned, and marked are those whose order only their arrival tells; see `Abreast.learn`."""
        if not first.proven:
            self._log.mark(first.position, UNPROVEN)
        came_t = self._came_t = self._came_t or {}
        came_t[first.position] = first.t + eps
        if len(came_t) > CAME_MAX:
            del came_t[next(iter(came_t))]
        self._abreast = self._abreast or Abreast()
        raced = self._abreast.learn(first, session, waiting, eps, unsettled_until_t)
        for position in raced:
            self._log.race(position)
        if 0 in raced:
            self.lose(first.position)

    def came_since(self, invoked_t: float) -> list[float]:
        """When records came for the first time, of those where sessions race, that may have come after a publish was invoked."""
        return [t for t in self._came_t.values() if t >= invoked_t] if self._came_t else []

    def lose(self, position: int) -> None:
        """A record may stand anywhere."""
        self._log.mark(position, RACED | PLACELESS)

    def lose_beside(self, position: int) -> None:
        """A record that was sent before others came after them, because a stream took it, or perhaps did."""
        self._log.mark(position, RACED | PLACELESS | SENT_BESIDE)

    def advance(self, position: int) -> None:
        """A record may stand sooner than it was learned."""
        self._log.mark(position, RACED)
        sooner = self._sooner = self._sooner or {}
        sooner[position] = None
        if len(sooner) > SOONER_MAX:
            oldest = next(iter(sooner))
            del sooner[oldest]
            if self._log.holds(oldest):
                self.lose(oldest)

    def copied(self, one: int, other: int) -> None:
        """Two records share one message id: where they raced, nothing proves which of them is the first."""
        for position in self._abreast.doubt(one, other) if self._abreast is not None else ():
            self._log.race(position)

    def came_again(self, position: int, session: str, t: float, race_s: float) -> None:
        """A copy of a record came so soon on another session that it may have been the first to be sent.

        What is known to be its message's primary was waited for by whatever it had to precede.
        """
        abreast = self._abreast
        if abreast is not None and self._log.flags(position) & UNPROVEN and abreast.may_precede(position, session, t, race_s):
            self.advance(position)

    def in_order(self, one: int, other: int) -> bool:
        """Whether a record certainly stands before another that was learned later."""
        log = self._log
        if self._placeless(one) or self._placeless(other) or (self._sooner and other in self._sooner):
            return False
        if self._came_t and log.holds(other) and self._came_t.get(one, inf) < log.invoked_t(other):
            return True  # what came before another was published
        if one <= 0 or not (log.has_raced(one) and log.has_raced(other)):
            return True
        if any(not log.flags(position) & RACED for position in range(max(one, log.floor + 1), other + 1) if log.holds(position)):
            return True
        return self.apart(one, other)

    def race_doubt(self, one: int, other: int) -> str:
        """Why it is not certain that a record stands before another that was learned later, empty if it is."""
        return "" if self.in_order(one, other) else RACING

    def apart(self, one: int, other: int) -> bool:
        """Whether two records were received for the first time on one session, or too far from each other to race, not long ago."""
        if self._abreast is None or self._placeless(one) or self._placeless(other):
            return False
        return self._abreast.apart(one, other)

    def _placeless(self, position: int) -> bool:
        return _has(self._log, position, PLACELESS)


def certainly_before(orders: OrderCheck, log: LearnedLog, position: int, arrival: Arrival) -> bool:
    """Whether what stands before a delivery in the learned log is also promised to be sent before it: no race decided that."""
    follower = arrival.position
    share, either = orders.share_region(position, follower), log.flags(position) | log.flags(follower)
    if not share or not either & (RACED | SENT_BESIDE):
        return share
    if either & OLDER or orders.several_regions:
        return False
    return precedes(orders, log, position, follower)


def continued_t(orders: OrderCheck, log: LearnedLog, rules: Rules, arrival: Arrival) -> float:
    """Since when a stream was there that is over, if the first delivery of a session goes on behind what that brought.

    Or comes again from there. So it was there when that was published; with a dead-letter policy nobody knows what that was.
    """
    before, since_t = arrival.position - 1, arrival.lo - rules.delivery_delay_max_s
    if rules.dead_letter_max_attempts or not log.holds(before) or not certainly_before(orders, log, before, arrival):
        return since_t
    return max(since_t, min(log.invoked_t(before), log.invoked_t(arrival.position)))


def precedes(orders: OrderCheck, log: LearnedLog, one: int, other: int) -> bool:
    """Whether a record certainly stands before another that was learned later: where it was learned, or by session order."""
    if not was_sent_beside(log, other) and orders.places.in_order(one, other):
        return True
    return log.holds(one) and log.holds(other) and must_precede(orders, log, one, other)


def may_stand_above(orders: OrderCheck, log: LearnedLog, position: int, floor: int) -> bool:
    """Whether a record may have changed places with that at `floor`, though it was learned before."""
    return (log.has_raced(position) or was_sent_beside(log, floor)) and not precedes(orders, log, position, floor)


def _has(log: LearnedLog, position: int, flag: int) -> bool:
    """Whether a position has a flag; False for one that has left the window."""
    return log.holds(position) and bool(log.flags(position) & flag)


def was_sent_beside(log: LearnedLog, position: int) -> bool:
    """Whether a record may have been sent before others that were learned first."""
    return _has(log, position, SENT_BESIDE)


def changes_region(orders: OrderCheck, log: LearnedLog, arrival: Arrival) -> bool:
    """Whether what came before it on its session was published in another region."""
    return log.holds(arrival.own) and not orders.share_region(arrival.own, arrival.position)


def must_precede(orders: OrderCheck, log: LearnedLog, position: int, follower: int) -> bool:
    """Whether session order binds two records inside the window, where sessions race.

    Both are primaries, neither was stored twice, and `position` was handed over first, once.
    """
    for one in (position, follower):
        if log.flags(one) & (PRIMARY | SHARED) != PRIMARY:
            return False
    seq, record = log.seq(position), orders.record_of(position)
    if record is None or log.epoch(position) != log.epoch(follower) or seq >= log.seq(follower):
        return False
    publication = record.open.get(seq)
    return record.was_attempted_once(seq) if publication is None else publication.attempts == 1
