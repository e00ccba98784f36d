"""Accepted deliveries of one key in one publishing region: the learned log, the state after it, and the window of uncertain order.

Up to a *certain moment* the order of sends is the same in every legal explanation. The window contains the deliveries accepted since
then, in their assumed order of sends; a better explanation may reorder them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.certainty import certain_count, is_one_order
from prober.core.explanation import Step
from prober.core.facts import Delivery, Session, acked_earlier, hold_s, stands_before, surely_before
from prober.core.findings import Kind
from prober.core.group import IdleLane
from prober.core.late import stands_below
from prober.core.log import ACK_CONFIRMED, ACKED, PRIMARY, REMOVED, SHARED, STAYED, UNPLACED, Log
from prober.core.model import Problem
from prober.core.opportunities import Opportunities
from prober.core.report import moved
from prober.core.search import Search
from prober.core.search_view import RECENT, Effort
from prober.core.state import State

if TYPE_CHECKING:
    from prober.core.key import KeyChecker

WINDOW_MAX: Final = 4096
"""Largest number of deliveries in the window; beyond that the current order of the older half becomes final."""
COMMIT_AT: Final = 16
"""Number of further deliveries after which the checker looks for a later certain moment."""
EPOCHS_KEPT: Final = 65
ELSEWHERE_KEPT: Final = 256
"""Number of records without a position that are remembered."""

NOTHING: Final[frozenset[tuple[int, Kind]]] = frozenset()
KEPT: Final = ACKED | REMOVED | ACK_CONFIRMED | UNPLACED | SHARED | STAYED
"""Flags of a record that do not depend on its position."""


class AcceptedDeliveries:
    """Accepted deliveries of a key in a region; see the module docstring.

    log         positions of the region.
    settled, now    the state at the last certain moment, and after all accepted deliveries: one object if the window is empty.
    window      deliveries accepted since the certain moment, in their assumed order of sends.
    waiting     deliveries that were received and are not accepted yet.
    opportunities   counts the situations in which a violation of each guarantee could have been observed.
    highest     the highest learned sequence number of a primary record, by epoch; `latest_invoked_t`: the last invocation of all.
    has_one_order   whether each delivery of the window was sent before the next one in every legal order.
    elsewhere   records that were first sent before all remembered deliveries: they have no position.
    """

    __slots__ = (
        "_commit_at",
        "_effort",
        "_flags",
        "_hold_s",
        "_key",
        "_report",
        "_reported",
        "blurred_by",
        "blurred_until_t",
        "elsewhere",
        "has_one_order",
        "highest",
        "latest_invoked_t",
        "log",
        "now",
        "opportunities",
        "region",
        "settled",
        "waiting",
        "window",
    )

    opportunities: Opportunities

    def __init__(self, key: KeyChecker, region: str, report: Callable[[Delivery, Problem], None]) -> None:
        """Create an empty log; `report` files a problem of a delivery."""
        self._key = key
        self._report = report
        self.region = region
        self.log = Log(key.rules.window)
        self.settled = self.now = State(releases=key.rules.dead_letter_max_attempts > 0)
        self.window: list[Delivery] = []
        self.waiting: list[Delivery] = []
        self.blurred_until_t = -inf
        self.blurred_by: Session | None = None
        self.highest: dict[str, int] = {}
        self.elsewhere: dict[tuple[int, int], None] = {}
        self._commit_at = COMMIT_AT
        self.latest_invoked_t = -inf
        self._reported: frozenset[tuple[int, Kind]] = NOTHING
        self.has_one_order = True
        self._effort = Effort(self._key.counts)
        self._hold_s = hold_s(key.rules)
        self._flags: dict[tuple[int, int], tuple[int, float]] | None = None

    @property
    def final(self) -> int:
        """The last position whose place is final, except for the order inside its group."""
        return self.log.final

    @property
    def final_t(self) -> float:
        """The time when the places of all positions so far are final, if no delivery is on hold; infinite if they already are."""
        rules = self._key.rules
        if self.waiting or not self.window:
            return inf
        return self.window[-1].t + rules.delivery_delay_max_s + rules.clock_error_s

    @property
    def idle(self) -> IdleLane:
        """The numbers that are kept while the key has no pending message."""
        return IdleLane(self.region, self.log.frontier, self.latest_invoked_t, tuple(self.highest.items()))

    def resume(self, idle: IdleLane) -> None:
        """Continue after the positions that were forgotten while the key was idle."""
        self.log.floor = self.log.final = self.log.frontier = idle.frontier
        self.latest_invoked_t = idle.latest_invoked_t
        self.highest = dict(idle.highest)

    def position_of(self, one: Delivery) -> int:
        """Return the position of the record of a delivery, 0 if the record is new."""
        older = one.older
        while older is not None:
            if older.region == self.region and older.position and older.stamp == one.stamp and self.log.holds(older.position):
                return older.position
            older = older.older
        return 0 if one.first else self.log.find(one.token, one.stamp)

    def _remember(self, one: Delivery, known: int) -> None:
        """Restore the answers and the publish time of a redelivered record from the log, if they are not remembered elsewhere (3)."""
        if one.older is None:
            one.answered_before_t = self.log.answered_t(known)
        if one.publication is None:
            one.earliest_t = min(one.t, max(one.earliest_t, self.log.invoked_t(known) - self._key.rules.clock_error_s))

    def _may_stand_elsewhere(self, one: Delivery, known: int) -> bool:
        """10: whether the record may have been sent before its first observed delivery, and so have another place in the log."""
        if not known and (one.token, one.stamp) in self.elsewhere:
            return True
        subscription, publication = self._key.subscription, one.publication
        if publication is None and one.first and self._key.may_be_older_record(one):
            return True
        if self.log.flagged(known, UNPLACED) or (known <= self.log.final and self.is_blurred(one)):
            return True
        if known or not one.first:
            return False
        of_id = max(map(self.log.invoked_t, self.log.positions_of(one.token)), default=inf)  # L5: of one publish
        invoked_t = of_id if publication is None else publication.invoked_t
        if subscription.graces and subscription.may_have_come_unseen(invoked_t, one.t) is not None:
            return not self._is_next(one)
        late = publication is not None and one.invoked_t < self.latest_invoked_t
        return late and len(subscription.losses) > 0 and subscription.may_have_lost_one(one.invoked_t, one)

    def _is_next(self, one: Delivery) -> bool:
        """L3: whether a delivery is the primary record that follows the last learned one in the same epoch."""
        log, last = self.log, self.log.frontier
        placed = log.flags_at(last) & (PRIMARY | UNPLACED) == PRIMARY
        return placed and one.primary and log.epoch(last) == one.epoch and log.seq(last) == one.seq - 1

    def is_blurred(self, one: Delivery) -> bool:
        """Return whether deliveries of unknown place may have been sent before or after this one."""
        sent_t = one.earliest_t - self._key.rules.clock_error_s
        return sent_t <= self.blurred_until_t and one.session is not self.blurred_by

    def _bound(self, one: Delivery) -> int:
        """10: return `Delivery.bound`; 0 if a delivery of unknown place may have been sent after this one."""
        log, position = self.log, one.position
        certain = log.flagged(position, PRIMARY) and not log.flagged(position, SHARED) and not self.is_blurred(one)
        invoked_t = log.invoked_t(position)
        if not certain or self._key.subscription.may_have_come_unseen(invoked_t, one.t) is not None:
            return 0  # messages that a control operation passed over need not follow
        return stands_below(log, position - 1, one.epoch, one.seq, invoked_t)

    def take(self, one: Delivery, known: int) -> None:
        """Accept a delivery as the next send."""
        before, window, subscription = self.now.before, self.window, self._key.subscription
        if window and self.has_one_order and one.session is not window[-1].session:
            self.has_one_order = surely_before(self._key.rules, window[-1], one)
        position = one.position = known or self._learn(one)
        if one.unplaced:
            one.bound = self._bound(one)
        if one.acked_t < inf or subscription.graces:
            self._note_past(one)
        self.opportunities.sent(one, position)
        if before is not None and before.session is not one.session:
            moved(self._key, self, one)
        if not window:
            if subscription.has_one_stream and one.session.closed_t == inf and not self.waiting:
                self.settled.sent(position, one)
                self.log.final = self.log.frontier
                return
            self.now, self.has_one_order = self.settled.copy(), True
        elif not self.has_one_order:
            self._join(one, position)
        window.append(one)
        self.now.sent(position, one)
        self._commit_if_due(one.t)

    def _learn(self, one: Delivery) -> int:
        flags, publication = 0, one.publication
        if one.primary and publication is not None:
            flags, invoked_t = PRIMARY, publication.ordered_t
            self._note_highest(one)
        else:
            invoked_t = one.invoked_t
        if invoked_t > self.latest_invoked_t:
            self.latest_invoked_t = invoked_t
        log, floor = self.log, self.log.floor
        flags = flags | UNPLACED if one.unplaced else flags
        position = log.append(one.token, one.stamp, one.number, one.epoch, one.seq, invoked_t, flags)
        if log.floor > floor:
            for state in {self.settled, self.now}:
                state.forget(log.floor)
        if self._flags and (one.token, one.stamp) in self._flags:
            learned, answered_t = self._flags[one.token, one.stamp]
            self.log.answer(position, learned & KEPT, answered_t)
        elif one.older is not None and (acked_t := acked_earlier(one)) is not None:
            log.answer(position, ACKED, acked_t)  # the record was known, and forgotten while this was on hold
        if one.copy:
            for other in self.log.positions_of(one.token):
                self.log.mark(other, SHARED)
            for known in (*self.window, one):
                known.shared = known.shared or known.token == one.token
        return position

    def _note_past(self, one: Delivery) -> None:
        """Note an acknowledgement while the delivery was on hold, and whether every control operation had settled before its send."""
        if one.acked_t < inf:
            self.log.answer(one.position, ACKED, max(self.log.answered_t(one.position), one.acked_t))
        if self._key.subscription.graces:
            if self._key.subscription.stays(one):
                self.log.mark(one.position, STAYED)
            else:
                self.log.unmark(STAYED, one.position)

    def _join(self, one: Delivery, position: int) -> None:
        """Join the position of a delivery with earlier positions that may follow it in another legal order of sends.

        Any delivery of a record may have been its first one.
        """
        if position <= self.log.final + 1:
            return
        rules, session = self._key.rules, one.session
        sent_t, final = one.earliest_t - rules.clock_error_s, self.log.final
        beside = [other for other in self.window if other.session is not session and other.t >= sent_t]
        if not beside:
            return
        surely = {other.position for other in self.window if other.session is session or other.t < sent_t}
        beside = [other for other in beside if final < other.position < position and other.position not in surely]
        lowest = min((other.position for other in beside if not stands_before(rules, other, one)), default=position)
        if lowest < position:
            self.log.join(lowest, position)

    def _note_highest(self, one: Delivery) -> None:
        """Update the highest learned number of the epoch of a primary record."""
        highest = self.highest
        if one.seq > highest.get(one.epoch, 0):
            highest[one.epoch] = one.seq
            if len(highest) > EPOCHS_KEPT:
                del highest[next(iter(highest))]

    def _commit_if_due(self, now: float) -> None:
        if len(self.window) >= self._commit_at:
            self.commit(now)

    def commit(self, now: float) -> None:
        """Advance the last certain moment past the deliveries of definite order."""
        rules = self._key.rules
        if not self.window or (self.waiting and len(self.window) <= RECENT):
            return  # a short window may still be reordered when the deliveries on hold are explained
        delayed_t = now if now == inf else now - rules.delivery_delay_max_s
        horizon_t = max(delayed_t, self._key.subscription.sent_from_t(now)) - 2 * rules.clock_error_s
        self.has_one_order = self.has_one_order or is_one_order(rules, self.window)
        if self.has_one_order and not self.waiting:
            count = next((index for index, one in enumerate(self.window) if one.t >= horizon_t), len(self.window))
        else:
            count = certain_count(rules, self.window, self.waiting, horizon_t)
        if len(self.window) - count >= WINDOW_MAX and not self.waiting:
            count = self._give_up_order(len(self.window) // 2)
        if count:
            self._settle(count)
        self._commit_at = len(self.window) + max(COMMIT_AT, len(self.window) // 4)

    def _settle(self, count: int) -> None:
        """Make the order of the first `count` deliveries of the window final."""
        certain = self.window[:count]
        del self.window[:count]
        self.log.final = max(self.log.final, *(one.position for one in certain))
        if self.window:
            for one in certain:
                self.settled.sent(one.position, one)
        else:
            self.settled = self.now
        if self._reported:
            numbers = {one.number for one in self.window}
            self._reported = frozenset(one for one in self._reported if one[0] in numbers)
        if not self.waiting:
            self._effort = Effort(self._key.counts)

    def _give_up_order(self, count: int) -> int:
        """Make the order of the older half of a full window final: it may explain what was sent by then."""
        gone = self.window[:count]
        self._blur(gone)
        sessions = {one.session.name for one in self.window}
        if len(sessions) > 1:
            self.settled.reset()
            self._key.counts.windows_full += 1
            self._key.group.lose_order(self._key, self)
            self.log.final = max(self.log.final, *(one.position for one in gone))
            del self.window[:count]
            self.has_one_order = False
            self.now = self.settled.copy()
            for one in self.window:
                self.now.sent(one.position, one)
            return 0
        return count

    def _state_behind(self, count: int) -> tuple[State, int]:
        """Return the state after the first `count` deliveries of the window, and the last position learned by then."""
        if not count:
            return self.settled, self.log.final
        state, frontier = self.settled.copy(), self.log.final
        for one in self.window[:count]:
            state.sent(one.position, one)
            frontier = max(frontier, one.position)
        return state, frontier

    def _adopt(self, search: Search, steps: tuple[Step, ...], kept: int = 0) -> None:
        """Replace the window after its first `kept` deliveries by the steps of an explanation."""
        self._flags = {self.log.record(at): self.log.state(at) for at in self.log.between(search.frontier, self.log.frontier + 1)}
        self.log.truncate(search.frontier)
        window = set(map(id, self.window))
        learned: dict[tuple[int, int], int] = {}
        self.window, self.has_one_order = self.window[:kept], False
        self.now = search.settled.copy()
        for step in steps:
            one = search.items[step.item]
            one.position = search.known[step.item]
            self._file(one, step.problems)
            if not step.placed:
                self._note_elsewhere(one)
                continue
            known = one.position or learned.get((one.token, one.stamp), 0)
            one.unplaced = one.unplaced or (not known and (one.token, one.stamp) in self.elsewhere)
            one.position = learned[one.token, one.stamp] = known or self._learn(one)
            one.bound = self._bound(one) if one.unplaced else 0
            self._note_past(one)
            if id(one) not in window:
                self.opportunities.sent(one, one.position)
                if self.now.before is not None and self.now.before.session is not one.session:
                    moved(self._key, self, one)
            self._join(one, one.position)
            self.window.append(one)
            self.now.sent(one.position, one)
        self._flags = None

    def _note_elsewhere(self, one: Delivery) -> None:
        """Note a delivery that was sent before all remembered ones; a new record gets no position then."""
        if one.position or (one.token, one.stamp) in self.elsewhere:
            return
        self.elsewhere[one.token, one.stamp] = None
        if len(self.elsewhere) > ELSEWHERE_KEPT:
            del self.elsewhere[next(iter(self.elsewhere))]
        self._key.group.lose_order(self._key, self)

    def _blur(self, deliveries: list[Delivery]) -> None:
        """Mark the state as uncertain: unknown deliveries may have been sent before or among these."""
        if not deliveries:
            return
        sessions = {one.session for one in deliveries}
        recent = self.blurred_until_t + self._hold_s >= deliveries[-1].t
        self.blurred_by = sessions.pop() if len(sessions) == 1 and (not recent or self.blurred_by in sessions) else None
        self.blurred_until_t = max(self.blurred_until_t, *(one.t for one in deliveries))

    def reset(self, *since: Delivery) -> None:
        """Forget the last send and the holds."""
        if self.window:
            self._key.group.lose_order(self._key, self)
        before = self.now.before
        self._blur([*self.window, *(() if before is None else (before,)), *since])
        self.settled.reset()
        self.log.final = self.log.frontier
        self.window, self._effort = [], Effort(self._key.counts)
        self.now = self.settled

    def _file(self, one: Delivery, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if (one.number, problem.kind) not in self._reported:
                self._reported |= {(one.number, problem.kind)}
                self._report(one, problem)

    def is_reported(self, one: Delivery, kind: Kind) -> bool:
        """Return whether a finding of a kind was filed about a delivery."""
        return (one.number, kind) in self._reported
