"""Objectives, error budgets and burn rates.

The module computes them from counts of good and bad events.

The terms are those of the SRE workbook (Google, 2018, chapter 5, "Alerting on SLOs"):

* An objective is the share of counted events that has to be good over a period: 99.9 % over 30 days.
* The error budget B is the rest, 0.1 %. The error ratio E of a window is bad / (good + bad).
* The burn rate is E / B. At 1 the budget lasts exactly the period, at 2 half of it.
* An alert that is to fire when a part b of the budget was spent within a long window fires at a burn rate of b x period / window:
  2 % in an hour of 30 days is 14.4. So the factor is derived, never written down: with 28 days it is 13.44.
* It also needs a short window, a twelfth of the long one, above the same rate, so that it ends soon after the trouble does.

Counts are three-valued. Undecided events are neither good nor bad: ratios are of the decided events, `error_ratio_bounds` bounds them for
any outcome of the rest, and without decided events they are unknown (None). Targets such as 0.999 are read as the decimals they are written
as, and thresholds are compared exactly: 0.001 is a thousandth and not 0.0010000000000000009.

A counted event is one of the indicator's (`indicators`), per series: the calculations hold for one objective on one target, not for a
fleet.

The default objectives are at the end: for the configuration, and for the nightly jobs without `--objectives`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor, inf
from typing import Final, NamedTuple

from prober.slo.confidence import CONFIDENCE, ProportionBounds, interval
from prober.slo.indicators import MEANINGS, Indicator

MICROS: Final = 1_000_000
MINUTE_S: Final = 60.0
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
SHORT_WINDOWS_PER_LONG: Final = 12


def exact_fraction(number: float) -> Fraction:
    """Return the decimal that a float was written as: 999/1000 for 0.999."""
    return Fraction(repr(float(number)))


def whole_micros(seconds: float) -> int:
    """Return whole microseconds, the unit of all measurements: smaller parts are errors of the arithmetic."""
    return round(seconds * MICROS)


@dataclass(frozen=True, slots=True)
class SliCounts:
    """Numbers of good, bad and undecided events. Cumulative counts are subtracted to get those of a window.

    Raises ValueError for a count below 0.
    """

    good: int = 0
    bad: int = 0
    undecided: int = 0

    def __post_init__(self) -> None:
        if min(self.good, self.bad, self.undecided) < 0:
            raise ValueError(f"counts start at 0: {self}")

    def __add__(self, other: SliCounts) -> SliCounts:
        return SliCounts(self.good + other.good, self.bad + other.bad, self.undecided + other.undecided)

    def __sub__(self, earlier: SliCounts) -> SliCounts:
        return SliCounts(self.good - earlier.good, self.bad - earlier.bad, self.undecided - earlier.undecided)

    @property
    def decided(self) -> int:
        """The number of good and bad events."""
        return self.good + self.bad

    @property
    def error_ratio(self) -> float | None:
        """E: the bad share of the decided events, None if none is decided."""
        return self.bad / self.decided if self.decided else None

    @property
    def error_ratio_bounds(self) -> ProportionBounds:
        """The least and greatest possible E, for any outcome of the undecided events."""
        total = self.decided + self.undecided
        return ProportionBounds(self.bad / total, (self.bad + self.undecided) / total) if total else ProportionBounds(0.0, 1.0)

    def error_ratio_confidence(self, confidence: float = CONFIDENCE) -> ProportionBounds:
        """Return the bounds of the service's true error ratio, from the decided events (Clopper-Pearson, two-sided)."""
        return interval(self.bad, self.decided, confidence)


class Measure(NamedTuple):
    """The name of the counts of an objective.

    While it is the same the counts add up, also if the target changes.
    """

    name: str
    indicator: Indicator
    threshold_s: float | None


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective.

    `target` is the good share of the indicator's events, over any `window_s` seconds (the period).

    threshold_s    from when on a duration is bad; only for indicators that need a threshold, and for those always.
    labels         passed on to every report on the objective.

    Raises ValueError for an impossible target, window or threshold, or a threshold that the indicator does not have or lacks.
    """

    name: str
    indicator: Indicator
    target: float
    window_s: float
    threshold_s: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.target < 1.0:
            raise ValueError(f"the target of {self.name!r} must lie between 0 and 1, not at {self.target}")
        if not 0.0 < self.window_s < inf:
            raise ValueError(f"the window of {self.name!r} must be positive and finite, not {self.window_s}")
        if (self.threshold_s is not None) != MEANINGS[self.indicator].thresholded:
            raise ValueError(f"{self.indicator} {'lacks a' if self.threshold_s is None else 'has no'} threshold: {self.name!r}")
        if self.threshold_s is not None and not 0.0 < self.threshold_s < inf:
            raise ValueError(f"the threshold of {self.name!r} must be positive and finite, not {self.threshold_s}")

    @property
    def measure(self) -> Measure:
        """The identity of its counts."""
        return Measure(self.name, self.indicator, self.threshold_s)

    @property
    def threshold_us(self) -> int:
        """The threshold in whole microseconds, 0 without one."""
        return whole_micros(self.threshold_s or 0.0)

    def is_late(self, duration_s: float) -> bool:
        """Return whether a duration is bad; False for an indicator without a threshold."""
        return self.threshold_s is not None and whole_micros(duration_s) > self.threshold_us

    def is_doubtful(self, duration_s: float, lagged_s: float) -> bool:
        """Return whether a duration is late only because the event loop lagged for `lagged_s` of it."""
        return self.is_late(duration_s) and whole_micros(duration_s) - whole_micros(lagged_s) <= self.threshold_us

    @property
    def budget_exact(self) -> Fraction:
        """B as a fraction."""
        return 1 - exact_fraction(self.target)

    @property
    def budget(self) -> float:
        """B: the share of events that may be bad."""
        return float(self.budget_exact)

    def burn_rate(self, counts: SliCounts) -> float | None:
        """Return E / B in the window of the counts, None if nothing is decided there."""
        return float(Fraction(counts.bad, counts.decided) / self.budget_exact) if counts.decided else None

    def burn_rate_confidence(self, counts: SliCounts) -> ProportionBounds:
        """Return the bounds of the true burn rate."""
        low, high = counts.error_ratio_confidence(CONFIDENCE)
        return ProportionBounds(low / self.budget, high / self.budget)


class Urgency(StrEnum):
    """The response that an alert demands: now, or on a working day."""

    PAGE = "page"
    TICKET = "ticket"


class AlertState(StrEnum):
    """State of a burn-rate alert. UNKNOWN: its windows contain too few events to decide."""

    FIRING = "firing"
    QUIET = "quiet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BurnAlert:
    """An alert that fires when `budget_part` of a period's budget was spent within `long_s`, and burning continues."""

    severity: Urgency
    budget_part: float
    long_s: float

    @property
    def short_s(self) -> float:
        """The short window, which ends the alert after the trouble is over, in seconds."""
        return self.long_s / SHORT_WINDOWS_PER_LONG

    def factor(self, objective: Objective) -> float:
        """Return the burn rate above which it fires."""
        return float(self._factor(objective))

    def threshold(self, objective: Objective) -> float:
        """Return the error ratio above which it fires; from 1 on it cannot."""
        return float(self._threshold(objective))

    def can_fire(self, objective: Objective) -> bool:
        """Return whether it would notice a total outage. Not so if the budget is large and the window short."""
        return self._threshold(objective) < 1

    def state(self, objective: Objective, long: SliCounts, short: SliCounts) -> AlertState:
        """Return the state, given the counts of both windows. FIRING exactly if the alerting rule fires.

        Above the limit it is UNKNOWN while the long window contains so few events that a single bad one exceeds it.
        """
        if not long.decided or not short.decided:
            return AlertState.UNKNOWN
        limit = self._threshold(objective)
        if not all(Fraction(counts.bad, counts.decided) > limit for counts in (long, short)):
            return AlertState.QUIET
        return AlertState.FIRING if long.decided >= self.count_min(objective) else AlertState.UNKNOWN

    def count_min(self, objective: Objective, bad: int = 1) -> int:
        """Return the number of events in the long window at which `bad` bad ones do not make it fire."""
        return floor(bad / self._threshold(objective)) + 1

    def _factor(self, objective: Objective) -> Fraction:
        return exact_fraction(self.budget_part) * exact_fraction(objective.window_s) / exact_fraction(self.long_s)

    def _threshold(self, objective: Objective) -> Fraction:
        return self._factor(objective) * objective.budget_exact


# The workbook's recommendation, with its tickets in two steps as Sloth and the Kubernetes mixin have them.
POLICY: Final = (
    BurnAlert(Urgency.PAGE, 0.02, HOUR_S),
    BurnAlert(Urgency.PAGE, 0.05, 6 * HOUR_S),
    BurnAlert(Urgency.TICKET, 0.10, DAY_S),
    BurnAlert(Urgency.TICKET, 0.10, 3 * DAY_S),
)


def windows_s(objective: Objective) -> tuple[float, ...]:
    """Return every window of the objective's budget and alerts in seconds, from the shortest (5 minutes) to its period."""
    return tuple(sorted({window for alert in POLICY for window in (alert.short_s, alert.long_s)} | {objective.window_s}))


def count_to_see_budget(objective: Objective) -> int:
    """Return the number of events in a period whose budget allows for one bad one. With fewer, a single one overspends it."""
    return ceil(1 / objective.budget_exact)


def rate_min_per_s(objective: Objective, policy: Iterable[BurnAlert] = POLICY, bad: int = 1) -> float:
    """Return the smallest number of events per second at which the objective can be evaluated.

    That is, `bad` bad ones fire no alert and do not overspend the budget. The alert with the smallest part of the budget decides, since its
    count over its window is bad / (part x period x B) for any window: about 70 an hour for 99.9 % over 30 days and 2 %.
    """
    alerts = [alert.count_min(objective, bad) / alert.long_s for alert in policy]
    return max([bad * count_to_see_budget(objective) / objective.window_s, *alerts])


def bucket_bounds(defaults: Iterable[float], thresholds: Iterable[float] = ()) -> Sequence[float]:
    """Return upper bounds of a histogram that include every threshold, ascending, without the infinite one.

    A histogram counts the values up to a bound, so only at a bound does it know how many were good. Raises ValueError without
    any bound, and for one that is not positive and finite.
    """
    bounds = sorted({float(bound) for bound in (*defaults, *thresholds)})
    if not bounds or bounds[0] <= 0.0 or bounds[-1] == inf or any(bound != bound for bound in bounds):
        raise ValueError(f"bucket bounds must be positive and finite: {bounds}")
    return tuple(bounds)


def objectives_as_text(objectives: Iterable[Objective]) -> str:
    """Return a description in two lines for each objective: the objective, and when an event is bad."""
    return "\n".join(f"{one.name}\n    {_sentence(one)}" for one in objectives)


def objectives_as_json(objectives: Iterable[Objective]) -> str:
    """Return the objectives for the nightly jobs, as a JSON list: name, indicator, objective, window_s, threshold_s (or null), labels."""
    rows = [
        {
            "name": one.name,
            "indicator": one.indicator,
            "objective": one.target,
            "window_s": one.window_s,
            "threshold_s": one.threshold_s,
            "labels": dict(one.labels),
        }
        for one in objectives
    ]
    return json.dumps(rows, indent=2)


def _sentence(one: Objective) -> str:
    meaning = MEANINGS[one.indicator]
    limit = f" than {one.threshold_s:g} s" if one.threshold_s is not None else ""
    share = f"{one.target * 100:.8g} % over {one.window_s / DAY_S:g} d"
    return f"{share}; counts each {meaning.unit}, which is bad if {meaning.bad}{limit}"


PERIOD_S: Final = 30 * DAY_S
"""The period of an error budget, in seconds."""

DEFAULTS: Final = (
    Objective("order", Indicator.ORDER, 0.9999, PERIOD_S),
    Objective("redelivery", Indicator.REDELIVERY, 0.999, PERIOD_S),
    Objective("affinity", Indicator.AFFINITY, 0.99, PERIOD_S),
    Objective("completeness", Indicator.COMPLETENESS, 0.9999, PERIOD_S),
    Objective("publish_availability", Indicator.PUBLISH_AVAILABILITY, 0.9995, PERIOD_S),
    Objective("publish_latency", Indicator.PUBLISH_LATENCY, 0.99, PERIOD_S, 0.5),
    Objective("end_to_end_latency", Indicator.END_TO_END_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("pull_latency", Indicator.PULL_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("push_latency", Indicator.PUSH_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("oldest_unacked_message_age", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, PERIOD_S, 60.0),
    Objective("control_plane_latency", Indicator.CONTROL_PLANE_LATENCY, 0.99, PERIOD_S, 5.0),
    Objective("creation_to_receipt_latency", Indicator.CREATION_TO_RECEIPT_LATENCY, 0.99, PERIOD_S, 10.0),
    Objective("stalled_keys", Indicator.STALLED_KEYS, 0.999, PERIOD_S),
    Objective("head_of_line_delay", Indicator.HEAD_OF_LINE_DELAY, 0.99, PERIOD_S, 1.0),
)
