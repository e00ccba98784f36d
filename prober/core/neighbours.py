"""Which keys of a subscription are held: "unacknowledged messages of a key can delay other keys".

What is held of one key may keep another back from before it had to wait until everything of the first is acknowledged, or its leases
are over; with a retry policy, until what is not acknowledged has to come again after that. From then on the service has its whole time
again. A key that was held only later is no excuse: on a busy subscription one key is always held, and nothing would ever have to come.

How long it was held is remembered also when it is over, roughly: of those that were over at about the same time the earliest beginning
and the latest end, as if they were one. That can make a delay look longer than it was, and so find late, but never accuse.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Final

from prober.core.events import LONG_AGO
from prober.core.rules import Rules

ENDS_PER_DEADLINE: Final = 32
"""Into how many parts the longest deadline is divided: keys whose holds were over in one part are remembered as one."""
ENDS_KEPT: Final = 2 * ENDS_PER_DEADLINE
"""Such parts remembered; the oldest are forgotten beyond that."""


class HeldKey:
    """A key was held from one moment to another, perhaps, and leased until a third; `key` is empty if it was several.

    It is held for longer than it is leased while the retry policy keeps back what was not acknowledged.
    """

    __slots__ = ("begun_t", "key", "leased_until_t", "over_t")

    def __init__(self, begun_t: float, leased_until_t: float, over_t: float, key: str) -> None:
        self.begun_t = begun_t
        self.over_t = over_t
        self.key = key
        self.leased_until_t = leased_until_t

    def join(self, other: HeldKey) -> None:
        """Becomes one with another that was over at about the same time."""
        if other.begun_t < self.begun_t:
            self.begun_t = other.begun_t
        if other.over_t > self.over_t:
            self.over_t = other.over_t
        if other.leased_until_t > self.leased_until_t:
            self.leased_until_t = other.leased_until_t
        if self.key != other.key:
            self.key = ""


class Neighbours:
    """The keys of one subscription that are held, and those that were; see the head of this file."""

    __slots__ = ("_ack_settled_s", "_backoff_s", "_ended", "_held", "_lease_s", "_sent_before_s", "_step_s")

    def __init__(self, rules: Rules) -> None:
        self._sent_before_s = rules.delivery_delay_max_s + rules.clock_error_s
        self._ack_settled_s = rules.ack_settled_s
        self._backoff_s = rules.retry_backoff_max_s
        self._lease_s = rules.ack_deadline_s + rules.delivery_delay_max_s
        deadlines = (rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s)
        self._step_s = max((deadline_s for deadline_s in deadlines if deadline_s < inf), default=inf) / ENDS_PER_DEADLINE
        self._held: dict[str, HeldKey] = {}
        self._ended: dict[int, HeldKey] = {}

    def held(self, key: str, t: float, until_t: float) -> None:
        """A message of a key is unacknowledged from now on, was sent up to Delta before, and may be leased until `until_t`."""
        over_t = until_t + self._backoff_s  # what is refused is kept back from earlier on, so for no longer
        before = self._held.get(key)
        if before is not None and before.over_t >= t:
            if over_t > before.over_t:
                before.over_t, before.leased_until_t = over_t, until_t
            return
        if before is not None:
            self._end(before)
        self._held[key] = HeldKey(t - self._sent_before_s, until_t, over_t, key)

    def freed(self, key: str, t: float) -> None:
        """Everything of a key is acknowledged, which takes a while to be applied."""
        before = self._held.get(key)
        if before is not None:
            applied_t = t + self._ack_settled_s
            if applied_t < before.over_t:
                before.over_t = applied_t
            self._end(before)

    def forget(self, key: str) -> None:
        """A control operation ended whatever was held of a key."""
        self._held.pop(key, None)

    def kept_until_t(self, key: str, since_t: float, until_t: float) -> float:
        """Until when, up to `until_t`, another key that was held since before `since_t` was held; long ago if there is none.

        What is over by then is not looked at one by one again.
        """
        kept_t, over = LONG_AGO, []
        for one in self._held.values():
            if one.begun_t > since_t:
                break
            if one.over_t < until_t:
                over.append(one)
            elif one.key != key:
                kept_t = until_t
                break
        for one in over:
            if one.key != key:
                self._end(one)
        others = (one.over_t for one in self._ended.values() if one.begun_t <= since_t and one.key != key)
        return max(kept_t, min(max(others, default=LONG_AGO), until_t))

    def leased_until_t(self, key: str, since_t: float) -> float:
        """Until when other keys are held that were let go after `since_t`, if that was lost: `since_t`, or until a lease is over."""
        leased = (one.leased_until_t for one in self._ended.values() if one.begun_t <= since_t and one.key != key)
        return max(since_t, min(max(leased, default=LONG_AGO), since_t + self._lease_s))

    def _end(self, one: HeldKey) -> None:
        del self._held[one.key]
        if not 0 < self._step_s < inf or not isfinite(one.over_t):
            return  # nothing waits so long, or nobody knows when it was over
        part = int(one.over_t / self._step_s)
        other = self._ended.get(part)
        if other is not None:
            other.join(one)
            return
        self._ended[part] = one
        if len(self._ended) > ENDS_KEPT:
            del self._ended[min(self._ended)]
