"""Until when the service has time: what may keep it from delivering a key although somebody waits.

With a retry policy it waits after a refusal and after the end of a lease. What it sent into a stream that broke is leased to nobody who
could answer, and it comes again when the lease is over, as does what that stream's subscriber held, and what is behind it.

A stream gets more of a key while it holds some. But when another subscriber comes, some keys are given to that one, and nothing of them is
sent before all that is held is acknowledged (nodejs-pubsub, issue 1135).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf
from typing import Final

from prober.core.events import LONG_AGO
from prober.core.owed import Owed
from prober.core.positions import LearnedLog
from prober.core.rules import Rules
from prober.core.sessions import Tracks
from prober.core.subscription import Subscription

LEFT: Final = 0.25
"""The share of a deadline that is left at least when what went into a broken stream is leased no more."""


def backed_off_t(rules: Rules, last_delivery_t: float, owed: Collection[Owed]) -> float:
    """Until when the retry policy may keep a key back: the lease of its latest delivery may run out, or its refusal be applied.

    An acknowledgement is no proof of the opposite: it may be lost.
    """
    if not rules.retry_backoff_max_s or last_delivery_t == LONG_AGO:
        return LONG_AGO
    lease_end_t = max([last_delivery_t + rules.ack_deadline_s, *(one.lease_end_t for one in owed)])
    return lease_end_t + rules.delivery_delay_max_s + rules.retry_backoff_max_s


def doubtful_until_t(subscription: Subscription, owed: Iterable[int], log: LearnedLog) -> float:
    """Until when any of these positions may come again that are owed unless they were dead-lettered; long ago if there is none.

    They are told only in doubt, so to forget them would make nothing out of what is not known. What has left its window, or is older
    than the retention, will never be known.
    """
    rules, lost = subscription.rules, subscription.losses_max
    if rules.unacked_deadline_s == inf:
        return LONG_AGO
    doubtful = (log.invoked_t(one) for one in owed if log.holds(one) and log.may_be_dead_lettered(one, lost))
    latest_t = max(doubtful, default=None)
    if latest_t is None:
        return LONG_AGO
    return inf if rules.message_retention_s == inf else latest_t + rules.message_retention_s - rules.clock_error_s


def handed_over_t(
    subscription: Subscription, owner: str | None, tracks: Tracks, held_since_t: float, last_delivery_t: float
) -> float:
    """Until when a key may stand still because another subscriber came while `owner` held it; long ago if it may not.

    One that went on for longer than a deadline after that stands still for another reason. Where nobody can say when all is settled that
    is no excuse, or nothing would ever have to come.
    """
    if owner is None or not subscription.streaming:
        return LONG_AGO
    rules, came_t = subscription.rules, subscription.presence.other_opened_t(owner)
    if came_t + rules.clock_error_s <= held_since_t or came_t + rules.delivery_deadline_s < last_delivery_t:
        return LONG_AGO
    busy_until_t = tracks.busy_until_t
    return busy_until_t if came_t <= busy_until_t < inf else LONG_AGO


def deadline(subscription: Subscription, since_t: float, seconds: float, sent_t: float, lease_ends: Iterable[float]) -> float:
    """When the service will have been able for `seconds` since a moment to deliver what it may have sent since `sent_t`.

    Of what it sent one delivery may have been lost, or else streams that break again and again would excuse it for ever.
    """
    deadline_t = _reached_t(subscription, since_t, seconds)
    lost_t = _lost_lease_end_t(subscription, sent_t)
    if lost_t == LONG_AGO:
        return deadline_t
    once_t = _reached_t(subscription, since_t, seconds + _lost_s(subscription.rules))
    held_t = max((t for t in lease_ends if t < inf), default=LONG_AGO)
    return max(
        deadline_t,
        min(_reached_after(subscription, since_t, lost_t, seconds), once_t),
        _reached_after(subscription, since_t, held_t, seconds),
    )


def _reached_after(subscription: Subscription, since_t: float, leased_t: float, seconds: float) -> float:
    """When enough of a deadline is left after the end of a lease; long ago if that was over before the clock began."""
    return _reached_t(subscription, leased_t, seconds * LEFT) if leased_t > since_t else LONG_AGO


def _lost_lease_end_t(subscription: Subscription, sent_t: float) -> float:
    """Until when what was sent since then into a stream that broke may be leased, long ago if none broke since.

    What a lost pull carried keeps the clock from starting (`lost_until_t`), and a push request without an answer is a refusal.
    """
    rules = subscription.rules
    if not subscription.streaming or subscription.last_closed_t < sent_t - rules.clock_error_s:
        return LONG_AGO
    return subscription.last_closed_t + _lost_s(rules) + rules.clock_error_s


def _lost_s(rules: Rules) -> float:
    """How long what was lost with a stream may stay away: its lease, and what the retry policy holds it back after that."""
    return rules.ack_deadline_s + rules.retry_backoff_max_s


def _reached_t(subscription: Subscription, since_t: float, seconds: float) -> float:
    """When somebody will have waited so long. One delivery may have been lost meanwhile, and its lease and back-off been waited for."""
    rules = subscription.rules
    wanted_s = seconds + rules.clock_error_s
    deadline_t = subscription.waiting.reaches(since_t, wanted_s)
    if rules.retry_backoff_max_s and subscription.may_yet_have_lost(since_t, deadline_t):
        return subscription.waiting.reaches(since_t, wanted_s + rules.ack_deadline_s + rules.retry_backoff_max_s)
    return deadline_t
