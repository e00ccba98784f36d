"""A seek back of one key: what is to be delivered again, and in which order (docs/model.md, 6.4).

Everything that was published since some moment is unacknowledged again. That can be proven only of what had not been acknowledged so
shortly before that the acknowledgement may be applied after the seek. The order can be proven only if nothing came until it had settled.
"""

from __future__ import annotations

from typing import Final

from prober.core.events import LONG_AGO, Delivered
from prober.core.facts import Delivery, Session
from prober.core.log import REMOVED, Log
from prober.core.rules import Rules

NOBODY: Final = Session("", None, LONG_AGO)


class Seek:
    """A seek at `sought_t`, event `number`, settled at `settled_t`.

    Messages published since `since_t` are redelivered.

    start, target   the positions that come in order: the lowest from which on everything was published since, and the last one.
    """

    __slots__ = ("number", "settled_t", "since_t", "sought_t", "start", "target")

    def __init__(self, since_t: float, sought_t: float, settled_t: float, number: int) -> None:
        self.since_t = since_t
        self.sought_t = sought_t
        self.settled_t = settled_t
        self.number = number
        self.start, self.target = 1, 0

    def of(self, log: Log, rules: Rules) -> Seek:
        """The seek as it concerns what a log has by now."""
        found = Seek(self.since_t, self.sought_t, self.settled_t, self.number)
        found.target = log.frontier
        start, eps = log.frontier + 1, rules.clock_error_s
        while log.holds(start - 1) and log.invoked_t(start - 1) >= self.since_t + eps and not log.flagged(start - 1, REMOVED):
            start -= 1
        found.start = start
        return found

    def brings(self, log: Log, position: int, rules: Rules) -> bool:
        """Whether a position is provably redelivered.

        It was published since, and no acknowledgement may be applied after the seek.
        """
        if log.invoked_t(position) < self.since_t + rules.clock_error_s:
            return False
        return log.answered_t(position) + rules.ack_lag_max_s + rules.clock_error_s < self.sought_t


class Restart(Delivery):
    """A settled seek back, as the send before what it brings back."""

    __slots__ = ("sought_t",)

    def __init__(self, seek: Seek, log: Log) -> None:
        before = seek.start - 1
        event = Delivered(seek.settled_t, "", "", NOBODY.name, log.epoch(before), log.seq(before), "")
        super().__init__(event, seek.number, NOBODY, 0, 0, None, seek.settled_t)
        self.sought_t = seek.sought_t
