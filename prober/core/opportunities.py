"""Opportunities to observe a violation (see `coverage`), and effects of redeliveries, as counters.

Opportunities are counted in the assumed order of sends, when that order is first decided.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.facts import Delivery, deliveries_of, earliest_release, lease_until, provably_before
from prober.core.log import ACK_CONFIRMED, ACKED, REMOVED
from prober.core.rules import Mode, Rules
from prober.core.sought import Seek

if TYPE_CHECKING:
    from prober.core.coverage import Coverage
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane
    from prober.core.state import State
    from prober.core.subscription import Subscription

STEPS: Final = 16
"""Number of time steps that divide the uncertain period of a count."""
LOOKED_AT: Final = 32
"""Number of messages after a redelivery that are examined for an acknowledgement."""


class Uncertain:
    """Opportunities that are not certain yet, counted in at most `STEPS` time steps."""

    __slots__ = ("_counts", "_step_s")

    def __init__(self, within_s: float) -> None:
        self._step_s = within_s / STEPS
        self._counts: list[tuple[float, int]] = []

    def add(self, t: float) -> None:
        """Add an opportunity."""
        step_s = self._step_s
        until_t = (t // step_s + 1.0) * step_s if 0.0 < step_s < inf else t if not step_s else inf
        if self._counts and self._counts[-1][0] == until_t:
            self._counts[-1] = (until_t, self._counts[-1][1] + 1)
        else:
            self._counts.append((until_t, 1))

    def take_before(self, t: float) -> int:
        """Remove the opportunities before a time and return their number."""
        if not self._counts:
            return 0
        taken = sum(count for until_t, count in self._counts if until_t < t)
        self._counts = [one for one in self._counts if one[0] >= t]
        return taken

    def take_all(self) -> int:
        """Remove all opportunities and return their number."""
        taken, self._counts = self._counts, []
        return sum(count for _, count in taken)


class SubscriptionOpportunities:
    """The opportunities of one subscription that later events decide.

    confirmed   confirmed acknowledgements, until later arrivals were provably sent later.
    splits      opportunities to observe a split, as long as the end of a stream would put them in doubt.
    """

    __slots__ = ("confirmed", "splits")

    def __init__(self, rules: Rules) -> None:
        self.confirmed = Uncertain(rules.delivery_delay_max_s)
        self.splits = Uncertain(rules.close_detection_max_s)

    def split(self, rules: Rules, t: float) -> None:
        """Add an opportunity to observe a split."""
        self.splits.take_before(t - rules.close_detection_max_s - rules.clock_error_s)
        self.splits.add(t)

    def certain(self, rules: Rules, t: float) -> int:
        """Return the number of confirmations so old at `t` that new arrivals were sent later.

        Each acknowledgement is counted once.
        """
        return self.confirmed.take_before(t - rules.delivery_delay_max_s - rules.clock_error_s)


def opened(counts: Coverage, subscription: Subscription) -> None:
    """Count concurrent pulls; without another open session, count the confirmations: all later arrivals were sent later."""
    rules = subscription.rules
    counts.pulls_concurrent += rules.mode is Mode.PULL and bool(subscription.sessions)
    if not subscription.sessions and not rules.clock_error_s:
        counts.opportunities_confirmed += subscription.opportunities.confirmed.take_all()


def closed(counts: Coverage, subscription: Subscription, t: float) -> None:
    """Remove the latest opportunities of a split: the ended session may have been dead for some time."""
    rules, splits = subscription.rules, subscription.opportunities.splits
    splits.take_before(t - rules.close_detection_max_s - rules.clock_error_s)
    counts.opportunities_affinity -= splits.take_all()


def answered(key: KeyChecker, one: Delivery, t: float) -> None:
    """Count an overlap opportunity at the answer to the last held delivery of a batch: another batch would have overlapped until now."""
    rules, lane = key.rules, key.lanes.get(one.region or "")
    if rules.mode is Mode.STREAMING or lane is None or not lane.pending or t <= key.collector.grace_until_t:
        return
    held = [other for _, other in lane.now.outstanding() if other.session is one.session and other.nacked_t == inf]
    if held != [one] or earliest_release(rules, one, key.newest(one.token)) <= t + rules.clock_error_s:
        return
    waits = any(session.answered_t == inf for session in key.subscription.sessions.values())
    key.counts.opportunities_overlap += rules.mode is Mode.PUSH or waits


class Opportunities:
    """The opportunities of one key in one region.

    _begun      the delivery with which the key restarted below its frontier, until it continues; None if that is no opportunity.
    _begun_t    the time of the last restart.
    _acked      whether a message to be redelivered had been acknowledged.
    """

    __slots__ = ("_acked", "_begun", "_begun_t", "_key", "_lane", "_seek")

    def __init__(self, key: KeyChecker, lane: Lane) -> None:
        self._key = key
        self._lane = lane
        self._begun: Delivery | None = None
        self._begun_t = -inf
        self._acked = False
        self._seek: Seek | None = None

    # --- what happens --------------------------------------------------------------------------------------------------------

    def sent(self, one: Delivery, position: int) -> None:
        """Count the opportunities of the next accepted send; the state is still that before it."""
        subscription, state = self._key.subscription, self._lane.now
        several = len(subscription.sessions) > 1 and subscription.streaming
        if several and self._key.group.key:
            self._key.counts.deliveries_among_several += 1
        if self._seek is not None:
            self._brought_back(self._seek, one, position)
        if not self._key.group.key:
            return  # 11: without an ordering key nothing is guaranteed of order, redelivery and holders
        if state.before is None:
            self._begun = None
            return
        if position <= state.before_position:
            self._begins_again(one, position, state.before)
            return
        if self._begun is not None:
            self._goes_on(self._begun, one, state.before)
        if several or subscription.rules.exactly_once:
            self._may_have_gone_elsewhere(one, position, state)

    def redelivered(self, one: Delivery) -> None:
        """Count a lease expiry, if that caused a redelivery."""
        last = one.older
        if last is not None and last.acked_t == last.nacked_t:
            rules = self._key.rules
            self._key.counts.lease_expiries += lease_until(rules, last) - rules.delivery_delay_max_s - rules.clock_error_s <= one.t

    def control(self) -> None:
        """Forget unfinished opportunities at a control operation or a hole in the record."""
        self._begun = self._seek = None

    def sought(self, seek: Seek) -> None:
        """Note a seek back: messages published since its time are to be redelivered."""
        self._seek = seek

    # --- redelivery: 6.2 -----------------------------------------------------------------------------------------------------

    def _begins_again(self, one: Delivery, position: int, before: Delivery) -> None:
        counts, log = self._key.counts, self._lane.log
        counts.rewinds += 1
        counts.rewinds_to_acked += log.flagged(position, ACKED)
        counts.rewinds_inside_a_run += self._lane.now.before_position < log.frontier
        if self._key.rules.mode is Mode.PUSH:
            self._count_push_again(one, before)
        over = before.session is not one.session and before.t < one.session.opened_t
        since_t, self._begun_t = self._begun_t, one.t
        guaranteed = not over and position < log.frontier and self._is_guaranteed(one)
        self._begun = one if guaranteed else None
        if guaranteed:
            self._acked = self._passes_acked(one, position, since_t)

    def _is_guaranteed(self, one: Delivery) -> bool:
        """Return whether the service alone decides the next send."""
        key = self._key
        if key.rules.dead_letter_max_attempts or not key.rules.redelivery_promised or one.t <= key.collector.grace_until_t:
            return False
        last_t = self._lane.log.invoked_t(self._lane.log.frontier)
        return not key.subscription.graces or key.subscription.may_have_come_unseen(last_t, one.t) is None

    def _passes_acked(self, one: Delivery, position: int, since_t: float) -> bool:
        """Return whether a later message was acknowledged between the last restart and the answer to this delivery."""
        log = self._lane.log
        refused = (older.nacked_t for older in deliveries_of(one.older) if older.nacked_t < inf)
        answered_t = max(log.answered_t(position), next(refused, -inf))
        until_t = answered_t if answered_t > since_t else one.t
        later = log.between(position, min(log.frontier, position + LOOKED_AT) + 1)
        acked = (at for at in later if log.flagged(at, ACKED) and not log.flagged(at, ACK_CONFIRMED))
        return any(since_t <= log.answered_t(at) <= until_t for at in acked)

    def _goes_on(self, begun: Delivery, one: Delivery, before: Delivery) -> None:
        """Count a redelivery opportunity when the key continues after a restart, unless another message may have been sent in between."""
        self._begun = None
        key, rules = self._key, self._key.rules
        if before is not begun or one.t <= key.collector.grace_until_t:
            return
        if self._lane.log.flagged(begun.position + 1, ACK_CONFIRMED):
            return  # with exactly-once delivery it may be left out
        others = (other for other in self._lane.window if other is not begun and other.session is not one.session)
        if not all(provably_before(rules, other, begun) for other in others):
            return
        key.counts.opportunities_redelivery += 1
        if self._acked and not key.subscription.may_have_lost(begun.earliest_t, one.t):
            key.counts.opportunities_redelivery_acked += 1

    def _count_push_again(self, one: Delivery, before: Delivery) -> None:
        """7.3: count the request after a failed one, while a later message waits.

        It has to redeliver the same message or an earlier one.
        """
        lane, key = self._lane, self._key
        failed = before.nacked_t <= one.t and not lane.log.flagged(lane.now.before_position, ACKED | REMOVED)
        key.counts.opportunities_push_failed += failed and bool(lane.pending) and self._is_guaranteed(one)

    # --- holders: 7 ----------------------------------------------------------------------------------------------------------

    def _may_have_gone_elsewhere(self, one: Delivery, position: int, state: State) -> None:
        """Count the send of a new message to the provable holder of its key.

        The new message was published after the receipt of the last one, so it could have been sent to another subscriber.
        """
        key, before = self._key, state.before
        rules, subscription = key.rules, key.subscription
        eps = rules.clock_error_s
        if not one.first or before is None or self._lane.log.invoked_t(position) <= before.t + eps:
            return
        if before.owner is None or before.owner != one.owner or one.t <= key.collector.grace_until_t:
            return
        if not any(earliest_release(rules, held, key.newest(held.token)) > one.t + eps for _, held in state.outstanding()):
            return
        key.counts.opportunities_outstanding += rules.exactly_once and not rules.dead_letter_max_attempts
        if subscription.streaming and any(session.owner != one.owner for session in subscription.sessions.values()):
            key.counts.opportunities_affinity += 1
            subscription.opportunities.split(rules, one.t)

    # --- seeks: 6.4 ----------------------------------------------------------------------------------------------------------

    def _brought_back(self, seek: Seek, one: Delivery, position: int) -> None:
        state = self._lane.now
        if one.t <= seek.settled_t:
            self._seek = None
            return
        certain = seek.start <= position <= seek.target and seek.brings(self._lane.log, position, self._key.rules)
        self._key.counts.opportunities_seek += certain and state.before is not None and position == state.before_position + 1
        if position == seek.target or seek.target < seek.start:
            self._seek = None
