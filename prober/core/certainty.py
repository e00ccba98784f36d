"""From which moment on the order of sends is certain: what was sent before it cannot have been sent after anything else (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from math import inf
from typing import NamedTuple

from prober.core.facts import Delivery, surely_before
from prober.core.rules import Rules


def is_one_order(rules: Rules, window: Sequence[Delivery]) -> bool:
    """Whether each delivery of a window was sent before the next one in every legal order."""
    return all(surely_before(rules, one, other) for one, other in pairwise(window))


def certain_count(rules: Rules, window: Sequence[Delivery], waiting: Sequence[Delivery], horizon_t: float) -> int:
    """Count the deliveries at the start of a window whose order is definite.

    They were provably sent before the rest of the window, before the waiting deliveries, and before all later arrivals.

    window      in the order in which they are taken to have been sent.
    horizon_t   later arrivals were sent after it.
    """
    ahead = list(takewhile(lambda one: one.t < horizon_t, window))
    received = list(accumulate(ahead, Latest.with_one, initial=Latest()))
    sent = Earliest()
    for one in (*window[len(ahead) :], *waiting):
        sent = sent.with_one(one)
    for index in range(len(ahead) - 1, -1, -1):
        if _are_apart(rules, received[index + 1], sent) and _is_last(rules, window, index, received):
            return index + 1
        sent = sent.with_one(window[index])
    return 0


class Latest(NamedTuple):
    """When the last of several deliveries was received, its session, and the same of the other sessions."""

    t: float = -inf
    session: str = ""
    other_t: float = -inf

    def with_one(self, one: Delivery) -> Latest:
        """With one delivery more."""
        name = one.session.name
        if name == self.session:
            return Latest(max(self.t, one.t), name, self.other_t)
        if one.t > self.t:
            return Latest(one.t, name, self.t)
        return Latest(self.t, self.session, max(self.other_t, one.t))


class Earliest(NamedTuple):
    """The earliest that any of several deliveries can have been sent, its session, and the same of the other sessions."""

    t: float = inf
    session: str = ""
    other_t: float = inf

    def with_one(self, one: Delivery) -> Earliest:
        """With one delivery more."""
        name, sent_t = one.session.name, one.earliest_t
        if name == self.session:
            return Earliest(min(self.t, sent_t), name, self.other_t)
        if sent_t < self.t:
            return Earliest(sent_t, name, self.t)
        return Earliest(self.t, self.session, min(self.other_t, sent_t))


def _are_apart(rules: Rules, received: Latest, sent: Earliest) -> bool:
    """Whether the deliveries of all sessions were received before any of another session was sent."""
    eps = rules.clock_error_s
    if received.session == sent.session:
        return received.t + eps < sent.other_t and received.other_t + eps < sent.t
    return received.t + eps < sent.t


def _is_last(rules: Rules, window: Sequence[Delivery], index: int, received: Sequence[Latest]) -> bool:
    """Whether a delivery was provably sent after all deliveries before it.

    Only then is the state behind it the same in every legal order.

    received    at index n: of the first n deliveries.
    """
    one = window[index]
    for before in range(index - 1, -1, -1):
        if received[before + 1].t + rules.clock_error_s < one.earliest_t:
            return True
        if not surely_before(rules, window[before], one):
            return False
    return True
