"""Excuses of each rule of `model`: why the service may skip messages before a send (docs/model.md, 4 to 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.excuses import (
    BESIDE,
    CONFIRMED_AHEAD,
    DEAD_LETTER,
    EXPIRED,
    FILTERED,
    GRACE,
    LOST,
    LOST_REQUEST,
    NO_DUPLICATE,
    NO_POLICY,
    UNSEEN_ATTEMPTS,
    Excuse,
    at,
    is_expired,
    none_lost,
    none_lost_beside,
    not_filtered,
    unacknowledged,
    within_retention,
)
from prober.core.facts import Delivery
from prober.core.names import words_for
from prober.core.rules import Mode, Rules
from prober.core.sought import Restart

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.model import Send
    from prober.core.publications import Publication
    from prober.core.subscription import Subscription

# --- 4: a message that is missing before another -----------------------------------------------------------------------------


class Absent(NamedTuple):
    """A publication that is missing in the log before a delivery, or in all of it.

    one         the delivery; None if the publication never arrived.
    t           when that was recorded.
    latest_t    the latest possible time of that, by any clock.
    """

    key: KeyChecker
    missing: Publication
    one: Delivery | None
    t: float
    latest_t: float

    @property
    def subscription(self) -> Subscription:
        """The subscription of the key."""
        return self.key.subscription

    @property
    def rules(self) -> Rules:
        """The rules of the subscription."""
        return self.key.rules

    @property
    def what(self) -> str:
        """The name of the missing message in texts."""
        return words_for(self.key, self.missing)


def _absent_unseen(case: Absent) -> str:
    grace = case.subscription.may_have_come_unseen(case.missing.invoked_t, case.t)
    return "" if grace is None else GRACE.format(grace.cause)


def _absent_beside(case: Absent) -> str:
    subscription = case.subscription
    if case.one is not None:
        return BESIDE if subscription.may_have_lost_beside(case.missing.invoked_t, case.one) else ""
    since_t = case.missing.invoked_t - subscription.rules.clock_error_s
    return BESIDE if subscription.streaming and any(loss.until_t >= since_t for loss in subscription.losses) else ""


def _attempted_unseen(case: Absent) -> str:
    removed = case.subscription.may_have_dead_lettered(0, case.missing.invoked_t, case.latest_t)
    return UNSEEN_ATTEMPTS if removed else ""


def _not_attempted(case: Absent) -> str:
    if not case.subscription.rules.dead_letter_max_attempts:
        return NO_POLICY
    return f"not dead-lettered: no attempt to deliver {case.what} is on record, and too few can have gone unseen"


EXPIRY: Final = Excuse[Absent](
    lambda case: EXPIRED if is_expired(case.rules, case.missing.invoked_t, case.latest_t) else "",
    lambda case: within_retention(case.rules, case.missing.invoked_t, case.what),
)
FILTER: Final = Excuse[Absent](
    lambda case: FILTERED if case.rules.filtered and not case.missing.received >> case.subscription.index & 1 else "",
    lambda case: f"not filtered out: {case.what} has come" if case.rules.filtered else not_filtered(case.rules),
)
ABSENCE: Final[tuple[Excuse[Absent], ...]] = (
    EXPIRY,
    Excuse(
        _absent_unseen,
        lambda case: (
            f"not delivered unrecorded: no seek, purge, filter change or hole in the record can hide {case.what}, "
            f"published at {at(case.missing.invoked_t)}"
        ),
    ),
    Excuse(_absent_beside, lambda case: none_lost_beside(case.rules, case.one)),
    Excuse(_attempted_unseen, _not_attempted),
    FILTER,
)
"""Excuses of a missing confirmed message."""


def stored_before(key: KeyChecker, missing: Publication, one: Delivery) -> tuple[str, ...]:
    """L3 and L4: state why a confirmed message precedes a record in every log."""
    publication = one.publication
    if publication is None:
        return ()
    first, second = words_for(key, missing), words_for(key, one)
    confirmed = f"not an unknown outcome: the publish of {first} was confirmed at {at(missing.confirmed_t)}"
    if missing.epoch is publication.epoch and missing.seq < publication.seq and one.primary:
        why = f"one publisher sent {first} at {at(missing.ordered_t)} and {second} after it"
        return confirmed, f"not stored later: {why}", NO_DUPLICATE
    why = f"{first} was confirmed before {second} was published at {at(one.invoked_t)}"
    return confirmed, f"not stored later: {why}"


# --- 6: records that are passed over -----------------------------------------------------------------------------------------


class Passed(NamedTuple):
    """A position that is passed over between two sends, `inside` of one pull response."""

    send: Send
    position: int
    before: Delivery
    inside: bool

    @property
    def what(self) -> str:
        """The name of the passed message in texts."""
        return words_for(self.send.key, self.send.view.named(self.position))


def _passed_lost(case: Passed) -> str:
    send = case.send
    if send.rules.mode is Mode.PUSH:
        answered = send.view.acked(case.position, send.by_t, case.before.earliest_t - send.rules.clock_error_s)
        return LOST_REQUEST if answered else ""
    if case.inside or not send.view.acked(case.position, send.by_t):
        return ""
    return LOST if send.may_have_lost(case.before.earliest_t) else ""


def _passed_not_lost(case: Passed) -> str:
    send = case.send
    if case.inside:
        return f"not lost on its way: one pull response has the message before and the message after {case.what}"
    if not send.view.acked(case.position, send.by_t):
        never = unacknowledged(send.subscription, case.what, send.view.invoked_t(case.position), send.latest_t)
        return f"not acknowledged: {never}, so it has to be redelivered"
    return none_lost(send.rules, case.before.earliest_t, send.latest_t)


def _passed_confirmed(case: Passed) -> str:
    send = case.send
    return CONFIRMED_AHEAD if send.rules.exactly_once and send.view.ack_confirmed(case.position, send.by_t) else ""


def _passed_unconfirmed(case: Passed) -> str:
    if not case.send.rules.exactly_once:
        return "not left out after a confirmed acknowledgement: the subscription has no exactly-once delivery"
    return f"not left out after a confirmed acknowledgement: none of {case.what} is on record before {at(case.send.latest_t)}"


def _passed_beside(case: Passed) -> str:
    send = case.send
    if case.inside:
        return ""
    return BESIDE if send.subscription.may_have_lost_beside(send.view.invoked_t(case.position), send.delivery) else ""


def passed_by_control(case: Passed) -> str:
    """6.4: state why a control operation may pass over a position: published before it settled, and not delivered since."""
    send = case.send
    if not send.subscription.graces or send.view.stays(case.position):
        return ""
    grace = send.subscription.control_since(send.view.invoked_t(case.position))
    return "" if grace is None else GRACE.format(grace.cause)


PASSED_EXPIRY: Final = Excuse[Passed](
    lambda case: EXPIRED if is_expired(case.send.rules, case.send.view.invoked_t(case.position), case.send.by_t) else "",
    lambda case: within_retention(case.send.rules, case.send.view.invoked_t(case.position), case.what),
)
PASSED_OVER: Final[tuple[Excuse[Passed], ...]] = (
    Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),
    Excuse(_passed_confirmed, _passed_unconfirmed),
    Excuse(_passed_lost, _passed_not_lost),
    Excuse(_passed_beside, lambda case: none_lost_beside(case.send.rules, case.send.delivery)),
)
"""Excuses of a position that is passed over, if it has not expired."""


def no_restart(case: Passed) -> str:
    """6.2: state why a send is no restart of a redelivery."""
    one = words_for(case.send.key, case.send.delivery)
    if isinstance(case.before, Restart):
        return f"not a restart of the redelivery: that goes back, and {one} is behind {case.what}, which a seek back restored"
    before = words_for(case.send.key, case.before)
    return f"not a restart of the redelivery: that goes back, and {one} is behind {case.what}, which is behind {before}"
