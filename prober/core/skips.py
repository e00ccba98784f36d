"""What was passed over, and behind what: the possible predecessors of a delivery, and a skip on hold until it is told.

On one session the order of arrival is that of sending. When several sessions deliver a key, a delivery may have been sent right after any
of several others: those that were not certainly followed by something that certainly came before it (section 6.2 of the specification).

What was seen of a skip may look otherwise a little later: a copy that was sent in between arrives, or a second copy of what was taken
for the only one, so that its place is not certain any more. Until then it is on hold (`redelivery`).

Where a key began again is a chance to see whether the service skips something, until it goes on from there (`Beginning`; `chances`).
Only if it certainly goes on from there a skip would be told: nothing else can have been sent before the next delivery, nothing was sought,
and there is no dead-letter policy.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from prober.core.collector import SEQS_SHOWN, FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.findings import Fact, Facts, Kind
from prober.core.order import OrderCheck
from prober.core.positions import ACKED, LearnedLog
from prober.core.rules import Rules
from prober.core.sessions import Arrival, Session, Span, Tracks
from prober.core.splits import Acknowledgements
from prober.core.subscription import Subscription

DEAD_LETTER: Final = "the subscription has a dead-letter policy, and with one redelivery need not be consistent"
COPY: Final = "a copy that arrived later on another session may have been sent in between"
SOUGHT: Final = "{} may have passed over what is missing"
LOST: Final = "what is missing was acknowledged before, and may have been sent again on a stream or pull that was lost"
ELSEWHERE: Final = "what is missing was published in another region, and order is promised within one region only"
RACING: Final = "messages arrived on several sessions at about the same time, so the order of what is missing is not certain"
ACKED_BEFORE: Final = "an acknowledgement was sent for it, which may have been applied"
TOO_MANY: Final = "too many other skips waited for an explanation, so this one was told early"
LOOKED_AT: Final = 32
"""Messages behind it of which it is asked whether they were acknowledged; one that stands further behind shows nothing."""


class Skip(NamedTuple):
    """A skip on hold: a copy of the position before `position`, or a later one, may still turn up on another session.

    `kind`: what it is told as. Inside a pull response nothing can be sent in between; there `between` are two that followed each other.
    `nacked` is the position of a refused push request that was passed over, 0 for any other skip: that message may turn up.
    `sent_after_t`: what was skipped should have been sent after this. `acked`: all of it had been acknowledged before. `skipped` are
    positions of the region behind `after`, whose places may yet turn out to be uncertain. `beside`: others than `after` that it may have
    been sent behind. `leaning`: the lowest copy that came since and leans on the skip itself, 0 if none did; one right below it may explain
    the skip too.
    """

    due_t: float
    t: float
    position: int
    session: Session
    sent_after_t: float
    acked: bool
    witnesses: tuple[int, ...]
    facts: Facts
    kind: Kind = Kind.REDELIVERY_SKIP
    nacked: int = 0
    leaning: int = 0
    between: tuple[int, int] = (0, 0)
    skipped: tuple[int, ...] = ()
    beside: tuple[int, ...] = ()


class Predecessor(NamedTuple):
    """What may have been sent immediately before a delivery, the highest of it: its position and event.

    `sent_after_t`: it was not sent before that.
    """

    position: int
    number: int
    sent_after_t: float


NONE: Final = Predecessor(0, 0, LONG_AGO)


def highest_predecessor(rules: Rules, tracks: Tracks, arrival: Arrival, besides: int = 0) -> Predecessor:
    """The highest possible predecessor. `besides`: not the delivery of that event on another session."""
    own, spans = _possible(rules, tracks, arrival, besides)
    best = max(spans, key=lambda span: span.position, default=None)
    if own and (best is None or own >= best.position):
        return _on_own_session(rules, arrival)
    return NONE if best is None else _elsewhere(rules, best)


def possible_predecessors(rules: Rules, tracks: Tracks, arrival: Arrival) -> list[Predecessor]:
    """All possible predecessors."""
    own, spans = _possible(rules, tracks, arrival, 0)
    elsewhere = [_elsewhere(rules, span) for span in spans]
    return [_on_own_session(rules, arrival), *elsewhere] if own else elsewhere


def _on_own_session(rules: Rules, arrival: Arrival) -> Predecessor:
    track = arrival.track
    return Predecessor(arrival.own, track.last_number, max(track.last_t - rules.delivery_delay_max_s, track.session.opened_t))


def _elsewhere(rules: Rules, span: Span) -> Predecessor:
    return Predecessor(span.position, span.number, max(span.last_t - rules.delivery_delay_max_s, span.sent_after_t))


def _possible(rules: Rules, tracks: Tracks, arrival: Arrival, besides: int) -> tuple[int, list[Span]]:
    """The position of the one on its own session, 0 if that is none, and those on others.

    Who came before the last of what certainly came before the delivery can have been sent is none: that was sent in between.
    """
    eps, moment_t = rules.clock_error_s, arrival.lo - rules.clock_error_s
    certain: list[Span] = []
    found: list[Span] = []
    latest_t = arrival.track.last_t if arrival.own else LONG_AGO
    opened_t = arrival.track.session.opened_t if arrival.own else LONG_AGO
    for spans in _pasts(tracks, arrival, besides):
        known: Span | None = None
        for span in spans:
            if span.first_t < moment_t:
                known = span if span.last_t < moment_t else None
                latest_t = max(latest_t, span.last_t if known else span.first_t)
                opened_t = span.sent_after_t if span.sent_after_t > opened_t else opened_t
            if span.last_t >= moment_t and max(span.first_t - rules.delivery_delay_max_s, span.sent_after_t) <= arrival.t + eps:
                found.append(span)  # not what was sent later, if this one was put back
        if known is not None:
            certain.append(known)
    followed_t = max(latest_t - rules.delivery_delay_max_s, opened_t) - eps
    found += [span for span in certain if span.last_t >= followed_t]
    tracks.forget_before(min(followed_t, arrival.t - 3 * (rules.delivery_delay_max_s + eps)))
    return arrival.own if arrival.track.last_t >= followed_t else 0, found


def _pasts(tracks: Tracks, arrival: Arrival, besides: int) -> list[list[Span]]:
    """What was delivered elsewhere, session by session."""
    pasts = [*(track.past() for track in tracks.others(arrival.track)), *tracks.past]
    if not besides:
        return pasts
    return [[rest for span in spans if (rest := span.without(besides)).position] for spans in pasts]


def facts_of(log: LearnedLog, orders: OrderCheck, rules: Rules, arrival: Arrival, after: int, skipped: list[int]) -> Facts:
    """What is told of a delivery that skipped these, after the position that it was sent behind."""
    shown = skipped[:SEQS_SHOWN]
    facts: dict[str, Fact] = {
        "seq": arrival.seq,
        "epoch": arrival.epoch,
        "message_id": arrival.message_id,
        "after": log.seq(after) if log.holds(after) else 0,
        "skipped": tuple(log.seq(position) for position in shown),
        "skipped_count": len(skipped),
        "subscriber": arrival.track.session.subscriber,
        "mode": rules.mode.value,
    }
    epochs = tuple(orders.epoch_name(log.epoch(position)) for position in shown)
    if any(epoch != arrival.epoch for epoch in epochs):
        facts["skipped_epochs"] = epochs
    if log.holds(after) and orders.epoch_name(log.epoch(after)) != arrival.epoch:
        facts["after_epoch"] = orders.epoch_name(log.epoch(after))
    return facts


def facts_of_push(log: LearnedLog, orders: OrderCheck, arrival: Arrival, nacked: int) -> Facts:
    """What is told of a push request that went past the position of one that had been refused."""
    return {
        "seq": arrival.seq,
        "epoch": arrival.epoch,
        "message_id": arrival.message_id,
        "nacked": log.seq(nacked),
        "nacked_epoch": orders.epoch_name(log.epoch(nacked)),
    }


class Beginning:
    """Where one key began again below its frontier, until it goes on from there.

    position        there; 0: nowhere, or it went on.
    _t              when it began again the last time.
    _passes_acked   something that must come again had been acknowledged.
    """

    __slots__ = ("_acks", "_collector", "_log", "_passes_acked", "_subscription", "_t", "position")

    def __init__(self, collector: FindingsCollector, log: LearnedLog, acks: Acknowledgements, subscription: Subscription) -> None:
        self._collector = collector
        self._log = log
        self._acks = acks
        self._subscription = subscription
        self._t = LONG_AGO
        self._passes_acked = False
        self.position = 0

    def begin(self, arrival: Arrival, last_t: float) -> None:
        """The key, which was last delivered at `last_t`, began again; if because its stream was over, that counts as no chance.

        What was acknowledged after this message was refused, or before the key began again the last time, may not be so for the service.
        """
        log, acks, position = self._log, self._acks, arrival.position
        since_t, self._t = self._t, arrival.t
        refused_t = acks.latest_t(position)
        until_t = refused_t if refused_t > since_t else arrival.t
        over = not arrival.own and last_t < arrival.track.session.opened_t
        promised = not (over or self._collector.rules.dead_letter_max_attempts)
        self.position = position if promised and position < log.frontier else 0
        later = log.between(position, min(log.frontier, position + LOOKED_AT) + 1) if self.position else ()
        self._passes_acked = any(log.flags(one) & ACKED and since_t <= acks.latest_t(one) <= until_t for one in later)

    def go_on(self, arrival: Arrival, before: Predecessor) -> None:
        """Something was delivered that can have been sent right after `before`, or lower."""
        position, self.position = self.position, 0
        if before.position != position or arrival.position <= position or arrival.t <= self._collector.grace_until_t:
            return
        counts = self._collector.counts
        counts.chances_redelivery += 1
        lost = self._passes_acked and self._subscription.may_have_lost(before.sent_after_t, arrival.t)
        counts.chances_redelivery_acked += self._passes_acked and not lost
