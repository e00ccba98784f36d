"""Looks for a legal order of sends where the order of arrival is not one (docs/model.md, 6.5 and 14).

Best-first: the fewest breaches, the weakest guarantee, the fewest assumptions, and then what has come furthest. So a legal history is
explained in about as many steps as it has deliveries, and a breach is told only when every legal order was tried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from typing import Final, NamedTuple, TypeAlias

from prober.checker.assumptions import UNPLACED, Cost, cost_of
from prober.checker.excuses import EARLIER_SEND, NO_ORDER
from prober.checker.facts import Delivery, Session, low, must_precede
from prober.checker.log import ACKED, Log
from prober.checker.model import Problem, Send
from prober.checker.publications import Publication
from prober.checker.subscription import Subscription
from prober.core.findings import Kind
from prober.core.rules import Mode

SITUATIONS_MAX: Final = 4_000
"""Situations that are looked at; beyond that nothing is said about what could not be explained so far."""
GLANCE: Final = 500
"""The same for a search that may be repeated later."""

Record: TypeAlias = tuple[int, int]


class Hold:
    """What may be held, as a list from the highest position down.

    signature   the same for all lists of the same deliveries, those left out that do not count: nobody else is there.
    owner       of all of them, None if there are several.
    """

    __slots__ = ("delivery", "owner", "position", "rest", "signature")

    def __init__(self, position: int, delivery: Delivery, rest: Hold | None, *, counts: bool = True) -> None:
        self.position = position
        self.delivery = delivery
        self.rest = rest
        self.owner: str | None = delivery.owner if rest is None or rest.owner == delivery.owner else None
        below = rest.signature if rest is not None else 0
        self.signature: int = hash((position, delivery.number, below)) if counts else below


def held_in(hold: Hold | None) -> Iterator[tuple[int, Delivery]]:
    """What may be held, the highest position first."""
    while hold is not None:
        yield hold.position, hold.delivery
        hold = hold.rest


def held_on(hold: Hold | None, position: int, delivery: Delivery, *, counts: bool = True) -> Hold:
    """What may be held after a send: a redelivery ends the holds at and above its position."""
    while hold is not None and hold.position >= position:
        hold = hold.rest
    return Hold(position, delivery, hold, counts=counts)


@dataclass(frozen=True, slots=True)
class Situation:
    """What was sent so far: the deliveries below `front`, and those in `ahead`; `learned` are the records in order, new ones only."""

    front: int
    ahead: frozenset[int]
    learned: tuple[int, ...]
    before: Delivery | None
    before_position: int
    hold: Hold | None

    @property
    def key(self) -> tuple[object, ...]:
        """Situations with the same key go on alike."""
        before = None if self.before is None else self.before.number
        return self.front, self.ahead, self.learned, before, None if self.hold is None else self.hold.signature

    def was_sent(self, index: int) -> bool:
        """Whether a delivery was sent."""
        return index < self.front or index in self.ahead


class Step(NamedTuple):
    """One send of an explanation, of the delivery `item`. Not `placed`: it was sent before everything that is remembered."""

    item: int
    problems: tuple[Problem, ...]
    placed: bool


class Explanation(NamedTuple):
    """The best order of sends. `gave_up`: there were too many, and this is the order of arrival."""

    steps: tuple[Step, ...]
    gave_up: bool

    @property
    def is_breach(self) -> bool:
        """Whether it is none without a breach."""
        return any(not problem.doubt for step in self.steps for problem in step.problems)


def _reasoned(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of the best explanation, each problem with what the whole order of sends says about it."""
    if not any(step.problems for step in steps):
        return steps
    assumed = [problem.doubt for step in steps for problem in step.problems if problem.doubt]
    besides = *dict.fromkeys(assumed), *(() if all(step.placed for step in steps) else (EARLIER_SEND,))
    return tuple(
        step._replace(problems=tuple(replace(one, besides=besides if one.doubt else (NO_ORDER,)) for one in step.problems))
        for step in steps
    )


@dataclass(slots=True)
class SearchView:
    """The log in a situation."""

    search: Search
    situation: Situation

    def skipped(self, after: int, before: int) -> list[int]:
        """See `model.View`."""
        search = self.search
        committed = [one for one in search.log.between(after, min(before, search.frontier + 1)) if search.log.may_be_owed(one)]
        uncommitted = range(max(after, search.frontier) + 1, before)
        return [*committed, *(one for one in uncommitted if not search.is_unplaced(self.situation, one))]

    def low(self, position: int) -> int:
        """See `model.View`."""
        return position if position > self.search.frontier else self.search.log.low(position)

    def high(self, position: int) -> int:
        """See `model.View`."""
        search = self.search
        return position if position > search.frontier else min(search.log.high(position), search.frontier)

    def acked(self, position: int, by_t: float) -> bool:
        """See `model.View`."""
        return any(one.acked_t <= by_t for one in self.search.deliveries_at(self.situation, position)) or (
            position <= self.search.frontier and self.search.log.flagged(position, ACKED)
        )

    def ack_confirmed(self, position: int, by_t: float) -> bool:
        """See `model.View`."""
        log, token = self.search.log, self.search.token_at(self.situation, position)
        return any(log.ack_confirmed(one, by_t) for one in log.positions_of(token))

    def invoked_t(self, position: int) -> float:
        """See `model.View`."""
        if position <= self.search.frontier:
            return self.search.log.invoked_t(position)
        one = self.search.first_at(self.situation, position)
        return -inf if one.publication is None else one.publication.invoked_t

    def holds(self, position: int) -> bool:
        """See `model.View`."""
        return position > self.search.frontier or self.search.log.holds(position)

    def seq(self, position: int) -> int:
        """See `model.View`."""
        if position <= self.search.frontier:
            return self.search.log.seq(position)
        return self.search.first_at(self.situation, position).seq


@dataclass(slots=True)
class Search:
    """One search: what was delivered since the last certain moment of a key, and the state then.

    items       the deliveries in order of arrival. The first `mandatory` have to be explained, the others may have been sent before them.
    frontier    the positions up to it were learned before.
    known       the position of each delivery whose record was learned before, else 0.
    owed        confirmed publications of the region that have not come among them, in the order of their invocations.
    blurred_until_t   what may have been sent until then may have been sent before the last certain moment, but on `blurred_by`.
    """

    subscription: Subscription
    log: Log
    items: Sequence[Delivery]
    mandatory: int
    start: Situation
    frontier: int
    known: Sequence[int]
    owed: Sequence[Publication]
    blurred_until_t: float
    blurred_by: Session | None
    newest: Callable[[int], Delivery | None]
    waived: Callable[[Publication], bool]
    reported: Set[tuple[int, Kind]]
    _lows: list[float] = field(default_factory=list)
    _records: list[int] = field(default_factory=list)
    _required: dict[int, list[Publication]] = field(default_factory=dict)
    _copies: dict[int, list[int]] = field(default_factory=dict)
    _sessions: dict[str, list[int]] = field(default_factory=dict)
    _shared: bool = True
    _primaries: Sequence[Publication] = ()
    _by_session: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        rules = self.subscription.rules
        self._lows = [low(rules, one) for one in self.items]
        first: dict[Record, int] = {}
        for index, one in enumerate(self.items):
            self._records.append(first.setdefault((one.token, one.stamp), index))
            self._copies.setdefault(one.token, []).append(index)
            self._sessions.setdefault(one.session.name, []).append(index)
        owners = {one.owner for one in self.items}
        self._shared = len(owners) > 1 or None in owners or rules.exactly_once
        came = (one.publication for one in self.items if one.primary)
        self._primaries = tuple(dict.fromkeys(one for one in came if one is not None))
        self._by_session = tuple(self._sessions.values())

    # --- the search ----------------------------------------------------------------------------------------------------------

    def run(self, *, final: bool) -> Explanation | None:
        """The best explanation; while that is not `final`, None unless there is one without any problem."""
        counter = 0
        queue: list[tuple[Cost, int, int, Situation]] = []
        came: dict[tuple[object, ...], tuple[tuple[object, ...], Step] | None] = {self.start.key: None}
        heappush(queue, (Cost(), 0, counter, self.start))
        done: set[tuple[object, ...]] = set()
        best: dict[tuple[object, ...], Cost] = {self.start.key: Cost()}
        situations_max = SITUATIONS_MAX if final else GLANCE
        while queue and len(done) <= situations_max:
            cost, _, _, situation = heappop(queue)
            key = situation.key
            if key in done:
                continue
            if not final and cost > Cost(0, 0, UNPLACED * len(self.items)):
                return None
            done.add(key)
            if situation.front >= self.mandatory:
                return Explanation(_reasoned(self._path(came, key)), gave_up=False)
            for step, after in self._next(situation):
                following, after_key = cost + cost_of(step.problems, placed=step.placed), after.key
                if after_key in done or (after_key in best and best[after_key] <= following):
                    continue
                best[after_key] = following
                came[after_key] = key, step
                counter += 1
                heappush(queue, (following, -(after.front + len(after.ahead)), -counter, after))
        return Explanation((), gave_up=True) if final else None

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
        for index in self._candidates(situation):
            yield self._send(situation, index)
            if self._lows[index] <= self.blurred_until_t and self.items[index].session is not self.blurred_by:
                yield self._send_before(situation, index)

    def _candidates(self, situation: Situation) -> Iterator[int]:
        """What may have been sent next: nothing that is still to be sent was provably sent before."""
        rest = self._rest_of_response(situation)
        if rest is not None:
            yield rest
            return
        eps = self.subscription.rules.clock_error_s
        heads = [index for of_session in self._by_session if (index := self._head(situation, of_session)) is not None]
        for index in heads:
            if all(self.items[other].t + eps >= self._lows[index] for other in heads if other != index):
                yield index

    def _head(self, situation: Situation, of_session: Sequence[int]) -> int | None:
        """The first delivery of a session that is still to be sent."""
        for at in range(bisect_left(of_session, situation.front), len(of_session)):
            if of_session[at] not in situation.ahead:
                return of_session[at]
        return None

    def _rest_of_response(self, situation: Situation) -> int | None:
        """7.2: a pull response is sent at once."""
        if self.subscription.rules.mode is not Mode.PULL or situation.before is None:
            return None
        session = situation.before.session.name
        return self._head(situation, self._sessions[session]) if session in self._sessions else None

    def _latest(self, situation: Situation, index: int) -> float:
        """It was sent by then: before it was received, and before anything that is still to be sent was received."""
        latest_t, eps = self.items[index].t, self.subscription.rules.clock_error_s
        for other in range(situation.front, len(self.items)):
            one = self.items[other]
            if one.t + eps >= latest_t:
                break
            if other != index and other not in situation.ahead:
                latest_t = one.t + eps
        return latest_t

    # --- one send ------------------------------------------------------------------------------------------------------------

    def _send(self, situation: Situation, index: int) -> tuple[Step, Situation]:
        one = self.items[index]
        position = self._position(situation, index)
        learned = situation.learned if position else (*situation.learned, self._records[index])
        missing = [] if position else self._missing(situation, index)
        position = position or self.frontier + len(learned)
        after = self._after(situation, index)
        hold_after = None if one.unplaced else held_on(situation.hold, position, one, counts=self._shared)
        before = None if one.unplaced else one
        after = Situation(after.front, after.ahead, learned, before, position, hold_after)
        hold = situation.hold
        alone = hold is None or (hold.owner == one.owner and not self.subscription.rules.exactly_once)
        held = () if alone else tuple(held_in(hold))
        view = SearchView(self, after)
        latest_t = self._latest(situation, index)
        last = situation.before, situation.before_position
        send = Send(self.subscription, view, one, position, *last, held, missing, latest_t, self.newest)
        return Step(index, self._new(index, send.problems()), placed=True), after

    def _send_before(self, situation: Situation, index: int) -> tuple[Step, Situation]:
        """It was sent before the last certain moment; what has to be in the log before it is missing all the same."""
        one = self.items[index]
        missing = [] if self._position(situation, index) else self._missing(situation, index)
        after = self._after(situation, index)
        view = SearchView(self, after)
        send = Send(self.subscription, view, one, 1, None, 0, (), missing, self._latest(situation, index), self.newest)
        return Step(index, self._new(index, send.order()), placed=False), after

    def _new(self, index: int, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """The problems that no finding was filed about."""
        number = self.items[index].number
        return tuple(one for one in problems if (number, one.kind) not in self.reported)

    def _after(self, situation: Situation, index: int) -> Situation:
        front, ahead = situation.front, situation.ahead
        if index != front:
            ahead |= {index}
        else:
            front += 1
            if ahead:
                while front in ahead:
                    front += 1
                ahead = frozenset(one for one in ahead if one > front)
        return Situation(front, ahead, situation.learned, situation.before, situation.before_position, situation.hold)

    def _position(self, situation: Situation, index: int) -> int:
        """The position of a record, 0 if it is sent for the first time."""
        if self.known[index]:
            return self.known[index]
        record = self._records[index]
        return self.frontier + 1 + situation.learned.index(record) if record in situation.learned else 0

    def is_unplaced(self, situation: Situation, position: int) -> bool:
        """Whether a new record may stand elsewhere."""
        return self.first_at(situation, position).unplaced

    def first_at(self, situation: Situation, position: int) -> Delivery:
        """The first delivery of a new record."""
        return self.items[situation.learned[position - self.frontier - 1]]

    def deliveries_at(self, situation: Situation, position: int) -> list[Delivery]:
        """The deliveries of a position among those that are searched."""
        if position > self.frontier:
            record = situation.learned[position - self.frontier - 1]
            return [one for index, one in enumerate(self.items) if self._records[index] == record]
        return [one for index, one in enumerate(self.items) if self.known[index] == position]

    def token_at(self, situation: Situation, position: int) -> int:
        """The message id of a position."""
        if position > self.frontier:
            return self.items[situation.learned[position - self.frontier - 1]].token
        return self.log.tokens[position - self.log.floor - 1] if self.log.holds(position) else 0

    # --- 4: what has to be in the log before ---------------------------------------------------------------------------------

    def _missing(self, situation: Situation, index: int) -> list[Publication]:
        """What has to be in the log before a new record, and is not; any record of its message id will do."""
        if self.items[index].publication is None:
            return []
        required = self._required.get(index)
        if required is None:
            required = self._required[index] = self._require(index)
        return [one for one in required if not any(map(situation.was_sent, self._copies.get(one.token or 0, ())))]

    def _require(self, index: int) -> list[Publication]:
        rules, one = self.subscription.rules, self.items[index]
        rank = one.publication.rank if one.publication is not None else 0
        return [
            before
            for before in self._candidates_before(rank)
            if not self._was_known(before) and not self.waived(before) and must_precede(rules, before, one)
        ]

    def _candidates_before(self, rank: int) -> Iterator[Publication]:
        """What was invoked before a publication, and was not learned before the deliveries that are searched."""
        for before in self._primaries:
            if before.rank < rank:
                yield before
        for before in self.owed:
            if before.rank >= rank:
                return
            yield before

    def _was_known(self, publication: Publication) -> bool:
        """Whether the primary of a publication was learned before."""
        return any(self.known[copy] for copy in self._copies.get(publication.token or 0, ()))
