"""What was accepted of one key in one publishing region: the learned log, the state behind it, and the window that may change places.

Behind a *certain moment* the order of sends is the same in every legal explanation. The window holds what was accepted since, in the order
in which it is taken to have been sent; a better explanation may give it another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from prober.checker.certainty import certain_count
from prober.checker.facts import Delivery, Session, hold_s, low, must_precede
from prober.checker.log import ACK_CONFIRMED, ACKED, JOINED, PRIMARY, REMOVED, SHARED, UNPLACED, Log
from prober.checker.model import Problem
from prober.checker.opportunities import Opportunities
from prober.checker.search import Search, Step
from prober.checker.state import State
from prober.core.findings import Kind

if TYPE_CHECKING:
    from prober.checker.key import KeyChecker

WINDOW_MAX: Final = 256
"""Deliveries whose order may change; beyond that the order of the older half is taken as it is."""
COMMIT_AT: Final = 16
"""How many more deliveries there have to be before the certain moment is looked for again."""
EPOCHS_KEPT: Final = 64
ELSEWHERE_KEPT: Final = 256
"""Records without a position that are remembered."""

KEPT: Final = ACKED | REMOVED | ACK_CONFIRMED | UNPLACED | SHARED
"""What is known of a record, wherever it stands."""


class AcceptedDeliveries:
    """See the head of this file.

    log         positions of the region.
    settled     the state at the last certain moment; `now` is the state after all that was accepted: the same object where the window
                is empty.
    window      what was accepted since, in the order in which it is taken to have been sent.
    waiting     what came and is not accepted yet.
    opportunities   counts how often a broken promise could have been seen.
    highest     the highest sequence number of a primary that was learned, by epoch.
    elsewhere   records that were first sent before everything that is remembered: they have no position.
    """

    opportunities: Opportunities

    def __init__(self, key: KeyChecker, region: str, report: Callable[[Delivery, Problem], None]) -> None:
        self._key = key
        self._report = report
        self.region = region
        self.log = Log(key.rules.window)
        self.settled = self.now = State()
        self.window: list[Delivery] = []
        self.waiting: list[Delivery] = []
        self.blurred_until_t = -inf
        self.blurred_by: Session | None = None
        self.highest: dict[str, int] = {}
        self.elsewhere: dict[tuple[int, int], None] = {}
        self._frontier = 0
        self._commit_at = COMMIT_AT
        self._latest_invoked_t = -inf
        self._reported: set[tuple[int, Kind]] = set()
        self._patience = 1
        self._hold_s = hold_s(key.rules)
        self._flags: dict[tuple[int, int], tuple[int, float]] = {}

    @property
    def final(self) -> int:
        """The positions up to this one keep their places, but for the order inside their groups."""
        return self._frontier

    @property
    def final_t(self) -> float:
        """When the places of all positions so far are final, if nothing is on hold; infinite if they are."""
        rules = self._key.rules
        if self.waiting or not self.window:
            return inf
        return self.window[-1].t + rules.delivery_delay_max_s + rules.clock_error_s

    def position_of(self, one: Delivery) -> int:
        """The position of the record of a delivery, 0 if it is new."""
        older = one.older
        while older is not None:
            if older.region == self.region and older.position and older.stamp == one.stamp and self.log.holds(older.position):
                return older.position
            older = older.older
        return 0 if one.first else self.log.find(one.token, one.stamp)

    def _may_stand_elsewhere(self, one: Delivery) -> bool:
        """10: whether its record may have been sent before it was seen first, and so stand elsewhere in the log."""
        position = self.position_of(one)
        if not position and (one.token, one.stamp) in self.elsewhere:
            return True
        if position or one.publication is None or not one.first:
            return self.log.flagged(position, UNPLACED)
        subscription, publication = self._key.subscription, one.publication
        if subscription.graces and subscription.may_have_come_unseen(publication.invoked_t, one.t) is not None:
            return True
        return one.invoked_t < self._latest_invoked_t and subscription.may_have_lost_one(one.invoked_t, one)

    def _take(self, one: Delivery, known: int) -> None:
        """A delivery was sent."""
        position = known or self._learn(one)
        one.position = position
        subscription = self._key.subscription
        self.opportunities.sent(one, position)
        if self.now.before is not None and self.now.before.session is not one.session:
            self._key.moved(self, one)
        if not self.window and subscription.alone(one.session):
            self.settled.sent(position, one)
            self._frontier = self.log.frontier
            return
        if not self.window:
            self.now = self.settled.copy()
        self._join(one, position)
        self.window.append(one)
        self.now.sent(position, one)
        if len(self.window) >= self._commit_at:
            self.commit(one.t)

    def _learn(self, one: Delivery) -> int:
        flags, invoked_t = 0, one.invoked_t
        if one.primary:
            flags = PRIMARY
            self._note_highest(one)
        self._latest_invoked_t = max(self._latest_invoked_t, invoked_t)
        if one.unplaced:
            flags |= UNPLACED
        position = self.log.append(one.token, one.stamp, one.number, one.epoch, one.seq, invoked_t, flags)
        learned = self._flags.get((one.token, one.stamp))
        if learned is not None:
            self.log.mark(position, learned[0] & KEPT)
            self.log.answer(position, learned[1])
        if one.copy:
            for other in self.log.positions_of(one.token):
                self.log.mark(other, SHARED)
        if one.acked_t < inf:
            self.log.mark(position, ACKED)
            self.log.answer(position, max(self.log.answered_t(position), one.acked_t))
        return position

    def _join(self, one: Delivery, position: int) -> None:
        """Marks positions before that of a delivery that may stand behind it in another legal order of sends.

        Any delivery of a record may have been the first one.
        """
        if position <= self._frontier + 1:
            return
        lowest, rules = position, self._key.rules
        sent_t, session = low(rules, one) - rules.clock_error_s, one.session
        surely = {other.position for other in self.window if other.session is session or other.t < sent_t}
        for other in self.window:
            if not self._frontier < other.position < lowest or other.position in surely:
                continue
            before = other.publication
            if before is None or not other.primary or not must_precede(rules, before, one):
                lowest = other.position
        for joined in range(lowest + 1, position + 1):
            self.log.mark(joined, JOINED)

    def _note_highest(self, one: Delivery) -> None:
        """A primary was learned."""
        if one.seq > self.highest.get(one.epoch, 0):
            if len(self.highest) > EPOCHS_KEPT and one.epoch not in self.highest:
                del self.highest[next(iter(self.highest))]
            self.highest[one.epoch] = one.seq

    def commit(self, now: float) -> None:
        """Moves the last certain moment forward: behind everything that was certainly sent before the rest, and before what may come."""
        rules = self._key.rules
        if self.waiting:
            return  # what waits may have been sent before
        delayed_t = now if now == inf else now - rules.delivery_delay_max_s
        horizon_t = max(delayed_t, self._key.subscription.sent_from_t(now)) - 2 * rules.clock_error_s
        count = certain_count(rules, self.window, horizon_t)
        if len(self.window) - count >= WINDOW_MAX:
            count = self._give_up_order(len(self.window) // 2)
        for one in self.window[:count]:
            self.settled.sent(one.position, one)
            self._frontier = max(self._frontier, one.position)
        if count:
            del self.window[:count]
            if not self.window:
                self.settled = self.now
            numbers = {one.number for one in self.window}
            self._reported = {one for one in self._reported if one[0] in numbers}
            self._patience = 1
        self._commit_at = len(self.window) + COMMIT_AT

    def _give_up_order(self, count: int) -> int:
        """The window is full: the order of its older half is taken as it is, and may explain what was sent by then."""
        gone = self.window[:count]
        self._blur(gone)
        sessions = {one.session.name for one in self.window}
        if len(sessions) > 1:
            self.settled.reset()
            self._key.counts.windows_full += 1
            self._key.group.divergence.lose_order(self._key, self)
            self._frontier = max(self._frontier, *(one.position for one in gone))
            del self.window[:count]
            self.now = self.settled.copy()
            for one in self.window:
                self.now.sent(one.position, one)
            return 0
        return count

    def _adopt(self, search: Search, steps: tuple[Step, ...]) -> None:
        """Takes an explanation for what happened."""
        self._flags = {self.log.record(one): self.log.state(one) for one in self.log.between(self._frontier, self.log.frontier + 1)}
        self.log.truncate(self._frontier)
        window = set(map(id, self.window))
        self.window = []
        self.now = self.settled.copy()
        for step in steps:
            one = search.items[step.item]
            one.position = search.known[step.item]
            self._file(one, step.problems)
            if not step.placed:
                self._note_elsewhere(one)
                continue
            known = one.position or self._relearned(one)
            one.unplaced = one.unplaced or (not known and (one.token, one.stamp) in self.elsewhere)
            one.position = known or self._learn(one)
            if id(one) not in window:
                self.opportunities.sent(one, one.position)
                if self.now.before is not None and self.now.before.session is not one.session:
                    self._key.moved(self, one)
            self._join(one, one.position)
            self.window.append(one)
            self.now.sent(one.position, one)
        self._flags = {}

    def _note_elsewhere(self, one: Delivery) -> None:
        """A delivery was sent before everything that is remembered; a new record has no position then."""
        if one.position or (one.token, one.stamp) in self.elsewhere:
            return
        self.elsewhere[one.token, one.stamp] = None
        if len(self.elsewhere) > ELSEWHERE_KEPT:
            del self.elsewhere[next(iter(self.elsewhere))]
        self._key.group.divergence.lose_order(self._key, self)

    def _relearned(self, one: Delivery) -> int:
        """The position of a record that was learned in the window before."""
        return next((other.position for other in self.window if (other.token, other.stamp) == (one.token, one.stamp)), 0)

    def _blur(self, deliveries: list[Delivery]) -> None:
        """Something else may have been sent among these, or before: what that does to the state is not known any more."""
        if not deliveries:
            return
        sessions = {one.session for one in deliveries}
        recent = self.blurred_until_t + self._hold_s >= deliveries[-1].t
        self.blurred_by = sessions.pop() if len(sessions) == 1 and (not recent or self.blurred_by in sessions) else None
        self.blurred_until_t = max(self.blurred_until_t, *(one.t for one in deliveries))

    def reset(self, *since: Delivery) -> None:
        """Nothing is known about the last send and the holds."""
        if self.window:
            self._key.group.divergence.lose_order(self._key, self)
        before = self.now.before
        self._blur([*self.window, *(() if before is None else (before,)), *since])
        self.settled.reset()
        self._frontier = self.log.frontier
        self.window = []
        self.now = self.settled

    def _file(self, one: Delivery, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if (one.number, problem.kind) not in self._reported:
                self._reported.add((one.number, problem.kind))
                self._report(one, problem)

    def is_reported(self, one: Delivery, kind: Kind) -> bool:
        """Whether a finding of a kind was filed about a delivery."""
        return (one.number, kind) in self._reported
