"""Promise 1 across subscriptions: all of them see one log.

Ordered, unfiltered subscriptions that existed before the first publish must learn the same message ids at the same positions.

    ORDER_DIVERGENCE   two subscriptions learned different ids at one position of the same key.

Only the first deviation of a pair is filed: everything after it deviates as well. Subscriptions with an adopted baseline, a filter, a
seek or a hole in their record are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from prober.core.findings import Facts, Kind
from prober.core.key import KeyChecker
from prober.core.sessions import Arrival


class DivergenceCheck:
    """Compares what the subscriptions of one key learn; see the head of this file."""

    __slots__ = ("_diverged",)

    def __init__(self) -> None:
        self._diverged: set[tuple[str, ...]] = set()

    def judge(self, checker: KeyChecker, arrival: Arrival, checkers: Iterable[KeyChecker]) -> None:
        """Compares a position that one subscription just learned with what the others have there."""
        if not _comparable(checker):
            return
        position = arrival.position
        for other in checkers:
            if other is checker or not _comparable(other) or not other.log.holds(position):
                continue
            if other.log.token(position) != arrival.token:
                self._diverge(checker, arrival, other)

    def _diverge(self, checker: KeyChecker, arrival: Arrival, other: KeyChecker) -> None:
        names = checker.subscription.name, other.subscription.name
        pair = tuple(sorted(names))
        if pair in self._diverged:
            return
        self._diverged.add(pair)
        facts: Facts = {"seq": arrival.seq, "other": names[1], "other_seq": other.log.seq(arrival.position)}
        witnesses = (other.log.number(arrival.position), arrival.number)
        checker.docket.violation(Kind.ORDER_DIVERGENCE, arrival.t, witnesses, facts)


def _comparable(checker: KeyChecker) -> bool:
    rules = checker.subscription.rules
    sought = checker.docket.amnesty_until_t > -inf
    return rules.subscription_predates_first_publish and not rules.filtered and not sought
