"""The flow control of streams: while what is unacknowledged uses it up, the service sends no more."""

from __future__ import annotations

from math import inf
from typing import Final

from prober.core.events import LONG_AGO

KEPT_MAX: Final = 64
"""Messages known to be extended though they were acknowledged; beyond that the oldest count as outstanding like any other."""


class Flow:
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

    def inherit(self, other: Flow) -> None:
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


class UnseenFlow(Flow):
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
