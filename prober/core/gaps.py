"""Passed-over numbers that were not seen since, kept as few runs: enough to distinguish a late number from a repeated one.

For a sequence that mostly ascends it suffices to remember the missing numbers below the highest one (RFC 4737, section 6): a number
below the highest that is missing is late, any other was seen before. Missing numbers form runs, so a jump of any size costs one entry.
The number of runs is bounded; the lowest are forgotten first, and below `known_from` the two cannot be distinguished.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Gap(Generic[M]):
    """The missing numbers `first` to `last`, both included, and the owner's note about the jump that left them out."""

    first: int
    last: int
    mark: M


class Gaps(Generic[M]):
    """At most `limit` disjoint runs of missing numbers, ascending."""

    def __init__(self, limit: int) -> None:
        self.known_from: float = -inf
        self._limit = limit
        self._gaps: list[Gap[M]] = []

    def __len__(self) -> int:
        return len(self._gaps)

    def __iter__(self) -> Iterator[Gap[M]]:
        return iter(self._gaps)

    def add(self, first: int, last: int, mark: M) -> None:
        """Add passed-over numbers. Requires first <= last, and that all gaps so far lie below `first`."""
        self._gaps.append(Gap(first, last, mark))
        self._forget_surplus()

    def find(self, number: int) -> Gap[M] | None:
        """Return the gap that contains a number; None if no remembered gap does."""
        at = self._at(number)
        return self._gaps[at] if at >= 0 and number <= self._gaps[at].last else None

    def fill(self, number: int) -> None:
        """Remove a seen number from its gap, which shrinks, splits in two, or vanishes. Requires that `find` returns the gap."""
        at = self._at(number)
        gap = self._gaps[at]
        rest = ((gap.first, number - 1), (number + 1, gap.last))
        self._gaps[at : at + 1] = [Gap(first, last, gap.mark) for first, last in rest if first <= last]
        self._forget_surplus()

    def _at(self, number: int) -> int:
        return bisect_right(self._gaps, number, key=lambda gap: gap.first) - 1

    def _forget_surplus(self) -> None:
        while len(self._gaps) > self._limit:
            self.known_from = float(self._gaps.pop(0).last + 1)
