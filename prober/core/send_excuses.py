"""Why the service may make a send that is not the next one: the excuses of each rule of `model` (docs/model.md, 4 to 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.excuses import (
    ADOPTED,
    ANSWERED,
    BESIDE,
    CONFIRMED_AHEAD,
    DEAD_LETTER,
    EXPIRED,
    FILTERED,
    GRACE,
    HANDED_OVER,
    LOST,
    LOST_REQUEST,
    LOWER,
    NO_DUPLICATE,
    NO_FILTER,
    NO_POLICY,
    UNSEEN_ATTEMPTS,
    UNSETTLED,
    Excuse,
    at,
    between,
    is_expired,
    none_lost,
    none_lost_beside,
    not_handed_over,
    within_retention,
)
from prober.core.facts import Delivery, Ends, earliest_end, ends_of
from prober.core.rules import Mode, Rules

if TYPE_CHECKING:
    from prober.core.model import Send
    from prober.core.publications import Publication
    from prober.core.subscription import Subscription

# --- 4: a message that is missing before another -----------------------------------------------------------------------------


class Absent(NamedTuple):
    """A publication that is not in the log before a delivery, `one`, or at all: then that is None.

    t           when that was recorded.
    latest_t    it was so by then, by any clock.
    """

    subscription: Subscription
    missing: Publication
    one: Delivery | None
    t: float
    latest_t: float

    @property
    def rules(self) -> Rules:
        """Those of its subscription."""
        return self.subscription.rules

    @property
    def what(self) -> str:
        """Its name."""
        return f"message {self.missing.seq}"


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
    lambda case: f"not filtered out: {case.what} has come" if case.rules.filtered else NO_FILTER,
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
"""Why a confirmed message may be missing."""


def stored_before(missing: Publication, one: Delivery) -> tuple[str, ...]:
    """L3 and L4: why a confirmed message stands before a record in every log."""
    publication = one.publication
    if publication is None:
        return ()
    first = f"message {missing.seq}"
    confirmed = f"not an unknown outcome: the publish of {first} was confirmed at {at(missing.confirmed_t)}"
    if missing.epoch is publication.epoch and missing.seq < publication.seq and one.primary:
        why = f"one publisher sent {first} at {at(missing.ordered_t)} and message {one.seq} after it"
        return confirmed, f"not stored later: {why}", NO_DUPLICATE
    why = f"{first} was confirmed before message {one.seq} was published at {at(one.invoked_t)}"
    return confirmed, f"not stored later: {why}"


# --- 6: records that are passed over -----------------------------------------------------------------------------------------


class Passed(NamedTuple):
    """A position between two sends, `inside` of one pull response."""

    send: Send
    position: int
    before: Delivery
    inside: bool

    @property
    def what(self) -> str:
        """Its name."""
        return f"message {self.send.view.seq(self.position)}"


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
        return (
            f"not acknowledged: no acknowledgement of {case.what} is on record before {at(send.latest_t)}, so it has to come again"
        )
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
    """6.4: a control operation may pass over everything that was published before it had settled, and did not come since."""
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
"""Why a position may be passed over, if it has not expired."""


def no_restart(case: Passed) -> str:
    """6.2: why it is no restart of a redelivery."""
    return (
        f"not a restart of the redelivery: that goes back, and message {case.send.delivery.seq} is behind {case.what}, "
        f"which is behind message {case.before.seq}"
    )


# --- 7: what is held ---------------------------------------------------------------------------------------------------------


class Holding(NamedTuple):
    """A delivery that may be held at a position when another is sent."""

    send: Send
    position: int
    held: Delivery

    @property
    def what(self) -> str:
        """Its name."""
        return f"message {self.held.seq}"

    @property
    def ends(self) -> Ends:
        """When its hold may have ended, by what ends it."""
        send = self.send
        return ends_of(send.rules, self.held, send.newest(self.held.token))


def _is_unsettled(case: Holding) -> str:
    send = case.send
    sent_t = case.held.earliest_t
    unsettled = any(sent_t <= grace.until_t and grace.begun_t <= send.latest_t for grace in send.subscription.graces)
    return UNSETTLED if unsettled else ""


def _dropped(case: Holding) -> str:
    send = case.send
    lost = send.may_have_lost(case.held.earliest_t) and send.view.acked(case.position, send.by_t)
    return LOST if lost else ""


def _not_dropped(case: Holding) -> str:
    send = case.send
    if not send.view.acked(case.position, send.by_t):
        return f"not acknowledged before: no acknowledgement of {case.what} is on record before {at(send.latest_t)}"
    return none_lost(send.rules, case.held.earliest_t, send.latest_t)


HANDOVER: Final = Excuse[Holding](
    lambda case: HANDED_OVER if case.send.may_have_handed_over(case.held) else "",
    lambda case: not_handed_over(case.send.rules, case.held, case.send.delivery, case.send.latest_t),
)
HELD_EXPIRY: Final = Excuse[Holding](
    lambda case: EXPIRED if is_expired(case.send.rules, case.send.view.invoked_t(case.position), case.send.by_t) else "",
    lambda case: within_retention(case.send.rules, case.send.view.invoked_t(case.position), case.what),
)
DROPPED: Final[tuple[Excuse[Holding], ...]] = (
    HELD_EXPIRY,
    Excuse(_dropped, _not_dropped),
    HANDOVER,
    Excuse(
        lambda case: (
            BESIDE
            if case.send.subscription.may_have_lost_beside(case.send.view.invoked_t(case.position), case.send.delivery)
            else ""
        ),
        lambda case: none_lost_beside(case.send.rules, case.send.delivery),
    ),
)
"""Why what is held may be pending no more: it is too old, or a lost run may have dropped it."""

SETTLED: Final = Excuse[Holding](
    _is_unsettled,
    lambda case: f"not released by a control operation: none is on record since the delivery at {at(case.held.t)}, and no hole",
)

DEAD_LETTERED: Final = Excuse[Holding](
    lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts and not case.send.delivery.first else "",
    lambda case: (
        f"not dead-lettered: message {case.send.delivery.seq} is delivered for the first time, so that it is no redelivery"
        if case.send.rules.dead_letter_max_attempts
        else NO_POLICY
    ),
)

PUSHED: Final[tuple[Excuse[Holding], ...]] = (
    Excuse(
        lambda case: ANSWERED if case.held.acked_t <= case.send.by_t or case.send.view.acked(case.position, case.send.by_t) else "",
        lambda case: f"not acknowledged: no success of a request with {case.what} is on record before {at(case.send.latest_t)}",
    ),
    Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),
    HELD_EXPIRY,
    Excuse(
        lambda case: ADOPTED if _is_adopted(case) else "",
        lambda case: f"not older than the record: every request with {case.what} since its publish is on record",
    ),
)
"""Why push may go on past a message."""


def _is_adopted(case: Holding) -> bool:
    """Whether an earlier request, before the subscription showed itself, may have been answered."""
    send = case.send
    if send.rules.subscription_predates_first_publish or not send.may_be_released(case.held):
        return False
    shown_t = send.subscription.first_seen_t + send.rules.clock_error_s
    return case.held.publication is None or case.held.publication.invoked_t <= shown_t


_OF_END: Final[Mapping[str, Callable[[Holding, float], str]]] = MappingProxyType(
    {
        "lease": lambda case, t: (
            f"not released by its lease: that of {case.what}, delivered at {at(case.held.t)}, lasts until {at(t)} at least"
        ),
        "nack": lambda case, t: f"not nacked: {_no_answer('nack', case, t)}",
        "stream": lambda case, t: (
            f"not released with its stream: {case.held.session.name} was open until {at(t)} at least"
            if t < inf
            else f"not released with its stream: no end of {case.held.session.name} is on record"
        ),
        "ack": lambda case, t: f"not acknowledged: {_no_answer('acknowledgement', case, t)}",
        "answer": lambda case, t: (
            f"not answered in another session: {_no_answer('answer to another delivery', case, t)} that may have counted"
        ),
    }
)
"""The facts that exclude the end of a hold: a sentence for each field of `Ends`."""


def _no_answer(answer: str, case: Holding, t: float) -> str:
    until_t = min(t, case.send.latest_t)
    return f"no {answer} of {case.what} is on record {between(case.held.t, until_t)}"


def not_released(case: Holding, ends: Ends | None = None) -> Iterator[str]:
    """7.4: why what is held was not released."""
    rules = case.send.rules
    left_out = {"ack" if rules.mode is Mode.PUSH else "", "" if rules.mode is Mode.STREAMING else "stream"}  # `PUSHED` has the ack
    left_out.add("answer" if rules.exactly_once else "")
    for name, t in (ends or case.ends)._asdict().items():
        if name not in left_out:
            yield _OF_END[name](case, t)
    yield f"not released by a redelivery: nothing at or before {case.what} was sent since {at(case.held.t)}"


# --- 9: exactly-once delivery ------------------------------------------------------------------------------------------------


class Again(NamedTuple):
    """A delivery of what is held, behind the send `before` it."""

    send: Send
    before: Delivery


def _may_begin_below(case: Again) -> str:
    send = case.send
    lost = send.may_have_lost(case.before.earliest_t)
    return LOWER if lost and _lower_may_be_free(send) else ""


def _lower_may_be_free(send: Send) -> bool:
    """Whether something below may be free to come again; what is not on record may be, unless its acknowledgement was confirmed."""
    held = dict(send.held)
    unconfirmed = (one for one in range(1, send.position) if not send.view.provably_confirmed(one, send.by_t))
    free = (one not in held or earliest_end(send.rules, held[one]) <= send.by_t for one in unconfirmed)
    return send.stands_behind_missing or any(free)


def _begins_here(case: Again) -> str:
    send = case.send
    if not send.may_have_lost(case.before.earliest_t):
        return none_lost(send.rules, case.before.earliest_t, send.latest_t)
    why = f"each message before message {send.delivery.seq} was held as well, or its acknowledgement confirmed"
    return f"not part of the redelivery of an earlier message: {why}"


AGAIN: Final[tuple[Excuse[Again], ...]] = (
    Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),
    Excuse(_may_begin_below, _begins_here),
)
"""Why what is held may be delivered again."""
