"""Rising trends in a series of points: rank statistics over all pairs, robust against single outliers.

* Mann (1945) and Kendall: S counts the pairs of points that rise less those that fall. `tau` is S as a share of all pairs; `z` is the
  distance of S from random order in standard deviations, with Kendall's correction for equal values.
* Theil (1950) and Sen (1968): the slope is the median of the slopes of all pairs; up to 29 % of the points may be outliers.

Points of a backlog depend on each other, which makes z too large: a rise is accepted only if tau is large as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

POINTS_MIN: Final = 10
Z_MIN: Final = 3.09
"""One-sided significance of 1 in 1,000."""
TAU_MIN: Final = 0.5
RANKS_MAX: Final = 200
COUNT_MIN: Final = 10


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of a series. The slope is per step of the series."""

    slope: float
    tau: float
    z: float

    @property
    def rises(self) -> bool:
        """Whether the series rises beyond doubt, over most of its length."""
        return self.slope > 0.0 and self.tau >= TAU_MIN and self.z >= Z_MIN


def trend_of(values: Floats) -> Trend | None:
    """Return the trend of values at equal distances, or None if there are too few. Memory and time grow with their square."""
    count = len(values)
    if count < POINTS_MIN:
        return None
    first, second = np.triu_indices(count, 1)
    rises = values[second] - values[first]
    score = float(np.sign(rises).sum())
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = (_moment(np.array([float(count)])) - _moment(ties)) / 18.0
    z = (score - np.sign(score)) / np.sqrt(variance) if variance > 0.0 else 0.0
    return Trend(float(np.median(rises / (second - first))), score / len(rises), float(z))


def slope_of(x: Floats, y: Floats) -> float | None:
    """Return the Theil-Sen slope of points with different `x`, or None for fewer than two."""
    if len(x) < 2:
        return None
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first])))


def zipf_exponent(counts: Floats) -> float | None:
    """Return the exponent s of counts that fall as rank ** -s, from the largest ones; None if they are too few or too small.

    Ranks with a count below ten are left out: there the count is mostly noise.
    """
    largest = np.sort(counts)[::-1][:RANKS_MAX]
    known = largest[largest >= COUNT_MIN]
    if len(known) < POINTS_MIN:
        return None
    slope = slope_of(np.log(np.arange(1.0, len(known) + 1.0)), np.log(known))
    return None if slope is None else -slope


def longest_run(holds: NDArray[np.bool_]) -> int:
    """Return the length of the longest stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], holds, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def _moment(sizes: Floats) -> float:
    return float((sizes * (sizes - 1.0) * (2.0 * sizes + 5.0)).sum())
