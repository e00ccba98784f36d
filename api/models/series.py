"""What the charts of the pages show, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from api.charts import TimeRange
from api.models.base import Answer, Count, Part, Probe, Seconds, Target, Time, Vantage
from api.models.slos import Name
from prober.slo.indicators import Indicator


class Longest(Answer):
    """Of several runs each time the longest; of the age of the oldest message all are the same."""

    p50_s: Seconds
    """What half did not exceed."""
    p99_s: Seconds
    """What 99 % did not exceed."""
    max_s: Seconds
    """The longest of all."""


class Point(Answer):
    """The runs of a stretch of time in which at least one ended."""

    first_at: Time
    """When the first of them ended."""
    last_at: Time
    """When the last one did."""
    runs: Count
    """How many there are."""
    known: Annotated[Mapping[Indicator, int], Field(examples=[{"publish_latency": 2}])]
    """How many of them know of it."""
    durations: Mapping[Indicator, Longest]
    """What those know; what none of them knows is missing."""


class SiteSeries(Answer):
    """The durations at one site."""

    target: Target
    """Name of the target."""
    vantage: Vantage
    """From where it looks."""
    part: Part
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    points: tuple[Point, ...]
    """The oldest first. Where there is none, no run ended."""


class ProbeSeries(Answer):
    """How long things took, over time."""

    name: Probe
    """Name of the probe."""
    range: TimeRange
    """How far back it reaches."""
    bin_s: Seconds
    """How much time a point stands for."""
    sites: tuple[SiteSeries, ...]
    """Every site that was asked for."""


class Slice(Answer):
    """What was counted in a stretch of time."""

    at: Time
    """When it began."""
    good: Count
    """Good."""
    bad: Count
    """Bad."""
    undecided: Count
    """Neither is known."""


class TargetSeries(Answer):
    """What was counted on one target."""

    target: Target
    """Name of the target."""
    slices: tuple[Slice, ...]
    """The oldest first. Where there is none, nothing was counted."""


class SloSeries(Answer):
    """What was counted for an objective, over time."""

    name: Name
    """Name of the objective."""
    range: TimeRange
    """How far back it reaches."""
    slice_s: Seconds
    """How much time a slice is."""
    targets: tuple[TargetSeries, ...]
    """Every target on which something was counted."""
