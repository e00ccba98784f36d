"""Time spans in which deliveries of one key may have been outstanding, and their sessions: docs/model.md, 7.4.

Deliveries that were answered, or whose lease is over, are kept as spans only, so the size depends on the outstanding ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.events import LONG_AGO
from prober.core.facts import Delivery, Record, Session, lease_until, may_be_held_until
from prober.core.rules import Mode

if TYPE_CHECKING:
    from prober.core.subscription import Subscription

SPANS_KEPT: Final = 128
"""Number of remembered spans of a key; beyond that the oldest two are merged."""
OUTSTANDING_KEPT: Final = 256, 4096
"""Bounds of the number of unanswered deliveries remembered for a key: four times the window within these.

Beyond that the oldest count as held until their lease is over.
"""

AGAIN_KEPT: Final = 32
"""Number of redeliveries of a key whose released messages are known."""


class Span:
    """A time span in which messages may have been outstanding on a session.

    start_t     the earliest possible send of its first delivery.
    first_t     when its first delivery was received.
    end_t       until when its messages may have been outstanding.
    leased_t    the same if no answer arrived: until the last lease was over.
    delays_t    until when it may also have delayed other keys: after a nack, and longer if the retry policy delays the redelivery.
    extended_t  until when a lease lasts that was set after the end of the session, or after a redelivery on another session.
    elsewhere_t when a redelivery on another session can first have ended the hold of extended messages.
    regions     the publishing regions of its messages.
    """

    __slots__ = ("delays_t", "elsewhere_t", "end_t", "extended_t", "first_t", "leased_t", "regions", "session", "start_t")

    def __init__(self, session: Session, start_t: float, first_t: float, region: str | None = None) -> None:
        self.session = session
        self.regions: tuple[str | None, ...] = (region,)
        self.start_t = start_t
        self.first_t = first_t
        self.elsewhere_t = inf
        self.end_t = self.delays_t = self.leased_t = self.extended_t = LONG_AGO

    def lasts(self, end_t: float, delays_t: float = LONG_AGO) -> None:
        """Extend the span: its messages may be outstanding until `end_t`, and delay other keys until `delays_t`."""
        if end_t > self.end_t:
            self.end_t = end_t
        if delays_t > self.delays_t:
            self.delays_t = delays_t


class Holds:
    """Deliveries of one key that may be outstanding; see the module docstring.

    unacked     the last delivery of each never acknowledged record whose redelivery is pending, the oldest first.
    others      other outstanding deliveries: acknowledged before, or not verified.
    touched_t   when a message of the key was sent, or its lease changed.
    """

    __slots__ = ("_again", "_answer_s", "_kept_max", "_latest", "_past", "_span", "_subscription", "others", "touched_t", "unacked")

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        least, most = OUTSTANDING_KEPT
        self._kept_max = min(max(4 * subscription.rules.window, least), most)
        self._answer_s = subscription.rules.ack_settled_s
        self._past: list[Span] = []
        self._latest: dict[Session, Span] = {}
        self._span: Span | None = None
        self.unacked: dict[Record, Delivery] = {}
        self.others: dict[Record, Delivery] = {}
        self.touched_t = LONG_AGO
        self._again: deque[Delivery] = deque(maxlen=AGAIN_KEPT)

    # --- what happens --------------------------------------------------------------------------------------------------------

    def delivered(self, one: Delivery, *, pending: bool) -> None:
        """Note a delivery; `pending`: the message is redelivered unless it is acknowledged."""
        span, rules, streaming = self._span, self._subscription.rules, self._subscription.streaming
        if span is None or span.session is not one.session or (not self.unacked and self._is_over(span, one)):
            span = self._begin(one)
        if one.region not in span.regions:
            span.regions += (one.region,)
        leased_t = one.t + rules.ack_deadline_s + rules.delivery_delay_max_s + rules.clock_error_s
        if leased_t > span.leased_t:
            span.leased_t = leased_t
        if not streaming:
            span.lasts(leased_t)
        if not one.first or one.older is not None:
            self._replace(one.record, one.t)
            if streaming:
                self._again.append(one)
        if pending or streaming:
            kept = self.unacked if pending else self.others
            kept[one.record] = one
            if len(kept) > self._kept_max:
                self._fold(kept.pop(next(iter(kept))))
        self.touched_t = one.t

    def acked(self, one: Delivery, t: float) -> None:
        """Note that a delivery was acknowledged, and with it its record."""
        held = self.unacked.pop(one.record, None) or self.others.pop(one.record, None)
        if held is None:
            return
        if held is not one:
            self._fold(held)
        elif self._subscription.streaming:
            span = self._latest.get(one.session)
            if span is not None:
                end_t = t + self._answer_s + self._subscription.rules.clock_error_s
                if end_t > span.end_t:
                    span.end_t = end_t

    def leased(self, one: Delivery) -> None:
        """Note that the lease of a delivery was changed, which may have been acknowledged before."""
        self.touched_t = max(self.touched_t, one.t)
        record = one.record
        again_t = self._redelivered_elsewhere(one)
        over = min(one.session.closed_t, again_t) < inf if self._subscription.streaming else one.session not in self._latest
        if over or one not in (self.unacked.get(record), self.others.get(record)):
            span = self._span_of(one)
            span.elsewhere_t = min(span.elsewhere_t, again_t if self._subscription.streaming else one.leases[-1][0])
            span.extended_t = max(span.extended_t, lease_until(self._subscription.rules, one))
        if one.session in self._latest:
            span, leased_t = self._latest[one.session], lease_until(self._subscription.rules, one)
            span.leased_t = max(span.leased_t, leased_t)
            if not self._subscription.streaming:
                span.lasts(leased_t)

    def extend(self, session: Session, t: float, until_t: float) -> None:
        """Note that the lease of an acknowledged message was extended."""
        span = self._latest.get(session)
        if span is None:
            span = self._latest[session] = Span(session, t, t)
        span.extended_t = max(span.extended_t, until_t)
        self.touched_t = max(self.touched_t, t)

    def _redelivered_elsewhere(self, one: Delivery) -> float:
        """Return when a redelivery on another session, at its position or below, can have ended its hold; infinite if none did."""
        later = (other for other in self._again if other.number > one.number and other.session is not one.session)
        return min((other.earliest_t for other in later if not other.position or other.position <= one.position), default=inf)

    def began_again_t(self, one: Delivery) -> float:
        """Return when the key last restarted at the position of a delivery or below: later messages follow that redelivery."""
        later = (other for other in reversed(self._again) if other.number > one.number)
        return next((other.t for other in later if not other.position or other.position <= one.position), LONG_AGO)

    def forget_pending(self) -> None:
        """Note that no redelivery is pending any more; deliveries so far may be outstanding."""
        self.others |= self.unacked
        self.unacked = {}

    def drop(self, token: int, gone_t: float = inf) -> None:
        """Remove a message that is no longer pending: it left the subscription at `gone_t`, or was acknowledged unseen."""
        for kept in (self.unacked, self.others):
            for record in [record for record, one in kept.items() if one.token == token]:
                self._fold(kept.pop(record), gone_t)

    def tidy(self, now: float) -> None:
        """Merge deliveries that are neither pending nor outstanding into their span."""
        over = [record for record, one in self.others.items() if self.held_until(one) < now]
        for record in over:
            self._fold(self.others.pop(record))

    # --- what is known -------------------------------------------------------------------------------------------------------

    def held_until(self, one: Delivery) -> float:
        """Return when a delivery is provably no longer outstanding.

        By pull and push an answer alone proves nothing.
        """
        rules = self._subscription.rules
        if rules.mode is not Mode.STREAMING or (one.older is not None and one.older.stamp != one.stamp):
            return lease_until(rules, one)
        return min(may_be_held_until(rules, one), one.session.closed_t + rules.clock_error_s)

    def spans(self) -> Iterator[Span]:
        """Yield the known time spans in which messages of the key may have been outstanding."""
        for kept in (self.unacked, self.others):
            for one in kept.values():
                self._fold(one)
        yield from self._past
        yield from self._latest.values()

    def delays(self) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which the key may have delayed others."""
        for span in self.spans():
            yield span.start_t, max(self._end_of(span), span.delays_t, span.extended_t)

    def held(self) -> Iterator[tuple[float, float, Span]]:
        """Yield the time spans in which the key may have been held, each with its span."""
        for span in self.spans():
            yield span.start_t, self._end_of(span), span

    def extended(self) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which a client may have held messages of an ended stream, or messages redelivered on another."""
        for span in (*self._past, *self._latest.values()):
            over_t = span.session.closed_t - self._subscription.rules.close_detection_max_s
            yield min(over_t, span.elsewhere_t) if self._subscription.streaming else span.elsewhere_t, span.extended_t

    def _end_of(self, span: Span) -> float:
        if not self._subscription.streaming:
            return span.end_t
        return max(min(span.end_t, span.session.closed_t + self._subscription.rules.clock_error_s), span.extended_t)

    def _delays_until(self, one: Delivery) -> float:
        """8.3: return until when a message may be unacknowledged after a nack that was lost: its lease, plus the retry backoff."""
        backoff_s = self._subscription.rules.retry_backoff_max_s
        return lease_until(self._subscription.rules, one) + backoff_s if backoff_s or one.nacked_t < inf else LONG_AGO

    # --- spans ---------------------------------------------------------------------------------------------------------------

    def _is_over(self, span: Span, one: Delivery) -> bool:
        """Return whether all deliveries of a span provably ended before another one was sent."""
        return not self.unacked and not self.others and span.end_t < one.t - self._subscription.rules.delivery_delay_max_s

    def _begin(self, one: Delivery) -> Span:
        """Start a span: the session changed, or all earlier deliveries are over."""
        if not self._subscription.streaming:
            self._hand_over(one)
        known = self._latest.get(one.session)
        if known is not None and not self._is_over(known, one):
            self._span = known
            return known
        if known is not None:
            self._put_away(self._latest.pop(one.session))
        span = self._span = self._latest[one.session] = Span(one.session, one.earliest_t, one.t, one.region)
        if len(self._latest) > 8:
            self._put_away(self._latest.pop(next(iter(self._latest))))
        return span

    def _hand_over(self, one: Delivery) -> None:
        """End the spans of other sessions: by pull and push a later delivery proves that earlier ones of its region are not outstanding."""
        end_t = one.t + self._subscription.rules.clock_error_s
        for session, span in list(self._latest.items()):
            if session is not one.session and (span.regions == (one.region,) or set(span.regions) <= {one.region, None}):
                span.end_t, span.delays_t = min(span.end_t, end_t), min(span.delays_t, end_t)
                self._put_away(self._latest.pop(session))

    def _put_away(self, span: Span) -> None:
        past = self._past
        if past and not self._subscription.streaming and span.start_t <= past[-1].end_t:
            past[-1].lasts(span.end_t, span.delays_t)
            return
        past.append(span)
        if len(past) > SPANS_KEPT:
            first = past.pop(0)
            past[0].start_t, past[0].first_t = min(first.start_t, past[0].start_t), min(first.first_t, past[0].first_t)
            past[0].lasts(first.end_t, first.delays_t)
            past[0].leased_t = max(first.leased_t, past[0].leased_t)

    def _span_of(self, one: Delivery) -> Span:
        """Return the span of a delivery; create one if it is not remembered."""
        span = self._latest.get(one.session)
        if span is not None:
            return span
        for past in reversed(self._past):
            if past.session is one.session or (not self._subscription.streaming and past.start_t <= one.t <= past.end_t):
                return past
        span = Span(one.session, one.earliest_t, one.t)
        self._past.append(span)
        return span

    def _replace(self, record: Record, t: float) -> None:
        """Remove the earlier deliveries of a redelivered record: they are neither outstanding nor pending."""
        for kept in (self.unacked, self.others):
            before = kept.pop(record, None)
            if before is not None:
                self._fold(before, t)

    def _fold(self, one: Delivery, again_t: float = inf) -> None:
        """Extend the span of a delivery to its end, at most to its redelivery."""
        end_t = self.held_until(one) if self._subscription.streaming else LONG_AGO
        if self._subscription.streaming or self._subscription.rules.retry_backoff_max_s:
            self._span_of(one).lasts(min(end_t, again_t), min(self._delays_until(one), again_t))
