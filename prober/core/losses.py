"""What may have been sent on one subscription and lost: with a stream that broke, or in the answer of a pull that never came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

LOSSES_KEPT: Final = 64
"""Broken streams and lost pulls remembered; beyond that the two oldest become one that covers both."""

Loss = tuple[float, float]
"""Between these two times something may have been sent on a session and lost with it."""


class Losses:
    """The losses of one subscription; `count` says how many there were, `inf` where that is not known."""

    __slots__ = ("_clock_error_s", "_kept", "count")

    def __init__(self, clock_error_s: float) -> None:
        self._clock_error_s = clock_error_s
        self._kept: list[Loss] = []
        self.count = 0.0

    def add(self, begun_t: float, over_t: float) -> None:
        """One more, of what was sent between two times."""
        self.count += 1
        self._kept.append((begun_t, over_t))
        if len(self._kept) > LOSSES_KEPT:
            first, second = self._kept[:2]
            self._kept[:2] = [(min(first[0], second[0]), max(first[1], second[1]))]

    def may_have_taken(self, since_t: float, until_t: float) -> bool:
        """Whether something may have been sent between these times and lost, by all that is known now."""
        eps = self._clock_error_s
        return any(begun_t <= until_t + eps and over_t >= since_t - eps for begun_t, over_t in self._kept)

    def ends_since(self, t: float) -> Iterator[float]:
        """When those were over that were not before a moment."""
        return (over_t for _, over_t in self._kept if t <= over_t + self._clock_error_s)
