"""Usual deliveries: those that need no examination by any rule.

This module decides nothing: other deliveries take the long way, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prober.core.events import LONG_AGO

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane


def goes_on_with(key: KeyChecker, lane: Lane, one: Delivery) -> bool:
    """Return whether a delivery is the next message of a key whose last send was the message before it.

    The message is the oldest confirmed one without a delivery, so nothing is missing before it (4). It was published once, and its message
    id was not delivered before: so it is its primary, and this is its first delivery (L5, 9). It was invoked after all delivered messages,
    so its place is the next one (10). Its session was sent the message before it, or nothing is outstanding (7).
    """
    publication = one.publication
    if publication is None or publication is not next(iter(lane.pending), None) or publication.token != one.token:
        return False
    if (
        publication.attempts is not None
        or publication.early
        or one.older is not None
        or publication.ordered_t < lane.latest_invoked_t
    ):
        return False
    state, log, subscription = lane.now, lane.log, key.subscription
    before = state.before
    if before is None or state.before_position != log.frontier or (before.session is not one.session and state.outstanding()):
        return False
    if not subscription.is_plain or subscription.graces or not key.group.key or len(key.lanes) > 1:
        return False
    if lane.waiting or lane.elsewhere or lane.overtaken or lane.seek is not None:
        return False
    if lane.window and one.session.opened_t == LONG_AGO and subscription.streaming:
        return False
    if log.may_have(one.token) and log.positions_of(one.token):
        return False
    return lane.blurred_until_t < one.earliest_t - subscription.rules.clock_error_s
