"""Objectives."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasPath, Field, FiniteFloat

from api.models.base import Answer, Count, Labels, Listed, Seconds, Target, Time
from api.models.keys import Day
from prober.core.verdict import Verdict
from prober.slo.indicators import Indicator
from prober.slo.objectives import AlertState, Urgency

Ratio = Annotated[FiniteFloat, Field(examples=[0.0001])]
BurnRate = Annotated[FiniteFloat, Field(examples=[0.4])]
BudgetLeft = Annotated[FiniteFloat, Field(examples=[0.72])]
Name = Annotated[str, Field(examples=["order"])]


class Interval(Answer):
    """A closed interval of ratios."""

    low: FiniteFloat
    """At least."""
    high: FiniteFloat
    """At most."""


class Burn(Answer):
    """How fast an error budget is being spent, as one alert looks at it."""

    severity: Urgency
    """`page`: a person must act now. `ticket`: on a working day."""
    window_s: Annotated[Seconds, Field(examples=[3600])]
    """The alert's long window."""
    burn_rate: BurnRate | None
    """In that window: 1 spends the budget in exactly its period; null: nothing was decided there."""
    factor: Annotated[FiniteFloat, Field(examples=[14.4])]
    """The alert fires above this burn rate, if its short window (a twelfth of the long one) is above it too and enough was decided."""
    state: AlertState
    """The state of the alert now."""


class SloAnswer(Answer, schema="Slo"):
    """An objective on one target, by what was counted since `counted_since`. Nothing counted is unknown, never good."""

    name: Annotated[Name, Field(validation_alias=AliasPath("objective", "name"))]
    """Name of the objective."""
    target: Target
    """Name of the target."""
    indicator: Annotated[Indicator, Field(validation_alias=AliasPath("objective", "indicator"))]
    """The indicator that it counts."""
    objective: Annotated[FiniteFloat, Field(validation_alias=AliasPath("objective", "target"), examples=[0.9999])]
    """The share of the counted things that is to be good."""
    threshold_s: Annotated[Seconds | None, Field(validation_alias=AliasPath("objective", "threshold_s"))]
    """From when on a duration is bad; null for indicators that are no durations."""
    window_s: Annotated[Seconds, Field(validation_alias=AliasPath("objective", "window_s"), examples=[2592000])]
    """The period of the error budget."""
    labels: Annotated[Labels, Field(validation_alias=AliasPath("objective", "labels"))]
    """Free labels of the objective."""
    counted_since: Time
    """The beginning of the period, or when counting began, if that is later."""
    good: Annotated[Count, Field(validation_alias=AliasPath("total", "good"))]
    """Things that ended good."""
    bad: Annotated[Count, Field(validation_alias=AliasPath("total", "bad"))]
    """Things that ended bad."""
    undecided: Annotated[Count, Field(validation_alias=AliasPath("total", "undecided"))]
    """Things that are neither provably good nor provably bad."""
    error_ratio: Ratio | None
    """Bad ones among the good and bad; null: there are none."""
    bounds: Interval
    """Between what the true error ratio lies with 95 % confidence (Clopper-Pearson), whatever becomes of the undecided."""
    verdict: Verdict
    """PASS: the bounds are within the error budget. FAIL: they are beyond it. UNKNOWN: too little was counted to say."""
    measured: Annotated[Ratio, Field(examples=[0.25])]
    """Measured share of the period, by clock hours in which something was decided. Time that was not measured spends no budget."""
    budget_left: BudgetLeft | None
    """1 - burn rate of the counts x `measured`: 1 untouched, 0 spent, below 0 overspent; null: nothing was decided."""
    burn: tuple[Burn, ...]
    """Per alert, the quickest first; empty where there is no record by time."""


class SloList(Listed):
    """Every objective on every target whose probes feed it."""

    items: tuple[SloAnswer, ...]
    """The objectives."""


class Window(Answer):
    """An objective on a target over one window that ends now.

    Unknown values are null.
    """

    window_s: Annotated[Seconds, Field(examples=[300])]
    """Length of the window, right to half a minute up to 2 h, to two and a half minutes up to a day, else to half an hour."""
    good: Count
    """Things that ended good."""
    bad: Count
    """Things that ended bad."""
    undecided: Count
    """Things that are neither provably good nor provably bad."""
    error_ratio: Ratio | None
    """Bad ones among the good and bad."""
    burn_rate: BurnRate | None
    """1 spends the budget in exactly its period."""
    burn_bounds: Interval | None
    """Between what the true burn rate lies with 95 % confidence (Clopper-Pearson)."""
    exhausted_in_s: Seconds | None
    """Seconds until the budget is spent at this burn rate: 0 if it is; null also if nothing is being spent."""


class AlertDay(Answer):
    """State of one alert over the day of the report."""

    severity: Annotated[str, Field(examples=["page"])]
    """Its severity."""
    long_s: Seconds
    """Its long window."""
    short_s: Seconds
    """Its short window."""
    factor: FiniteFloat
    """The burn rate above which it fires."""
    can_fire: bool
    """False if no error ratio can reach it."""
    state: Annotated[str, Field(examples=["quiet"])]
    """At the end of the day."""
    firing_minutes: Count
    """For how long it fired."""
    quiet_minutes: Count
    """For how long it was quiet."""
    unknown_minutes: Count
    """For how long its state was unknown."""


class SpenderAnswer(Answer, schema="Spender"):
    """A part of the budget spent on the day of the report."""

    by: Annotated[str, Field(examples=["key"])]
    """Key, subscription, probe, vantage or region."""
    value: Annotated[str | None, Field(examples=["ordering-3"])]
    """Which one; null for what has no name, and for the rest."""
    bad: Count
    """Bad things."""
    share: Ratio
    """Of all bad things of the objective on the target."""
    others: Count
    """0, or how many spenders this row stands for that are not named."""


class DetectableAnswer(Answer, schema="Detectable"):
    """How rare a fault may be that the schedule still finds, by the opportunities that its probes plan: arithmetic, not a measurement."""

    within_s: Annotated[Seconds, Field(examples=[3600])]
    """Within which period."""
    share: Annotated[Ratio, Field(examples=[0.00002])]
    """The smallest share of wrong cases, independent of each other, that is found in it with 95 % probability."""


class SloTarget(SloAnswer):
    """An objective on one target, in full."""

    windows: tuple[Window, ...]
    """Every window that its alerts and its budget look at, the shortest first."""
    alerts: tuple[AlertDay, ...]
    """States of its alerts over the day of the newest `slo-burn` report."""
    spenders: tuple[SpenderAnswer, ...]
    """The parts of the budget spent on that day, the largest first."""
    detectable: tuple[DetectableAnswer, ...]
    """How rare a fault may be, for an hour, a day and 30 days; empty where the objective measures, or the target is not configured."""


class SloDetail(Answer):
    """An objective with its target, and its status on each probed target."""

    name: Name
    """Its name."""
    indicator: Indicator
    """The indicator that it counts."""
    counted: Annotated[str, Field(examples=["message"])]
    """The unit of the counts."""
    bad_if: Annotated[str, Field(examples=["it was first received out of order"])]
    """When a thing is bad."""
    objective: Annotated[FiniteFloat, Field(examples=[0.9999])]
    """The share of the counted things that is to be good."""
    budget: Annotated[Ratio, Field(examples=[0.0001])]
    """The share that may be bad."""
    threshold_s: Seconds | None
    """From when on a duration is bad; null for indicators that are no durations."""
    window_s: Annotated[Seconds, Field(examples=[2592000])]
    """The period of the error budget."""
    labels: Labels
    """Free labels."""
    report_day: Day | None
    """The day of the newest `slo-burn` report, from which `alerts` and `spenders` are; null: there is none."""
    targets: tuple[SloTarget, ...]
    """How it stands on each target."""


class UptimeAnswer(Answer, schema="Uptime"):
    """Uptime of a target in a month by the definition of Pub/Sub's service level agreement: it covers publishing only."""

    target: Target
    """Name of the target."""
    month: Annotated[str, Field(examples=["2026-03"])]
    """The month, in UTC."""
    is_over: bool
    """Whether all of it has passed; false: what follows is about the minutes that have."""
    minutes: Annotated[Count, Field(examples=[44640])]
    """Minutes of it that have passed."""
    up: Count
    """Minutes in which a publish was confirmed."""
    down: Count
    """Minutes in which publishes failed, as in both minutes beside it, and none was confirmed in these three."""
    unknown: Count
    """All others."""
    uptime: Interval
    """Uptime at least and at most, whatever the unknown minutes were."""
    credit: Interval
    """Credit by the agreement, as a share of the bill, at least and at most: the tier is known if both are the same."""


class UptimeList(Answer):
    """Uptime of every target by month, the newest month first. A target without counts in a month is missing there."""

    items: tuple[UptimeAnswer, ...]
    """The months."""
