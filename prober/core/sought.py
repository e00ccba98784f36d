"""A seek back of one key: the messages to be redelivered, and their order (docs/model.md, 6.4).

All messages published since a time are unacknowledged again. That is provable only if a message had not been acknowledged so shortly
before that the acknowledgement may be applied after the seek. The order is provable only if no message was delivered until the seek had
settled.
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

    start, target   the positions that are redelivered in order: the first from which on all were published since then, and the last one.
    """

    __slots__ = ("number", "settled_t", "since_t", "sought_t", "start", "target")

    def __init__(self, since_t: float, sought_t: float, settled_t: float, number: int) -> None:
        self.since_t = since_t
        self.sought_t = sought_t
        self.settled_t = settled_t
        self.number = number
        self.start, self.target = 1, 0

    def of(self, log: Log, rules: Rules) -> Seek:
        """Return the seek with the range of positions that it restores in a log."""
        found = Seek(self.since_t, self.sought_t, self.settled_t, self.number)
        found.target = log.frontier
        start, eps = log.frontier + 1, rules.clock_error_s
        while log.holds(start - 1) and log.invoked_t(start - 1) >= self.since_t + eps and not log.flagged(start - 1, REMOVED):
            start -= 1
        found.start = start
        return found

    def brings(self, log: Log, position: int, rules: Rules) -> bool:
        """Return whether a position is provably redelivered.

        It was published since, and no acknowledgement may be applied after the seek.
        """
        if log.invoked_t(position) < self.since_t + rules.clock_error_s:
            return False
        return log.answered_t(position) + rules.ack_lag_max_s + rules.clock_error_s < self.sought_t


class Restart(Delivery):
    """A settled seek back, as the send before the messages that it restores."""

    __slots__ = ("sought_t",)

    def __init__(self, seek: Seek, log: Log) -> None:
        before = seek.start - 1
        event = Delivered(seek.settled_t, "", "", NOBODY.name, log.epoch(before), log.seq(before), "")
        super().__init__(event, seek.number, NOBODY, 0, 0, None, seek.settled_t)
        self.sought_t = seek.sought_t
