"""Comparison of the logs of all subscriptions of a key: ORDER_DIVERGENCE (docs/model.md, section 12).

Two subscriptions of a key are compared by region, as far as both logs are final. While both have the same record next, the comparison
only advances. Otherwise it examines each record that both have (`Comparison._verify`): a record that provably precedes it on one
subscription must not be missing before it on the other. Inside a group of joined positions any order may be the true one, so no record
of the group provably precedes another record of the group.

Only the first deviation of a pair is reported: everything after it deviates as well. Subscriptions with an adopted baseline, a filter, a
seek or a hole in their record are not compared. After records that were forgotten or could not be placed, the comparison restarts at the
next record that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from prober.core.divergence_excuses import DIVERGED, Lacking
from prober.core.excuses import BESIDE, doubt_of, ruled_out
from prober.core.facts import Delivery, deliveries_of
from prober.core.findings import Fact, Kind
from prober.core.log import SHARED, UNPLACED, Log

if TYPE_CHECKING:
    from prober.core.accepted import AcceptedDeliveries
    from prober.core.key import KeyChecker
    from prober.core.lane import Lane

UNCERTAIN: Final = UNPLACED | SHARED
"""Flags of records whose place in the log may differ: the service may have stored a message twice, for each subscription."""


Breaks: TypeAlias = tuple[int, int]
"""The first and the last position after which unlearned records may have their place."""


class Side:
    """One of the two subscriptions of a comparison.

    base        the last position up to which everything has been compared.
    looked_at   the last position up to which every record was looked up on the other subscription.
    start       the last position whose predecessors are unknown to the comparison.
    breaks      the positions after which unknown records may stand, as far as they were not compared.
    """

    __slots__ = ("base", "breaks", "checker", "lane", "looked_at", "start")

    def __init__(self, checker: KeyChecker, lane: Lane, breaks: Breaks | None) -> None:
        self.checker = checker
        self.lane = lane
        self.base = self.looked_at = self.start = 0
        self.breaks = breaks

    @property
    def log(self) -> Log:
        """The learned log of the subscription."""
        return self.lane.log

    def is_known_upto(self, position: int) -> bool:
        """Return whether the log contains every record from the compared position to this one."""
        if self.base < self.log.floor:
            return False
        return self.breaks is None or not (self.base <= self.breaks[1] and self.breaks[0] < position)

    def move(self, position: int) -> None:
        """Mark everything up to a position as compared."""
        self.base = position
        self.looked_at = max(self.looked_at, position)
        if self.breaks is not None and self.breaks[1] < position:  # records possibly before it may also follow this record
            self.breaks = (self.breaks[0], position) if self.log.flagged(position, UNPLACED) else None

    def certain(self, after: int, upto: int) -> Iterator[int]:
        """Yield the positions after `after` up to `upto` that have a certain place."""
        log = self.log
        return (one for one in range(max(after, log.floor) + 1, upto + 1) if not log.flagged(one, UNCERTAIN))

    def delivery_of(self, position: int) -> Delivery | None:
        """Return the first delivery of a position, or None if it is not remembered."""
        number, token = self.log.number(position), self.log.token(position)
        return next((one for one in deliveries_of(self.checker.live.get(token)) if one.number == number), None)


class Met(NamedTuple):
    """A record that both subscriptions have, and the records before it on only one of them. `mine` received the common record last.

    lacking     records that provably precede it on the other subscription and are missing on `mine`: positions on the other.
    extra       the same with the subscriptions exchanged: positions on `mine`.
    """

    mine: Side
    position: int
    other: Side
    beside: int
    lacking: Sequence[int]
    extra: Sequence[int]


class Comparison:
    """The comparison of two subscriptions of a key in one region."""

    __slots__ = ("over", "sides")

    def __init__(self, first: Side, second: Side) -> None:
        self.sides = first, second
        self.over = False

    def go_on(self) -> None:
        """Compare the positions that have become final since the last call."""
        first, second = self.sides
        while not self.over:
            self._go_together()
            side = self._next_to_look_at()
            if side is None:
                return
            side.looked_at += 1
            other = second if side is first else first
            beside = _find(side, side.looked_at, other)
            if beside:
                self._verify(*((side.looked_at, beside) if side is first else (beside, side.looked_at)))

    def _go_together(self) -> None:
        """Advance while both subscriptions have the same record next."""
        first, second = self.sides
        ones, others = first.log, second.log
        upto = first.lane.final, second.lane.final
        while first.base < upto[0] and second.base < upto[1] and first.base >= ones.floor and second.base >= others.floor:
            at, beside = first.base + 1, second.base + 1
            if not _same(ones, at, others, beside):
                return
            self._count(at, beside)
            first.move(at)
            second.move(beside)

    def _next_to_look_at(self) -> Side | None:
        """Return the side whose next final record was received first; None if there is none, or if the other side has to advance first."""
        waiting = [side for side in self.sides if side.looked_at < side.lane.final]
        agreed = all(side.looked_at == side.base for side in self.sides) and all(side.base >= side.log.floor for side in self.sides)
        if not waiting or (agreed and len(waiting) == 1):
            return None
        return min(waiting, key=lambda side: side.log.number(side.looked_at + 1))

    def _verify(self, at: int, beside: int) -> None:
        """Compare the predecessors of a common record: at `at` on the first subscription, at `beside` on the second."""
        first, second = self.sides
        if (first.log.flags_at(at) | second.log.flags_at(beside)) & UNCERTAIN:
            return
        if at <= first.base or beside <= second.base:
            self._verify_behind(at, beside)
            return
        excerpt = not (first.base or second.base) and first.checker.group.is_excerpt
        if excerpt or not (first.is_known_upto(at) and second.is_known_upto(beside)):
            self._begin_at(at, beside)
            return
        self._count(at, beside)
        lacking, extra = _missing(first, at, second, beside), _missing(second, beside, first, at)
        if lacking or extra:
            if not self._tell(at, beside, extra, lacking):
                self.over = True
            self._move(at, beside)
        elif _same_records(first, at, second, beside):
            self._move(first.log.high(at), second.log.high(beside))

    def _verify_behind(self, at: int, beside: int) -> None:
        """Report a record received late by one subscription that preceded a common record on the other, and was excused then."""
        first, second = self.sides
        both = at <= first.base and beside <= second.base
        if not both and at > first.start and beside > second.start and first.is_known_upto(at) and second.is_known_upto(beside):
            self.over = not self._tell(at, beside, (), ())

    def _begin_at(self, at: int, beside: int) -> None:
        for side, position in zip(self.sides, (at, beside), strict=True):
            side.move(position)
            side.start = position

    def _move(self, at: int, beside: int) -> None:
        for side, position in zip(self.sides, (at, beside), strict=True):
            if side.log.high(position) != side.log.low(position):
                side.start = side.log.high(position)  # its place inside its group is not known
            side.move(position)

    def _count(self, at: int, beside: int) -> None:
        """Count an opportunity, unless a record may be legally missing on one of the subscriptions."""
        first, second = self.sides
        may_lack = any(side.checker.rules.dead_letter_max_attempts for side in self.sides)
        if not may_lack and first.is_known_upto(at) and second.is_known_upto(beside):
            first.checker.counts.opportunities_divergence += 1

    def _tell(self, at: int, beside: int, extra_of_first: Sequence[int], lacking_of_first: Sequence[int]) -> bool:
        """File a deviation and return whether it may have a legal explanation."""
        first, second = self.sides
        if first.log.number(at) > second.log.number(beside):
            met = Met(first, at, second, beside, lacking_of_first, extra_of_first)
        else:
            met = Met(second, beside, first, at, extra_of_first, lacking_of_first)
        doubt = _doubt(met)
        _file(met, doubt)
        return bool(doubt)


def _same(ones: Log, at: int, others: Log, beside: int) -> bool:
    """Return whether two logs have the same record at two positions."""
    if ones.token(at) != others.token(beside):
        return False
    stamps = ones.stamps[at - ones.floor - 1], others.stamps[beside - others.floor - 1]
    return stamps[0] == stamps[1] or 0 in stamps


def _find(side: Side, position: int, other: Side) -> int:
    """Return the position of a record on the other subscription, as far as that was examined; else 0."""
    log, there = side.log, other.log
    if not log.holds(position):
        return 0
    expected = other.base + position - side.base
    if there.holds(expected) and _same(log, position, there, expected):
        return expected if expected <= other.looked_at else 0
    found = there.find(log.token(position), log.stamps[position - log.floor - 1])
    return found if found <= other.looked_at else 0


def _missing(here: Side, at: int, there: Side, beside: int) -> list[int]:
    """Return the records that provably precede a common one on `there` (at `beside`) and do not on `here` (at `at`)."""
    log, upto = here.log, here.log.high(at)
    found = []
    for position in there.certain(there.base, there.log.low(beside) - 1):
        token, stamp = there.log.token(position), there.log.stamps[position - there.log.floor - 1]
        known = log.find(token, stamp)
        if (not known or known > upto) and not _is_uncertain_on(here, token, stamp):
            found.append(position)
    return found


def _is_uncertain_on(here: Side, token: int, stamp: int) -> bool:
    """Return whether a record has no certain place on a subscription, or belongs to another region there."""
    if any(here.log.flagged(position, UNCERTAIN) for position in here.log.positions_of(token)):
        return True
    return any(lane.log.find(token, stamp) for lane in here.checker.lanes.values() if lane is not here.lane)


def _same_records(first: Side, at: int, second: Side, beside: int) -> bool:
    """Return whether both have the same records up to the ends of the groups of a common one."""
    ones = {first.log.token(one) for one in first.certain(first.base, first.log.high(at))}
    others = {second.log.token(one) for one in second.certain(second.base, second.log.high(beside))}
    return ones == others


def _doubt(met: Met) -> str:
    """Return the explanation of a deviation; empty if one of the two subscriptions has none."""
    if not met.lacking and not met.extra:
        late = _excuse(met.mine, met.position, met.other, [met.beside])
        return late if late == BESIDE else ""
    mine = _excuse(met.mine, met.position, met.other, met.lacking)
    theirs = _excuse(met.other, met.beside, met.mine, met.extra)
    return (mine or theirs) if (mine or not met.lacking) and (theirs or not met.extra) else ""


def _excuse(lacking: Side, position: int, having: Side, records: Sequence[int]) -> str:
    return doubt_of(DIVERGED, Lacking(lacking, position, having, records)) if records else ""


def _ruled_out(met: Met) -> tuple[str, ...]:
    """Return the facts that exclude a legal explanation of the unexplained subscription."""
    for case in (
        Lacking(met.mine, met.position, met.other, met.lacking or (() if met.extra else (met.beside,))),
        Lacking(met.other, met.beside, met.mine, met.extra),
    ):
        if case.records and not doubt_of(DIVERGED, case):
            return ruled_out(DIVERGED, case)
    return ()


def _file(met: Met, doubt: str) -> None:
    mine, other = met.mine, met.other
    log, there = mine.log, other.log
    facts: dict[str, Fact] = {
        "seq": log.seq(met.position),
        "epoch": log.epoch(met.position),
        "other": other.checker.subscription.name,
    }
    witnesses = [there.number(met.beside), log.number(met.position)]
    if met.lacking:
        facts |= {"other_seq": there.seq(met.lacking[0]), "other_epoch": there.epoch(met.lacking[0])}
        witnesses.append(there.number(met.lacking[0]))
    elif met.extra:
        witnesses.append(log.number(met.extra[0]))
    one = mine.delivery_of(met.position)
    if one is not None:
        facts["message_id"] = one.event.message_id
    t = mine.checker.last_t if one is None else one.t
    reasons = () if doubt else _ruled_out(met)
    mine.checker.collector.violation(Kind.ORDER_DIVERGENCE, t, witnesses, facts, doubt, reasons)


class DivergenceCheck:
    """Comparison of the subscriptions of one key; see the module docstring.

    Its memory is a few numbers for each subscription and region, and for each pair of subscriptions and region.
    """

    __slots__ = ("_breaks", "_broken", "_comparisons", "_diverged")

    def __init__(self) -> None:
        self._comparisons: dict[tuple[int, int, str], Comparison] = {}
        self._diverged: set[tuple[int, int]] = set()
        self._broken: set[int] = set()
        self._breaks: dict[tuple[int, str], Breaks] = {}

    def go_on(self, checker: KeyChecker) -> bool:
        """Compare the new final positions of a subscription; return False if it is excluded from the comparison."""
        if not _comparable(checker):
            return False
        for other in checker.group.checkers:
            if other is not checker and _comparable(other):
                first, second = sorted((checker, other), key=lambda one: one.subscription.index)
                self._compare(first, second, checker)
        return True

    def rest(self) -> None:
        """Forget the comparison of an idle key: it starts with the next record."""
        self._comparisons.clear()
        self._breaks.clear()

    def lose_track(self, checker: KeyChecker) -> None:
        """Note that a subscription received a record without a place: it may follow any record learned so far."""
        for lane in checker.lanes.values():
            self.lose_order(checker, lane)
        self._broken.add(checker.subscription.index)

    def lose_order(self, checker: KeyChecker, lane: AcceptedDeliveries) -> None:
        """Note that the order of the last deliveries is not final: they may have been sent in another order, also before later ones."""
        first = min(lane.final, lane.log.frontier)
        upto = lane.log.frontier + len(lane.waiting)  # deliveries on hold may precede it too
        known = self._breaks_of(checker, lane.region)
        self._breaks[checker.subscription.index, lane.region] = (first if known is None else min(known[0], first), upto)
        for comparison in self._comparisons.values():
            for side in comparison.sides:
                if side.lane is lane:
                    side.breaks = (first if side.breaks is None else min(side.breaks[0], first), upto)

    def _breaks_of(self, checker: KeyChecker, region: str) -> Breaks | None:
        """Return the positions after which unlearned records may have their place, since the start of the record."""
        index = checker.subscription.index
        return self._breaks.get((index, region), (0, 0) if index in self._broken else None)

    def _compare(self, first: KeyChecker, second: KeyChecker, due: KeyChecker) -> None:
        pair = first.subscription.index, second.subscription.index
        if pair in self._diverged:
            return
        for region in due.lanes:
            comparison = self._comparisons.get((*pair, region)) or self._begin(first, second, region)
            if comparison is not None:
                comparison.go_on()
                if comparison.over:
                    self._forget(pair)
                    return

    def _begin(self, first: KeyChecker, second: KeyChecker, region: str) -> Comparison | None:
        if region not in first.lanes or region not in second.lanes:
            return None
        sides = (Side(one, one.lanes[region], self._breaks_of(one, region)) for one in (first, second))
        comparison = Comparison(*sides)
        self._comparisons[first.subscription.index, second.subscription.index, region] = comparison
        return comparison

    def _forget(self, pair: tuple[int, int]) -> None:
        self._diverged.add(pair)
        self._comparisons = {key: one for key, one in self._comparisons.items() if key[:2] != pair}


def _comparable(checker: KeyChecker) -> bool:
    """Return whether a subscription had to receive every message and its record is complete."""
    return checker.rules.subscription_predates_first_publish and not checker.rules.has_filter and not checker.subscription.graces
