"""Clocks: for how long the service could deliver pending messages (docs/model.md, 8.2 and 8.3).

A clock adds up the time without a possible obstacle. A possible obstacle counts as a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.facts import Delivery, Grace, Record, Session, lease_until
from prober.core.flow import Flow, Spans, both, length, minus, reaches, union
from prober.core.holds import Holds
from prober.core.rules import Mode

if TYPE_CHECKING:
    from prober.core.subscription import Subscription

LEFT: Final = 0.25
"""The share of a deadline that has to be left when the leases on a broken stream are over."""
BACKED_OFF_KEPT: Final = 1024
"""Number of deliveries of a key that may start a retry backoff; beyond that any message may wait until the oldest are over."""
LEASE_MAX_S: Final = 600.0
"""The longest lease that a client can set at once, in seconds: the longest acknowledgement deadline of Pub/Sub."""
BREAKS_KEPT: Final = 32
"""Number of ends of streams that are checked individually; of more only the last."""


class Wait(NamedTuple):
    """A pending delivery.

    since_t     since when it has been pending.
    seconds     its deadline.
    sent_t      since when the service had the message, so it may have been sent on a stream that broke later.
    counts      whether the retry policy may delay it after a delivery.
    """

    since_t: float
    seconds: float
    sent_t: float
    counts: Callable[[Delivery], bool] = lambda _: True


class Verdict(NamedTuple):
    """The result of a clock: `passed_t`: when the deadline passed, or infinite; `left_s`: seconds before which it cannot pass."""

    passed_t: float
    left_s: float


class Clocks:
    """The clocks of all keys of one subscription.

    active      the keys in the order of their last send, the latest last.
    leased_s    the longest lease set at once.
    flows       the flow control of the streams that have it.
    latest      the key of the last send.
    """

    __slots__ = ("_subscription", "active", "flows", "latest", "leased_s")

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.flows: dict[Session, Flow] = {}
        self.active: dict[Holds, None] = {}
        self.latest: Holds | None = None
        self.leased_s = subscription.rules.ack_deadline_s + subscription.rules.delivery_delay_max_s

    # --- what happens --------------------------------------------------------------------------------------------------------

    def delivered(self, one: Delivery, largest: int) -> None:
        """Note a delivery on a stream with flow control; `largest`: the size of the largest message of its key, in bytes."""
        session, publication = one.session, one.publication
        flow = self.flows.get(session)
        if flow is None:
            self.flows = {each: kept for each, kept in self.flows.items() if each.closed_t == inf}
            flow = self.flows[session] = Flow(self._subscription.rules, session)
        flow.delivered(one.record, one, largest if publication is None or not publication.size else publication.size)

    def answered(self, one: Delivery, t: float) -> None:
        """Note that a delivery was acknowledged or nacked."""
        flow = self.flows.get(one.session)
        if flow is not None:
            flow.answered(one.record, t)

    def extended(self, holds: Holds, session: Session, token: int, t: float, until_t: float) -> None:
        """Note that the lease of an acknowledged message was extended, so that it may count as outstanding."""
        self.touch(holds, until_t - t)
        flow = self.flows.get(session)
        if flow is not None:
            flow.extended(token, t, until_t)

    def touch(self, holds: Holds, leased_s: float = 0.0) -> None:
        """Note that a message of a key was sent, or leased for `leased_s` seconds."""
        self.leased_s = max(self.leased_s, leased_s)
        self.latest = holds
        self.active.pop(holds, None)
        self.active[holds] = None

    def forget(self, holds: Holds) -> None:
        """Forget an idle key: it delays no other key."""
        self.active.pop(holds, None)
        if self.latest is holds:
            self.latest = None

    @property
    def longest_s(self) -> float:
        """The longest time, in seconds, for which a key may delay others after a send."""
        rules = self._subscription.rules
        return self.leased_s + rules.retry_backoff_max_s + rules.ack_settled_s + rules.clock_error_s

    # --- clocks --------------------------------------------------------------------------------------------------------------

    def decide(self, key: KeyClock, wait: Wait, now: float, *, firm: bool) -> Verdict:
        """Decide whether the service could deliver for longer than the deadline; `firm`: without times when other keys may delay it."""
        seconds = wait.seconds + self._subscription.rules.clock_error_s
        if now - wait.since_t <= seconds:
            return Verdict(inf, wait.since_t + seconds - now)
        breaks = self._breaks()
        for stop in (*(t for t in breaks if wait.since_t < t < now), now):
            free = self._free(key, wait, stop, firm=firm)
            passed_t = reaches(free, wait.since_t, seconds)
            if passed_t < inf:
                lost = [t for t in breaks if wait.sent_t <= t < stop]
                passed_t = max(passed_t, self._again_t(key, wait, seconds, free, lost))
            if passed_t < inf:
                return Verdict(passed_t, 0.0)
        return Verdict(inf, max(seconds - length(free, wait.since_t), 0.0))

    def _again_t(self, key: KeyClock, wait: Wait, seconds: float, free: Spans, breaks: list[float]) -> float:
        """Return the time until which a broken stream excuses a missing delivery.

        A broken stream excuses for one lease: it can have lost one delivery of the message, not all of them. A lost pull or push request
        also excuses for the backoff of the retry policy.
        """
        rules = self._subscription.rules
        leased_s = rules.ack_deadline_s + rules.retry_backoff_max_s
        if rules.retry_backoff_max_s and not self._subscription.streaming and self._may_have_lost_answer(wait.sent_t):
            return reaches(free, wait.since_t, seconds + leased_s)
        if not breaks:
            return LONG_AGO
        ends = [lease_until(rules, one) - rules.clock_error_s for one in key.holds.unacked.values()]
        times = [self._left_t(free, t, wait.since_t, seconds) for t in ends if wait.since_t < t < inf]
        lost_t = self._left_t(free, breaks[-1] + leased_s, wait.since_t, seconds)
        return max(*times, min(lost_t, reaches(free, wait.since_t, seconds + leased_s)), LONG_AGO)

    def _may_have_lost_answer(self, since_t: float) -> bool:
        """Return whether a pull was lost, or may still prove lost; a push request may be lost on its way to the endpoint at any time."""
        subscription = self._subscription
        lost = (one for one in subscription.ended if one.lost and one.closed_t >= since_t - subscription.rules.clock_error_s)
        return subscription.rules.mode is Mode.PUSH or subscription.loss_may_show(inf) or any(lost)

    def _left_t(self, free: Spans, t: float, since_t: float, seconds: float) -> float:
        return reaches(free, max(t, since_t), seconds * LEFT)

    def excused_until(self) -> float:
        """Return the time until which no event makes a message pending: a control operation settles, or the record has a hole."""
        return max((stop for _, stop in self._graces()), default=LONG_AGO)

    def pending_since(self, invoked_t: float) -> float:
        """Return since when a message published at `invoked_t` is pending, apart from its confirmation; infinite if it is not.

        A control operation or a hole may have hidden the message. A seek back restores it when the seek has settled.
        """
        graces = self._subscription.graces
        for grace, (_, end_t) in zip(reversed(graces), reversed(self._graces()), strict=True) if graces else ():
            restored = grace.since_t + self._subscription.rules.clock_error_s <= invoked_t
            if restored or (grace.is_hole and grace.published_t < invoked_t <= end_t):
                return end_t
            if invoked_t <= end_t:
                return inf
        return LONG_AGO

    # --- when the service could deliver --------------------------------------------------------------------------------------

    def _free(self, key: KeyClock, wait: Wait, stop: float, *, firm: bool) -> Spans:
        """Return the time spans in which nothing can have delayed the pending message."""
        taken = (span for _, spans in self._obstacles(key, wait, stop) for span in spans)
        free = minus(union(self._there_since(wait.since_t, stop)), taken)
        return self._without_others(key, free) if firm else free

    def _there_since(self, since_t: float, stop: float) -> Iterator[tuple[float, float]]:
        return ((max(start, since_t), min(end, stop)) for start, end in self._there(stop))

    def _obstacles(self, key: KeyClock, wait: Wait, stop: float) -> Iterator[tuple[str, Iterable[tuple[float, float]]]]:
        """Yield each possible obstacle to the pending message, with its time spans."""
        yield "a seek, purge, filter change or hole in the record", [*self._graces(), *self._leased_unseen(key)]
        yield "a lost session", self._unsteady(stop)
        yield "deliveries from before the record", [(LONG_AGO, key.unknown_until_t)]
        yield "the retry policy", key.backed_off(wait.counts)
        if not self._subscription.streaming:
            yield "outstanding messages of the key", [(start, end) for start, end, _ in key.holds.held()]
        else:
            yield "flow control of the subscriber that holds the key", self._in_full_streams(key, stop)
            yield "a change of the subscriber", self._handed_over(key, stop)
        yield "a lease that was extended after a delivery elsewhere", key.holds.extended()

    def reasons(self, key: KeyClock, wait: Wait, stop: float) -> Iterator[str]:
        """Yield a sentence for each possible obstacle until a time: for how long it may have delayed the message."""
        period = [(wait.since_t, stop)]
        absent = "a missing stream or used up flow control" if self._subscription.streaming else "a missing session"
        yield _not_delayed(wait, stop, absent, minus(period, self._there_since(wait.since_t, stop)))
        for name, spans in self._obstacles(key, wait, stop):
            yield _not_delayed(wait, stop, name, both(period, union(spans)))
        free = self._free(key, wait, stop, firm=False)
        yield _not_delayed(wait, stop, "outstanding messages of other keys", minus(free, self._without_others(key, free)))

    def _there(self, stop: float) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which a subscriber was ready to receive."""
        subscription = self._subscription
        if subscription.rules.mode is Mode.PUSH:
            yield subscription.first_seen_t, inf
            return
        for session in self._sessions():
            if subscription.streaming:
                yield from self._room(session, stop)
            elif not self._may_be_answered_unseen(session):
                yield session.opened_t, min(session.answered_t, session.closed_t)

    def _may_be_answered_unseen(self, session: Session) -> bool:
        """Return whether the answer of a pull may be in a hole of the record."""
        pending = min(session.answered_t, session.closed_t) == inf
        return pending and any(hole.is_hole and session.opened_t <= hole.until_t for hole in self._subscription.graces)

    def _room(self, session: Session, stop: float) -> Spans:
        """Return the time spans in which a stream was open and its flow control was not used up."""
        flow = self.flows.get(session)
        opened = [(session.opened_t, self._dead_t(session))]
        return opened if flow is None else minus(opened, flow.full(stop))

    def _dead_t(self, session: Session) -> float:
        """Return the earliest time at which a stream may have been dead; without a later delivery, a hole may contain its end."""
        if session.closed_t < inf:
            return session.closed_t - self._subscription.rules.close_detection_max_s
        holes = (one.until_t for one in self._subscription.graces if one.is_hole and session.opened_t <= one.until_t)
        return min((t for t in holes if session.sent_t <= t), default=inf)

    def _sessions(self) -> Iterator[Session]:
        yield from self._subscription.ended
        yield from self._subscription.sessions.values()

    def _breaks(self) -> list[float]:
        if not self._subscription.streaming:
            return []
        times = sorted(one.closed_t + self._subscription.rules.clock_error_s for one in self._subscription.ended)
        return times[-BREAKS_KEPT:]

    def _unsteady(self, stop: float) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which messages may have been lost with a broken stream or a lost pull."""
        subscription, rules = self._subscription, self._subscription.rules
        slack = rules.delivery_delay_max_s + rules.clock_error_s
        if rules.mode is Mode.PULL:
            for one in subscription.ended:
                if one.lost:
                    yield one.opened_t, one.closed_t + rules.ack_deadline_s + rules.delivery_delay_max_s
        if not subscription.streaming or not subscription.ended:
            return
        again_t = self._opened_again(stop)
        for one in subscription.ended:
            until_t = one.closed_t + rules.ack_deadline_s + rules.retry_backoff_max_s + slack
            yield self._dead_t(one) - slack, min(until_t, again_t)

    def _opened_again(self, stop: float) -> float:
        """Return the last time a stream was opened while no other stream was open."""
        latest_t, open_until_t = LONG_AGO, LONG_AGO
        for one in sorted(self._sessions(), key=lambda each: each.opened_t):
            if one.opened_t >= stop:
                break
            if one.opened_t >= open_until_t:
                latest_t = one.opened_t
            open_until_t = max(open_until_t, one.closed_t)
        return latest_t

    def _graces(self) -> list[tuple[float, float]]:
        graces = self._subscription.graces
        return [(one.until_t, self._hole_end(one)) if one.is_hole else (one.start_t, one.until_t) for one in graces]

    def _hole_end(self, hole: Grace) -> float:
        """Return the end of a hole: a later session opened, or an earlier one delivered again, and the old streams are closed."""
        sessions = list(self._sessions())
        opened_t = min((one.opened_t for one in sessions if one.opened_t > hole.until_t), default=inf)
        shown_t = min(opened_t, hole.shown_t)
        if not self._subscription.streaming:
            return shown_t
        return max([shown_t, *(one.closed_t for one in sessions if one.opened_t <= hole.until_t < one.closed_t < inf)])

    # --- what of the same key may be in the way ------------------------------------------------------------------------------

    def _leased_unseen(self, key: KeyClock) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which a message delivered in a hole may be held: until a later send, or the end of its lease."""
        rules = self._subscription.rules
        slack = rules.delivery_delay_max_s + rules.clock_error_s
        for hole in self._subscription.graces:
            if hole.is_hole and key.last_t - slack <= hole.until_t:
                yield hole.until_t, hole.until_t + max(LEASE_MAX_S, rules.ack_deadline_s) + slack

    def _in_full_streams(self, key: KeyClock, stop: float) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which the flow control of the key's holder was used up on one of its streams."""
        for session, flow in self.flows.items():
            full = both([(session.opened_t, self._dead_t(session))], union(flow.full(stop)))
            if full:
                held = ((start, end) for start, end, span in key.holds.held() if span.session.owner == session.owner)
                yield from both(full, union(held))

    def _handed_over(self, key: KeyClock, stop: float) -> Iterator[tuple[float, float]]:
        """Yield the time spans in which the key was held and may move to a subscriber that connected meanwhile."""
        rules = self._subscription.rules
        if rules.delivery_delay_max_s == inf:
            return
        held = [one for one in key.holds.held() if one[0] < one[1]]
        for start, end in union((start, end) for start, end, _ in held):
            leased_t = max(end, *(min(one[2].leased_t, one[2].session.closed_t) for one in held if start <= one[0] <= end))
            leased_t = min([leased_t, *(one[2].first_t for one in held if one[0] > end)])
            for session in self._sessions():
                opened_t = session.opened_t
                if not start < opened_t + rules.clock_error_s or opened_t >= min(end, stop):
                    continue
                if all(one[2].session.owner == session.owner for one in held if start <= one[0] <= end):
                    continue
                if opened_t + rules.delivery_deadline_s < key.last_t <= end:
                    continue  # the key went on where it was
                since_t = max(opened_t, key.last_t) if key.last_t <= end else opened_t  # until then it was where it was delivered
                had = [(one[2].first_t, one[1]) for one in held if one[2].session.owner == session.owner]
                yield from minus([(since_t, leased_t)], had)

    # --- other keys: 8.3 -----------------------------------------------------------------------------------------------------

    def _without_others(self, key: KeyClock, free: Spans) -> Spans:
        """Return the part of some time spans in which no other key was held that may have delayed this one."""
        for holds in reversed(self.active):
            if not free or holds.touched_t + self.longest_s < free[0][0]:
                break
            if holds is not key.holds:
                free = minus(free, holds.delays())
        return free


def _not_delayed(wait: Wait, stop: float, name: str, spans: Spans) -> str:
    waited_s, delayed_s = stop - wait.since_t, length(spans)
    if not delayed_s:
        return f"not delayed by {name}: none was in the way in these {waited_s:g} s"
    return f"not delayed by {name}: {delayed_s:g} of these {waited_s:g} s are not counted"


class KeyClock:
    """The obstacles of one key to its own pending messages.

    last_t          the time of its last delivery.
    unknown_until_t until when deliveries from before the record may be held, or wait after a nack.
    """

    __slots__ = ("_backed_off", "_subscription", "holds", "last_t", "unknown_until_t")

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.holds = Holds(subscription)
        self.last_t = self.unknown_until_t = LONG_AGO
        self._backed_off: dict[Record, Delivery] = {}

    def note(self, one: Delivery) -> None:
        """Note a delivery after which the retry policy may delay the redelivery."""
        self._backed_off.pop(one.record, None)
        self._backed_off[one.record] = one
        if len(self._backed_off) > BACKED_OFF_KEPT:
            first = self._backed_off.pop(next(iter(self._backed_off)))
            self.unseen_until(self._backed_off_until(first))

    def unseen_until(self, t: float) -> None:
        """Note that unrecorded deliveries may delay messages until `t`."""
        self.unknown_until_t = max(self.unknown_until_t, t)

    def backed_off(self, counts: Callable[[Delivery], bool]) -> Iterable[tuple[float, float]]:
        """Yield the time spans in which the retry policy may have delayed the service.

        Each starts at a nack or the end of a lease, and ends when the backoff is over.
        """
        rules = self._subscription.rules
        for one in self._backed_off.values():
            if counts(one):
                since_t = min(one.earliest_t + rules.ack_deadline_s, one.nacked_t, *(t + seconds for t, seconds in one.leases))
                yield since_t, self._backed_off_until(one)

    def _backed_off_until(self, one: Delivery) -> float:
        rules = self._subscription.rules
        return lease_until(rules, one) - rules.clock_error_s + rules.retry_backoff_max_s
