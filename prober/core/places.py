"""How certain the places of messages in the learned log are, beside each other.

Positions are learned in the order of first receipt. That is the order of the log, unless sessions race (`racing`), a message may have
been delivered before the record began, or it was published in a region that is not known.
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
    if arrival.new:
        return arrival.abreast.isdisjoint((position, 0)) or must_precede(orders, log, position, follower)
    return not may_be_mixed(orders, log, position, follower)


def may_be_mixed(orders: OrderCheck, log: LearnedLog, position: int, follower: int) -> bool:
    """Whether races may have put two records inside the window in the wrong order.

    Races only mix up neighbours: what stands between two that raced, raced as well.
    """
    mixed = all(log.flags(between) & RACED for between in range(position, follower + 1))
    return mixed and not must_precede(orders, log, position, follower)


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
