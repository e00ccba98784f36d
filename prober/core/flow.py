"""The flow control of a stream: the service sends no more messages while the unacknowledged ones reach a limit (docs/model.md, 8.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, TypeAlias

from prober.core.facts import Delivery, Record, Session, lease_until
from prober.core.rules import Rules

OVERHEAD_BYTES: Final = 256
"""The most bytes that a message counts for beside its data: attributes, key, id."""
FULL_KEPT: Final = 64
"""Number of remembered time spans in which the flow control was used up; beyond that the two oldest are merged."""


class Flow:
    """Deliveries that may be outstanding on one stream, and the times in which they used up its flow control.

    outstanding     unacknowledged deliveries with their sizes, by record.
    extended        until when acknowledged messages may still be leased, by message id.
    settling        when an acknowledged message counts no more, and its size, in order of time.
    full            the past time spans in which the flow control was used up.
    full_since_t    since when it has been used up; infinite if it is not.
    """

    __slots__ = (
        "_bytes",
        "_check_t",
        "_extended",
        "_freed_t",
        "_full",
        "_full_since_t",
        "_outstanding",
        "_rules",
        "_session",
        "_settling",
    )

    def __init__(self, rules: Rules, session: Session) -> None:
        self._rules = rules
        self._session = session
        self._outstanding: dict[Record, tuple[Delivery, int]] = {}
        self._settling: deque[tuple[float, int]] = deque()
        self._bytes = 0
        self._full: Spans = []
        self._full_since_t = inf
        self._check_t = self._freed_t = -inf
        self._extended: dict[int, float] = {}

    def delivered(self, record: Record, one: Delivery, size: int) -> None:
        """Note a delivery on the stream; a redelivered message is outstanding once."""
        sent_t, size = one.earliest_t, size + OVERHEAD_BYTES
        self._go_on(sent_t)
        self._extended.pop(one.token, None)
        if self._extended and self._is_full:
            self._let_go(one.earliest_t)
        before = self._outstanding.pop(record, None)
        self._bytes += size - (0 if before is None else before[1])
        self._outstanding[record] = one, size
        if self._full_since_t == inf and self._is_full:
            self._full_since_t = sent_t
        if before is None and self._full_since_t < inf and one.t >= self._check_t:
            self._expire(one.t)

    def answered(self, record: Record, t: float) -> None:
        """Note an acknowledgement or nack: the service applies it some time later."""
        held = self._outstanding.pop(record, None)
        if held is not None:
            self._settling.append((t + self._rules.ack_settled_s + self._rules.clock_error_s, held[1]))

    def extended(self, token: int, t: float, until_t: float) -> None:
        """Note that the lease of an acknowledged message was extended: the acknowledgement may have been lost."""
        self._go_on(t)
        self._expire(t)
        self._extended[token] = max(until_t, self._extended.get(token, until_t))
        if self._full_since_t == inf and self._is_full:
            self._full_since_t = t

    def _let_go(self, t: float) -> None:
        """Drop the extended leases, which cannot be outstanding.

        The stream got more messages than its flow control allows beside them.
        """
        self._extended.clear()
        self._free(t, 0)

    def full(self, now: float) -> Spans:
        """Return the time spans in which the flow control was used up."""
        self._go_on(now)
        self._expire(now)
        if self._full_since_t == inf:
            return list(self._full)
        return [*self._full, (self._full_since_t, inf)]

    @property
    def _is_full(self) -> bool:
        count = len(self._outstanding) + len(self._settling) + len(self._extended)
        used = self._bytes if not self._extended else inf  # its size is not known any more
        return count >= self._session.max_messages or used >= self._session.max_bytes < inf

    def _go_on(self, t: float) -> None:
        while self._settling and self._settling[0][0] < t:
            self._free(*self._settling.popleft())

    def _free(self, t: float, size: int) -> None:
        self._bytes -= size
        self._freed_t = max(self._freed_t, t)
        if self._full_since_t == inf or self._is_full:
            return
        if self._freed_t > self._full_since_t:
            self._full.append((self._full_since_t, self._freed_t))
        self._full_since_t = inf
        if len(self._full) > FULL_KEPT:
            first, second, *rest = self._full
            self._full = [(first[0], second[1]), *rest]

    def _expire(self, now: float) -> None:
        """Remove deliveries and extended leases whose lease is over."""
        self._check_t = now + self._rules.ack_deadline_s / 4
        over = [(lease_until(self._rules, one), record) for record, (one, _) in self._outstanding.items()]
        for t, record in sorted(over, key=lambda each: each[0]):
            if t >= now:
                break
            _, size = self._outstanding.pop(record)
            self._free(t, size)
        for token, t in sorted(self._extended.items(), key=lambda each: each[1]):
            if t < now:
                del self._extended[token]
                self._free(t, 0)


# --- sets of times, as spans in ascending order that do not touch each other --------------------------------------------------


Spans: TypeAlias = list[tuple[float, float]]
"""Spans, each from its first time to its last, in seconds."""


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    """Return the union of spans in any order."""
    found: Spans = []
    for start, stop in sorted(spans):
        if stop <= start:
            continue
        if found and start <= found[-1][1]:
            if stop > found[-1][1]:
                found[-1] = found[-1][0], stop
        else:
            found.append((start, stop))
    return found


def minus(spans: Sequence[tuple[float, float]], others: Iterable[tuple[float, float]]) -> Spans:
    """Return the spans without the others, which may be in any order."""
    taken = union(others)
    left: Spans = []
    index = 0
    for start, stop in spans:
        while index < len(taken) and taken[index][1] <= start:
            index += 1
        at, other = start, index
        while other < len(taken) and taken[other][0] < stop:
            if taken[other][0] > at:
                left.append((at, taken[other][0]))
            at = max(at, taken[other][1])
            other += 1
        if at < stop:
            left.append((at, stop))
    return left


def both(spans: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> Spans:
    """Return the intersection of both sets."""
    return minus(spans, minus(spans, others))


def length(spans: Iterable[tuple[float, float]], since_t: float = -inf) -> float:
    """Return the total length of the spans from a time on, in seconds."""
    return sum(stop - max(start, since_t) for start, stop in spans if stop > since_t)


def reaches(spans: Iterable[tuple[float, float]], since_t: float, seconds: float) -> float:
    """Return the time at which the spans after `since_t` add up to more than `seconds`; infinite if they never do."""
    for start, stop in spans:
        if stop <= since_t:
            continue
        start = max(start, since_t)
        if stop - start > seconds:
            return start + seconds
        seconds -= stop - start
    return inf
