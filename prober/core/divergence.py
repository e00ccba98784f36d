"""Promise 1 across subscriptions: all of them see one log.

Ordered, unfiltered subscriptions that existed before the first publish must learn the same records in the same order, none left out.

    ORDER_DIVERGENCE   a record that two subscriptions learned stands, counted from the last one that they have in common, at
                       different places: one of them left something out, or has it elsewhere.

Only the first deviation of a pair is filed: everything after it deviates as well. Subscriptions with an adopted baseline, a filter, a
seek or a hole in their record are not compared. One that slept or could not place a delivery begins to be compared anew at the next
record in common, since what it forgot it may have left out. What may have been dead-lettered before it was received, or was older than
the retention, may be missing; and where sessions race, the order itself is not certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

from prober.core.events import LONG_AGO
from prober.core.findings import Facts, Kind
from prober.core.key import KeyChecker
from prober.core.positions import RACED
from prober.core.sessions import Arrival

DEAD_LETTER: Final = "the dead-letter policy may have removed what one of them did not receive"
EXPIRED: Final = "what one of them did not receive may have been older than the retention"
RACING: Final = "several sessions raced, so the order is not certain"


class Common(NamedTuple):
    """The last record that two subscriptions have in common: its positions, and how often each had forgotten something by then."""

    first: int
    second: int
    first_forgot: int
    second_forgot: int


START: Final = Common(0, 0, 0, 0)


class DivergenceCheck:
    """Compares what the subscriptions of one key learn; see the head of this file."""

    __slots__ = ("_common", "_diverged")

    def __init__(self) -> None:
        self._diverged: set[tuple[int, int]] = set()
        self._common: dict[tuple[int, int], Common] = {}

    def judge(self, checker: KeyChecker, arrival: Arrival, checkers: Iterable[KeyChecker]) -> None:
        """Compares a record that one subscription just learned with where the others have it."""
        if not _comparable(checker):
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
        places = (position, arrival.position) if swapped else (arrival.position, position)
        pair = first.subscription.index, second.subscription.index
        common = self._common.get(pair, START)
        here = self._common[pair] = Common(*places, first.log.forgotten, second.log.forgotten)
        forgot = (here.first_forgot, here.second_forgot) != (common.first_forgot, common.second_forgot)
        if pair not in self._diverged and not forgot and here.first - common.first != here.second - common.second:
            self._diverge(checker, arrival, other, position, pair)

    def _diverge(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int, pair: tuple[int, int]) -> None:
        doubt = _doubt(checker, arrival, other, position)
        if not doubt:
            self._diverged.add(pair)
        there = arrival.position if other.log.holds(arrival.position) else position
        facts: Facts = {
            "seq": arrival.seq,
            "epoch": arrival.epoch,
            "other": other.subscription.name,
            "other_seq": other.log.seq(there),
        }
        witnesses = (other.log.number(there), other.log.number(position), arrival.number)
        checker.docket.violation(Kind.ORDER_DIVERGENCE, arrival.t, witnesses, facts, doubt)


def _doubt(checker: KeyChecker, arrival: Arrival, other: KeyChecker, position: int) -> str:
    pair = (checker, other)
    if any(one.subscription.rules.dead_letter_max_attempts for one in pair):
        return DEAD_LETTER
    if any(one.subscription.rules.message_retention_s < inf and one.has_lost_by_age(arrival.t) for one in pair):
        return EXPIRED
    raced = (checker.log.flags(arrival.position) | other.log.flags(position)) & RACED
    return RACING if raced or any(one.subscription.racing for one in pair) else ""


def _comparable(checker: KeyChecker) -> bool:
    rules = checker.subscription.rules
    sought = checker.docket.amnesty_until_t > LONG_AGO
    return rules.subscription_predates_first_publish and not rules.filtered and not sought
