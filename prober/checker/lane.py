"""One key of one subscription in one publishing region: deliveries in, problems out.

Deliveries are taken as sent in order of arrival, as long as that is legal without an assumption (`_accept`). Where it is not, the lane
is *on hold* until everything that may explain it has had time to arrive. Then the best order of sends is looked for (`search`), in the
`window` of deliveries since the last moment from which on all orders are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Final

from prober.checker.facts import Delivery, Grace, Session, hold_s, low, must_precede, provably_before
from prober.checker.log import ACK_CONFIRMED, ACKED, JOINED, PRIMARY, REMOVED, SHARED, UNPLACED, Log
from prober.checker.model import Problem, Send
from prober.checker.publications import Publication
from prober.checker.search import Search, Situation, Step
from prober.checker.state import State
from prober.core.findings import Kind

if TYPE_CHECKING:
    from prober.checker.key import KeyChecker

WINDOW_MAX: Final = 256
"""Deliveries whose order may change; beyond that the order of the older half is taken as it is."""
TOGETHER_MAX: Final = 1024
"""Deliveries on hold that are explained together."""
OPTIONAL_MAX: Final = 512
"""Deliveries that came after what is on hold and are tried before it."""
WAITING_MAX: Final = 65_536
"""Deliveries that may wait on hold; beyond that it is decided at once."""
COMMIT_AT: Final = 16

KEPT: Final = ACKED | REMOVED | ACK_CONFIRMED | UNPLACED | SHARED
"""What is known of a record, wherever it stands."""

TOO_MUCH: Final = "there are too many orders in which this may have been sent"


class Lane:
    """See the head of this file.

    log         positions of the region.
    settled     the state at the last certain moment; `now` is the state after all that was accepted: the same object where the window
                is empty.
    window      what was accepted since, in the order in which it is taken to have been sent.
    waiting     what came since something could not be accepted, that first.
    due_t       when that is decided at the latest.
    owed        confirmed publications of the region that have not come, in the order of their invocations.
    overtaken   publications of which a finding says that they are missing before a delivery.
    deferred    publications that were confirmed after others had come that may stand behind them, and when to compare them.
    """

    __slots__ = (
        "_commit_at",
        "_flags",
        "_frontier",
        "_highest",
        "_hold_s",
        "_in_grace",
        "_key",
        "_latest_invoked_t",
        "_patience",
        "_reported",
        "blurred_by",
        "blurred_until_t",
        "deferred",
        "due_t",
        "log",
        "now",
        "overtaken",
        "owed",
        "region",
        "settled",
        "waiting",
        "window",
    )

    def __init__(self, key: KeyChecker, region: str) -> None:
        self._key = key
        self.region = region
        self.log = Log(key.rules.window)
        self.settled = self.now = State()
        self.window: list[Delivery] = []
        self.waiting: list[Delivery] = []
        self.due_t = inf
        self.blurred_until_t = -inf
        self.blurred_by: Session | None = None
        self.owed: dict[Publication, None] = {}
        self.overtaken: dict[Publication, Delivery] = {}
        self.deferred: list[tuple[float, Publication]] = []
        self._frontier = 0
        self._commit_at = COMMIT_AT
        self._latest_invoked_t = -inf
        self._highest: dict[str, int] = {}
        self._reported: set[tuple[int, Kind]] = set()
        self._in_grace = False
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
        return self.window[-1].t + rules.delivery_delay_max_s + rules.clock_error_s if self.window else inf

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def deliver(self, one: Delivery) -> None:
        """A delivery of the region."""
        one.unplaced = self._may_stand_elsewhere(one)
        if self.waiting:
            self.waiting.append(one)
            if len(self.waiting) > WAITING_MAX:
                self._resolve(inf)
            elif len(self.waiting) == self._patience:
                self._resolve_all(one.t)
        elif not self._accept(one):
            self._put_on_hold(one)
            if self._patience == 1:
                self._resolve_all(one.t)

    def _may_stand_elsewhere(self, one: Delivery) -> bool:
        """10: whether its record may have been sent before it was seen first, and so stand elsewhere in the log."""
        position = self.position_of(one)
        if position or one.publication is None or not one.first:
            return self.log.flagged(position, UNPLACED)
        subscription, publication = self._key.subscription, one.publication
        if subscription.graces and subscription.may_have_come_unseen(publication.invoked_t, one.t) is not None:
            return True
        invoked_t = publication.ordered_t if one.primary else publication.invoked_of(one.generation)
        return invoked_t < self._latest_invoked_t and subscription.may_have_lost_one(invoked_t, one)

    def _put_on_hold(self, one: Delivery) -> None:
        self.waiting.append(one)
        self.due_t = one.t + self._hold_s

    def position_of(self, one: Delivery) -> int:
        """The position of the record of a delivery, 0 if it is new."""
        older = one.older
        while older is not None:
            if older.region == self.region and older.position and older.stamp == one.stamp and self.log.holds(older.position):
                return older.position
            older = older.older
        return 0 if one.first else self.log.find(one.token, one.stamp)

    def _accept(self, one: Delivery) -> bool:
        """Takes a delivery as sent now; False if that needs an explanation."""
        grace = self._grace_of(one) if self._key.subscription.graces else None
        state = self.now
        known = self.position_of(one)
        position = known or self.log.frontier + 1
        missing = [] if known or not (self.owed or self.waiting) else self._missing(one)
        if missing or not self._is_simple(state, one, position):
            problems = self._problems(state, one, position, missing)
            if problems and (grace is None or any(not problem.doubt for problem in problems)):
                return False
            self._file(one, problems)
        self._take(one, known)
        return True

    def _grace_of(self, one: Delivery) -> Grace | None:
        """The grace period that a delivery belongs to; behind one nothing is known about the last send."""
        grace = self._key.subscription.grace_of(one)
        if grace is None and (self._in_grace or self._was_controlled(one)):
            self.reset()
        self._in_grace = grace is not None
        return grace

    def _was_controlled(self, one: Delivery) -> bool:
        """Whether a control operation came between the last send and this one, by clocks that differ."""
        before, graces = self.now.before, self._key.subscription.graces
        eps = self._key.rules.clock_error_s
        if before is None or not graces or not eps:
            return False
        return any(before.t - eps <= grace.until_t and grace.begun_t <= one.t + eps for grace in graces)

    def _is_simple(self, state: State, one: Delivery, position: int) -> bool:
        """Whether a send at a position is legal at sight: the next message or an earlier one, and only its own subscriber was there."""
        before = state.before
        if before is None:
            return not self._key.subscription.graces
        return (
            position <= state.before_position + 1
            and before.session is one.session
            and not self._key.rules.exactly_once
            and not self._key.subscription.graces
            and self._key.subscription.streaming
        )

    def _missing(self, one: Delivery) -> list[Publication]:
        """4: what has to be in the log before a new record and has not come."""
        publication = one.publication
        if publication is None:
            return []
        found = []
        for other in self.owed:
            if other.rank >= publication.rank:
                break
            if other not in self.overtaken and must_precede(self._key.rules, other, one):
                found.append(other)
        if self.waiting:
            found += [other for other in self._waiting_before(one, publication) if other not in self.overtaken]
        return found

    def _waiting_before(self, one: Delivery, publication: Publication) -> Iterator[Publication]:
        for other in self.waiting:
            before = other.publication
            if other is one or not other.first or not other.primary or before is None or before is publication:
                continue
            if must_precede(self._key.rules, before, one):
                yield before

    def _problems(self, state: State, one: Delivery, position: int, missing: list[Publication]) -> list[Problem]:
        send = Send(
            *(self._key.subscription, self, one, position, state.before, state.before_position),
            *(state.held if self._key.rules.exactly_once else state.outstanding(), missing, one.t),
        )
        return send.problems()

    def _take(self, one: Delivery, known: int) -> None:
        """A delivery was sent."""
        position = known or self._learn(one)
        one.position = position
        subscription = self._key.subscription
        if self.now.before is not None and self.now.before.session is not one.session:
            self._key.moved(self, one)
        if not self.window and subscription.alone(one.session):
            self.settled.sent(position, one)
            self._frontier = self.log.frontier
            return
        if not self.window:
            self.now = self.settled.copy()
        self.window.append(one)
        self.now.sent(position, one)
        if len(self.window) >= self._commit_at:
            self.commit(one.t)

    def _learn(self, one: Delivery) -> int:
        publication = one.publication
        flags = 0
        invoked_t = -inf
        if publication is not None:
            invoked_t = publication.ordered_t if one.primary else publication.invoked_of(one.generation)
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
        if self.window:
            self._join(one, position)
        return position

    def _join(self, one: Delivery, position: int) -> None:
        """Marks positions before this one that may stand behind it in another legal order of sends."""
        lowest, rules, session = position, self._key.rules, one.session
        sent_t = low(rules, one) - rules.clock_error_s
        for other in self.window:
            if other.session is session or other.t < sent_t or other.number != self.log.number(other.position):
                continue
            before = other.publication
            if before is None or not other.primary or not must_precede(rules, before, one):
                lowest = min(lowest, other.position)
        for joined in range(lowest + 1, position + 1):
            self.log.mark(joined, JOINED)

    # --- the window ----------------------------------------------------------------------------------------------------------

    def commit(self, now: float) -> None:
        """Moves the last certain moment forward: behind everything that was certainly sent before the rest, and before what may come."""
        rules = self._key.rules
        if self.waiting:
            return  # what waits may have been sent before
        horizon_t = max(now - rules.delivery_delay_max_s, self._key.subscription.sent_from_t(now)) - rules.clock_error_s
        count = self._certain(horizon_t)
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

    def commit_all(self, now: float) -> None:
        """Time passed: what is certainly the order of the sends so far is final. At the end of the history that is all."""
        rules = self._key.rules
        if now == inf or all(provably_before(rules, one, other) for one, other in pairwise(self.window)):
            self.commit(now)

    def _certain(self, horizon_t: float) -> int:
        """How many of the window were certainly sent before the rest, and before all that may still come."""
        rules, window = self._key.rules, self.window
        count = 0
        latest: dict[str, float] = {}
        bounds = self._bounds_behind()
        for index, one in enumerate(window):
            if one.t >= horizon_t:
                break
            latest[one.session.name] = max(latest.get(one.session.name, -inf), one.t)
            (first_t, session), second_t = bounds[index + 1]
            if all(t + rules.clock_error_s < (second_t if name == session else first_t) for name, t in latest.items()):
                count = index + 1
        return count

    def _bounds_behind(self) -> list[tuple[tuple[float, str], float]]:
        """For each place in the window: the earliest send behind it, its session, and the earliest of any other session."""
        bounds: list[tuple[tuple[float, str], float]] = [((inf, ""), inf)]
        for one in reversed(self.window):
            (first_t, session), second_t = bounds[-1]
            sent_t, name = low(self._key.rules, one), one.session.name
            if name == session:
                bounds.append(((min(first_t, sent_t), name), second_t))
            elif sent_t < first_t:
                bounds.append(((sent_t, name), first_t))
            else:
                bounds.append(((first_t, session), min(second_t, sent_t)))
        bounds.reverse()
        return bounds

    def _give_up_order(self, count: int) -> int:
        """The window is full: the order of its older half is taken as it is, and may explain what was sent by then."""
        gone, rest = self.window[:count], self.window[count:]
        self._blur(gone)
        sessions = {one.session.name for one in self.window}
        if len(sessions) > 1:
            self.settled.reset()
            for one in rest:
                self.log.mark(one.position, 0)
            self._key.counts.windows_full += 1
            self._key.group.divergence.lose_order(self._key, self)
            self._frontier = max(self._frontier, *(one.position for one in gone))
            del self.window[:count]
            self.now = self.settled.copy()
            for one in self.window:
                self.now.sent(one.position, one)
            return 0
        return count

    # --- on hold -------------------------------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Decides what was on hold until before `now`."""
        while self.waiting and self.due_t < now:
            if len(self.waiting) == 1 or not self._resolve_all(now):
                self._resolve(now)
        self._compare(now)

    def _resolve_all(self, now: float) -> bool:
        """Looks for a legal order of what waits, less often the more often that was needed since the last certain moment."""
        self._patience *= 2
        several, rest = self.waiting[:TOGETHER_MAX], self.waiting[TOGETHER_MAX:]
        items = sorted((*self.window, *several), key=lambda one: one.number)
        search = self._search(items, len(items))
        explanation = search.run(final=False)
        if explanation is None:
            return False
        self._adopt(search, explanation.steps)
        self.waiting, self.due_t = rest, inf
        if len(self.window) >= self._commit_at:
            self.commit(now)
        self._go_on()
        return True

    def _resolve(self, now: float) -> None:
        """Looks for a legal order; where there is none and time is up, tells the breach."""
        first, *rest = self.waiting
        final = self.due_t < now
        eps = self._key.rules.clock_error_s
        beside = [one for one in rest if one.session is not first.session and low(self._key.rules, one) <= first.t + eps]
        optional = beside[:OPTIONAL_MAX]
        items = sorted((*self.window, first), key=lambda one: one.number)
        search = self._search([*items, *optional], len(items))
        explanation = search.run(final=final)
        if explanation is None:
            return
        if explanation.is_breach and now < inf and self._key.subscription.loss_may_show(first.t):
            self.due_t = now + self._hold_s
            return
        if explanation.gave_up:
            self._give_up(first)
            self.waiting = rest
        else:
            self._adopt(search, explanation.steps)
            sent = {search.items[step.item].number for step in explanation.steps}
            self.waiting = [one for one in self.waiting if one.number not in sent]
        self._go_on()

    def _go_on(self) -> None:
        waiting, self.waiting, self.due_t = self.waiting, [], inf
        for index, one in enumerate(waiting):
            self.waiting = waiting[index + 1 :]
            if not self._accept(one):
                self._key.counts.holds += 1
                self.waiting.insert(0, one)
                self.due_t = one.t + self._hold_s
                return

    def _search(self, items: list[Delivery], mandatory: int) -> Search:
        state = self.settled
        start = Situation(0, frozenset(), (), state.before, state.before_position, state.hold())
        known = []
        for one in items:
            position = self.position_of(one) if not one.position else one.position
            known.append(position if position <= self._frontier else 0)
        searched = {one.number for one in items}
        later = (one.publication for one in self.waiting if one.first and one.number not in searched)
        owed = sorted((*self.owed, *(one for one in later if one is not None)), key=lambda one: one.rank)
        return Search(
            *(self._key.subscription, self.log, items, mandatory, start, self._frontier, known, owed),
            *(self.blurred_until_t, self.blurred_by, self._key.newest, self.ack_confirmed_token, self.may_be_owed),
            *(self.overtaken.__contains__, self._reported),
        )

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
                continue
            known = one.position or self._relearned(one)
            one.position = known or self._learn(one)
            if id(one) not in window and self.now.before is not None and self.now.before.session is not one.session:
                self._key.moved(self, one)
            self.window.append(one)
            self.now.sent(one.position, one)
        self._flags = {}

    def _relearned(self, one: Delivery) -> int:
        """The position of a record that was learned in the window before."""
        return next((other.position for other in self.window if (other.token, other.stamp) == (one.token, one.stamp)), 0)

    def _give_up(self, one: Delivery) -> None:
        """Nothing is said about what has too many explanations."""
        known = self.position_of(one)
        problems = self._problems(self.now, one, known or self.log.frontier + 1, [] if known else self._missing(one))
        self._file(one, [Problem(each.kind, TOO_MUCH, each.positions, each.publications, each.others) for each in problems])
        self._key.counts.unexplained += 1
        for other in self.window:
            self.log.mark(other.position, UNPLACED)
        self.reset(one)
        self._take(one, known)
        if not known:
            self.log.mark(one.position, UNPLACED)

    def _file(self, one: Delivery, problems: list[Problem] | tuple[Problem, ...]) -> None:
        for problem in problems:
            if (one.number, problem.kind) not in self._reported:
                self._reported.add((one.number, problem.kind))
                self._key.report(self, one, problem)

    # --- what else happens ---------------------------------------------------------------------------------------------------

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

    def unplaced(self, one: Delivery) -> None:
        """A delivery without a place in the record: the service may go on from anywhere."""
        if self.waiting and low(self._key.rules, one) <= self.waiting[0].t + self._key.rules.clock_error_s:
            self.reset(one)
            self._go_on()
        self.reset(one)

    def control(self) -> None:
        """A control operation, or a hole in the record."""
        while self.waiting:
            self._resolve(inf)
        self.reset()

    def confirmed(self, publication: Publication, delivery: Delivery | None, t: float) -> None:
        """A publish was confirmed; `delivery` is the first delivery of its primary, if that came before."""
        if delivery is None:
            late = publication.seq < self._highest.get(publication.epoch.name, 0)
            last = next(reversed(self.owed), None)
            self.owed[publication] = None
            if last is not None and last.rank > publication.rank:
                self.owed = dict.fromkeys(sorted(self.owed, key=lambda one: one.rank))
        else:
            late = True
            if delivery.position:
                self.log.mark(delivery.position, PRIMARY)
                self._note_highest(delivery)
        if late and self._is_out_of_order(publication, delivery):
            self.deferred.append((t + self._hold_s, publication))
            self.due_t = min(self.due_t, t + self._hold_s)

    def arrival_of(self, publication: Publication) -> Delivery | None:
        """The first delivery of a primary, if it came."""
        for one in (*self.waiting, *self.window):
            if one.publication is publication and one.token == publication.token:
                return one
        return None

    def is_reported(self, one: Delivery, kind: Kind) -> bool:
        """Whether a finding of a kind was filed about a delivery."""
        return (one.number, kind) in self._reported

    def is_unconfirmed_before(self, position: int) -> bool:
        """Whether an acknowledgement of something before a position was not confirmed."""
        return any(not self.log.flagged(one, ACK_CONFIRMED) for one in self.skipped(0, position))

    def _note_highest(self, one: Delivery) -> None:
        """A primary was learned."""
        if one.seq > self._highest.get(one.epoch, 0):
            if len(self._highest) > 64 and one.epoch not in self._highest:
                del self._highest[next(iter(self._highest))]
            self._highest[one.epoch] = one.seq

    # --- comparisons that a late confirmation makes necessary: L3 ------------------------------------------------------------

    def _compare(self, now: float) -> None:
        """Compares what was confirmed late with what came before, and behind."""
        if not self.deferred or self.deferred[0][0] >= now:
            return
        due = [publication for due_t, publication in self.deferred if due_t < now]
        self.deferred = [one for one in self.deferred if one[0] >= now]
        for publication in due:
            if self.window and self._is_out_of_order(publication, self._first_of(publication)):
                search = self._search(sorted(self.window, key=lambda one: one.number), len(self.window))
                explanation = search.run(final=False)
                if explanation is not None:
                    self._adopt(search, explanation.steps)
            for late, early in self._pairs(publication, self._first_of(publication)):
                self._key.report_pair(self, late, early)
        if not self.waiting:
            self.due_t = min((due_t for due_t, _ in self.deferred), default=inf)

    def _first_of(self, publication: Publication) -> Delivery | None:
        return next((one for one in publication.early_on(self._key.subscription.index) if one.token == publication.token), None)

    def _is_out_of_order(self, publication: Publication, delivery: Delivery | None) -> bool:
        return next(self._pairs(publication, delivery), None) is not None

    def _pairs(self, publication: Publication, delivery: Delivery | None) -> Iterator[tuple[Publication | int, Publication | int]]:
        """Primaries in the wrong order of which one was just confirmed: which came late, or not at all, and which before it."""
        position = 0 if delivery is None else delivery.position or self.log.find(delivery.token, delivery.stamp)
        if delivery is not None and not position:
            return
        epoch, log = publication.epoch.name, self.log
        if position:
            for other in range(self.log.high(position) + 1, log.frontier + 1):
                if self._is_primary(other, epoch) and log.seq(other) < publication.seq:
                    yield other, position
            for other_publication in self.owed:
                if other_publication.epoch is publication.epoch and other_publication.seq < publication.seq:
                    yield other_publication, position
        for other in range((log.low(position) if position else log.frontier + 1) - 1, log.floor, -1):
            if self._is_primary(other, epoch):
                if log.seq(other) > publication.seq:
                    yield position or publication, other
                return

    def _is_primary(self, position: int, epoch: str) -> bool:
        return (
            self.log.flagged(position, PRIMARY)
            and not self.log.flagged(position, UNPLACED | SHARED)
            and self.log.epoch(position) == epoch
        )

    # --- the log as a view: see `model.View` ---------------------------------------------------------------------------------

    def skipped(self, after: int, before: int) -> list[int]:
        """The positions between two that are still to be delivered."""
        return [one for one in self.log.between(after, before) if self.may_be_owed(one)]

    def may_be_owed(self, position: int) -> bool:
        """Whether a position has its place and is still in the subscription."""
        return not self.log.flagged(position, REMOVED | UNPLACED)

    def low(self, position: int) -> int:
        """The first position of the group of a position."""
        return self.log.low(position)

    def high(self, position: int) -> int:
        """The last position of the group of a position."""
        return self.log.high(position)

    def acked(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement that may have meant a position was sent by a time."""
        del by_t
        return self.log.flagged(position, ACKED)

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """Whether an acknowledgement of a position was confirmed by a time."""
        del by_t
        return self.log.flagged(position, ACK_CONFIRMED)

    def ack_confirmed_token(self, token: int, by_t: float) -> bool:
        """The same for a message id."""
        return any(self.ack_confirmed(position, by_t) for position in self.log.positions_of(token))

    def invoked_t(self, position: int) -> float:
        """When the publish of a position was invoked."""
        return self.log.invoked_t(position)

    def knows(self, position: int) -> bool:
        """Whether a position is not forgotten."""
        return self.log.holds(position)

    def newest(self, token: int) -> Delivery | None:
        """The last delivery of a message id."""
        return self._key.newest(token)
