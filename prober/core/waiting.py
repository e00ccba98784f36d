"""How long somebody was there to be delivered to: the clock of every deadline on a delivery.

The service cannot deliver while no pull waits, no stream is open, or the flow control of every stream is used up. So deadlines are
not compared with the time that passed but with the time in which somebody waited, added up over interruptions: a client that pulls in
a loop waits with small gaps, and would never be found to wait if each gap began the count anew.

The past is kept as a few samples. Between two of them the time is taken to have been waited for late rather than early, so that a
deadline is found to have passed too late by a sample's distance, never too early.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Final

from prober.core.events import LONG_AGO

SAMPLES_KEPT: Final = 256


class WaitingTime:
    """The seconds in which somebody waited, added up.

    step_s      the distance between two samples, in seconds.
    """

    __slots__ = ("_running", "_since_t", "_step_s", "_times", "_total", "_totals")

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._running = False
        self._since_t = LONG_AGO
        self._total = 0.0
        self._times: list[float] = []
        self._totals: list[float] = []

    @property
    def running(self) -> bool:
        """Whether somebody waits."""
        return self._running

    def start(self, t: float) -> None:
        """Somebody waits from `t` on, at the earliest from when the last one stopped."""
        if not self._running:
            t = max(t, self._since_t)
            self._running = True
            self._since_t = t
            self._sample(t)

    def stop(self, t: float) -> None:
        """Nobody waits any more."""
        if self._running:
            self._total += t - self._since_t
            self._running = False
            self._since_t = t
            self._sample(t)

    def reaches(self, since_t: float, seconds: float) -> float:
        """When somebody has waited for `seconds` since a moment, if it goes on as it does now; `inf` if it never will be so."""
        if since_t >= self._since_t:
            return since_t + seconds if self._running else inf
        wanted = self._total_at(since_t) + seconds
        if wanted >= self._total:
            return self._since_t + (wanted - self._total) if self._running else inf
        return self._times[bisect_left(self._totals, wanted)]

    def _total_at(self, t: float) -> float:
        """What had been waited by a past moment, rather too much than too little."""
        index = bisect_left(self._times, t)
        return self._totals[index] if index < len(self._totals) else self._total

    def _sample(self, t: float) -> None:
        if len(self._times) > 1 and t - self._times[-2] < self._step_s:
            self._times[-1] = t
            self._totals[-1] = self._total
            return
        self._times.append(t)
        self._totals.append(self._total)
        if len(self._times) > SAMPLES_KEPT:
            del self._times[0], self._totals[0]
