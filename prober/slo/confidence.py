"""Confidence of counts and pairs: exact bounds of a proportion, and intervals of differences in pairs. Arithmetic only.

Proportions. Of `count` events `bad` were bad, each independently with the same unknown probability p. The bounds are those of Clopper
and Pearson (1934): the upper bound is the p at which so few bad events would still occur with probability alpha = 1 - confidence, the
lower bound the p at which so many would. They are exact in that they hold with at least the stated confidence for every p and every
count; approximations by a normal distribution do not, least of all near 0, where service levels are.

With zero bad events the upper bound is 1 - alpha ** (1 / count). At 95 % that is just below 3 / count: the "rule of three".

Method. A tail of the binomial distribution is a regularised incomplete beta function, P(X <= k) = I_q(n - k, k + 1). Since its
arguments are whole numbers it is a finite sum: the probability of k times a series of falling positive terms, in which nothing
cancels (a continued fraction with q near 1 loses all digits beyond 1e9 events). That probability has Loader's saddle-point
form ("Fast and accurate computation of binomial probabilities", 2000) for the same reason. The logarithm of a tail is concave in
p, so Newton's method approaches the bound from outside, from any start.

Accuracy. Relative error below 1e-12 for counts up to 1e12; tests compare with exact fractions and with 60-digit decimals. Time
grows with the standard deviation of X: microseconds for a handful of bad events, milliseconds for thousands.

Pairs share effects that would blur a comparison of two averages, such as a slow minute of both, so the difference within each pair is
evaluated.

* *Means* (`mean_difference`): the interval of Student's t for the mean of the differences. Exact if they are normally distributed,
  and close to it for a few dozen of any kind with a finite spread; it assumes independent differences.
* *Shares* (`share_difference`): of pairs of which either may be bad, the share with only the first bad, less the share with only the
  second bad. Its interval is made of those of Clopper and Pearson for the two shares, each with half of the allowed error
  (Bonferroni). It never covers less than stated, and is wider than necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, exp, expm1, log, pi, sin, sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple

CONFIDENCE: Final = 0.95

_PRECISION: Final = 1e-15
_STEPS_MAX: Final = 100  # Newton needs fewer than ten
_SERIES_REACH: Final = 0.1  # nearer to 1 than this, the deviance is a series
# n! = sqrt(2 pi n) (n / e)^n e^error(n): exact values for small n, a series for others.
_STIRLING_ERRORS: Final = (
    0.0,
    0.0810614667953272582196702,
    0.0413406959554092940938221,
    0.02767792568499833914878929,
    0.02079067210376509311152277,
    0.01664469118982119216319487,
    0.01387612882307074799874573,
    0.01189670994589177009505572,
    0.010411265261972096497478567,
    0.009255462182712732917728637,
    0.008330563433362871256469318,
    0.007573675487951840794972024,
    0.006942840107209529865664152,
    0.006408994188004207068439631,
    0.005951370112758847735624416,
    0.005554733551962801371038690,
)
_HALVINGS: Final = 200
_FREEDOM_MAX: Final = 1000
"""Largest number of degrees of freedom of Student's t; more would make an interval narrower by less than 0.2 %."""


class ProportionBounds(NamedTuple):
    """A closed interval of proportions."""

    low: float
    high: float


def upper_bound(bad: int, count: int, confidence: float = CONFIDENCE) -> float:
    """Return the proportion that is not exceeded, with this confidence (one-sided). 1 if nothing was counted."""
    alpha = _alpha(bad, count, confidence)
    if bad == count:
        return 1.0
    if bad == 0:
        return -expm1(log(alpha) / count)
    p = bad / count
    for _ in range(_STEPS_MAX):
        series = _series(bad, count, p, 1.0 - p)
        excess = _log_probability(bad, count, p, 1.0 - p) + log(series) - log(alpha)
        following = p + excess * series * (1.0 - p) / (count - bad)
        if following >= 1.0:
            following = (p + 1.0) / 2.0
        before, p = p, following
        if abs(p - before) <= _PRECISION * p:
            break
    return p


def lower_bound(bad: int, count: int, confidence: float = CONFIDENCE) -> float:
    """Return the proportion that is at least reached, with this confidence (one-sided). 0 if nothing was counted."""
    alpha = _alpha(bad, count, confidence)
    if bad == 0:
        return 0.0
    if bad == count:
        return exp(log(alpha) / count)
    p = bad / count
    for _ in range(_STEPS_MAX):
        series = _series(count - bad, count, 1.0 - p, p)
        excess = _log_probability(bad, count, p, 1.0 - p) + log(series) - log(alpha)
        following = p - excess * series * p / bad
        if following <= 0.0:
            following = p / 2.0
        before, p = p, following
        if abs(p - before) <= _PRECISION * p:
            break
    return p


def interval(bad: int, count: int, confidence: float = CONFIDENCE) -> ProportionBounds:
    """Return the bounds of the true proportion, with this confidence (two-sided, equal tails).

    Raises ValueError unless 0 <= bad <= count and 0 < confidence < 1; so do the one-sided bounds.
    """
    one_sided = (1.0 + confidence) / 2.0
    return ProportionBounds(lower_bound(bad, count, one_sided), upper_bound(bad, count, one_sided))


def _alpha(bad: int, count: int, confidence: float) -> float:
    if not 0 <= bad <= count:
        raise ValueError(f"{bad} of {count} is not a proportion")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    return 1.0 - confidence


def _series(k: int, n: int, p: float, q: float) -> float:
    """Return P(X <= k) / P(X = k), k < n: 1 + kq/((n-k+1)p) (1 + (k-1)q/((n-k+2)p) (1 + ...)). The terms fall while k <= np."""
    total = term = 1.0
    odds = q / p
    for j in range(k):
        term *= (k - j) * odds / (n - k + 1 + j)
        total += term
        if term < _PRECISION / 10 * total:
            break
    return total


def _log_probability(k: int, n: int, p: float, q: float) -> float:
    """Return the logarithm of P(X = k), 0 < k < n, in Loader's saddle-point form."""
    error = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    return error - _deviance(k, n * p) - _deviance(n - k, n * q) - log(2.0 * pi * k * ((n - k) / n)) / 2.0


def _deviance(k: float, mean: float) -> float:
    """Return the saddle-point exponent k log(k / mean) + mean - k, without cancellation if the two are close."""
    distance = k - mean
    if abs(distance) >= _SERIES_REACH * (k + mean):
        return k * log(k / mean) - distance
    v = distance / (k + mean)
    total, power, j = distance * v, 2.0 * k * v, 1
    while True:
        power *= v * v
        following = total + power / (2 * j + 1)
        if following == total:
            return total
        total, j = following, j + 1


def _stirling_error(n: int) -> float:
    """Return the difference log n! - log(sqrt(2 pi n) (n / e)^n)."""
    if n < len(_STIRLING_ERRORS):
        return _STIRLING_ERRORS[n]
    square = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square) / n


class Difference(NamedTuple):
    """A difference, and the bounds of the true one."""

    value: float
    low: float
    high: float


def mean_difference(differences: Sequence[float], confidence: float = CONFIDENCE, times: float = 1.0) -> Difference | None:
    """Return the mean of differences with its interval; None for fewer than two, which have no spread.

    `times`: compute as if there were `times` as many (at least 1) with the same spread.
    """
    if len(differences) < 2:
        return None
    mean, count = fmean(differences), len(differences) * times
    reach = t_quantile(min(_FREEDOM_MAX, int(count) - 1), confidence) * stdev(differences) / sqrt(count)
    return Difference(mean, mean - reach, mean + reach)


def share_difference(only_first: int, only_second: int, count: int) -> Difference:
    """Return the difference of the bad shares of pairs that differ, out of `count`. Raises ValueError if more differ than `count`."""
    each = (1.0 + CONFIDENCE) / 2.0
    first, second = interval(only_first, count, each), interval(only_second, count, each)
    value = (only_first - only_second) / count if count else 0.0
    return Difference(value, first.low - second.high, first.high - second.low)


@lru_cache(maxsize=1024)
def t_quantile(freedom: int, confidence: float) -> float:
    """Return the two-sided quantile of Student's t with `freedom` degrees of freedom (at least 1) for a confidence."""
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
