"""Where a key began again, until it goes on from there: a chance to see whether the service skips something (`chances`).

Only if it certainly goes on from there a skip would be told: nothing else can have been sent before the next delivery, nothing was sought,
and there is no dead-letter policy.
"""

from __future__ import annotations

from typing import Final

from prober.core.collector import FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.positions import ACKED, LearnedLog
from prober.core.sessions import Arrival
from prober.core.skips import Predecessor
from prober.core.splits import Acknowledgements
from prober.core.subscription import Subscription

LOOKED_AT: Final = 32
"""Messages behind it of which it is asked whether they were acknowledged; one that stands further behind shows nothing."""


class Beginning:
    """Where one key began again below its frontier, until it goes on from there.

    position        there; 0: nowhere, or it went on.
    _t              when it began again the last time.
    _passes_acked   something that must come again had been acknowledged.
    """

    __slots__ = ("_acks", "_collector", "_log", "_passes_acked", "_subscription", "_t", "position")

    def __init__(self, collector: FindingsCollector, log: LearnedLog, acks: Acknowledgements, subscription: Subscription) -> None:
        self._collector = collector
        self._log = log
        self._acks = acks
        self._subscription = subscription
        self._t = LONG_AGO
        self._passes_acked = False
        self.position = 0

    def begin(self, position: int, t: float) -> None:
        """The key began again at a position, seen at `t`.

        What was acknowledged after this message was refused, or before the key began again the last time, may not be so for the service.
        """
        log, acks = self._log, self._acks
        since_t, self._t = self._t, t
        refused_t = acks.latest_t(position)
        until_t = refused_t if refused_t > since_t else t
        promised = not self._collector.rules.dead_letter_max_attempts
        self.position = position if promised and position < log.frontier else 0
        later = log.between(position, min(log.frontier, position + LOOKED_AT) + 1) if self.position else ()
        self._passes_acked = any(log.flags(one) & ACKED and since_t <= acks.latest_t(one) <= until_t for one in later)

    def go_on(self, arrival: Arrival, before: Predecessor) -> None:
        """Something was delivered that can have been sent right after `before`, or lower."""
        position, self.position = self.position, 0
        if before.position != position or arrival.position <= position or arrival.t <= self._collector.grace_until_t:
            return
        counts = self._collector.counts
        counts.chances_redelivery += 1
        lost = self._passes_acked and self._subscription.may_have_lost(before.sent_after_t, arrival.t)
        counts.chances_redelivery_acked += self._passes_acked and not lost
