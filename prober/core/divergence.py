"""Promise 1 across subscriptions: all of them see one log.

Ordered, unfiltered subscriptions that existed before the first publish must learn the same records in the same order, none left out.

    ORDER_DIVERGENCE   a record that two subscriptions learned stands, counted from the last one that they have in common, at
                       different places: one of them left something out, or has it elsewhere.

Order holds within one publishing region, so the records of each are compared for themselves. Only the first deviation of a pair is
filed: everything after it deviates as well. Subscriptions with an adopted baseline, a filter, a seek or a hole in their record are not
compared. One that slept or could not place a delivery begins to be compared anew at the next
record in common, since what it forgot it may have left out. What may have been dead-lettered before it was received, or was older than
the retention, may be missing; and where sessions race, the order itself is not certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from prober.core.events import LONG_AGO
from prober.core.findings import Fact, Kind
from prober.core.key import KeyChecker
from prober.core.positions import RACED, SHARED, UNPROVEN
from prober.core.sessions import Arrival

DEAD_LETTER: Final = "the dead-letter policy may have removed what one of them did not receive"
EXPIRED: Final = "what one of them did not receive may have been older than the retention"


UNCERTAIN: Final = RACED | SHARED | UNPROVEN
"""Records whose place in the log may differ: a message that the service stored twice may be so for each subscription."""


class Common(NamedTuple):
    """The last record of a region that two subscriptions have in common: its positions, and how often each had forgotten something."""

    first: int
    second: int
    first_forgot: int
    second_forgot: int


START: Final = Common(0, 0, 0, 0)

Pair: TypeAlias = tuple[int, int, str]
"""Two subscriptions by their indices, and a region."""


class DivergenceCheck:
    """Compares what the subscriptions of one key learn; see the head of this file."""

    __slots__ = ("_common", "_diverged")

    def __init__(self) -> None:
        self._diverged: set[tuple[int, int]] = set()
        self._common: dict[Pair, Common] = {}

    def judge(self, checker: KeyChecker, arrival: Arrival, checkers: Iterable[KeyChecker]) -> None:
        """Compares a record that one subscription just learned with where the others have it."""
        if not _comparable(checker) or arrival.copies_id or (checker.subscription.racing and not arrival.proven):
            return
        for other in checkers:
            if other is checker or not _comparable(other):
                continue
            known = other.log.find(arrival.token)
            position = other.log.find_record(known, arrival.token, arrival.stamp) if known else 0
            if position:
                self._compare(checker, arrival, other, position)

    def _compare(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int) -> None:
        swapped = other.subscription.index < checker.subscription.index
        first, second = (other, checker) if swapped else (checker, other)
        at, beside = (position, arrival.position) if swapped else (arrival.position, position)
        pair = first.subscription.index, second.subscription.index
        region = checker.region_of(arrival.position)
        if (checker.log.flags(arrival.position) | other.log.flags(position)) & UNCERTAIN:
            return
        common = self._common.get((*pair, region), START)
        here = self._common[*pair, region] = Common(at, beside, first.log.forgotten, second.log.forgotten)
        unknown = common.first < first.log.floor or common.second < second.log.floor or (common is START and checker.is_excerpt)
        if pair in self._diverged or unknown or here[2:] != common[2:]:
            return
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
        checker.docket.violation(Kind.ORDER_DIVERGENCE, arrival.t, witnesses, facts, doubt)


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


def _comparable(checker: KeyChecker) -> bool:
    rules = checker.subscription.rules
    sought = checker.docket.amnesty_until_t > LONG_AGO
    return rules.subscription_predates_first_publish and not rules.filtered and not sought
