"""Promise 2: when a message is redelivered, all later messages of its key are redelivered too, acknowledged or not.

The step rule: *the next message sent is the next one in the log, or an earlier one; never a later one.* With learned positions, the
send order p1, p2, ... is legal iff every p[i+1] <= p[i] + 1. A rewind may happen at any time, to any position, also to an acknowledged
one (its acknowledgement may have been lost); what may not happen is a skip, and leaving out acknowledged messages is one.

    REDELIVERY_SKIP         a position was passed over: no possible predecessor of this delivery stands right before it.
    PULL_BATCH_ORDER        inside one PullResponse the positions are not consecutive.
    PUSH_ADVANCE_PAST_NACK  after a failed push request of p the next request is above p (nothing else can be in flight).

The order of arrival is the order of sending on one session only. When several sessions deliver a key, a delivery may have been sent
after any of several others: its *possible predecessors* are those that were not certainly followed by something that certainly came
before it. And a copy sent in between may arrive up to Delta later on another session, so a skip is then held for Delta and becomes
indeterminate if such a copy turns up (which `holder` judges in its turn), unless that is a skip itself but for what it would explain. With
one open session there is one predecessor and no hold. Inside a response nothing is sent in between; but where clocks differ, a message
may turn out to have been stored twice when its first copy arrives late, so that is waited for.

What is *not* a violation:

* A message has to be *sent* again, not received. Between the predecessor and the delivery a stream may have broken, or a pull ended
  without its answer: what was acknowledged before may have gone with it, and need not come a third time. What was not must.
* A push request was sent up to Delta before it begins: what comes between may be a slow copy. But nothing behind a message is under way
  when that comes first. Of one that was lost nobody hears: an earlier one of its message, answered since, may have ended it.
* With a dead-letter policy consistent redelivery is not promised.
* What is older than the retention may be gone.
* Order is promised within one publishing region: what counts is what was left out between two messages of one.
* Where sessions race, the order of the log itself is not certain.

Also here: what a rewind obliges the service to (everything up to the frontier of that moment), judged in `liveness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import inf
from typing import Final

from prober.core.collector import FindingsCollector
from prober.core.events import LONG_AGO
from prober.core.findings import Kind
from prober.core.holder import HolderCheck
from prober.core.order import OrderCheck
from prober.core.overtakings import BESIDE
from prober.core.places import changes_region, precedes, was_sent_beside
from prober.core.positions import ACKED, RACED, REMOVED, LearnedLog
from prober.core.returned import NOTHING, PassedOver, left_out
from prober.core.rules import Mode
from prober.core.sessions import ANCIENT, Arrival, Span, Tracks
from prober.core.skips import (
    ACKED_BEFORE,
    COPY,
    DEAD_LETTER,
    ELSEWHERE,
    LOST,
    RACING,
    SOUGHT,
    TOO_MANY,
    Beginning,
    Predecessor,
    Skip,
    facts_of,
    facts_of_push,
    highest_predecessor,
    possible_predecessors,
)
from prober.core.subscription import Subscription

HELD_MAX: Final = 256
"""Skips held per key; beyond that the oldest are filed as indeterminate."""
PATIENCE_S: Final = 5.0
"""How often it is asked whether a pull that waited at the time of a skip has ended, in seconds."""


class RedeliveryCheck:
    """Judges the send order of one key; see the head of this file.

    held                the skips on hold.
    returned            what the latest seek brings back.
    passed_over         what a control operation may have passed over.
    beginning           where the key began again, until it goes on from there.
    """

    __slots__ = (
        "_collector",
        "_holder",
        "_log",
        "_nacked_push",
        "_orders",
        "_subscription",
        "_tracks",
        "beginning",
        "held",
        "passed_over",
        "returned",
    )

    def __init__(
        self,
        collector: FindingsCollector,
        log: LearnedLog,
        tracks: Tracks,
        subscription: Subscription,
        orders: OrderCheck,
        holder: HolderCheck,
    ) -> None:
        self._collector = collector
        self._log = log
        self._tracks = tracks
        self._subscription = subscription
        self._orders = orders
        self._holder = holder
        self._nacked_push: tuple[int, int, float] | None = None
        self.beginning = Beginning(collector, log, holder.acks, subscription)
        self.held: tuple[Skip, ...] = ()
        self.passed_over = PassedOver(log)
        self.returned = NOTHING

    def judge(self, arrival: Arrival) -> bool:
        """Judges one placed delivery; True when it rewinds the key."""
        if self.held:
            self._explain_held(arrival)
        if self._nacked_push is not None:
            self._judge_push(arrival)
        if arrival.own and self._collector.rules.mode is Mode.PULL:
            self._judge_batch(arrival)
            return False
        before = highest_predecessor(self._collector.rules, self._tracks, arrival)
        before = self.returned.behind(arrival, before, self._collector.counts)
        if not before.number:
            return False
        if self.beginning.position:
            self.beginning.go_on(arrival, before)
        if arrival.position > before.position + 1:
            self._judge_skip(arrival, before)
        return arrival.position <= before.position and not arrival.new

    def unplaced(self, arrival: Arrival) -> None:
        """A delivery that can no longer be placed is one of long ago: perhaps what was refused and seemed to be passed."""
        if self.held:
            self._explain_held(arrival)
        self._holder.unplaced(arrival)

    @property
    def watching(self) -> bool:
        """Whether even the next message in the log on the only session has to be looked at."""
        return bool(self.held or self.beginning.position) or self._nacked_push is not None or not self.returned.over

    def nacked(self, position: int, number: int, t: float) -> None:
        """A push request of `position` was refused: the next request that is sent must not be above it."""
        self._nacked_push = (position, number, t)

    def settle(self, now: float) -> None:
        """Files what was held and whose time has passed without an explanation."""
        if not any(skip.due_t < now or now == inf for skip in self.held):
            return
        waiting, self.held = self.held, ()
        for skip in waiting:
            if skip.due_t < now or now == inf:
                self._decide(skip, now)
            else:
                self.held += (skip,)

    def reset(self, frontier: int) -> None:
        """A control operation: what was learned so far may be passed over, and nothing can be said about what was on hold."""
        for skip in self.held:
            self._file(skip, SOUGHT.format(self._collector.grace_cause))
        self.held = ()
        self.passed_over.begin(frontier)
        self.returned = NOTHING
        self.rest()

    def rest(self) -> None:
        """Nothing that was sent so far can be a predecessor any more."""
        self._nacked_push = None
        self.beginning.position = 0

    # --- skips ---------------------------------------------------------------------------------------------------------------

    def _judge_skip(self, arrival: Arrival, before: Predecessor) -> None:
        skipped = self._skipped(before.position, arrival)
        if not skipped:
            return
        skipped = left_out(skipped, self.returned, self.passed_over) or skipped
        witnesses = (before.number, *(self._log.number(position) for position in skipped[:5]), arrival.number)
        session, acked = arrival.track.session, all(self._log.flags(position) & ACKED for position in skipped)
        facts = facts_of(self._log, self._orders, self._collector.rules, arrival, before.position, skipped)
        due_t = arrival.t + self._collector.rules.delivery_delay_max_s + self._collector.rules.clock_error_s
        sent_after_t = self._sent_after_t(arrival, before) if acked else before.sent_after_t
        skip = Skip(
            *(due_t, arrival.t, self._stands_behind(arrival, skipped), session, sent_after_t, acked, witnesses, facts),
            between=(before.position, arrival.position),
            skipped=tuple(self._of_region(before.position, skipped, arrival)),
            beside=self._beside(arrival, before, skipped) if self._subscription.racing else (),
        )
        doubt = self._doubt(arrival, before.position, skipped) or self._loss_behind(skip) or self._place_doubt(skip)
        if doubt or self._subscription.is_alone(session) or arrival.t <= self._collector.grace_until_t:
            self._file(skip, doubt)
        else:
            self._put_on_hold(skip)

    def _sent_after_t(self, arrival: Arrival, before: Predecessor) -> float:
        """Since when what was left out may have been sent, all of it acknowledged before: it may be sent behind any predecessor."""
        candidates = possible_predecessors(self._collector.rules, self._tracks, arrival)
        lowest = min((one.position for one in candidates), default=before.position)
        passed = self._skipped(lowest, arrival)
        owed = max((position for position in passed if not self._log.flags(position) & ACKED), default=0)
        return min((one.sent_after_t for one in candidates if one.position >= owed), default=before.sent_after_t)

    def _beside(self, arrival: Arrival, before: Predecessor, skipped: list[int]) -> tuple[int, ...]:
        """Other possible predecessors than the highest, whose places are not certain: they may stand behind what was left out."""
        everywhere = chain(*(track.past() for track in self._tracks), *self._tracks.past)
        if not self._came_since(before, skipped, everywhere):
            return ()
        moved = any(was_sent_beside(self._log, one) for one in skipped)
        positions = {one.position for one in possible_predecessors(self._collector.rules, self._tracks, arrival)}
        return tuple(sorted(one for one in positions - {before.position} if moved or self._log.has_raced(one)))

    def _stands_behind(self, arrival: Arrival, skipped: list[int]) -> int:
        """Where a delivery stands at least: if it raced, behind the last of what was left out that certainly comes before it."""
        position = arrival.position
        if not self._log.flags(position) & RACED:
            return position
        return next((one + 1 for one in reversed(skipped) if precedes(self._orders, self._log, one, position)), position)

    def _skipped(self, after: int, arrival: Arrival) -> list[int]:
        """What stands between: still in the subscription, not older than the retention, of an epoch that would be recognised."""
        skipped = self._log.between(after, arrival.position, self._orders.expired_t(arrival.t))
        return [position for position in skipped if self._orders.knows_epoch(position)]

    def _put_on_hold(self, skip: Skip) -> None:
        self.held += (skip,)
        if len(self.held) > HELD_MAX:
            oldest, *rest = self.held
            self.held = tuple(rest)
            self._file(oldest, TOO_MANY)

    def _decide(self, skip: Skip, now: float) -> None:
        """Nothing explained a skip so far. If what it left out was acknowledged, a loss that shows late may."""
        if skip.nacked and self._log.holds(skip.nacked) and self._log.flags(skip.nacked) & ACKED:
            self._file(skip, ACKED_BEFORE)
            return
        lost, subscription = self._loss_behind(skip) or self._place_doubt(skip), self._subscription
        may_show = subscription.loss_may_show(skip.t, now) if skip.acked else now <= subscription.parting_shows_t(skip.t)
        if lost or not may_show:
            self._file(skip, lost)
        elif now == inf:
            self._file(skip, LOST if skip.acked else BESIDE)
        else:
            self._put_on_hold(skip._replace(due_t=now + PATIENCE_S))

    def _place_doubt(self, skip: Skip) -> str:
        """Whether what was taken for the only copy of a message turned out to be one of two, so that its place is not certain."""
        if skip.skipped:
            position = skip.between[1]
            doubts = (self._doubt_place((after, position), skip.skipped) for after in (skip.between[0], *skip.beside))
            return next(filter(None, doubts), "")
        return self._race_doubt(*skip.between) if skip.kind is Kind.PULL_BATCH_ORDER else ""

    def _loss_behind(self, skip: Skip) -> str:
        """Whether what was acknowledged was sent and lost; or the rest, which comes again then, beside what came instead."""
        if skip.acked:
            seen_t = skip.sent_after_t + self._collector.rules.delivery_delay_max_s
            answered = self._collector.rules.mode is Mode.PUSH and self._holder.acks.all_sent_since(skip.skipped, seen_t)
            return LOST if answered or self._subscription.may_have_lost(skip.sent_after_t, skip.t) else ""
        beside = self._subscription.parted.may_have_taken(skip.sent_after_t, skip.session.source, skip.t, skip.t)
        return BESIDE if beside and skip.kind is Kind.REDELIVERY_SKIP else ""

    def _explain_held(self, arrival: Arrival) -> None:
        kept = []
        sent_t = arrival.lo - self._collector.rules.clock_error_s
        for skip in self.held:
            lowest = (skip.leaning or skip.position) - 1
            below = arrival.position < lowest and not self._may_adjoin(arrival.position, skip)
            explains = skip.kind is not Kind.PULL_BATCH_ORDER and (arrival.position <= skip.nacked if skip.nacked else not below)
            if explains and skip.nacked and sent_t <= skip.t:
                continue
            elsewhere = arrival.track.session is not skip.session and sent_t <= skip.t
            if explains and elsewhere and self._leans_on(arrival, skip):
                kept.append(skip._replace(leaning=min(lowest + 1, arrival.position)))
            elif explains and elsewhere:
                self._holder.split_if_not_late(arrival)
                self._file(skip._replace(witnesses=(*skip.witnesses, arrival.number)), COPY)
                self._holder.judge_excuse(skip.t, skip.position, skip.session, skip.witnesses, skip.facts, arrival)
            else:
                kept.append(skip)
        self.held = tuple(kept)

    def _may_adjoin(self, position: int, skip: Skip) -> bool:
        """Whether between a copy of what was left out and what was skipped to nothing certainly stands: what raced may stand elsewhere."""
        between = [one for one in skip.skipped if one > position]
        return position in skip.skipped and bool(between) and bool(self._doubt_place((position, skip.between[1]), between))

    def _leans_on(self, arrival: Arrival, skip: Skip) -> bool:
        """Whether a copy can itself only have been sent after the skip that it is to explain: then neither is an excuse."""
        number = skip.witnesses[-1]
        highest = highest_predecessor(self._collector.rules, self._tracks, arrival)
        if arrival.position <= arrival.own + 1 or highest.number != number:
            return False
        before = highest_predecessor(self._collector.rules, self._tracks, arrival, besides=number)
        skipped = self._skipped(before.position, arrival) if before.position < arrival.position - 1 else []
        return bool(skipped) and not (self._doubt(arrival, before.position, skipped) or self._doubt_own(arrival, before, skipped))

    def _file(self, skip: Skip, doubt: str) -> None:
        self._collector.violation(skip.kind, skip.t, skip.witnesses, skip.facts, doubt)

    # --- pull responses and push requests ------------------------------------------------------------------------------------

    def _judge_batch(self, arrival: Arrival) -> None:
        if arrival.own == ANCIENT or arrival.position == arrival.own + 1:
            return
        if changes_region(self._orders, self._log, arrival):
            return
        skipped = self._skipped(arrival.own, arrival)
        if arrival.position > arrival.own and not skipped:
            return
        witnesses = (arrival.track.last_number, *(self._log.number(position) for position in skipped[:5]), arrival.number)
        facts = facts_of(self._log, self._orders, self._collector.rules, arrival, arrival.own, skipped)
        rules, kind = self._collector.rules, Kind.PULL_BATCH_ORDER
        between, due_t = (arrival.own, arrival.position), arrival.t + rules.delivery_delay_max_s + rules.clock_error_s
        doubt = self._doubt(arrival, arrival.own, skipped, in_response=True) if skipped else self._race_doubt(*between)
        skip = Skip(due_t, arrival.t, arrival.position, arrival.track.session, arrival.t, False, witnesses, facts, kind)
        if doubt or not rules.clock_error_s:
            self._file(skip, doubt)
        else:
            region = tuple(self._of_region(arrival.own, skipped, arrival))
            self._put_on_hold(skip._replace(between=between, skipped=region))

    def _judge_push(self, arrival: Arrival) -> None:
        position, number, nacked_t = self._nacked_push or (0, 0, LONG_AGO)
        only = self._log.holds(position) and number == self._log.number(position)  # nothing behind it was under way
        sent_t = (arrival.t if only else arrival.lo) - self._collector.rules.clock_error_s
        if sent_t < nacked_t and arrival.position > position:
            return
        self._nacked_push, flags = None, self._log.flags(position) if self._log.holds(position) else REMOVED
        if arrival.position <= position:
            self._collector.count_push_again(flags, arrival.t, self._orders.owes)
            return
        if flags & REMOVED or self._orders.has_expired(self._log.invoked_t(position), arrival.t):
            return
        doubt = ""
        if flags & ACKED:
            doubt = ACKED_BEFORE
        elif self._collector.rules.dead_letter_max_attempts:
            doubt = DEAD_LETTER
        elif not self._orders.share_region(position, arrival.position):
            doubt = ELSEWHERE
        elif not precedes(self._orders, self._log, position, arrival.position):
            doubt = RACING
        eps, session = self._collector.rules.clock_error_s, arrival.track.session
        witnesses = (self._log.number(position), number, arrival.number)
        facts, kind = facts_of_push(self._log, self._orders, arrival, position), Kind.PUSH_ADVANCE_PAST_NACK
        skip = Skip(arrival.t + eps, arrival.t, arrival.position, session, arrival.t, False, witnesses, facts, kind, position)
        if doubt or not eps:
            self._file(skip, doubt)
        else:
            self._put_on_hold(skip)

    # --- doubts and words ----------------------------------------------------------------------------------------------------

    def _doubt(self, arrival: Arrival, after: int, skipped: list[int], *, in_response: bool = False) -> str:
        if not left_out(skipped, self.returned, self.passed_over):
            return SOUGHT.format(self._collector.grace_cause)
        if self._collector.rules.dead_letter_max_attempts:
            return DEAD_LETTER
        if self._orders.several_regions and not self._is_behind(after, arrival) and not in_response:
            return ELSEWHERE
        here = self._of_region(after, skipped, arrival)
        elsewhere = self._orders.is_anywhere(after) or not here
        return ELSEWHERE if elsewhere else self._doubt_place((after, arrival.position), here)

    def _doubt_own(self, arrival: Arrival, before: Predecessor, skipped: list[int]) -> str:
        """Whether what its session had last may in truth stand behind what was left out."""
        if arrival.own >= skipped[0] or not self._came_since(before, skipped, arrival.track.past()):
            return ""
        return self._doubt_place((arrival.own, arrival.position), skipped)

    def _came_since(self, before: Predecessor, skipped: list[int], spans: Iterable[Span]) -> bool:
        """Whether what was left out may have come after a delivery all the same: then something behind it in truth may have followed."""
        sent_t = before.sent_after_t - self._collector.rules.clock_error_s
        return any(span.position >= skipped[-1] and span.last_t >= sent_t for span in spans)

    def _is_behind(self, after: int, arrival: Arrival) -> bool:
        """Whether it is known behind which message of its region a delivery was sent, where there are several."""
        alone = self._subscription.is_alone(arrival.track.session)
        return alone and (after == arrival.own or not changes_region(self._orders, self._log, arrival))

    def _of_region(self, after: int, skipped: list[int], arrival: Arrival) -> list[int]:
        """What was skipped of the region of what it stands between."""
        return [position for position in skipped if self._orders.share_region(after, position, arrival.position)]

    def _doubt_place(self, between: tuple[int, int], skipped: Sequence[int]) -> str:
        """Whether any of what was skipped certainly stands where it was learned, between the two."""
        (after, position), orders, log = between, self._orders, self._log
        return "" if any(precedes(orders, log, after, one) and precedes(orders, log, one, position) for one in skipped) else RACING

    def _race_doubt(self, other: int, one: int) -> str:
        """Why it is not certain that a response holds messages in the wrong order; it is if another held them in the opposite one."""
        certain = one == other or precedes(self._orders, self._log, one, other) or self._orders.places.apart(one, other)
        return "" if certain else RACING
