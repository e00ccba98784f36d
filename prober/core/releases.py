"""What the service may have released of one key, and which acknowledgements may still be under way.

A client sees neither. So two things are remembered of what it did: when it last acknowledged each message (an acknowledgement is
applied within `ack_lag_max_s`, and it ends a hold of *its own* message only), and the highest position that may have been released
without one: refused, its lease perhaps over, delivered on a stream that broke, or taken back by a control operation. With exactly-once
delivery the second says which redeliveries have an explanation.
"""

from __future__ import annotations

from typing import Final

from prober.core.events import LONG_AGO
from prober.core.positions import ACKED, LearnedLog
from prober.core.rules import Rules

LEASES_KEPT: Final = 64
"""Lease ends remembered per key; beyond that neighbours become one that ends early and reaches far."""


class Acknowledgements:
    """When each message of a key was last acknowledged, as long as that may matter."""

    __slots__ = ("_forgotten_t", "_latest", "_log", "_rules")

    def __init__(self, log: LearnedLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._latest: dict[int, float] | None = None
        self._forgotten_t = LONG_AGO

    def sent(self, position: int, t: float) -> None:
        """An acknowledgement of the position is on its way."""
        latest = self._latest
        if latest is None:
            latest = self._latest = {}
        latest.pop(position, None)
        latest[position] = t
        oldest = next(iter(latest))
        over_t = t - self._rules.ack_settled_s - self._rules.clock_error_s
        if latest[oldest] < over_t:
            del latest[oldest]
        elif len(latest) > self._rules.window:
            self._forgotten_t = latest.pop(oldest)

    def may_end(self, position: int, sent_t: float) -> bool:
        """Whether one of them may be applied after `sent_t`, and end a hold of the position that began then."""
        if not self._log.flags(position) & ACKED:
            return False
        acked_t = self._forgotten_t if self._latest is None else self._latest.get(position, self._forgotten_t)
        return acked_t + self._rules.ack_lag_max_s + self._rules.clock_error_s >= sent_t

    def rest(self) -> None:
        """Gives the memory back."""
        if self._latest:
            self._forgotten_t = max(self._forgotten_t, *self._latest.values())
        self._latest = None


class Releases:
    """The highest position of a key that may have been released without an acknowledgement; kept with exactly-once delivery only."""

    __slots__ = ("_leases", "_log", "_needed", "_released", "_rules")

    def __init__(self, log: LearnedLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._needed = rules.exactly_once
        self._released = 0
        self._leases: tuple[tuple[float, int], ...] = ()

    def release(self, position: int) -> None:
        """The service may have released everything up to a position."""
        if position > self._released:
            self._released = position

    def lease(self, position: int, end_t: float, now: float) -> None:
        """The lease of a position may end at `end_t`."""
        if not self._needed:
            return
        self._expire(now)
        leases = sorted([*self._leases, (end_t, position)])
        while len(leases) > LEASES_KEPT:
            nearest = min(range(len(leases) - 1), key=lambda i: leases[i + 1][0] - leases[i][0])
            leases[nearest : nearest + 2] = [(leases[nearest][0], max(leases[nearest][1], leases[nearest + 1][1]))]
        self._leases = tuple(leases)

    def by(self, now: float) -> int:
        """The highest position that may have been released by now."""
        self._expire(now)
        released = self._released
        while self._log.holds(released) and self._log.may_be_gone(released):
            released += 1  # a run that restarts at a dead-lettered message begins with the next one
        return released

    def _expire(self, now: float) -> None:
        now += self._rules.clock_error_s
        for end_t, position in self._leases:
            if end_t <= now:
                self.release(self._unconfirmed(position))
        self._leases = tuple(lease for lease in self._leases if lease[0] > now)

    def _unconfirmed(self, position: int) -> int:
        """The highest position up to this one whose acknowledgement was not confirmed, which alone its lease can release."""
        while position and self._log.confirmation(position) is not None:
            position -= 1
        return position
