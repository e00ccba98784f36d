"""What was found on a key, and on subscriptions."""

from __future__ import annotations

from api.models.base import Answer, Count, Key, Listed, Subscription, Time, Topic
from api.models.reports import Day, HotKey, KeySpread
from api.models.sites import SiteState
from prober.core.findings import Kind, Status


class FindingGroup(Answer):
    """The findings of one kind and status on a key, or on all keys of a subscription."""

    subscription: Subscription
    """Where."""
    kind: Kind
    """What was found."""
    status: Status
    """How sure it is."""
    count: Count
    """How many."""
    open: Count
    """How many of them are open: no run of their site has passed since."""
    first_at: Time
    """When the first was found."""
    last_at: Time
    """When the newest was found."""


class KeyAnswer(Answer):
    """An ordering key. That nothing was found on it, or that it is unknown, is the same here."""

    key: Key
    """The key."""
    findings: tuple[FindingGroup, ...]
    """What was found on it, by subscription, kind and status."""
    report_day: Day | None
    """The day of the newest report on hot keys; null: there is none."""
    hot: tuple[HotKey, ...]
    """What that report says of the key, by subscription; empty if it was not hot."""


class SubscriptionAnswer(Answer):
    """A subscription that is probed, or on which something was found."""

    subscription: Subscription
    """Its full name."""
    topic: Topic | None
    """Full name of its topic; null: it is not probed any more."""
    sites: tuple[SiteState, ...]
    """Every probe that uses it."""
    findings: tuple[FindingGroup, ...]
    """What was found on it, by kind and status."""
    spread: KeySpread | None
    """How its messages were spread over keys, by the newest report on hot keys; null: that says nothing about it."""


class SubscriptionList(Listed):
    """Subscriptions that are probed, or on which something was found."""

    since: Time
    """Findings are counted from then on."""
    items: tuple[SubscriptionAnswer, ...]
    """The subscriptions."""
