"""How the things that an objective counts are told from the metrics: how many were bad, and how many were decided at all.

The definitions are those of `prober.slo.indicators`; what is undecided is in neither number. Errors and totals are told apart, and never as
ratios, so that they can be added up over windows of uneven traffic.

Time is counted in slices of a minute. A minute in which nobody looked (no scrape, no prober, maintenance) is in neither number.
"""

from __future__ import annotations

from dataclasses import dataclass

from prober.alerting.promql import duration, increase, joined, largest, number, outside_maintenance, series, total
from prober.sinks.metrics import families
from prober.sinks.metrics.families import CHECKS, LATENCIES, SUBSCRIPTION, TARGET, Family
from prober.sinks.metrics.labels import PublishOutcome, Result
from prober.slo.indicators import SLICE_S, Indicator
from prober.slo.objectives import Objective


@dataclass(frozen=True, slots=True)
class Counted:
    """Two expressions over a window, with the labels of a target."""

    bad: str
    decided: str


def counted(objective: Objective, window: str) -> Counted:
    """What an objective counts within a window such as `5m`."""
    indicator = objective.indicator
    if indicator in CHECKS:
        return _checks(CHECKS[indicator], window)
    if indicator in LATENCIES:
        return _latencies(LATENCIES[indicator], window, objective.threshold_s or 0.0)
    if indicator is Indicator.PUBLISH_AVAILABILITY:
        return _publishes(window)
    if indicator is Indicator.OLDEST_UNACKED_MESSAGE_AGE:
        return _ages(window, objective.threshold_s or 0.0)
    return _stalled_keys(window)


def _checks(family: Family, window: str) -> Counted:
    bad = series(family, result=Result.BAD)
    return Counted(increase(TARGET, bad, window), increase(TARGET, series(family, result=(Result.GOOD, Result.BAD)), window))


def _publishes(window: str) -> Counted:
    bad = series(families.PUBLISHES, outcome=tuple(one for one in PublishOutcome if one is not PublishOutcome.CONFIRMED))
    return Counted(increase(TARGET, bad, window), increase(TARGET, series(families.PUBLISHES), window))


def _latencies(family: Family, window: str, threshold_s: float) -> Counted:
    """The threshold is a bound of a bucket (`metrics.families.bounds_of`), written `1.0` or, by some, `1`."""
    bound = {repr(float(threshold_s)), number(threshold_s)}
    good = increase(TARGET, series(family, "_bucket", le=bound), window)
    decided = increase(TARGET, series(family, "_count"), window)
    return Counted(f"clamp_min({decided} - {good}, 0)", decided)


def _ages(window: str, threshold_s: float) -> Counted:
    """A subscription with no key that is probed belongs to a site that another prober has taken over."""
    given_up = f"({largest(SUBSCRIPTION, series(families.PROBED_KEYS))} == 0)"
    probed = joined("unless", largest(SUBSCRIPTION, series(families.OLDEST_UNACKED_AGE)), given_up)
    age = f"({outside_maintenance(probed)})"
    older = f"{age} > bool {number(threshold_s)}"
    return Counted(_slices("sum", older, window), _slices("count", age, window))


def _stalled_keys(window: str) -> Counted:
    """A key that stands still is one of those that are probed; where it is not known how many stand still, none are counted."""
    stalled = largest(SUBSCRIPTION, series(families.STALLED_KEYS))
    probed = largest(SUBSCRIPTION, series(families.PROBED_KEYS))
    known = joined("and", probed, stalled)
    return Counted(_slices("sum", outside_maintenance(stalled), window), _slices("sum", outside_maintenance(known), window))


def _slices(function: str, expression: str, window: str) -> str:
    """A function over the values that an expression had minute by minute, added up over subscriptions."""
    return total(TARGET, f"{function}_over_time(({expression})[{window}:{duration(SLICE_S)}])")
