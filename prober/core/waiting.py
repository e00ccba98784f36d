"""When somebody was there to be delivered to, and for how long: the clock of every deadline on a delivery.

The service cannot deliver while no pull waits, no stream is open, or the flow control of every stream is used up (`FlowControl`: the
service sends no more while what is unacknowledged uses it up). So deadlines are not compared with the time that passed but with the time
in which somebody waited (`WaitingTime`), added up over interruptions: a client that pulls in a loop waits with small gaps, and would never
be found to wait if each gap began the count anew.

The past is kept as a few samples. Between two of them the time is taken to have been waited for late rather than early, so that a
deadline is found to have passed too late by a sample's distance, never too early.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Final

from prober.core.events import LONG_AGO, Opened

SAMPLES_KEPT: Final = 256
"""Samples of the past remembered; the oldest are forgotten beyond that."""
OVERHEAD_BYTES: Final = 256
"""What a message may count for beside its data: attributes, key, id."""
KEPT_MAX: Final = 64
"""Messages known to be extended though they were acknowledged; beyond that the oldest count as outstanding like any other."""


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

    @property
    def total(self) -> float:
        """How long anybody waited until the last one stopped."""
        return self._total

    def start(self, t: float) -> None:
        """Somebody waits from `t` on, at the earliest from when the last one stopped."""
        if not self._running:
            t = max(t, self._since_t)
            self._running = True
            self._since_t = t
            self._sample(t)

    def stop(self, t: float) -> None:
        """Nobody waits any more since `t`; if that is before the last one began to, that one waited for nothing."""
        if self._running:
            t = max(t, self._since_t)
            self._total += t - self._since_t
            self._running = False
            self._since_t = t
            self._sample(t)

    def reaches(self, since_t: float, seconds: float) -> float:
        """When somebody has waited for `seconds` since a moment, if it goes on as it does now; `inf` if it never will be so."""
        if since_t >= self._since_t:
            return since_t + seconds if self._running else inf
        wanted = self.total_at(since_t) + seconds
        if wanted >= self._total:
            return self._since_t + (wanted - self._total) if self._running else inf
        return self._times[bisect_left(self._totals, wanted)]

    def total_at(self, t: float) -> float:
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


class FlowControl:
    """The flow control of a stream: how much may be unacknowledged on it, and what is.

    What is outstanding counts until it is acknowledged or refused, at the latest until every lease on the stream is over. A size that
    is not known is taken as unlimited, so that the service is rather excused. So is what was acknowledged and is extended all the same,
    for its acknowledgement may have been lost; a delivery beyond the limit proves that it was not (`_kept`).
    """

    __slots__ = ("_bytes", "_freeing_until_t", "_kept", "_leased_until_t", "_max_bytes", "_max_messages", "_outstanding")

    def __init__(self, max_messages: float, max_bytes: float) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._freeing_until_t = LONG_AGO
        self._outstanding: dict[int, float] = {}
        self._kept: tuple[int, ...] = ()
        self._bytes = 0.0
        self._leased_until_t = LONG_AGO

    def take(self, token: int, size: float, leased_until_t: float) -> None:
        """A message was delivered on the stream: there was room for it."""
        self.release(token, LONG_AGO)
        if self._kept and self._full:
            for kept in self._kept:
                self.release(kept, LONG_AGO)
            self._kept = ()
        self._freeing_until_t = LONG_AGO
        self._outstanding[token] = size
        self._bytes += size
        self._leased_until_t = max(self._leased_until_t, leased_until_t)

    def inherit(self, other: FlowControl) -> None:
        """Another stream of the client is over, whose state may have gone over to this one: what was outstanding there is so here."""
        self._outstanding |= other._outstanding
        self._bytes = sum(self._outstanding.values())
        self._leased_until_t = max(self._leased_until_t, other._leased_until_t)

    def extend(self, token: int, leased_until_t: float) -> None:
        """The lease of a message was extended."""
        if token not in self._outstanding:
            self._outstanding[token] = self._bytes = inf
            self._kept = (*self._kept, token)[-KEPT_MAX:]
        self._leased_until_t = max(self._leased_until_t, leased_until_t)

    def release(self, token: int, settled_t: float) -> None:
        """A message was acknowledged or refused, which the service has applied by `settled_t`."""
        if self._full and settled_t > self._freeing_until_t:
            self._freeing_until_t = settled_t
        size = self._outstanding.pop(token, None)
        if size is not None:
            self._bytes = sum(self._outstanding.values()) if self._bytes == inf else self._bytes - size
        if not self._outstanding:
            self._bytes = 0.0
            self._leased_until_t = LONG_AGO

    def used_up_until_t(self) -> float:
        """Until when the service may send no more on the stream, as things are; long ago if it may."""
        return self._leased_until_t if self._full else self._freeing_until_t

    @property
    def _full(self) -> bool:
        many = len(self._outstanding) >= self._max_messages
        return bool(self._outstanding) and (many or self._bytes >= self._max_bytes < inf)


class UnseenFlowControl(FlowControl):
    """The flow control of a stream that was not seen to open, so that its limits are not on record.

    When something is delivered there was room for it, beside what was outstanding then: more than that may use it up. What was
    outstanding before the record, and what of it still is, is less by then, never more.
    """

    def __init__(self) -> None:
        super().__init__(1, 1)

    def take(self, token: int, size: float, leased_until_t: float) -> None:
        """A message was delivered on the stream: there was room for it."""
        self.release(token, LONG_AGO)
        self._max_messages = max(self._max_messages, len(self._outstanding) + 1)
        self._max_bytes = max(self._max_bytes, self._bytes + 1)
        super().take(token, size, leased_until_t)


def flow_of(event: Opened) -> FlowControl | None:
    """That of a stream, as it was opened; None if it is without."""
    messages, size = event.max_outstanding_messages or 0, event.max_outstanding_bytes or 0
    if messages <= 0 and size <= 0:
        return None
    return FlowControl(messages if messages > 0 else inf, size if size > 0 else inf)
