"""Alternatives that may explain a problem of a send, and the recorded facts that rule them out (docs/model.md, 14).

Each `Excuse` contains one rule: `doubt` is the check, `fact` the sentence for a finding that the check could not excuse. The excuses of
a table are tried in its order. Sentences are built for findings only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from prober.core.facts import Delivery
from prober.core.rules import Mode, Rules

if TYPE_CHECKING:
    from prober.core.subscription import Subscription

DEAD_LETTER: Final = "the subscription has a dead-letter policy, and with one redelivery need not be consistent"
LOST: Final = "what is missing was acknowledged before, and may have been sent again on a stream or pull that was lost"
HANDED_OVER: Final = "what was held may have been handed over to a newer stream of its subscriber, which broke"
LOST_REQUEST: Final = (
    "a request with what is missing may have been lost, and an earlier one was acknowledged before the next attempt"
)
BESIDE: Final = "what is missing may have been sent on another stream of the same subscriber, which broke"
UNSEEN_ATTEMPTS: Final = "streams broke or pulls were lost, so the dead-letter policy may have removed what is missing"
GRACE: Final = "{} may explain it"
FILTERED: Final = "the subscription has a filter, which may exclude what is missing"
CONFIRMED_AHEAD: Final = (
    "its acknowledgement was confirmed, and exactly-once delivery does not say whether it is redelivered in a run"
)
EXPIRED: Final = "it may be older than the retention"
ANSWERED: Final = "it was acknowledged before"
ADOPTED: Final = "it may have been acknowledged before the record began"
UNSETTLED: Final = "a control operation or a hole in the record may have released what was held"
LOWER: Final = "the redelivery may have begun with an earlier message, which was lost on its way"
EARLIER_SEND: Final = "a delivery may have been sent before the last moment at which the order of sends was certain"

NO_POLICY: Final = "not dead-lettered: the subscription has no dead-letter policy"
NO_FILTER: Final = "not filtered out: the subscription has no filter"
PASSES_FILTER: Final = "not filtered out: it passes the filter of the subscription"
NO_DUPLICATE: Final = "not a duplicate: both messages have the ids of their confirmed publishes"
NO_ORDER: Final = "not sent in another order: none of the orders that the bounds allow is legal"

Case = TypeVar("Case")


class Excuse(NamedTuple, Generic[Case]):
    """A possible explanation of a breach.

    doubt   why a case may be legal; empty if this does not excuse it.
    fact    the fact that rules it out: `not so: because`. The part before the colon is the same for all times.
    """

    doubt: Callable[[Case], str]
    fact: Callable[[Case], str]


def doubt_of(excuses: Iterable[Excuse[Case]], case: Case) -> str:
    """Return the first doubt of a case; empty if it has none."""
    for excuse in excuses:
        if doubt := excuse.doubt(case):
            return doubt
    return ""


def ruled_out(excuses: Iterable[Excuse[Case]], case: Case) -> tuple[str, ...]:
    """Return the facts that rule out each excuse of a case without an excuse; an inapplicable excuse has no fact."""
    return tuple(fact for excuse in excuses if (fact := excuse.fact(case)))


def at(t: float) -> str:
    """Format a time of the recorder's clock."""
    return f"t={t:.3f} s" if -inf < t < inf else "the beginning of the record" if t < 0 else "its end"


def between(since_t: float, until_t: float) -> str:
    """Format a period of the recorder's clock."""
    return f"between {at(since_t)} and {at(until_t)}"


def seconds(value: float) -> str:
    """Format a duration in seconds."""
    return f"{value:g} s"


def unacknowledged(subscription: Subscription, what: str, invoked_t: float, until_t: float) -> str:
    """State that no acknowledgement counts for a message published at `invoked_t`: a seek back undoes earlier ones (6.4)."""
    eps = subscription.rules.clock_error_s
    sought_t = max((one.start_t + eps for one in subscription.graces if one.since_t + eps <= invoked_t), default=-inf)
    if sought_t == -inf:
        return f"no acknowledgement of {what} is on record" + (f" before {at(until_t)}" if until_t < inf else "")
    since = between(sought_t, until_t) if until_t < inf else f"since {at(sought_t)}"
    return f"no acknowledgement of {what} is on record {since}, and the seek back at {at(sought_t)} undid earlier ones"


def within_retention(rules: Rules, invoked_t: float, what: str) -> str:
    """State why a message has not expired: 6.4."""
    if rules.message_retention_s == inf:
        return "not expired: the rules state no message retention"
    return f"not expired: {what}, published at {at(invoked_t)}, was within the retention of {seconds(rules.message_retention_s)}"


def not_filtered(rules: Rules) -> str:
    """State why the filter did not exclude a message: 6.4. Not for filters whose excluded messages are not in the rules."""
    return PASSES_FILTER if rules.has_filter else NO_FILTER


def none_lost(rules: Rules, since_t: float, until_t: float) -> str:
    """State why no message was lost: 6.3."""
    if rules.mode is Mode.PUSH:
        return (
            "not lost on its way: a push request without an answer is a nack, and is repeated unless an earlier one is acknowledged"
        )
    if rules.mode is Mode.PULL:
        return f"not lost on its way: no pull that was open {between(since_t, until_t)} ended without an answer"
    seen_t = until_t + rules.close_detection_max_s + rules.delivery_delay_max_s
    return f"not lost on its way: no other stream of the subscription ended {between(since_t, seen_t)}"


def none_lost_beside(rules: Rules, one: Delivery | None) -> str:
    """State why no message was lost on another stream of the same subscriber: 6.5."""
    if rules.mode is not Mode.STREAMING:
        return "not lost in another session: a message that was not acknowledged has to be sent again first"
    if one is None:
        return "not lost on another stream: no stream of the subscription ended since it was published"
    until_t = one.t + rules.close_detection_max_s + rules.delivery_delay_max_s
    if one.owner is None:  # it may belong to any subscriber
        return f"not lost on any other stream: none of the subscription ended {between(one.earliest_t, until_t)}"
    return f"not lost on another stream: no other stream of subscriber {one.owner} ended {between(one.earliest_t, until_t)}"


def not_handed_over(rules: Rules, held: Delivery, one: Delivery, latest_t: float) -> str:
    """State why no newer stream had the held message: 7.4; pull and push have no streams."""
    if rules.mode is not Mode.STREAMING:
        return ""
    if one.session is held.session:
        return f"not handed over: stream {one.session.name} goes on itself"
    since_t = at(held.earliest_t)
    return f"not handed over: no stream that its subscriber opened after {since_t} ended before {at(latest_t)}"


def is_expired(rules: Rules, invoked_t: float, latest_t: float) -> bool:
    """6.4: return whether a message is older than the retention."""
    return latest_t - invoked_t > rules.message_retention_s
