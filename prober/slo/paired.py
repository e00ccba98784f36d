"""How much two things differ that were measured in pairs, with how much that proves. Arithmetic.

Pairs share what would blur a comparison of two averages, such as a slow minute of both, so what is looked at is the difference within
each pair.

* *Means* (`mean_difference`): the interval of Student's t for the mean of the differences. Exact if they are normally distributed,
  and close to it for a few dozen of any kind whose spread is finite; it takes them to be independent of each other.
* *Shares* (`share_difference`): of pairs of which either may be bad, the share of those of which only the first is, less the share of
  those of which only the second is. Its interval is made of those of Clopper and Pearson for the two shares, each with half of what the
  interval may miss (Bonferroni). It never covers less than it says, and is wider than it need be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple

from prober.slo.proportions import CONFIDENCE, interval

_HALVINGS: Final = 200
_FREEDOM_MAX: Final = 1000
"""With more degrees of freedom Student's t is taken as it is here, which makes an interval wider by less than 0.2 %."""


class Difference(NamedTuple):
    """A difference, and between what the true one lies."""

    value: float
    low: float
    high: float


def mean_difference(differences: Sequence[float], confidence: float = CONFIDENCE, times: float = 1.0) -> Difference | None:
    """Their mean; None of fewer than two, since one says nothing of how they spread.

    `times`: as if there were so many times as many, at least 1, that spread alike.
    """
    if len(differences) < 2:
        return None
    mean, count = fmean(differences), len(differences) * times
    reach = t_quantile(min(_FREEDOM_MAX, int(count) - 1), confidence) * stdev(differences) / sqrt(count)
    return Difference(mean, mean - reach, mean + reach)


def share_difference(only_first: int, only_second: int, count: int, confidence: float = CONFIDENCE) -> Difference:
    """Of `count` pairs so many are bad in the first only, and in the second only. Raises ValueError if these are more than all."""
    each = (1.0 + confidence) / 2.0
    first, second = interval(only_first, count, each), interval(only_second, count, each)
    value = (only_first - only_second) / count if count else 0.0
    return Difference(value, first.low - second.high, first.high - second.low)


@lru_cache(maxsize=1024)
def t_quantile(freedom: int, confidence: float) -> float:
    """Within what distance of 0 Student's t with so many degrees of freedom, at least 1, lies with this probability."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t): the finite series of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(freedom))
    if freedom == 1:
        return 2.0 * angle / pi
    square, odd = cos(angle) ** 2, freedom % 2
    term = total = 1.0
    for k in range(2 if odd else 1, freedom - 1, 2):
        term *= square * k / (k + 1)
        total += term
    if odd:
        return 2.0 / pi * (angle + sin(angle) * cos(angle) * total)
    return sin(angle) * total
