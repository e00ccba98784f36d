"""Objectives."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasPath, Field, FiniteFloat

from api.models.base import Answer, Count, Counts, Labels, Listed, Seconds, Target, Time
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
    """Lower bound."""
    high: FiniteFloat
    """Upper bound."""


class Burn(Answer):
    """Burn rate of an error budget in the window of one alert."""

    severity: Urgency
    """`page`: immediate action is required. `ticket`: action on a working day."""
    window_s: Annotated[Seconds, Field(examples=[3600])]
    """Long window of the alert."""
    burn_rate: BurnRate | None
    """Burn rate in that window: 1 spends the budget in exactly its period; null: no decided event."""
    factor: Annotated[FiniteFloat, Field(examples=[14.4])]
    """Burn rate above which the alert fires, if its short window (a twelfth of the long one) is above it too and enough events were
    decided.
    """
    state: AlertState
    """Present state of the alert."""


class SloAnswer(Answer, schema="Slo"):
    """An objective on one target, from the counts since `counted_since`. No counts mean unknown, never good."""

    name: Annotated[Name, Field(validation_alias=AliasPath("objective", "name"))]
    """Name of the objective."""
    target: Target
    """Name of the target."""
    indicator: Annotated[Indicator, Field(validation_alias=AliasPath("objective", "indicator"))]
    """Indicator of the objective."""
    objective: Annotated[FiniteFloat, Field(validation_alias=AliasPath("objective", "target"), examples=[0.9999])]
    """Required share of good events."""
    threshold_s: Annotated[Seconds | None, Field(validation_alias=AliasPath("objective", "threshold_s"))]
    """Duration from which an event is bad; null for indicators that are no durations."""
    window_s: Annotated[Seconds, Field(validation_alias=AliasPath("objective", "window_s"), examples=[2592000])]
    """Period of the error budget."""
    labels: Annotated[Labels, Field(validation_alias=AliasPath("objective", "labels"))]
    """Free labels of the objective."""
    counted_since: Time
    """Start of the period, or of counting, if that is later."""
    good: Annotated[Count, Field(validation_alias=AliasPath("total", "good"))]
    """Number of good events."""
    bad: Annotated[Count, Field(validation_alias=AliasPath("total", "bad"))]
    """Number of bad events."""
    undecided: Annotated[Count, Field(validation_alias=AliasPath("total", "undecided"))]
    """Number of events that are neither provably good nor provably bad."""
    error_ratio: Ratio | None
    """Share of bad events among good and bad ones; null: none."""
    bounds: Interval
    """Bounds of the true error ratio with 95 % confidence (Clopper-Pearson), for any outcome of the undecided events."""
    verdict: Verdict
    """PASS: the bounds are within the error budget. FAIL: they are beyond it. UNKNOWN: there are too few events to decide."""
    measured: Annotated[Ratio, Field(examples=[0.25])]
    """Measured share of the period, by clock hours with a decided event. Time without measurement spends no budget."""
    budget_left: BudgetLeft | None
    """1 - burn rate of the counts x `measured`: 1 untouched, 0 spent, below 0 overspent; null: no decided event."""
    burn: tuple[Burn, ...]
    """Burn rates by alert, the alert with the shortest window first; empty without counts by time."""


class SloList(Listed):
    """All objectives on all targets whose probes measure them."""

    items: tuple[SloAnswer, ...]
    """The objectives."""


class Window(Counts):
    """An objective on a target over one window that ends now.

    Unknown values are null.
    """

    window_s: Annotated[Seconds, Field(examples=[300])]
    """Length of the window, precise to half a minute up to 2 h, to two and a half minutes up to a day, else to half an hour."""
    error_ratio: Ratio | None
    """Share of bad events among good and bad ones."""
    burn_rate: BurnRate | None
    """Burn rate: 1 spends the budget in exactly its period."""
    burn_bounds: Interval | None
    """Bounds of the true burn rate with 95 % confidence (Clopper-Pearson)."""
    exhausted_in_s: Seconds | None
    """Seconds until the budget is spent at this burn rate: 0 if it is spent; null also if no budget is being spent."""


class AlertDay(Answer):
    """State of one alert over the day of the report."""

    severity: Annotated[str, Field(examples=["page"])]
    """Severity of the alert."""
    long_s: Seconds
    """Long window of the alert."""
    short_s: Seconds
    """Short window of the alert."""
    factor: FiniteFloat
    """Burn rate above which it fires."""
    can_fire: bool
    """False if no error ratio can reach that burn rate."""
    state: Annotated[str, Field(examples=["quiet"])]
    """State at the end of the day."""
    firing_minutes: Count
    """Minutes in which it fired."""
    quiet_minutes: Count
    """Minutes in which it was quiet."""
    unknown_minutes: Count
    """Minutes in which its state was unknown."""


class SpenderAnswer(Answer, schema="Spender"):
    """A spender of the error budget on the day of the report."""

    by: Annotated[str, Field(examples=["key"])]
    """Dimension: key, subscription, probe, vantage or region."""
    value: Annotated[str | None, Field(examples=["ordering-3"])]
    """Name of the spender; null for events without one, and for the rest."""
    bad: Count
    """Number of bad events."""
    share: Ratio
    """Share of all bad events of the objective on the target."""
    others: Count
    """0, or the number of unnamed spenders that this row sums up."""


class DetectableAnswer(Answer, schema="Detectable"):
    """Smallest detectable fault rate, computed from the opportunities in the probes' schedule, not measured."""

    within_s: Annotated[Seconds, Field(examples=[3600])]
    """Period of detection."""
    share: Annotated[Ratio, Field(examples=[0.00002])]
    """Smallest rate of independent faults that is detected in this period with 95 % probability."""


class SloTarget(SloAnswer):
    """An objective on one target, in full."""

    windows: tuple[Window, ...]
    """Windows of its alerts and its budget, the shortest first."""
    alerts: tuple[AlertDay, ...]
    """States of its alerts over the day of the newest `slo-burn` report."""
    spenders: tuple[SpenderAnswer, ...]
    """Spenders of the budget on that day, the largest first."""
    detectable: tuple[DetectableAnswer, ...]
    """Smallest detectable fault rates for an hour, a day and 30 days; empty for measuring objectives, and for targets that are not
    configured.
    """


class SloDetail(Answer):
    """An objective, with its status on each probed target."""

    name: Name
    """Name of the objective."""
    indicator: Indicator
    """Indicator of the objective."""
    counted: Annotated[str, Field(examples=["message"])]
    """Unit of the counts."""
    bad_if: Annotated[str, Field(examples=["it was first received out of order"])]
    """Definition of a bad event."""
    objective: Annotated[FiniteFloat, Field(examples=[0.9999])]
    """Required share of good events."""
    budget: Annotated[Ratio, Field(examples=[0.0001])]
    """Permitted share of bad events."""
    threshold_s: Seconds | None
    """Duration from which an event is bad; null for indicators that are no durations."""
    window_s: Annotated[Seconds, Field(examples=[2592000])]
    """Period of the error budget."""
    labels: Labels
    """Free labels."""
    report_day: Day | None
    """Day of the newest `slo-burn` report, the source of `alerts` and `spenders`; null: none."""
    targets: tuple[SloTarget, ...]
    """Status on each target."""


class UptimeAnswer(Answer, schema="Uptime"):
    """Uptime of a target in a month by the definition of Pub/Sub's service level agreement: it covers publishing only."""

    target: Target
    """Name of the target."""
    month: Annotated[str, Field(examples=["2026-03"])]
    """The month, in UTC."""
    is_over: bool
    """Whether the whole month has passed; false: the other fields cover the minutes that have passed."""
    minutes: Annotated[Count, Field(examples=[44640])]
    """Number of minutes of it that have passed."""
    up: Count
    """Number of minutes with a confirmed publish."""
    down: Count
    """Number of minutes with failed publishes in the minute and in both adjacent ones, and no confirmed publish in these three."""
    unknown: Count
    """Number of all other minutes."""
    uptime: Interval
    """Minimum and maximum of the uptime, for any state of the unknown minutes."""
    credit: Interval
    """Minimum and maximum credit by the agreement, as a share of the bill: the tier is known if both are equal."""


class UptimeList(Answer):
    """Uptime of every target by month, the newest month first. A month is missing for a target without counts in it."""

    items: tuple[UptimeAnswer, ...]
    """The months."""
