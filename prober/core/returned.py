"""What a control operation may have passed over, and what a seek brings back for certain.

A seek or a change of the filter may pass over everything that was published before it had settled. What comes after that, it has not.

What a seek back brings: everything that was published since some moment is unacknowledged again, and comes in order.

That can be proven only of what comes when the seek has settled, and only if nothing of the key came in between: what did may have been
acknowledged since. So who wants to know lets nobody consume until then. An acknowledgement that was sent before, and may be applied after
the seek, excuses its own message.

What is missing is told as REDELIVERY_SKIP, and as REDELIVERY_STALL if nothing goes on at all: a seek back is a redelivery of all of it.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from prober.core.collector import Counts
from prober.core.owed import RedeliveryRun
from prober.core.positions import REMOVED, STAYED, LearnedLog
from prober.core.sessions import Arrival
from prober.core.skips import Predecessor
from prober.core.splits import Acknowledgements


class Returned(NamedTuple):
    """A seek at `sought_t`, event `number`, settled at `settled_t`: what was published since `since_t` comes again."""

    since_t: float
    sought_t: float
    settled_t: float
    number: int


class Return:
    """What of one key a seek brings back: all positions from `start` up to `target`, those that were acknowledged since excepted.

    over    all of it has come.
    run     what is owed because of it: nothing of that was sent before the seek had settled.
    """

    __slots__ = ("_acks", "_begun", "_seek", "_start", "_target", "over", "run")

    def __init__(self, seek: Returned, acks: Acknowledgements | None, start: int, target: int) -> None:
        self._seek, self._acks = seek, acks
        self._start, self._target = start, target
        self._begun, self.over = False, target < start
        settled_t = seek.settled_t
        self.run = None if self.over else RedeliveryRun(target, 0, seek.number, settled_t, start, settled_t, seek.sought_t)

    def behind(self, arrival: Arrival, before: Predecessor, counts: Counts) -> Predecessor:
        """What a delivery may have been sent behind, of all that came since; the first behind the seek. Counts chances."""
        if self.over:
            return before
        if not before.number and not self._begun:
            before = Predecessor(self._start - 1, self._seek.number, self._seek.settled_t)
        self._begun, self.over = True, arrival.position == self._target
        next_one = before.number > 0 and arrival.position == before.position + 1
        counts.chances_seek += next_one and self._is_certain(arrival.position)
        return before

    def certain(self, positions: list[int]) -> list[int]:
        """Those that certainly come again."""
        return [position for position in positions if self._is_certain(position)]

    def undid_acks(self, position: int) -> bool:
        """Whether the seek has certainly undone every acknowledgement of a position, and none was sent since."""
        return self._acks is not None and self._is_certain(position) and self._acks.all_known(position)

    def _is_certain(self, position: int) -> bool:
        acks = self._acks if self._start <= position <= self._target else None
        return acks is not None and not acks.may_end(position, self._seek.sought_t)


NOTHING: Final = Return(Returned(inf, inf, inf, 0), None, 1, 0)
"""No seek, or nothing is certain of it."""


def brought_back(seek: Returned, log: LearnedLog, acks: Acknowledgements) -> Return:
    """What a settled seek brings back of a key to which nothing came since.

    It begins with the lowest position from which on everything was published since.
    """
    start = log.frontier + 1
    while log.holds(start - 1) and log.invoked_t(start - 1) >= seek.since_t and not log.flags(start - 1) & REMOVED:
        start -= 1
    return Return(seek, acks, start, log.frontier)


class PassedOver:
    """What of one key the latest control operation may have passed over: positions up to `frontier` that did not come since."""

    __slots__ = ("_log", "frontier")

    def __init__(self, log: LearnedLog) -> None:
        self._log = log
        self.frontier = 0

    def begin(self, frontier: int) -> None:
        """Another control operation."""
        self.frontier = frontier
        self._log.unmark(STAYED)

    def came(self, position: int) -> None:
        """A position was sent when the control operation had settled."""
        if position <= self.frontier:
            self._log.mark(position, STAYED)

    def others(self, positions: list[int]) -> list[int]:
        """Those that it has certainly not passed over."""
        return [position for position in positions if not self.may_have(position)]

    def may_have(self, position: int) -> bool:
        """Whether it may have passed over a position inside the window."""
        return position <= self.frontier and not self._log.flags(position) & STAYED


def left_out(positions: list[int], returned: Return, passed_over: PassedOver) -> list[int]:
    """Those that no control operation explains: what a seek certainly brings back, or else what it has certainly not passed over."""
    return returned.certain(positions) or passed_over.others(positions)
