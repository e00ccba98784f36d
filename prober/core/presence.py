"""Since when somebody is there to deliver to: what a deadline that begins when a stream is opened reckons with.

A subscriber whose stream breaks and is opened again waits as if it had just come: what was sent on the stream before may be lost, and
leased. But one whose streams break again and again would then be owed nothing for ever. So the time counts in which what was sent on
those before must have arrived: not while one may have been dead already, nor while what was lost with the last may be leased, or
held back after that.

Who came, and when, is kept as well: that may take keys from those who were there.
"""

from __future__ import annotations

from math import inf

from prober.core.events import LONG_AGO
from prober.core.rules import Mode, Rules
from prober.core.waiting import WaitingTime


class Presence:
    """Of one subscription, for streams; for pull and push somebody is there since the first session."""

    __slots__ = ("_came", "_dead_s", "_earlier_s", "_lease_s", "_since_t", "_steady", "_steady_from_t", "_streaming")

    def __init__(self, rules: Rules, step_s: float) -> None:
        race_s = rules.delivery_delay_max_s + rules.clock_error_s
        self._streaming = rules.mode is Mode.STREAMING
        self._dead_s = rules.close_detection_max_s + race_s
        self._lease_s = rules.ack_deadline_s + rules.retry_backoff_max_s + race_s
        self._since_t = inf
        self._steady = WaitingTime(step_s)
        self._steady_from_t = LONG_AGO
        self._earlier_s = 0.0
        self._came = ("", LONG_AGO, LONG_AGO)

    def opened(self, subscriber: str, t: float) -> None:
        """A subscriber opened a stream."""
        latest, latest_t, before_t = self._came
        self._came = (subscriber, t, before_t if subscriber == latest else latest_t)

    def other_opened_t(self, subscriber: str) -> float:
        """When another subscriber last opened a stream, still open or not; long ago if none was seen to."""
        latest, latest_t, before_t = self._came
        return before_t if subscriber == latest else latest_t

    def came(self, t: float) -> None:
        """A session began."""
        if self._since_t == inf:
            self._since_t = t
            self._earlier_s = self._steady.total
        self._steady.start(max(t, self._steady_from_t))

    def lost(self, t: float, *, last: bool) -> None:
        """A stream is over, the `last` one that was open or not."""
        self._steady.stop(t - self._dead_s)
        self._steady_from_t = t + self._lease_s
        if last:
            self._since_t = inf

    def since_t(self, quiet_t: float) -> float:
        """Since when, in effect, somebody has been there of whom nothing was heard since `quiet_t`; `inf` if nobody is."""
        if not self._streaming or self._since_t == inf:
            return self._since_t
        return self._since_t - max(0.0, self._earlier_s - self._steady.total_at(quiet_t))
