"""Promise 1 across subscriptions: all of them see one log.

Ordered, unfiltered subscriptions that existed before the first publish must learn the same records in the same order, none left out.

    ORDER_DIVERGENCE   a record that two subscriptions learned stands, counted from the last one that they have in common, at
                       different places: one of them left something out, or has it elsewhere.

Order holds within one publishing region, so the records of each are compared for themselves. Only the first deviation of a pair is
filed: everything after it deviates as well. Subscriptions with an adopted baseline, a filter, a seek or a hole in their record are not
compared. One that slept or could not place a delivery begins to be compared anew at the next record in common that it learned
thereafter, since what it forgot it may have left out. What may have been dead-lettered before it was received, or was older than
the retention, may be missing. In a history that begins in the middle of an epoch, what was published before may have been received
before, so that it comes again in any order. And where sessions race, the order itself is not certain: which records that concerns
shows when what may have been overtaken had time to come, so the comparison waits for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO
from prober.core.findings import Fact, Kind
from prober.core.key import KeyChecker
from prober.core.positions import RACED, SHARED
from prober.core.sessions import Arrival

DEAD_LETTER: Final = "the dead-letter policy may have removed what one of them did not receive"
EXPIRED: Final = "what one of them did not receive may have been older than the retention"


WAITING_MAX: Final = 1024
"""Comparisons on hold per key; beyond that the oldest are made at once."""

UNCERTAIN: Final = RACED | SHARED
"""Records whose place in the log may differ: a message that the service stored twice may be so for each subscription."""


class CommonRecord(NamedTuple):
    """The last record of a region that two subscriptions have in common: its positions."""

    first: int
    second: int


START: Final = CommonRecord(0, 0)

Pair: TypeAlias = tuple[int, int, str]
"""Two subscriptions by their indices, and a region."""


class DueComparison(NamedTuple):
    """A record that `checker` just learned and `other` has at `position`, to be compared when it is certain which records raced."""

    due_t: float
    checker: KeyChecker
    arrival: Arrival
    other: KeyChecker
    position: int


class DivergenceCheck:
    """Compares what the subscriptions of one key learn; see the head of this file.

    waiting     the comparisons on hold, in the order in which they are due.
    """

    __slots__ = ("_breaks", "_common", "_diverged", "waiting")

    def __init__(self) -> None:
        self._diverged: set[tuple[int, int]] = set()
        self._common: dict[Pair, CommonRecord] = {}
        self._breaks: dict[int, tuple[int, ...]] = {}
        self.waiting: tuple[DueComparison, ...] = ()

    @property
    def due_t(self) -> float:
        """When the first of them is due, `inf` if there is none."""
        return self.waiting[0].due_t if self.waiting else inf

    def lost_track(self, checker: KeyChecker) -> None:
        """Something could not be placed: it may stand anywhere behind what the subscription has learned so far."""
        index, log = checker.subscription.index, checker.log
        kept = [position for position in self._breaks.get(index, ()) if log.floor <= position < log.frontier]
        self._breaks[index] = (*kept, log.frontier)

    def judge(self, checker: KeyChecker, arrival: Arrival, checkers: Iterable[KeyChecker]) -> None:
        """Compares a record that one subscription just learned with where the others have it."""
        if not _comparable(checker) or arrival.copies_id or (checker.subscription.racing and not arrival.proven):
            return
        for other in checkers:
            if other is checker or not _comparable(other):
                continue
            known = other.log.find(arrival.token)
            position = other.log.find_record(known, arrival.token, arrival.stamp) if known else 0
            if position and (self.waiting or checker.subscription.racing or other.subscription.racing):
                self._put_on_hold(checker, arrival, other, position)
            elif position:
                self._compare(checker, arrival, other, position)

    def settle(self, now: float) -> None:
        """Compares what was on hold and is certain by now."""
        while self.waiting and (self.waiting[0].due_t < now or now == inf):
            (_, checker, arrival, other, position), *rest = self.waiting
            self.waiting = tuple(rest)
            if _comparable(checker) and _comparable(other):
                self._compare(checker, arrival, other, position)

    def _put_on_hold(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int) -> None:
        """What one record raced was received within a race's time of it, and learned in another if it was put back, as it may have been."""
        due_t = arrival.t + 3 * max(checker.subscription.race_max_s, other.subscription.race_max_s)
        if self.waiting:
            due_t = max(due_t, self.waiting[-1].due_t)
        self.waiting += (DueComparison(due_t, checker, arrival, other, position),)
        if len(self.waiting) > WAITING_MAX:
            self.settle(self.waiting[1].due_t)

    def _compare(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int) -> None:
        swapped = other.subscription.index < checker.subscription.index
        first, second = (other, checker) if swapped else (checker, other)
        at, beside = (position, arrival.position) if swapped else (arrival.position, position)
        pair = first.subscription.index, second.subscription.index
        if not (first.log.holds(at) and second.log.holds(beside)) or (first.log.flags(at) | second.log.flags(beside)) & UNCERTAIN:
            return
        region = checker.region_of(arrival.position)
        common = self._common.get((*pair, region), START)
        self._common[*pair, region] = CommonRecord(at, beside)
        unknown = self._unknown_since(first, common.first, at) or self._unknown_since(second, common.second, beside)
        if pair in self._diverged or unknown or (common is START and checker.is_excerpt):
            return
        checker.collector.counts.chances_divergence += not _may_lack(checker, other)
        if at > common.first and beside > common.second and at - common.first == beside - common.second:
            return
        back = at < common.first or beside < common.second
        mine = [] if back else _between(checker, common.second if swapped else common.first, arrival.position, region, other)
        theirs = [] if back else _between(other, common.first if swapped else common.second, position, region, checker)
        if back or len(mine) != len(theirs):
            doubt = _doubt(checker, arrival, other, theirs, mine)
            if not doubt:
                self._diverged.add(pair)
            self._file(checker, arrival, other, position, doubt)

    def _unknown_since(self, checker: KeyChecker, after: int, upto: int) -> bool:
        """Whether something may stand between two positions of a subscription that it has forgotten, or could not place."""
        breaks = self._breaks.get(checker.subscription.index, ())
        return after < checker.log.floor or any(after <= position < upto for position in breaks)

    def _file(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int, doubt: str) -> None:
        there = arrival.position if other.log.holds(arrival.position) else position
        facts: dict[str, Fact] = {
            "seq": arrival.seq,
            "epoch": arrival.epoch,
            "message_id": arrival.message_id,
            "other": other.subscription.name,
        }
        if there != position:
            facts |= {"other_seq": other.log.seq(there), "other_epoch": other.epoch_of(there)}
        witnesses = (other.log.number(there), other.log.number(position), arrival.number)
        checker.collector.violation(Kind.ORDER_DIVERGENCE, arrival.t, witnesses, facts, doubt)


def _between(checker: KeyChecker, after: int, upto: int, region: str, other: KeyChecker) -> list[int]:
    """The positions of a region strictly between two, but those whose place is certain on neither or only one subscription."""
    log = checker.log
    passed = (position for position in range(max(after, log.floor) + 1, upto) if checker.region_of(position) == region)
    return [one for one in passed if not (log.flags(one) | other.log.flags_of(log.token(one))) & UNCERTAIN]


def _doubt(checker: KeyChecker, arrival: Arrival, other: KeyChecker, theirs: Sequence[int], mine: Sequence[int]) -> str:
    """What may explain that one of them has more records before the common one than the other: `theirs` or `mine`."""
    if len(theirs) == len(mine):
        return ""
    lacking, having, records = (checker, other, theirs) if len(theirs) > len(mine) else (other, checker, mine)
    if lacking.subscription.rules.dead_letter_max_attempts:
        return DEAD_LETTER
    expired_t = lacking.expired_t(arrival.t)
    old = sum(having.log.invoked_t(one) < expired_t for one in records)
    return EXPIRED if old >= abs(len(theirs) - len(mine)) else ""


def _may_lack(*checkers: KeyChecker) -> bool:
    """Whether something may be missing on one of them without anybody being to blame."""
    return any(checker.subscription.rules.dead_letter_max_attempts for checker in checkers)


def _comparable(checker: KeyChecker) -> bool:
    rules = checker.subscription.rules
    sought = checker.collector.grace_until_t > LONG_AGO
    return rules.subscription_predates_first_publish and not rules.filtered and not sought
