"""Certain moments: times from which on the order of all earlier sends is definite (docs/model.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from math import inf
from typing import NamedTuple

from prober.core.facts import Delivery, surely_before
from prober.core.rules import Rules


def is_one_order(rules: Rules, window: Sequence[Delivery]) -> bool:
    """Return whether each delivery of a window was sent before the next one in every legal order."""
    return all(surely_before(rules, one, other) for one, other in pairwise(window))


def certain_count(rules: Rules, window: Sequence[Delivery], waiting: Sequence[Delivery], horizon_t: float) -> int:
    """Count the deliveries at the start of a window whose order is definite.

    They were provably sent before the rest of the window, before the waiting deliveries, and before all later arrivals.

    window      deliveries in their assumed order of sends.
    horizon_t   a time before the send of every later arrival.
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
    """The time and session of the last received of several deliveries, and the time of the last one on the other sessions."""

    t: float = -inf
    session: str = ""
    other_t: float = -inf

    def with_one(self, one: Delivery) -> Latest:
        """Return the value with a further delivery."""
        name = one.session.name
        if name == self.session:
            return Latest(max(self.t, one.t), name, self.other_t)
        if one.t > self.t:
            return Latest(one.t, name, self.t)
        return Latest(self.t, self.session, max(self.other_t, one.t))


class Earliest(NamedTuple):
    """The earliest possible send of several deliveries, its session, and the earliest possible send on the other sessions."""

    t: float = inf
    session: str = ""
    other_t: float = inf

    def with_one(self, one: Delivery) -> Earliest:
        """Return the value with a further delivery."""
        name, sent_t = one.session.name, one.earliest_t
        if name == self.session:
            return Earliest(min(self.t, sent_t), name, self.other_t)
        if sent_t < self.t:
            return Earliest(sent_t, name, self.t)
        return Earliest(self.t, self.session, min(self.other_t, sent_t))


def _are_apart(rules: Rules, received: Latest, sent: Earliest) -> bool:
    """Return whether the deliveries of each session were received before any delivery of another session was sent."""
    eps = rules.clock_error_s
    if received.session == sent.session:
        return received.t + eps < sent.other_t and received.other_t + eps < sent.t
    return received.t + eps < sent.t


def _is_last(rules: Rules, window: Sequence[Delivery], index: int, received: Sequence[Latest]) -> bool:
    """Return whether a delivery was provably sent after all deliveries before it.

    Only then is the state after it the same in every legal order.

    received    at index n: the latest receipts of the first n deliveries.
    """
    one = window[index]
    for before in range(index - 1, -1, -1):
        if received[before + 1].t + rules.clock_error_s < one.earliest_t:
            return True
        if not surely_before(rules, window[before], one):
            return False
    return True
