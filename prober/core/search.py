"""Search for a legal order of sends if the order of arrival is not legal (docs/model.md, 6.5 and 14).

Best-first: the fewest breaches, the weakest guarantee, the fewest assumptions, and then the longest order. So a legal history is
explained in about as many steps as it has deliveries. The search reports a breach only after every legal order. Of orders with equal cost
it takes the one with the fewest redeliveries, and of these the one closest to the order of arrival. Publications missing in every order
count from the start (`_inevitable`). If that takes too long, the assumptions come last: the explanation may then need more of them than
necessary, and has a breach only if every order has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from itertools import islice, takewhile
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from prober.core.explanation import ASSUMPTION, UNPLACED, Cost, Explanation, Step, cost_of, priority, reasoned
from prober.core.facts import Delivery, Session, in_session, is_too_late, must_precede
from prober.core.findings import Kind
from prober.core.late import stands_below
from prober.core.log import PRIMARY, SHARED, Log
from prober.core.model import Problem, Send
from prober.core.publications import Publication
from prober.core.rules import Mode
from prober.core.search_view import Effort, SearchView
from prober.core.state import Situation, held_at, held_on
from prober.core.subscription import Subscription

if TYPE_CHECKING:
    from prober.core.key import KeyChecker
    from prober.core.state import State

SENDS_MAX: Final = 6_000
"""Number of sends that the search tries; beyond that, unexplained deliveries are in doubt."""
PRECISE: Final = 2_000
"""Number of sends examined for the explanation with the fewest assumptions; beyond that one with more is accepted."""
GLANCE: Final = 1_000
"""The same for a search that may be repeated later."""

INEVITABLE_MAX: Final = 8
"""Number of undelivered publications whose least cost is computed."""
BREACH: Final = Cost(1)

Record: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class Search:
    """A search for an order of the deliveries since the last certain moment of a key, from the state at that moment.

    items       the deliveries in order of arrival. The first `mandatory` have to be explained, the others may have been sent before them.
    frontier    the last position that was learned before.
    known       the position of each delivery whose record was learned before, else 0.
    pending        confirmed publications of the region without a delivery among the items, in the order of their invocations.
    blurred_until_t   deliveries possibly sent until then may precede the last certain moment, except those on `blurred_by`.
    """

    subscription: Subscription
    log: Log
    items: Sequence[Delivery]
    mandatory: int
    settled: State
    frontier: int
    known: Sequence[int]
    pending: Sequence[Publication]
    blurred_until_t: float
    blurred_by: Session | None
    key: KeyChecker
    waived: Callable[[Publication], bool]
    excused: Callable[[Publication], bool]
    reported: Set[tuple[int, Kind]]
    effort: Effort
    _lows: list[float] = field(default_factory=list)
    _records: list[int] = field(default_factory=list)
    _by_record: dict[int, list[Delivery]] = field(default_factory=dict)
    _by_position: dict[int, list[Delivery]] = field(default_factory=dict)
    _copies: dict[int, list[int]] = field(default_factory=dict)
    _by_session: list[list[int]] = field(default_factory=list)
    _places: list[tuple[int, int]] = field(default_factory=list)
    _shared: bool = True
    _to_be_sent: Sequence[Publication] = ()
    _never_sent: Sequence[Publication] = ()

    def __post_init__(self) -> None:
        rules = self.subscription.rules
        self._lows = [one.earliest_t for one in self.items]
        first: dict[Record, int] = {}
        sessions: dict[str, int] = {}
        for index, one in enumerate(self.items):
            record = first.setdefault((one.token, one.stamp), index)
            if one.publication is None:
                one.publication = self.items[record].publication  # any delivery of a record may have been the first
            one.copy = one.copy or self.items[record].copy
            self._records.append(record)
            self._by_record.setdefault(record, []).append(one)
            if self.known[index]:
                self._by_position.setdefault(self.known[index], []).append(one)
            self._copies.setdefault(one.token, []).append(index)
            session = sessions.setdefault(one.session.name, len(sessions))
            if session == len(self._by_session):
                self._by_session.append([])
            self._places.append((session, len(self._by_session[session])))
            self._by_session[session].append(index)
        owners = {one.owner for one in self.items}
        self._shared = len(owners) > 1 or None in owners or rules.exactly_once
        came = (one.publication for one in self.items if one.primary and one.first)  # the log forgot the places of others
        known = {one.token for one, position in zip(self.items, self.known, strict=True) if position}
        new = dict.fromkeys(
            one for one in (*came, *self.pending) if one is not None and one.token not in known and not self.waived(one)
        )
        self._to_be_sent = sorted(new, key=lambda one: one.rank)
        self._never_sent = [one for one in self._to_be_sent if (one.token or 0) not in self._copies]

    # --- the search ----------------------------------------------------------------------------------------------------------

    def run(self, *, soon: bool = False) -> Explanation:
        """Return the best explanation; `soon`: stop after fewer sends."""
        inevitable = self._inevitable()
        precise, most = (GLANCE, GLANCE) if soon else (PRECISE, SENDS_MAX)
        found = self._look(inevitable, precise) or self._look(inevitable, most, ahead=True)
        return found or Explanation((), gave_up=True)

    def glance(self) -> Explanation | None:
        """Return an explanation without any problem, if a short search finds one."""
        return self._look(self._inevitable(), max(GLANCE, 8 * len(self.items)), Cost(0, 0, UNPLACED * len(self.items)))

    def _look(
        self, inevitable: Mapping[Publication, Cost], sends_max: int, cost_max: Cost | None = None, *, ahead: bool = False
    ) -> Explanation | None:
        """Return the best explanation that costs at most `cost_max`; None if there is none, or if it needs too many sends.

        ahead   among orders with equal breaches, examine the longest first, whatever it assumes.
        """
        counter = 0
        rest = sum(inevitable.values(), Cost())
        start = self._start()
        queue = [(priority(rest, 0, ahead=ahead), (0, 0), counter, Cost(), rest, start)]
        came: dict[tuple[object, ...], tuple[tuple[object, ...], Step] | None] = {start.key: None}
        done: set[tuple[object, ...]] = set()
        best: dict[tuple[object, ...], Cost] = {start.key: Cost()}
        least = self.effort.until(sends_max)
        while queue and self.effort.sends > least:
            _, displaced, _, cost, rest, situation = heappop(queue)
            key = situation.key
            if key in done:
                continue
            if cost_max is not None and cost + rest > cost_max:
                return None
            done.add(key)
            if self._is_complete(situation):
                return Explanation(reasoned(self._path(came, key)), gave_up=False)
            for step, after in self._next(situation):
                following, after_key = cost + cost_of(step.problems, placed=step.placed), after.key
                if after_key in done or (after_key in best and best[after_key] <= following):
                    continue
                best[after_key] = following
                came[after_key] = key, step
                counter += 1
                left = rest - self._paid(situation, step.item, inevitable)
                place = priority(following + left, sum(after.sent), ahead=ahead)
                turned = displaced[0] + (after.before_position <= situation.before_position)
                overtaken = displaced[1] + (step.item > min(self._heads(situation)))
                heappush(queue, (place, (turned, overtaken), -counter, following, left, after))
        return None

    def _start(self) -> Situation:
        settled = self.settled
        return Situation(settled.before, settled.before_position, settled.hold(), len(self._by_session))

    # --- what costs something in every order ---------------------------------------------------------------------------------

    def _inevitable(self) -> dict[Publication, Cost]:
        """Return the least cost of the first undelivered publications: in every order some record is the first after each."""
        costs: dict[Publication, Cost] = {}
        needed: set[Publication] = set()
        start, first = self._start(), [one for one in self._never_sent if not self.excused(one)][:INEVITABLE_MAX]
        for index, one in enumerate(self.items) if first else ():
            for missing in () if self.known[index] else self._must_precede(first, one):
                if index < self.mandatory:
                    needed.add(missing)
                if any(costs.get(missing, BREACH)):
                    send = Send(self.subscription, SearchView(self, start), one, 1, None, 0, (), [missing], one.t, self.key)
                    cost = cost_of(self._new(index, send.missing_only()), placed=True)
                    costs[missing] = min(cost, costs.get(missing, cost))
        breaches = {one: BREACH for one, cost in costs.items() if one in needed and cost.breaches}
        assumed = next((one for one, cost in costs.items() if one in needed and any(cost) and not cost.breaches), None)
        return breaches if assumed is None else {**breaches, assumed: Cost(assumptions=ASSUMPTION)}

    def _paid(self, situation: Situation, index: int, inevitable: Mapping[Publication, Cost]) -> Cost:
        """Return the cost that has been counted for the publications that are missing before a delivery."""
        if not inevitable or self.position(situation, index):
            return Cost()
        return sum((inevitable.get(one, Cost()) for one in self._missing(situation, index)), Cost())

    def _is_complete(self, situation: Situation) -> bool:
        """Return whether all mandatory deliveries were sent."""
        return all(index >= self.mandatory for index in self._heads(situation))

    def _path(
        self, came: dict[tuple[object, ...], tuple[tuple[object, ...], Step] | None], key: tuple[object, ...]
    ) -> tuple[Step, ...]:
        steps = []
        while (origin := came[key]) is not None:
            key, step = origin
            steps.append(step)
        return tuple(reversed(steps))

    # --- orders of sending: 3 ------------------------------------------------------------------------------------------------

    def _next(self, situation: Situation) -> Iterator[tuple[Step, Situation]]:
        settled = not situation.learned and situation.before is self.settled.before  # earlier sends are first
        for index in self._candidates(situation):
            self.effort.look()
            if settled and self._may_be_before(index):
                yield self._send_before(situation, index)
            yield self._send(situation, index)

    def _candidates(self, situation: Situation) -> Iterator[int]:
        """Yield the deliveries that may be sent next: no other unsent delivery was provably sent before."""
        rest = self._rest_of_response(situation)
        if rest is not None:
            yield rest
            return
        eps = self.subscription.rules.clock_error_s
        heads = sorted(self._heads(situation), reverse=True)
        first, second = self._earliest(heads)
        for index in heads:
            other_t = self.items[second if index == first else first].t if len(heads) > 1 else inf
            if other_t + eps >= self._lows[index]:
                yield index

    def _heads(self, situation: Situation) -> Iterator[int]:
        """Yield the first unsent delivery of each session."""
        for sent, of_session in zip(situation.sent, self._by_session, strict=True):
            if sent < len(of_session):
                yield of_session[sent]

    def _earliest(self, heads: Sequence[int]) -> tuple[int, int]:
        """Return the two candidates that were received first."""
        found = nsmallest(2, heads, key=lambda index: self.items[index].t)
        return found[0] if found else -1, found[-1] if found else -1

    def _rest_of_response(self, situation: Situation) -> int | None:
        """7.2: return the next delivery of an unfinished pull response, which is sent at once."""
        if self.subscription.rules.mode is not Mode.PULL or situation.before is None:
            return None
        before = situation.before.session
        return next((index for index in self._heads(situation) if self.items[index].session is before), None)

    def _latest(self, situation: Situation, index: int) -> float:
        """Return the latest possible time of a send: before its receipt, and before the receipt of any unsent delivery."""
        eps = self.subscription.rules.clock_error_s
        others = (self.items[other].t + eps for other in self._heads(situation) if other != index)
        return min(self.items[index].t, min(others, default=inf))

    # --- one send ------------------------------------------------------------------------------------------------------------

    def _send(self, situation: Situation, index: int) -> tuple[Step, Situation]:
        one = self.items[index]
        position = self.position(situation, index)
        learned = None if position else self._records[index]
        missing = [] if position else self._missing(situation, index)
        behind = position > 0 and self.subscription.rules.exactly_once and self._is_behind_missing(situation, position)
        position = position or self.frontier + len(situation.learned) + 1
        released = learned is None and self.subscription.rules.dead_letter_max_attempts > 0
        kept = held_at(situation.hold, one.owner) if released else situation.hold
        hold_after = None if one.unplaced else held_on(kept, position, one, counts=self._shared)
        bound = self._bound(situation, index, position) if one.unplaced else position + 1
        after = situation.after(self._places[index][0], learned, one if bound else None, bound - 1, hold_after)
        after.complete = self._complete(after, situation.complete)
        hold = situation.hold
        alone = hold is None or hold.owner == one.owner or position <= hold.lowest
        held = () if hold is None or (alone and not self.subscription.rules.exactly_once) else hold
        view = SearchView(self, after)
        latest_t = self._latest(situation, index)
        last = situation.before, situation.before_position
        send = Send(self.subscription, view, one, position, *last, held, missing, latest_t, self.key, behind)
        return Step(index, self._new(index, send.problems()), placed=True), after

    def _bound(self, situation: Situation, index: int, position: int) -> int:
        """Return `Delivery.bound` of a delivery."""
        one, log = self.items[index], self.log
        invoked_t = log.invoked_t(position) if position <= self.frontier else one.invoked_t
        if self._may_be_before(index) or self.subscription.may_have_come_unseen(invoked_t, one.t) is not None:
            return 0
        if position <= self.frontier:
            certain = log.flagged(position, PRIMARY) and not log.flagged(position, SHARED)
            return stands_below(log, position - 1, one.epoch, one.seq, invoked_t) if certain else 0
        if not one.primary or one.shared or one.publication is None:
            return 0
        found = stands_below(log, self.frontier, one.epoch, one.seq, invoked_t)
        learned = ((at, self.first_at(situation, at)) for at in range(self.frontier + 1, position))
        return found or next((at for at, other in learned if not other.unplaced and in_session(one.publication, other)), 0)

    def _may_be_before(self, index: int) -> bool:
        """10: return whether a delivery may have been sent before one of unknown place."""
        return self._lows[index] <= self.blurred_until_t and self.items[index].session is not self.blurred_by

    def _send_before(self, situation: Situation, index: int) -> tuple[Step, Situation]:
        """Return the step of a send before the last certain moment, and the situation after it.

        Publications that the log should contain before it are still missing.
        """
        one = self.items[index]
        missing = [] if self.position(situation, index) else self._missing(situation, index)
        after = situation.after(self._places[index][0], None, situation.before, situation.before_position, situation.hold)
        after.complete = self._complete(after, situation.complete)
        view = SearchView(self, after)
        send = Send(self.subscription, view, one, 1, None, 0, (), missing, self._latest(situation, index), self.key)
        return Step(index, self._new(index, send.order()), placed=False), after

    def _new(self, index: int, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return the problems without a filed finding."""
        number = self.items[index].number
        return tuple(one for one in problems if (number, one.kind) not in self.reported)

    def position(self, situation: Situation, index: int) -> int:
        """Return the position of a record, 0 if this is its first send."""
        if self.known[index]:
            return self.known[index]
        record = self._records[index]
        return self.frontier + 1 + situation.learned.index(record) if record in situation.learned else 0

    def first_at(self, situation: Situation, position: int) -> Delivery:
        """Return the first delivery of a new record."""
        return self.items[situation.learned[position - self.frontier - 1]]

    def deliveries_at(self, situation: Situation, position: int) -> list[Delivery]:
        """Return the searched deliveries of a position."""
        if position > self.frontier:
            return self._by_record[situation.learned[position - self.frontier - 1]]
        return self._by_position.get(position, [])

    # --- 4: what has to be in the log before ---------------------------------------------------------------------------------

    def _missing(self, situation: Situation, index: int) -> list[Publication]:
        """Return the publications missing before a new record, except those that an earlier record of the log already missed."""
        learned = [self.items[record] for record in situation.learned]
        required = [one for one in self._required(situation, index) if not self.excused(one)]
        return [one for one in required if not any(must_precede(self.subscription.rules, one, other) for other in learned)]

    def _required(self, situation: Situation, index: int) -> list[Publication]:
        """Return the publications that must precede a new record in the log, and do not; any record of the message id suffices."""
        required = self._must_precede(islice(self._to_be_sent, situation.complete, None), self.items[index])
        return [before for before in required if not self._is_in_log(situation, before)]

    def _must_precede(self, publications: Iterable[Publication], one: Delivery) -> list[Publication]:
        """Return the publications, out of some ordered by rank, that must precede a record in the log."""
        rules = self.subscription.rules
        if one.publication is None:
            return []
        return [
            before
            for before in takewhile(lambda each: not is_too_late(rules, each, one), publications)
            if must_precede(rules, before, one)
        ]

    def _is_behind_missing(self, situation: Situation, position: int) -> bool:
        """Return whether a message that must precede a position in the log was not received."""
        if position > self.frontier:
            return bool(self._required(situation, situation.learned[position - self.frontier - 1]))
        earlier_t = self.log.invoked_t(position) - self.subscription.rules.clock_error_s
        return any(before.confirmed_t < earlier_t and not self._is_in_log(situation, before) for before in self._to_be_sent)

    def _complete(self, situation: Situation, known: int) -> int:
        """Return how many of the publications were sent without a gap."""
        while known < len(self._to_be_sent) and self._is_in_log(situation, self._to_be_sent[known]):
            known += 1
        return known

    def _is_in_log(self, situation: Situation, publication: Publication) -> bool:
        return any(self._was_sent(situation, copy) for copy in self._copies.get(publication.token or 0, ()))

    def _was_sent(self, situation: Situation, index: int) -> bool:
        session, place = self._places[index]
        return place < situation.sent[session]
