"""One key of one subscription in one publishing region: input deliveries, output problems.

Deliveries are accepted in order of arrival while that is legal without an assumption (`_accept`). Otherwise the lane is *on hold* until all
events that may explain the delivery had time to arrive, and then searches for the best order of sends in the `window` (`search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.accepted import AcceptedDeliveries
from prober.core.events import LONG_AGO
from prober.core.facts import Delivery, Grace, in_session, is_too_late, must_precede, provably_before
from prober.core.findings import Kind
from prober.core.late import first_of, note_late, pairs
from prober.core.log import ACK_CONFIRMED, ACKED, PRIMARY, STAYED, UNPLACED
from prober.core.model import Problem, Send
from prober.core.opportunities import Opportunities
from prober.core.publications import Publication
from prober.core.report import pair, report
from prober.core.rules import Mode
from prober.core.search import Search
from prober.core.sought import Restart, Seek
from prober.core.state import State, held_below

if TYPE_CHECKING:
    from prober.core.key import KeyChecker

TOGETHER_MAX: Final = 1024
"""Largest number of deliveries on hold that are explained together."""
OPTIONAL_MAX: Final = 512
"""Largest number of deliveries after those on hold that are tried before them."""
WAITING_MAX: Final = 65_536
"""Largest number of deliveries on hold; beyond that they are decided at once."""
COMPARED_MAX: Final = 32
"""Largest number of deliveries that are explained again because of a late confirmation."""
TOO_MUCH: Final = "there are too many orders in which this may have been sent"


class Lane(AcceptedDeliveries):
    """A key of one subscription in one publishing region; see the module docstring.

    waiting     deliveries on hold, the unaccepted one first; `due_t`: the latest time of its decision.
    pending     confirmed publications not yet delivered, in order of invocation, each with an excused delivery that preceded it, if any.
    overtaken   publications that a finding reports as missing before a delivery.
    seek        a seek back without a delivery since.
    deferred    publications confirmed after later ones were delivered, each with the time of their comparison.
    """

    __slots__ = ("_in_grace", "_is_across_publishers", "deferred", "due_t", "overtaken", "pending", "seek")

    def __init__(self, key: KeyChecker, region: str) -> None:
        super().__init__(key, region, partial(report, key, self))
        self.due_t = inf
        self.pending: dict[Publication, Delivery | None] = {}
        self.overtaken: dict[Publication, Delivery] = {}
        self.deferred: list[tuple[float, Publication]] = []
        self._in_grace = self._is_across_publishers = False
        self.seek: Seek | None = None
        self.opportunities = Opportunities(key, self)

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def deliver(self, one: Delivery, known: int) -> None:
        """Accept a delivery of the region, or put it on hold; `known`: the position of its record, 0 if that is new."""
        if known:
            self._remember(one, known)
        one.unplaced = self._may_stand_elsewhere(one, known)
        if self._was_not_alone(one):
            self.reset(one)
            one.unplaced = True
        if self.waiting:
            self.waiting.append(one)
            if len(self.waiting) > WAITING_MAX:
                self._resolve(inf)
            elif len(self.waiting) == self._effort.patience:
                self._resolve_all(one.t)
        elif not self._accept(one, known):
            self.waiting.append(one)
            self.due_t = self._due_of(one)
            if self.due_t <= one.t:
                self._resolve(inf)
            elif self._effort.patience == 1:
                self._resolve_all(one.t)

    def _was_not_alone(self, one: Delivery) -> bool:
        """10: return whether a stream opened before the record may have been sent this before the last certain send."""
        before = self.settled.before
        if one.session.opened_t > LONG_AGO or self._key.rules.mode is not Mode.STREAMING or before is None or self.waiting:
            return False
        return before.session is not one.session and not provably_before(self._key.rules, before, one)

    def _due_of(self, one: Delivery) -> float:
        """Return the latest time of an event that explains a delivery: now if no other session may deliver or be lost."""
        may_be_named = self._is_across_publishers and self._hold_s < inf  # a late arrival names the violation
        waits = may_be_named or self._key.rules.clock_error_s or self._key.subscription.may_explain(one)
        return one.t + self._hold_s if waits else one.t

    def _accept(self, one: Delivery, known: int) -> bool:
        """Accept a delivery as the next send; return False if that needs an explanation. `known`: the position of its record, 0 if new."""
        grace = self._grace_of(one) if self._key.subscription.graces else None
        if self.seek is not None:
            self._begin_again(grace)
        state = self.now
        position = known or self.log.frontier + 1
        if not self._key.group.key and not self._send_of(state, one, position, []).alone():
            self.take(one, known)  # 11: without an ordering key there is no order
            return True
        missing = [] if known or not (self.pending or self.waiting) else self._missing(one)
        if missing or not self._is_simple(state, one, position):
            problems = self._send_of(state, one, position, missing).problems()
            if problems and (grace is None or any(not problem.doubt for problem in problems)):
                gaps = (each for problem in problems if problem.kind is Kind.ORDER_GAP for each in problem.publications)
                self._is_across_publishers = not all(in_session(each, one) for each in gaps)
                return False
            self._file(one, problems)
            one.unplaced = one.unplaced or (grace is not None and bool(missing))  # missing messages may precede it
        self.take(one, known)
        return True

    def _grace_of(self, one: Delivery) -> Grace | None:
        """Return the grace period of a delivery; reset the last send at its start and its end."""
        grace = self._key.subscription.grace_of(one)
        if grace is None and (self._in_grace or self._was_controlled(one)):
            self.reset()
        self._in_grace = grace is not None
        return grace

    def _was_controlled(self, one: Delivery) -> bool:
        """Return whether a control operation may have occurred between the last send and this one, by different clocks."""
        before, graces, eps = self.now.before, self._key.subscription.graces, self._key.rules.clock_error_s
        if before is None or not graces or not eps or isinstance(before, Restart):
            return False
        return any(before.t - eps <= grace.until_t and grace.begun_t <= one.t for grace in graces)

    def _is_simple(self, state: State, one: Delivery, position: int) -> bool:
        """Return whether a send is legal without examination: at most the next position, and no other holder."""
        before, subscription = state.before, self._key.subscription
        if before is None or subscription.graces:
            return not subscription.graces
        if position > state.before_position + 1 or subscription.rules.exactly_once:
            return False
        if before.session is one.session:
            return subscription.streaming or position == state.before_position + 1
        return next(held_below(state.latest_outstanding(), one.owner, position), None) is None

    def _missing(self, one: Delivery) -> list[Publication]:
        """4: return the publications that must precede a new record in the log and were not delivered."""
        publication = one.publication
        if publication is None:
            return []
        found = []
        for other, excused in self.pending.items():
            if is_too_late(self._key.rules, other, one):
                break
            if excused is None and other not in self.overtaken and must_precede(self._key.rules, other, one):
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

    def _send_of(self, state: State, one: Delivery, position: int, missing: list[Publication]) -> Send:
        return Send(
            *(self._key.subscription, self.log, one, position, state.before, state.before_position),
            *((state.held if self._key.rules.exactly_once else state.outstanding())[::-1], missing, one.t, self._key),
        )

    # --- on hold -------------------------------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Decide the deliveries that were due before `now`."""
        while self.waiting and (self.due_t < now or now == inf):
            self._commit_if_due(now)
            if len(self.waiting) == 1 or not self._resolve_all(now):
                self._resolve(now)
        self._compare(now)

    def stop(self, now: float) -> None:
        """Decide the deliveries that were due before `now`, the end of the record, and those that no later event can explain."""
        self.settle(now)
        while self.waiting and self._is_over(self.waiting[0], now):
            self._resolve(inf)
        if self.window:
            self.commit(inf if self._is_over(self.window[-1], now) else now)

    def _is_over(self, one: Delivery, stopped_t: float) -> bool:
        """Return whether no event that is missing from a stopped record can explain a delivery."""
        return one.t + 2 * self._key.rules.clock_error_s <= stopped_t and not self._key.subscription.may_explain(one)

    def _resolve_all(self, now: float) -> bool:
        """Search for a legal order of the deliveries on hold; each search doubles the number after which the next one starts."""
        self._effort.patience *= 2
        several, rest = self.waiting[:TOGETHER_MAX], self.waiting[TOGETHER_MAX:]
        for kept in self._may_be_kept():
            search = self._search(several, (), kept)
            explanation = search.glance()
            if explanation is not None:
                break
        else:
            return False
        self._adopt(search, explanation.steps, kept)
        self.waiting, self.due_t = rest, inf
        self._commit_if_due(now)
        self._go_on()
        return True

    def _resolve(self, now: float) -> None:
        """Search for a legal order; report a breach only if no order of the whole window is legal."""
        first, *rest = self.waiting
        eps = self._key.rules.clock_error_s
        others_t = max((one.t for one in self.window if one.session is not first.session), default=-inf)
        beside = [one for one in rest if one.earliest_t <= (others_t if one.session is first.session else first.t) + eps]
        for kept in self._may_be_kept():
            search = self._search([first], beside[:OPTIONAL_MAX], kept)
            explanation = search.run(soon=kept > 0)
            if not (explanation.gave_up or explanation.is_breach):
                break
        if explanation.is_breach and now < inf and self._key.subscription.loss_may_show(first.t):
            self.due_t = now + self._hold_s
            return
        if explanation.gave_up:
            self._give_up(first)
            self.waiting = rest
        else:
            self._adopt(search, explanation.steps, kept)
            sent = {search.items[step.item].number for step in explanation.steps}
            self.waiting = [one for one in self.waiting if one.number not in sent]
        self._go_on()

    def _may_be_kept(self) -> Iterator[int]:
        """Yield how many deliveries of the window keep their places: all but the recent ones (then doubled), and after that none."""
        kept = len(self.window) - self._effort.recent
        if kept > 0:
            yield kept
            self._effort.recent *= 2  # there was no legal order with these
        yield 0

    def _go_on(self) -> None:
        waiting, self.waiting, self.due_t = self.waiting, [], inf
        for index, one in enumerate(waiting):
            self.waiting = waiting[index + 1 :]
            if not self._accept(one, self.position_of(one)):
                self._key.counts.holds += 1
                self.waiting.insert(0, one)
                self.due_t = self._due_of(one)
                return

    def _search(self, new: Iterable[Delivery], optional: Iterable[Delivery] = (), kept: int = 0) -> Search:
        """Return a search for an order of the window and the new deliveries; the first `kept` of the window keep their places."""
        settled, frontier = self._state_behind(kept)
        mandatory = sorted((*self.window[kept:], *new), key=lambda one: one.number)
        items = [*mandatory, *optional]
        note_late(self._key.subscription, items)
        positions = (one.position or self.position_of(one) for one in items)
        known = [position if position <= frontier else 0 for position in positions]
        searched = {one.number for one in items}
        later = (one.publication for one in self.waiting if one.first and one.primary and one.number not in searched)
        pending = sorted((*self.pending, *(one for one in later if one is not None)), key=lambda one: one.rank)
        return Search(
            *(self._key.subscription, self.log, items, len(mandatory), settled, frontier, known, pending),
            *(self.blurred_until_t, self.blurred_by, self._key),
            lambda one: one in self.overtaken or one.token in {token for token, _ in self.elsewhere},
            *(lambda one: self.pending.get(one) is not None, self._reported, self._effort),
        )

    def _give_up(self, one: Delivery) -> None:
        """File doubts about a delivery that has too many explanations."""
        known = self.position_of(one)
        problems = self._send_of(self.now, one, known or self.log.frontier + 1, [] if known else self._missing(one)).problems()
        self._file(one, [Problem(each.kind, TOO_MUCH, each.positions, each.publications, each.others) for each in problems])
        self._key.counts.unexplained += 1
        for other in self.window:
            self.log.mark(other.position, UNPLACED)
        self.reset(one)
        self.take(one, known)
        if not known:
            self.log.mark(one.position, UNPLACED)

    # --- what else happens ---------------------------------------------------------------------------------------------------

    def unplaced(self, one: Delivery) -> None:
        """Note a delivery without a place in the record: the service may continue anywhere after it."""
        self.seek = None
        if self.waiting and one.earliest_t <= self.waiting[0].t + self._key.rules.clock_error_s:
            self._note_elsewhere(one)  # it may be the one that is missing
            self.reset(one)
            self._go_on()
        self.reset(one)

    def control(self, *, is_hole: bool) -> None:
        """Decide the deliveries on hold and forget the state at a control operation or a hole in the record."""
        self.opportunities.control()
        self.seek = None
        while self.waiting:
            self._resolve(inf)
        self.reset()
        if is_hole:
            return
        self.log.unmark(STAYED)
        for position in self.log.between(0, self.log.frontier + 1):
            if self.log.answered_t(position) > -inf:
                self.log.mark(position, ACKED)  # it may have undone the effect of another one

    def sought(self, seek: Seek) -> None:
        """Note a seek back: messages that it provably restores lose their acknowledgement."""
        self.seek, log = seek.of(self.log, self._key.rules), self.log
        for position in log.between(0, log.frontier + 1):
            if seek.brings(log, position, self._key.rules):
                log.unmark(ACKED, position)
                log.mark(position, STAYED)
        self.opportunities.sought(self.seek)

    def _begin_again(self, grace: Grace | None) -> None:
        """Prepare the state for the first delivery since a seek back, which may start the redelivery."""
        seek, self.seek = self.seek, None
        if grace is None and seek is not None and seek.start <= seek.target and not self.window:
            self.settled.restart(Restart(seek, self.log), seek.start - 1)

    def confirmed(self, publication: Publication, delivery: Delivery | None, t: float) -> None:
        """Note a confirmed publish; `delivery` is the first delivery of its primary, if that was received before."""
        if delivery is None:
            late = publication.seq < self.highest.get(publication.epoch.name, 0)
            last = next(reversed(self.pending), None)
            self.pending[publication] = None
            if self._key.rules.filtered and len(self.pending) > self._key.rules.window:
                hidden = next(iter(self.pending))  # the filter may exclude it for ever
                del self.pending[hidden]
                self._key.excuse(hidden)
            if last is not None and last.rank > publication.rank:
                self.pending = {one: self.pending[one] for one in sorted(self.pending, key=lambda one: one.rank)}
        else:
            late = True
            if delivery.position:
                self.log.mark(delivery.position, PRIMARY)
                self._note_highest(delivery)
        if late and (self._is_joined(delivery) or any(pairs(self.log, self.pending, publication, delivery, self._key.rules))):
            self._defer(publication, t)

    def note_filtered(self, publication: Publication, one: Delivery) -> None:
        """Compare a delivered publication later, if it may be late: with a filter no delivery waits for a missing one."""
        if one.invoked_t <= self.latest_invoked_t:
            self._defer(publication, one.t)

    def _defer(self, publication: Publication, t: float) -> None:
        self.deferred.append((t + self._hold_s, publication))
        self.due_t = min(self.due_t, t + self._hold_s)

    def arrival_of(self, publication: Publication) -> Delivery | None:
        """Return the first delivery of a primary, if it was received."""
        came = (*self.waiting, *self.window)
        return next((one for one in came if one.publication is publication and one.token == publication.token), None)

    def is_unconfirmed_before(self, position: int) -> bool:
        """Return whether an acknowledgement of a message before a position is unconfirmed."""
        return any(not self.log.flagged(one, ACK_CONFIRMED) for one in self.log.skipped(0, position))

    def _is_joined(self, delivery: Delivery | None) -> bool:
        """Return whether the order of a delivery and its neighbours was uncertain when it was learned."""
        if delivery is None or not self.window or delivery.position <= self.log.final:
            return False
        return self.log.low(delivery.position) != self.log.high(delivery.position)

    # --- comparisons that a late confirmation makes necessary: L3 ------------------------------------------------------------

    def _compare(self, now: float) -> None:
        """Compare publications that were confirmed late with the records before and after them."""
        if min((t for t, _ in self.deferred), default=inf) >= now and now < inf:
            return
        due = [one for one in self.deferred if one[0] < now or now == inf]
        self.deferred = [one for one in self.deferred if one not in due]
        searched = False
        for _, publication in due:
            first = first_of(publication, self._key.subscription.index)
            joined = self._is_joined(first) and len(self.window) <= COMPARED_MAX and not searched
            if self.window and (joined or any(pairs(self.log, self.pending, publication, first, self._key.rules))):
                search = self._search(())
                explanation = search.run() if joined and not self.waiting else search.glance()
                searched = True
                if explanation is not None and not explanation.gave_up:
                    open_until_t = max((search.items[item].t + self._hold_s for item in explanation.breaches), default=-inf)
                    if open_until_t >= now:  # its explanation may still arrive
                        self.deferred.append((open_until_t, publication))
                        continue
                    self._adopt(search, explanation.steps)
            for late, early in list(pairs(self.log, self.pending, publication, first, self._key.rules)):
                pair(self._key, self, late, early, publication)
        if not self.waiting:
            self.due_t = min((due_t for due_t, _ in self.deferred), default=inf)
