"""Promises that something happens at all: accepted messages arrive, runs are finished, unacknowledged messages come back.

    STUCK             V1: a confirmed message is not delivered, and its key stood still, for `delivery_deadline_s`.
    LOST_OVERTAKEN    V1: a confirmed message that others overtook is not delivered within `delivery_deadline_s`.
    REDELIVERY_STALL  V2: after a rewind, no delivery reaches the frontier of that moment, and the key stood still, for
                      `stall_deadline_s`.
    UNACKED_STALL     V3: a message that was never acknowledged is not delivered again after its refusal or the end of its lease,
                      and the key stood still, for `unacked_deadline_s`; or the key moves on without it.

Each is told once per standstill, as of the moment when its first deadline passed, so that it makes no difference when the clock was
looked at.

"Violated" always means "not within the deadline although the key made no progress": a key that is slow, but moves, lags and is not stuck.
Only a message that was delivered and never acknowledged has to come again whatever else comes. The clock of that runs from the end of its
lease, also if it was refused, since a refusal may be lost; and by then it has certainly been applied.

Clocks run only while the service could deliver (`waiting`): a stream is open and its flow control has room, or a pull waits. For pull and
push nothing can come while a batch or message of the key is, or may be, held; so the clock starts when the last hold is over and settled.
What a lost pull carried is held until its lease is over. After a refusal or an expired lease the service may wait as long as the retry
policy lets it, with the message and with those behind it; and the lease of an acknowledged message expires too if its acknowledgement was
lost. What has grown older than the retention by its deadline is owed no more.

What makes a missed deadline indeterminate:

* Another key of the subscription has been held since before the clock began: "unacknowledged messages of a key can delay other keys".
  Then the clock begins anew; and it begins when what was held is over, if that is before the deadline (`neighbours`).
* With a dead-letter policy consistent redelivery is not promised.
* A stream broke or a pull was lost since a run began, and all of its tail had been acknowledged before: it may have been sent and lost.
  What is really owed shows as UNACKED_STALL.

A rewind obliges the service to reach the frontier again, but copies of the new run may have arrived at another subscriber before the
delivery that shows the rewind; so what can have been sent after it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from math import inf
from typing import Final

from prober.core.collector import FindingsCollector
from prober.core.deadlines import backed_off_t, deadline, handed_over_t
from prober.core.epoch_order import EpochOrder, Overtaken
from prober.core.events import LONG_AGO
from prober.core.findings import Kind
from prober.core.foreign import ForeignMessages
from prober.core.holder import HolderCheck
from prober.core.order import OrderCheck
from prober.core.owed import Owed, RedeliveryRun, Top, not_acknowledged, of_lost, of_run, of_stuck, of_unacked, passed_t, with_top
from prober.core.places import precedes
from prober.core.positions import ACKED, REMOVED, LearnedLog
from prober.core.publications import Publication
from prober.core.sessions import Tracks
from prober.core.skips import DEAD_LETTER, RACING
from prober.core.subscription import Subscription

_NOTHING: Final[frozenset[str]] = frozenset()

LOST: Final = "a stream broke or a pull was lost since the run began, and what is missing had been acknowledged before"
HELD_ELSEWHERE: Final = "unacknowledged messages of another key may have delayed this one"


class LivenessCheck:
    """Keeps what one key is owed and says when a deadline has passed; see the head of this file."""

    __slots__ = (
        "_collector",
        "_extended_until_t",
        "_held_since_t",
        "_held_until_t",
        "_holder",
        "_last_position",
        "_log",
        "_orders",
        "_restarted_t",
        "_subscription",
        "_told",
        "_tops",
        "_tracks",
        "foreign",
        "last_delivery_number",
        "last_delivery_t",
        "owed",
        "run",
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
        self.foreign = ForeignMessages(collector.key, subscription)
        self._extended_until_t = self._held_since_t = self._held_until_t = LONG_AGO
        self._restarted_t = LONG_AGO
        self._told = _NOTHING
        self._last_position = 0
        self._tops: tuple[Top, ...] = ()
        self.owed: dict[int, Owed] = {}
        self.run: RedeliveryRun | None = None
        self.last_delivery_t = LONG_AGO
        self.last_delivery_number = 0

    # --- what happens --------------------------------------------------------------------------------------------------------

    def delivered(self, position: int, t: float, number: int, sent_t: float) -> None:
        """Notes progress: a delivery at `position` (0: cannot be placed), not sent before `sent_t`."""
        if self.is_free(t):
            self._held_since_t = sent_t
        self.last_delivery_t = t
        self.last_delivery_number = number
        self._last_position = position
        if self._told:
            self._told = _NOTHING
            self._restarted_t = LONG_AGO
        if self.run is not None:
            self._advance(self.run, max(position, self.run.reached), self.run.target)

    def owe(self, position: int, due_t: float, number: int) -> None:
        """A delivery that is not acknowledged has to come again from `due_t` on."""
        self.owed[position] = Owed(due_t, number)
        if len(self.owed) > 2 * self._collector.rules.window:
            for left in [position for position in self.owed if position <= self._log.floor]:
                self.keep_busy(self.owed.pop(left).lease_end_t)

    def keep_busy(self, lease_end_t: float) -> None:
        """Something that is not owed, or not known any more, is held until its lease is over."""
        self._extended_until_t = max(self._extended_until_t, lease_end_t + self._collector.rules.delivery_delay_max_s)

    def postpone(self, position: int, due_t: float) -> None:
        """The lease of a delivery may last until `due_t`, also of one that was acknowledged: that may have been lost."""
        owed = self.owed.get(position)
        if owed is None:
            self.keep_busy(due_t)
        elif due_t > owed.due_t:
            owed.due_t = owed.lease_end_t = due_t
            owed.refused = False

    def is_free(self, t: float) -> bool:
        """Whether nothing is held any more that is owed, or foreign, or that was acknowledged and is held on to all the same."""
        return not self.owed and self._extended_until_t <= t and not self.foreign.is_held(t)

    def refuse(self, position: int, t: float) -> None:
        """A delivery was refused: it has to come again from now on."""
        owed = self.owed.get(position)
        if owed is not None:
            owed.due_t = t
            owed.lease_end_t = max(owed.lease_end_t, t)
            owed.refused = True

    def release(self, position: int) -> None:
        """Nothing is owed for a position any more: it was acknowledged or removed."""
        self.owed.pop(position, None)
        if self.run is not None:
            self._advance(self.run, self.run.reached, self.run.target)

    def rewound(self, start: int, number: int, t: float, reached: int, target: int) -> None:
        """A rewind to `start`: all up to `target` has to come again. What is up to `reached` may have been sent again already."""
        self._tops = with_top(self._tops, self._last_position, self.last_delivery_t)
        self._advance(RedeliveryRun(0, 0, number, t, start), reached, target)

    def reset(self) -> None:
        """A control operation: nothing that was owed is owed any more, but who held something may go on holding it."""
        self.run = None
        self._held_until_t = max([self._held_until_t, self._extended_until_t, *(owed.lease_end_t for owed in self.owed.values())])
        self.rest()

    def rest(self) -> None:
        """Gives back the memory of what was owed."""
        self._tops = ()
        self.owed = {}

    def owes(self) -> bool:
        """Whether a redelivery is still owed to a subscriber."""
        return self.run is not None or (self._collector.rules.unacked_deadline_s < inf and bool(self.owed))

    # --- deadlines -----------------------------------------------------------------------------------------------------------

    def judge(self, now: float) -> float:
        """Files every deadline that has passed before `now` and returns when the next one passes, `inf` if none is running."""
        if now <= self._collector.grace_until_t:
            return self._collector.grace_until_t
        if self._subscription.presence.since_t(now) == inf:
            return inf
        ready_t = self._ready_t()
        back_t = backed_off_t(self._collector.rules, self.last_delivery_t, self.owed.values())
        handed_t = handed_over_t(self._subscription, self._holder.owner, self._tracks, self._held_since_t, self.last_delivery_t)
        quiet_since_t = max(self.last_delivery_t, ready_t, back_t, handed_t, self._restarted_t)
        coming_t = min(self._judge_run(now, quiet_since_t), self._judge_owed(now, quiet_since_t, ready_t))
        for order, undelivered in self._orders.undelivered(LONG_AGO):
            lost_t = self._judge_lost(now, ready_t, order)
            coming_t = min(coming_t, lost_t, self._judge_stuck(now, quiet_since_t, order.record.name, undelivered))
        return coming_t

    def _ready_t(self) -> float:
        """Since when nothing keeps the key back, whoever is there."""
        subscription = self._subscription
        if not subscription.streaming:
            return max(subscription.lost_until_t, self._tracks.busy_until_t, self.foreign.busy_until_t)
        return subscription.used_up_until_t(self._holder.owner) if self._holder.owner is not None else LONG_AGO

    def _up_since(self, t: float) -> float:
        """That moment, or since when somebody has been there if that is later."""
        return max(t, self._subscription.presence.since_t(t))

    def _deadline(self, since_t: float, seconds: float, sent_t: float = inf) -> float:
        """When the service will have been able to deliver for so long since a moment.

        What was sent since `sent_t` into a stream that broke is leased, as is what its subscriber held: after that there is time left.
        """
        lease_ends = chain([self._extended_until_t], (owed.lease_end_t for owed in self.owed.values()))
        return deadline(self._subscription, since_t, seconds, sent_t, lease_ends)

    def _due_t(self, now: float, since_t: float, seconds: float, sent_t: float) -> float:
        """The same; but a key that was held since before that moment, and is not any more, may have kept this one back until then."""
        deadline_t = self._deadline(since_t, seconds, sent_t)
        kept_t = (
            self._subscription.neighbours.kept_until_t(self._collector.key, since_t, deadline_t) if now > deadline_t else LONG_AGO
        )
        return max(deadline_t, self._deadline(kept_t, seconds, sent_t)) if LONG_AGO < kept_t < deadline_t else deadline_t

    def _advance(self, run: RedeliveryRun, reached: int, target: int) -> None:
        """The run has come to `reached`; positions that left the subscription need not come again."""
        while self._log.holds(target) and self._log.flags(target) & REMOVED:
            target -= 1
        self.run = run._replace(target=target, reached=reached) if reached < target else None

    def _judge_run(self, now: float, quiet_since_t: float) -> float:
        run = self.run = not_acknowledged(self.run, self._log, self._holder.acks)
        if run is None:
            return inf
        if run.sought_t > LONG_AGO:  # begins when the seek has settled, and waits for who held something then
            quiet_since_t = max(quiet_since_t, run.t, self._held_until_t)
        quiet_since_t = self._up_since(quiet_since_t)
        deadline_t = self._due_t(now, quiet_since_t, self._collector.rules.stall_deadline_s, self._log.invoked_t(run.target))
        if now <= deadline_t:
            return deadline_t
        doubt = self._doubt_of(run, deadline_t)
        excuse = doubt or self._excuse(quiet_since_t, deadline_t)
        if excuse == HELD_ELSEWHERE and Kind.REDELIVERY_STALL in self._told:
            return self._deadline(deadline_t, self._collector.rules.stall_deadline_s)
        if self._log.holds(run.target) and not self._has_expired(run.target, deadline_t):
            self._file_run(run, quiet_since_t, deadline_t, excuse)
        if excuse == HELD_ELSEWHERE:
            self._told |= {Kind.REDELIVERY_STALL}
            return self._deadline(deadline_t, self._collector.rules.stall_deadline_s)
        self.run = None
        return inf

    def _file_run(self, run: RedeliveryRun, since_t: float, deadline_t: float, doubt: str) -> None:
        witnesses = (run.number, self.last_delivery_number, self._log.number(run.target))
        facts = of_run(self._log, self._orders, run, since_t, deadline_t)
        self._collector.liveness(Kind.REDELIVERY_STALL, deadline_t, witnesses, facts, doubt)

    def _doubt_of(self, run: RedeliveryRun, deadline_t: float) -> str:
        if self._collector.rules.dead_letter_max_attempts:
            return DEAD_LETTER
        missing = self._log.between(run.reached, run.target + 1)
        if not all(precedes(self._orders, self._log, one, run.target) for one in (run.start, run.reached)):
            return RACING
        began_t = max(run.t - self._collector.rules.delivery_delay_max_s, run.sent_after_t)
        acked = all(self._log.flags(position) & ACKED for position in missing)
        return LOST if acked and self._subscription.may_have_lost(began_t, deadline_t) else ""

    def _excuse(self, since_t: float, deadline_t: float) -> str:
        """Why a deadline that passed may have been missed legally, empty if it may not."""
        if self._subscription.is_held_elsewhere(self._collector.key, since_t, deadline_t):
            self._restarted_t = deadline_t
            return HELD_ELSEWHERE
        return ""

    # --- what is not acknowledged --------------------------------------------------------------------------------------------

    def _judge_owed(self, now: float, quiet_since_t: float, ready_t: float) -> float:
        rules = self._collector.rules
        if rules.unacked_deadline_s == inf or not self.owed:
            return inf
        firm: dict[int, float] = {}
        doubtful: dict[int, float] = {}
        moved_on: dict[int, float] = {}
        settled_s = rules.ack_settled_s + rules.retry_backoff_max_s
        for position, owed in self.owed.items():
            since_t = self._up_since(max(owed.due_t, quiet_since_t))
            if position <= self._log.floor or self._has_expired(position, since_t + rules.unacked_deadline_s):
                continue
            group = doubtful if self._log.may_be_dead_lettered(position, self._subscription.losses_max) else firm
            group[position] = since_t
            if self._passed_t(position) > owed.lease_end_t + rules.ack_settled_s and not rules.dead_letter_max_attempts:
                moved_on[position] = self._up_since(max(owed.lease_end_t + settled_s, ready_t))
        coming_t = min(self._judge_overdue(now, firm, ""), self._judge_overdue(now, doubtful, DEAD_LETTER))
        return min(coming_t, self._judge_moved_on(now, moved_on))

    def _passed_t(self, position: int) -> float:
        """When the key last came past a position: something above was delivered. Below it, the key is on its way there."""
        if self._last_position > position:
            return self.last_delivery_t
        return passed_t(self._tops, position)

    def _has_expired(self, position: int, t: float) -> bool:
        return self._orders.has_expired(self._log.invoked_t(position), t)

    def _judge_overdue(self, now: float, since: dict[int, float], doubt: str) -> float:
        """The same for a group of positions, by the time since when each is owed."""
        since_t = min(since.values(), default=inf)
        told = f"{Kind.UNACKED_STALL} {doubt}"
        if since_t == inf or told in self._told:
            return inf
        deadline_s = self._collector.rules.unacked_deadline_s
        deadline_t = self._due_t(now, since_t, deadline_s, min(map(self._log.invoked_t, since)))
        if now <= deadline_t:
            return deadline_t
        excuse = doubt or self._excuse(since_t, deadline_t)
        if (told_so := f"{told}{excuse}") not in self._told:
            self._told |= {told_so}
            overdue = sorted(position for position, t in since.items() if t == since_t)
            self._file_unacked(overdue, since_t, deadline_t, excuse)
        if excuse == HELD_ELSEWHERE:
            return self._deadline(deadline_t, deadline_s)
        self._told |= {told}
        return inf

    def _judge_moved_on(self, now: float, since: dict[int, float]) -> float:
        """The same for what has to come again although the key moves on: each is told once."""
        coming_t = inf
        deadline_s = self._collector.rules.unacked_deadline_s
        for position, since_t in since.items():
            deadline_t = self._due_t(now, since_t, deadline_s, self._log.invoked_t(position))
            if now <= deadline_t:
                coming_t = min(coming_t, deadline_t)
            elif self._subscription.is_held_elsewhere(self._collector.key, since_t, deadline_t):
                coming_t = min(coming_t, now + deadline_s)
            elif not self._has_expired(position, deadline_t) and position in self.owed:
                self._file_unacked([position], since_t, deadline_t, "")
                del self.owed[position]
        return coming_t

    def _file_unacked(self, overdue: list[int], since_t: float, deadline_t: float, doubt: str) -> None:
        witnesses = [self.owed[position].number for position in overdue[:5] if position in self.owed]
        facts = of_unacked(self._log, self._orders, overdue, since_t, deadline_t)
        self._collector.liveness(Kind.UNACKED_STALL, deadline_t, witnesses, facts, doubt)

    # --- what was never delivered --------------------------------------------------------------------------------------------

    def _judge_lost(self, now: float, ready_t: float, order: EpochOrder) -> float:
        coming_t = inf
        for overtaken in order.missing():
            if overtaken.reported_lost:
                continue
            invoked_t = overtaken.publication.invoked_t
            since_t = self._up_since(max(overtaken.t, overtaken.publication.confirmed_t, ready_t))
            deadline_t = self._deadline(since_t, self._collector.rules.delivery_deadline_s, invoked_t)
            if self._orders.has_expired(invoked_t, deadline_t):
                continue
            if now <= deadline_t:
                coming_t = min(coming_t, deadline_t)
            else:
                self._file_lost(order, overtaken, deadline_t)
        return coming_t

    def _file_lost(self, order: EpochOrder, overtaken: Overtaken, deadline_t: float) -> None:
        overtaken.reported_lost = True
        publication, facts = overtaken.publication, of_lost(order, overtaken, deadline_t)
        witnesses = (publication.invoked_number, publication.confirmed_number, overtaken.by.number)
        self._collector.liveness(Kind.LOST_OVERTAKEN, deadline_t, witnesses, facts, self._orders.dead_letter_doubt())

    def _judge_stuck(self, now: float, quiet_since_t: float, epoch: str, undelivered: Iterator[Publication]) -> float:
        if epoch in self._told:
            return inf
        deadline_s = self._collector.rules.delivery_deadline_s
        for first in undelivered:
            since_t = self._up_since(max(first.confirmed_t, quiet_since_t, self._orders.excused_until_t))
            deadline_t = self._due_t(now, since_t, deadline_s, first.invoked_t)
            if self._orders.has_expired(first.invoked_t, deadline_t):
                continue
            if now <= deadline_t:
                return deadline_t
            gone = self._orders.dead_letter_doubt()
            excuse = gone or self._excuse(since_t, deadline_t)
            told = epoch + excuse if excuse and not gone else epoch
            if told not in self._told:
                self._told |= {told}
                self._file_stuck(epoch, first, undelivered, since_t, deadline_t, excuse)
            return self._deadline(deadline_t, deadline_s) if excuse and not gone else inf
        return inf

    def _file_stuck(
        self, epoch: str, first: Publication, others: Iterator[Publication], since_t: float, deadline_t: float, doubt: str
    ) -> None:
        witnesses = (first.invoked_number, first.confirmed_number, self.last_delivery_number)
        self._collector.liveness(Kind.STUCK, deadline_t, witnesses, of_stuck(epoch, [first, *others], since_t, deadline_t), doubt)
