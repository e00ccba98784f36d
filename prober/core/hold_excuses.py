"""Excuses of the rules of holders: why the service may send a message while another may be held (docs/model.md, 7 and 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.excuses import (
    ADOPTED,
    ANSWERED,
    BESIDE,
    DEAD_LETTER,
    EXPIRED,
    HANDED_OVER,
    LOST,
    LOWER,
    NO_POLICY,
    UNSETTLED,
    Excuse,
    at,
    between,
    is_expired,
    none_lost,
    none_lost_beside,
    not_handed_over,
    unacknowledged,
    within_retention,
)
from prober.core.facts import Delivery, Ends, counts_from, earliest_end, ends_of
from prober.core.names import words_for
from prober.core.rules import Mode

if TYPE_CHECKING:
    from prober.core.model import Send

# --- 7: what is held ---------------------------------------------------------------------------------------------------------


class Holding(NamedTuple):
    """A delivery that may be held at a position when another is sent."""

    send: Send
    position: int
    held: Delivery

    @property
    def what(self) -> str:
        """The name of the held message in texts."""
        return words_for(self.send.key, self.held)

    @property
    def other(self) -> str:
        """The name of the sent message in texts."""
        return words_for(self.send.key, self.send.delivery)

    @property
    def ends(self) -> Ends:
        """The times at which its hold may have ended, by cause."""
        send = self.send
        return ends_of(send.rules, self.held, send.key.newest(self.held.token))


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
        invoked_t = send.view.invoked_t(case.position)
        return f"not acknowledged before: {unacknowledged(send.subscription, case.what, invoked_t, send.latest_t)}"
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
"""Excuses of a held message that is no longer pending: it has expired, or a lost run may have dropped it."""

SETTLED: Final = Excuse[Holding](
    _is_unsettled,
    lambda case: f"not released by a control operation: none is on record since the delivery at {at(case.held.t)}, and no hole",
)

DEAD_LETTERED: Final = Excuse[Holding](
    lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts and not case.send.delivery.first else "",
    lambda case: (
        f"not dead-lettered: {case.other} is delivered for the first time, so that it is no redelivery"
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
"""Excuses of push that advances past a message."""


def _is_adopted(case: Holding) -> bool:
    """Return whether an earlier request, before the first event of the subscription, may have been answered."""
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
        "nack": lambda case, t: f"not nacked: {_not_answered('nack', case, t)}",
        "stream": lambda case, t: (
            f"not released with its stream: {case.held.session.name} was open until {at(t)} at least"
            if t < inf
            else f"not released with its stream: no end of {case.held.session.name} is on record"
        ),
        "ack": lambda case, t: f"not acknowledged: {_not_answered('acknowledgement', case, t)}",
        "answer": lambda case, t: (
            f"not answered in another session: no answer to another delivery of {case.what} that may have counted is on record "
            f"{between(counts_from(case.send.rules, case.held), min(t, case.send.latest_t))}"
        ),
    }
)
"""The facts that exclude the end of a hold: a sentence for each field of `Ends`."""


def _not_answered(answer: str, case: Holding, t: float) -> str:
    """State why an answer at `t`, infinite if none was sent, released nothing.

    The reason is a fact of the record, in either order of the sends.
    """
    one = case.send.delivery
    if one.number < case.held.number:
        return f"{case.what} was received at {at(case.held.t)}, after {case.other} at {at(one.t)}"
    if case.send.by_t < t <= one.t:
        return f"the {answer} of {case.what} at {at(t)} came after {case.other} was sent, if that is to explain other deliveries"
    return f"no {answer} of {case.what}, as delivered at {at(case.held.t)}, is on record before {at(one.t)}"


def not_released(case: Holding, ends: Ends | None = None) -> Iterator[str]:
    """7.4: yield the reasons why the held message was not released."""
    rules = case.send.rules
    left_out = {"ack" if rules.mode is Mode.PUSH else "", "" if rules.mode is Mode.STREAMING else "stream"}  # `PUSHED` has the ack
    left_out.add("answer" if rules.exactly_once else "")
    for name, t in (ends or case.ends)._asdict().items():
        if name not in left_out:
            yield _OF_END[name](case, t)
    yield f"not released by a redelivery: {_not_redelivered(case)}"


def _not_redelivered(case: Holding) -> str:
    first, last = sorted((case.held, case.send.delivery), key=lambda one: one.number)
    again = case.send.view.redelivered(case.position, first.number, last.number)
    if again is None:
        return f"none of {case.what} or an earlier one is on record {between(first.t, last.t)}"
    return f"that of {words_for(case.send.key, again)} at {at(again.t)} may have been sent in between, which explains no more"


# --- 9: exactly-once delivery ------------------------------------------------------------------------------------------------


class Again(NamedTuple):
    """A redelivery of a held message, after the send `before` it."""

    send: Send
    before: Delivery


def _may_begin_below(case: Again) -> str:
    send = case.send
    lost = send.may_have_lost(case.before.earliest_t)
    return LOWER if lost and _lower_may_be_free(send) else ""


def _lower_may_be_free(send: Send) -> bool:
    """Return whether an earlier message may be free to be redelivered.

    An unrecorded message may be, unless its acknowledgement was confirmed.
    """
    held = dict(send.held)
    unconfirmed = (one for one in range(1, send.position) if not send.view.provably_confirmed(one, send.by_t))
    free = (one not in held or earliest_end(send.rules, held[one]) <= send.by_t for one in unconfirmed)
    return send.stands_behind_missing or any(free)


def _begins_here(case: Again) -> str:
    send = case.send
    if not send.may_have_lost(case.before.earliest_t):
        return none_lost(send.rules, case.before.earliest_t, send.latest_t)
    why = f"each message before {words_for(send.key, send.delivery)} was held as well, or its acknowledgement confirmed"
    return f"not part of the redelivery of an earlier message: {why}"


AGAIN: Final[tuple[Excuse[Again], ...]] = (
    Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),
    Excuse(_may_begin_below, _begins_here),
)
"""Excuses of the redelivery of a held message."""
