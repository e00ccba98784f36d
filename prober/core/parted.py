"""Streams that broke while another one of their subscriber went on.

A subscriber may read several streams side by side. Then a message may have been sent on one that broke and be lost with it, and what is
behind it have come on another: it is received late, or not at all before its lease is over, and still was sent in order.

With exactly-once delivery so does a stream that the subscriber opens afterwards: what was lost stays leased, for "the message sent to a
subscriber is guaranteed not to be resent before the message's acknowledgment deadline expires" (proto,
Subscription.enable_exactly_once_delivery), and what is behind it goes to the same subscriber meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.rules import Rules
from prober.core.sessions import ANYWHERE, Session, Source

PARTED_KEPT: Final = 64
"""Such streams remembered; beyond that the two oldest become one that covers both."""


class Stream(NamedTuple):
    """One that was open between two times, or `several` that are not told apart any more.

    alive_t     whatever was sent on it before has come.
    beside      whether another one of its subscriber was open when it was closed.
    """

    source: Source
    opened_t: float
    closed_t: float
    alive_t: float
    beside: bool
    several: bool = False


class Parted:
    """The streams of one subscription that are over; one was open beside another of its subscriber until `paired_until_t`, at least."""

    __slots__ = ("_over", "_rules", "paired_until_t")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.paired_until_t = LONG_AGO
        self._over: tuple[Stream, ...] = ()

    def add(self, session: Session, *, beside: bool) -> None:
        """One was closed, `beside` another of its subscriber that is open."""
        if beside:
            self.paired_until_t = session.closed_t + self._rules.clock_error_s
        self._over += (Stream(session.source, session.opened_t, session.closed_t, session.alive_t, beside),)
        if len(self._over) > PARTED_KEPT:
            one, other, *others = self._over
            opened_t, closed_t = min(one.opened_t, other.opened_t), max(one.closed_t, other.closed_t)
            alive_t, beside = min(one.alive_t, other.alive_t), one.beside or other.beside
            self._over = (Stream(ANYWHERE, opened_t, closed_t, alive_t, beside, several=True), *others)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._over

    def may_have_taken(self, invoked_t: float, by: Source, since_t: float, until_t: float) -> bool:
        """Whether what was published at `invoked_t` may have been sent on one before what came between two times on another."""
        return any(True for _ in self._took(invoked_t, by, since_t, until_t))

    def may_have_taken_both(self, invoked_t: float, by: Source, t: float, again: Source, again_t: float, next_t: float) -> bool:
        """The same; and what came at `t` was sent again, on yet another one, between what came `again` and what came next there.

        The service sends again what was lost when it notices that, and not into the same stream; or when the lease is over, wherever.
        """
        leased_until_t = invoked_t + self._rules.ack_deadline_s - self._rules.clock_error_s
        return any(
            one is not other or one.several or again_t >= leased_until_t
            for one in self._took(invoked_t, by, t, t)
            for other in self._took(again_t - self._rules.delivery_delay_max_s, again, again_t, next_t)
        )

    def _took(self, sent_after_t: float, beside: Source, since_t: float, until_t: float) -> Iterator[Stream]:
        """Those that may have taken what was sent after one time, and before something that came beside them between two others."""
        rules, eps = self._rules, self._rules.clock_error_s
        leased_s = rules.ack_deadline_s if rules.exactly_once else 0.0
        alive_t = max(sent_after_t, since_t - rules.delivery_delay_max_s - leased_s) - eps
        noticed_t = until_t + rules.close_detection_max_s + rules.delivery_delay_max_s + eps
        for one in self._over:
            if not self._went_beside(one, beside) or one.alive_t > until_t + eps:
                continue
            if one.opened_t <= until_t + eps and alive_t <= one.closed_t <= noticed_t:
                yield one

    def _went_beside(self, one: Stream, other: Source) -> bool:
        """Whether the other is another stream of the same subscriber, which was there when this one broke, or took its place."""
        if one.source.subscriber and other.subscriber and one.source.subscriber != other.subscriber:
            return False
        later = self._rules.exactly_once or (other != ANYWHERE and other.opened_t < one.closed_t + self._rules.clock_error_s)
        return (one.beside or later) and one.source != other
