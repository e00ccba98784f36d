"""Liveness (docs/model.md, section 8): messages arrive, redeliveries complete, and unacknowledged messages return.

No message has a timer: the check reads the clocks of a key (`clocks`) when its first pending message may be overdue. So a message that
arrives soon costs next to nothing, and a key with deliveries is examined once per deadline.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prober.core import overdue
from prober.core.clocks import KeyClock, Verdict, Wait
from prober.core.events import LONG_AGO, LeaseModified
from prober.core.facts import Delivery, deliveries_of, lease_until
from prober.core.findings import Kind
from prober.core.log import ACKED, REMOVED, may_predate
from prober.core.overdue import HELD_ELSEWHERE, removed_after, removed_unseen
from prober.core.publications import DUPLICATES_KEPT, Publication
from prober.core.runs import Runs
from prober.core.sought import Seek

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane

OLDER_LOOKED_AT: Final = 8
"""Number of earlier deliveries of a message examined for an acknowledgement; the log contains the others."""
PROVEN_KEPT: Final = 1024
"""Number of messages of unknown outcome that another subscription received; beyond that the oldest are forgotten."""
OLDEST: Final = 16
"""Number of oldest pending messages, in the order of their invocations, examined for the first that can be overdue."""
PATIENCE: Final = 1 / 32
"""The share of a deadline before which a pending message is not examined again."""

NOTHING: Final[frozenset[Any]] = frozenset()


class Pending(NamedTuple):
    """A publication that another subscription proved to be stored, and since when that is known."""

    publication: Publication
    t: float


class Liveness:
    """The pending deliveries of one key on one subscription.

    due_t       the earliest time at which a message may be overdue, infinite while none is pending.
    clock       the obstacles of the key.
    """

    __slots__ = ("_key", "_proven", "_reported", "_reported_lost", "_runs", "clock", "due_t", "last_number")

    def __init__(self, key: KeyChecker) -> None:
        self._key = key
        self.clock = KeyClock(key.subscription)
        self.due_t = inf
        self.last_number = 0
        self._runs = Runs(key)
        self._proven: dict[int, Pending] = {}
        self._reported: frozenset[object] = NOTHING
        self._reported_lost: frozenset[object] = NOTHING

    # --- what happens --------------------------------------------------------------------------------------------------------

    def delivered(self, one: Delivery, lane: Lane | None) -> None:
        """Note a delivery; `lane` is None if it has no place in the record."""
        key, clock, runs, subscription = self._key, self.clock, self._runs, self._key.subscription
        t = clock.last_t = one.t
        self.last_number = one.number
        self._reported = NOTHING
        if subscription.clocks.latest is not clock.holds:
            subscription.clocks.touch(clock.holds)
        if one.session.is_limited:
            subscription.clocks.delivered(one, key.group.largest)
        pending = lane is not None and (one.first or not self._was_acked(one, lane))
        if pending and subscription.graces:
            pending = one.earliest_t > key.collector.grace_until_t
            pending = pending and not subscription.may_have_been_acked_unseen(self._invoked_t(one))
        clock.holds.delivered(one, pending=pending)
        if key.rules.retry_backoff_max_s:
            clock.note(one)
        if not one.first or runs.recent or runs.restored:
            runs.delivered(one, lane)
        if self._proven:
            self._proven.pop(one.token, None)
        if self.due_t == inf:
            self.due_t = t + self._shortest_s

    def acked(self, one: Delivery, t: float) -> None:
        """Note an acknowledgement of a delivery."""
        self.clock.holds.acked(one, t)
        if self._runs.restored:
            self._runs.gone(one.token)
        if one.session.is_limited:
            self._key.subscription.clocks.answered(one, t)

    def acked_unseen(self, token: int) -> None:
        """Note an acknowledgement of a delivery that was forgotten, or never recorded."""
        self.clock.holds.drop(token)
        self._runs.gone(token)

    def nacked(self, one: Delivery, t: float) -> None:
        """Note a negative acknowledgement of a delivery."""
        self._key.subscription.clocks.answered(one, t)

    def leased(self, one: Delivery, t: float) -> None:
        """Note a changed lease of a delivery."""
        self.clock.holds.leased(one)
        self._key.subscription.clocks.touch(self.clock.holds, lease_until(self._key.rules, one) - one.t)
        self.clock.holds.touched_t = max(self.clock.holds.touched_t, t)

    def leased_after_answer(self, token: int, event: LeaseModified) -> None:
        """Note an extended lease after an acknowledgement, which may have been lost, or of a delivery from before the record."""
        rules, session = self._key.rules, self._key.subscription.sessions.get(event.session)
        until_t = event.t + event.seconds + rules.delivery_delay_max_s + rules.clock_error_s
        if session is None:
            self.clock.unseen_until(until_t)
        elif self._key.subscription.streaming:
            self.clock.holds.extend(session, event.t, until_t)
            self._key.subscription.clocks.extended(self.clock.holds, session, token, event.t, until_t)

    def confirmed(self, t: float) -> None:
        """Note a confirmed publish: its delivery may become overdue."""
        if self.due_t == inf:
            self.due_t = t + self._shortest_s

    def proven(self, publication: Publication, token: int, t: float) -> None:
        """Note that another subscription received a publish of unknown outcome: it was stored."""
        early = publication.early_on(self._key.subscription.index)
        if len(early) >= DUPLICATES_KEPT:
            return  # it may have been delivered and forgotten
        if token not in self._proven and not any(one.token == token for one in early):
            self._proven[token] = Pending(publication, t)
            if len(self._proven) > PROVEN_KEPT:
                del self._proven[next(iter(self._proven))]
            self.confirmed(t)

    def dead_lettered(self, token: int, t: float) -> None:
        """Note that a message left the subscription."""
        self.clock.holds.drop(token, t)
        self._proven.pop(token, None)
        self._runs.gone(token)

    def control(self) -> None:
        """Forget pending messages at a control operation or a hole in the record."""
        self.clock.holds.forget_pending()
        self._runs.clear()
        self._proven.clear()
        self.confirmed(self._key.collector.grace_until_t)

    def sought(self, seek: Seek) -> None:
        """Note a seek back: messages published since its time are to be redelivered."""
        self._runs.sought(seek)

    def foreign(self) -> None:
        """Note that the key was used before the record, or in a hole of it: with a retry policy a message nacked then may still wait."""
        rules, graces = self._key.rules, self._key.subscription.graces
        if rules.retry_backoff_max_s:
            since_t = max(self._key.subscription.first_seen_t, *(grace.until_t for grace in graces if grace.is_hole), LONG_AGO)
            self.clock.unseen_until(since_t + rules.ack_deadline_s + rules.delivery_delay_max_s + rules.retry_backoff_max_s)

    @property
    def _shortest_s(self) -> float:
        rules = self._key.rules
        return min(rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s) + self._margin_s

    @property
    def _margin_s(self) -> float:
        """The seconds for which a stream may be dead before its client notices."""
        return self._key.rules.close_detection_max_s if self._key.subscription.streaming else 0.0

    def _was_acked(self, one: Delivery, lane: Lane) -> bool:
        """Return whether a record left the subscription, or was acknowledged without a later seek back that undid it."""
        position = one.position or lane.position_of(one)  # it may be on hold
        if lane.log.flagged(position, ACKED | REMOVED):
            return True
        known = lane.log.holds(position)
        older = (other for other in islice(deliveries_of(one.older), OLDER_LOOKED_AT) if not (known and other.position))
        return any(other.acked_t < inf and other.stamp == one.stamp for other in older)

    # --- deadlines -----------------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Report messages overdue before `now`, except those that the unnoticed end of a stream may explain."""
        if self.due_t < now:
            self.verify(now - self._margin_s, now)

    def verify(self, now: float, seen_t: float) -> None:
        """Report messages overdue at `now`. `seen_t` is the time up to which events were seen."""
        self.clock.holds.tidy(now)
        if self._key.subscription.first_seen_t == inf:
            self.due_t = seen_t + self._shortest_s
            return
        if self._key.group.is_excerpt:
            self.foreign()
        excused_t = self._key.subscription.clocks.excused_until()
        left = [*self._undelivered(now), *self._lost(now), *self._unfinished(now, excused_t), *self._unacked(now, excused_t)]
        least_s = max(min(left, default=inf), self._shortest_s * PATIENCE, 1e-3)
        self.due_t = max(now + least_s + self._margin_s, seen_t + 1e-3) if left else inf

    def _decide(self, kind: Kind, what: object, wait: Wait, now: float, doubt: str) -> tuple[Verdict, str]:
        """Return the verdict of a clock, and why it is no proof: after a doubtful finding only a proven one is reported."""
        clocks, once = self._key.subscription.clocks, (kind, what, HELD_ELSEWHERE)
        verdict = clocks.decide(self.clock, wait, now, firm=not doubt)
        if doubt or verdict.passed_t < inf or once in self._reported or once in self._reported_lost:
            return verdict, doubt
        in_doubt = clocks.decide(self.clock, wait, now, firm=False)
        if in_doubt.passed_t < inf:
            if kind is Kind.LOST_OVERTAKEN:
                self._reported_lost |= {once}
            else:
                self._reported |= {once}
            return Verdict(in_doubt.passed_t, verdict.left_s), HELD_ELSEWHERE
        return in_doubt, ""

    def _expires(self, invoked_t: float, now: float) -> float:
        """Return until when a message is pending: it may expire before `now`."""
        return min(now, invoked_t + self._key.rules.message_retention_s - self._key.rules.clock_error_s)

    # --- what was never delivered --------------------------------------------------------------------------------------------

    def _pending(self) -> Iterator[tuple[Publication, float]]:
        """Yield stored messages that were not delivered, each with the time since which that is known."""
        clocks = self._key.subscription.clocks
        if self._key.rules.filtered:
            return
        for lane in self._key.lanes.values():
            for publication, by in lane.pending.items():
                if by is None and publication not in lane.overtaken and self._may_be_pending(publication, self._key.baseline_t):
                    yield publication, max(publication.confirmed_t, clocks.pending_since(publication.invoked_t))
        for publication, t in self._proven.values():
            if publication.token is None and self._may_be_pending(publication, self._key.baseline_t):
                yield publication, t

    def _may_be_pending(self, publication: Publication, since_t: float) -> bool:
        """Return whether the absence of a message has no excuse: a control operation, an adopted start, or a forgotten epoch."""
        predates = may_predate(self._key, publication) if since_t == self._key.baseline_t else publication.invoked_t <= since_t
        if predates or self._key.subscription.clocks.pending_since(publication.invoked_t) == inf:
            return False
        epoch = publication.epoch
        return epoch.open.get(publication.seq) is publication and self._key.group.epochs.get(epoch.name) is epoch

    def _undelivered(self, now: float) -> Iterator[float]:
        """Report STUCK; yield the seconds until the next look."""
        deadline_s = self._key.rules.delivery_deadline_s
        oldest = list(islice(self._verified(now), OLDEST))
        if not oldest:
            return
        if Kind.STUCK in self._reported:
            yield deadline_s
            return
        first, known_t = min(oldest, key=lambda one: one[1])
        wait = Wait(max(known_t, self.clock.last_t), deadline_s, first.invoked_t)
        until_t, unseen = self._expires(first.invoked_t, now), removed_unseen(self._key.subscription, first, now)
        verdict, doubt = self._decide(Kind.STUCK, None, wait, until_t, unseen)
        if verdict.passed_t < inf:
            pending = [one for one, t in self._verified(now) if t <= verdict.passed_t]
            overdue.stuck(self._key, first, pending, wait, verdict.passed_t, doubt)
            if doubt != HELD_ELSEWHERE:
                self._reported |= {Kind.STUCK}
        yield verdict.left_s or deadline_s

    def _verified(self, now: float) -> Iterator[tuple[Publication, float]]:
        """Yield the pending messages that can be overdue, the oldest first."""
        return (one for one in self._pending() if self._is_verified(*one, now))

    def _is_verified(self, publication: Publication, t: float, now: float) -> bool:
        """Return whether a message can be overdue before it expires."""
        until_t = self._expires(publication.invoked_t, now)
        return until_t == now or until_t - max(t, self.clock.last_t) > self._key.rules.delivery_deadline_s

    def _lost(self, now: float) -> Iterator[float]:
        """Report LOST_OVERTAKEN, whose deadline does not restart when the key advances; yield the seconds until the next look."""
        for lane in self._key.lanes.values():
            for publication, by in (*lane.overtaken.items(), *islice(lane.pending.items(), OLDEST)):
                is_open = publication in lane.pending and publication not in self._reported_lost
                if by is None or not is_open or not self._may_be_pending(publication, self._key.baseline_t):
                    continue
                wait = Wait(max(by.t, publication.confirmed_t), self._key.rules.delivery_deadline_s, publication.invoked_t)
                unseen = removed_unseen(self._key.subscription, publication, now)
                until_t = self._expires(publication.invoked_t, now)
                verdict, doubt = self._decide(Kind.LOST_OVERTAKEN, publication, wait, until_t, unseen)
                if verdict.passed_t < inf:
                    overdue.lost(self._key, publication, by, wait, verdict.passed_t, doubt)
                if verdict.passed_t < inf and doubt != HELD_ELSEWHERE:
                    self._reported_lost |= {publication}
                else:
                    yield verdict.left_s

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def _unfinished(self, now: float, excused_t: float) -> Iterator[float]:
        """Report REDELIVERY_STALL: unfinished runs, and messages that a seek back did not restore. Yield seconds until the next look."""
        rules = self._key.rules
        for run in (*self._runs.unfinished(excused_t), *self._runs.not_brought_back()):
            if (Kind.REDELIVERY_STALL, run.lane) in self._reported:
                continue
            log = run.lane.log
            wait = Wait(max(self.clock.last_t, run.since_t), rules.stall_deadline_s, log.invoked_t(run.target))
            until_t = min(self._expires(log.invoked_t(one), now) for one in range(run.reached + 1, run.target + 1))
            verdict, doubt = self._decide(Kind.REDELIVERY_STALL, run.lane, wait, until_t, self._runs.doubt_of(run, now))
            if verdict.passed_t < inf:
                facts = overdue.target(self._key, run) | overdue.times(wait, verdict.passed_t)
                witnesses = (run.number, self.last_number, log.number(run.target))
                ended = self._runs.ruled_out(run, now)
                reasons = () if doubt else overdue.reasons_of(self._key.subscription, self.clock, wait, verdict.passed_t, *ended)
                self._key.collector.liveness(Kind.REDELIVERY_STALL, verdict.passed_t, witnesses, facts, doubt, reasons)
                if doubt != HELD_ELSEWHERE:
                    self._reported |= {(Kind.REDELIVERY_STALL, run.lane)}
            yield verdict.left_s or rules.stall_deadline_s

    # --- what was not acknowledged -------------------------------------------------------------------------------------------

    def _unacked(self, now: float, excused_t: float) -> Iterator[float]:
        """Report UNACKED_STALL: nacked messages, or expired leases, without a redelivery. Yield seconds until the next look."""
        deadline_s = self._key.rules.unacked_deadline_s
        if deadline_s == inf:
            return
        found_by_doubt: dict[str, list[tuple[Delivery, Wait, float]]] = {}
        early: dict[str, float] = {}  # pending since then and not overdue, so nothing is that was pending later
        for one in list(self.clock.holds.unacked.values()):
            if one.t <= excused_t or one.number in self._reported:
                continue
            wait, doubt = self._wait_of(one), removed_after(self._key.subscription, one, now)
            until_t = self._expires(wait.sent_t, now)
            is_early = wait.since_t >= early.get(doubt, inf) and not self._key.rules.retry_backoff_max_s
            if is_early or (until_t < now and until_t - wait.since_t <= deadline_s):
                continue
            verdict, why = self._decide(Kind.UNACKED_STALL, wait.since_t, wait, until_t, doubt)
            if verdict.passed_t < inf:
                found_by_doubt.setdefault(why, []).append((one, wait, verdict.passed_t))
            else:
                early[doubt] = wait.since_t
            yield verdict.left_s or deadline_s
        for why, found in found_by_doubt.items():
            self._tell_unacked(found, why)

    def _wait_of(self, one: Delivery) -> Wait:
        since_t = lease_until(self._key.rules, one)
        if self._key.subscription.streaming:
            since_t = max(min(since_t, one.session.closed_t), self.clock.holds.began_again_t(one))
        place = one.position or inf  # later records do not delay it
        return Wait(since_t, self._key.rules.unacked_deadline_s, self._invoked_t(one), lambda other: other.position <= place)

    def _invoked_t(self, one: Delivery) -> float:
        """Return when the message of a delivery was published; `LONG_AGO` if that is not known."""
        if one.publication is not None:
            return one.publication.invoked_t
        found = (lane.log.invoked_t(lane.log.find(one.token, one.stamp)) for lane in self._key.lanes.values())
        return max(found, default=LONG_AGO)

    def _tell_unacked(self, found: list[tuple[Delivery, Wait, float]], doubt: str) -> None:
        """File overdue deliveries: certain ones once, doubtful ones once while the key has no delivery."""
        for one, _, _ in found:
            if not doubt:
                self.clock.holds.others[one.record] = self.clock.holds.unacked.pop(one.record)
            elif doubt != HELD_ELSEWHERE:
                self._reported |= {one.number}
        if (Kind.UNACKED_STALL, doubt) in self._reported:
            return
        self._reported |= {(Kind.UNACKED_STALL, doubt)}
        overdue.unacked(self._key, found, doubt)

    def is_idle(self, now: float) -> bool:
        """Return whether nothing is pending, and the key cannot delay any message of another key."""
        clock, rules = self.clock, self._key.rules
        longest_s = max(s for s in (0.0, rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s) if s < inf)
        if now - clock.holds.touched_t <= self._key.subscription.clocks.longest_s + 2 * longest_s:
            return False
        clock.holds.tidy(now)
        pending = clock.holds.unacked or clock.holds.others or self._proven or self._runs.recent or self._runs.restored
        return not pending and now > clock.unknown_until_t

    # --- pending deliveries --------------------------------------------------------------------------------------------------

    def has_pending(self, now: float) -> bool:
        """Return whether a delivery to this subscription is pending, other than of a message that may have expired."""
        if not self._key.rules.filtered and any(self._is_outstanding(one, now) for one in self._publications()):
            return True
        unacked = self.clock.holds.unacked.values() if self._key.rules.unacked_deadline_s < inf else ()
        stays = any(self._expires(self._invoked_t(one), now) == now for one in unacked)
        return stays or self._runs.has_pending(self._key.subscription.clocks.excused_until())

    def _publications(self) -> Iterator[Publication]:
        """Yield stored messages that were not delivered."""
        for lane in self._key.lanes.values():
            yield from lane.pending
        yield from (publication for publication, _ in self._proven.values() if publication.token is None)

    def _is_outstanding(self, publication: Publication, now: float) -> bool:
        """Return whether a message must be delivered: without a baseline, if the subscription existed at its publish."""
        since_t = self._key.baseline_t
        if self._key.adopts:
            since_t = self._key.subscription.first_seen_t + self._key.rules.clock_error_s
        return self._may_be_pending(publication, since_t) and self._expires(publication.invoked_t, now) == now
