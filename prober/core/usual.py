"""Deliveries about which no rule has anything to say, so that nothing has to be asked about them.

Nothing is decided here: what is not recognised goes the long way, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prober.core.events import LONG_AGO

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane


def goes_on_with(key: KeyChecker, lane: Lane, one: Delivery) -> bool:
    """Whether the session that got the last send of a key, at the end of the log, now gets the next message of it.

    The message is the oldest that is confirmed and did not come, so nothing is missing before it (4). It was published once, and nothing
    of its message id came before: so it is its primary, and comes for the first time (L5, 9). It was invoked after everything that
    came, so its place is the next one (10). The session goes on behind its own last send, so nobody else may hold the key (7).
    """
    publication = one.publication
    if publication is None or publication is not next(iter(lane.pending), None):
        return False
    if publication.token != one.token or one.older is not None:
        return False
    if publication.attempts is not None or publication.early or publication.ordered_t < lane.latest_invoked_t:
        return False
    state, log, subscription = lane.now, lane.log, key.subscription
    before = state.before
    if before is None or before.session is not one.session or state.before_position != log.frontier:
        return False
    if not subscription.is_plain or subscription.graces or not key.group.key or len(key.lanes) > 1:
        return False
    if lane.waiting or lane.elsewhere or lane.overtaken or lane.seek is not None:
        return False
    if lane.window and (not lane.has_one_order or one.session.opened_t == LONG_AGO):
        return False
    return lane.blurred_until_t < one.earliest_t - subscription.rules.clock_error_s and not log.positions_of(one.token)
