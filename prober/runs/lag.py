"""When the event loop lagged: what was measured then says how slow the prober was, not how slow the service was.

Whatever waits for the event loop, such as a message that has come, waits longer while the loop is busy or gets no processor. A run beats;
a beat that comes too late shows that. The loop *lags* from the last beat in time before such a one until the next beat in time,
since after a pause there is work to catch up on. How long that was within a measurement is what the lag may have added to it: in the rest
of that time whatever came was taken at once.

Nothing is taken back: what is said about a measurement rests on what is known when it ends. A single pause that no beat shows is shorter
than `BEAT_S + LAG_MAX_S`, which is less than every threshold that holds by default.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

BEAT_S: Final = 0.25
LAG_MAX_S: Final = 0.1
"""How late a beat may be: from so long a delay on, asyncio calls a callback slow; what is less is part of every measurement."""
PERIODS_MAX: Final = 1000


class LoopLag:
    """The times at which the event loop lagged. Bounded: beyond `PERIODS_MAX` the two oldest become one, with the time between them."""

    def __init__(self) -> None:
        self._beat_t: float | None = None
        self._lagging_since_t: float | None = None
        self._begins: list[float] = []
        self._ends: list[float] = []

    def beat(self, now: float) -> float:
        """A beat, which is due `BEAT_S` after the last one; returns how late it is, in seconds."""
        before, self._beat_t = self._beat_t, now
        if before is None:
            return 0.0
        late_s = max(0.0, now - before - BEAT_S)
        if late_s > LAG_MAX_S:
            self._lagging_since_t = before if self._lagging_since_t is None else self._lagging_since_t
        elif self._lagging_since_t is not None:
            self._keep(self._lagging_since_t, now)
            self._lagging_since_t = None
        return late_s

    def within(self, since_t: float, until_t: float) -> float:
        """How long the loop lagged between two times of which the later is now, in seconds."""
        lagging_since_t = self._lagging_since_t
        if lagging_since_t is None and self._beat_t is not None and until_t > self._beat_t + BEAT_S + LAG_MAX_S:
            lagging_since_t = self._beat_t
        lagged_s = 0.0 if lagging_since_t is None else max(0.0, until_t - max(since_t, lagging_since_t))
        if self._ends and since_t < self._ends[-1]:
            first = bisect_right(self._ends, since_t)
            periods = zip(self._begins[first:], self._ends[first:], strict=True)
            lagged_s += sum(max(0.0, min(end, until_t) - max(begin, since_t)) for begin, end in periods)
        return lagged_s

    def _keep(self, begin: float, end: float) -> None:
        self._begins.append(begin)
        self._ends.append(end)
        if len(self._begins) > PERIODS_MAX:
            del self._begins[1], self._ends[0]
