"""What is promised to come before what: of two messages beside each other, where sessions race and in several publishing regions.

How certain the learned log is says `places`. Beyond that, the writer's own order binds what it handed over one after the other,
whatever raced.
"""

from __future__ import annotations

from prober.core.order import OrderCheck
from prober.core.positions import OLDER, PRIMARY, RACED, SHARED, LearnedLog
from prober.core.sessions import Arrival


def certainly_before(orders: OrderCheck, log: LearnedLog, position: int, arrival: Arrival) -> bool:
    """Whether what stands before a delivery in the learned log is also promised to be sent before it: no race decided that."""
    follower = arrival.position
    share, either = orders.share_region(position, follower), log.flags(position) | log.flags(follower)
    if not share or not either & RACED:
        return share
    if either & OLDER or orders.several_regions:
        return False
    return in_order(orders, log, position, follower)


def in_order(orders: OrderCheck, log: LearnedLog, one: int, other: int) -> bool:
    """Whether a record certainly stands before another that was learned later: where it was learned, or by session order."""
    if orders.places.in_order(one, other):
        return True
    return log.holds(one) and log.holds(other) and must_precede(orders, log, one, other)


def must_precede(orders: OrderCheck, log: LearnedLog, position: int, follower: int) -> bool:
    """Whether session order binds two records inside the window, where sessions race.

    Both are primaries, neither was stored twice, and `position` was handed over first, once.
    """
    for one in (position, follower):
        if log.flags(one) & (PRIMARY | SHARED) != PRIMARY:
            return False
    seq, record = log.seq(position), orders.record_of(position)
    if record is None or log.epoch(position) != log.epoch(follower) or seq >= log.seq(follower):
        return False
    publication = record.open.get(seq)
    return record.was_attempted_once(seq) if publication is None else publication.attempts == 1
