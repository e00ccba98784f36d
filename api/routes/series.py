"""The charts of the pages, as numbers for programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.exceptions import HTTPException

from api.charts import ChartSpan, TimeRange
from api.dependencies import Snapshot, Stored, StoredSnapshot
from api.lookups import objective_of
from api.models.base import Answer, Count, Part, Probe, Seconds, Target, Time, Vantage
from api.models.slos import Name
from api.query_parameters import ChartParameters, InstanceParameters
from api.recent import bins_of, slices_of
from api.routes.probes import ProbeName
from api.routes.slos import SloName
from api.view import Archive
from prober.runs.probe_instance import InstanceKey
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective, SliCounts

router = APIRouter()


class Longest(Answer):
    """Of several runs each time the longest; of the age of the oldest message all are the same."""

    p50_s: Seconds
    """The median."""
    p99_s: Seconds
    """The 99th percentile."""
    max_s: Seconds
    """The longest of all."""


class PointAnswer(Answer, schema="Point"):
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
    """The durations that those know; an indicator that none of them knows is missing."""


class InstanceSeries(Answer):
    """The durations at one probe instance."""

    target: Target
    """Name of the target."""
    vantage: Vantage
    """From where it looks."""
    part: Part
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    points: tuple[PointAnswer, ...]
    """The oldest first. Where there is none, no run ended."""


class ProbeSeries(Answer):
    """How long things took, over time."""

    name: Probe
    """Name of the probe."""
    range: TimeRange
    """How far back it reaches."""
    bin_s: Seconds
    """How much time a point stands for."""
    probe_instances: tuple[InstanceSeries, ...]
    """Every probe instance that was asked for."""


class SliceAnswer(Answer, schema="Slice"):
    """The counts of a stretch of time."""

    at: Time
    """When it began."""
    good: Count
    """Good."""
    bad: Count
    """Bad."""
    undecided: Count
    """Neither is known."""


class TargetSeries(Answer):
    """The counts of one target."""

    target: Target
    """Name of the target."""
    slices: tuple[SliceAnswer, ...]
    """The oldest first. Where there is none, nothing was counted."""


class SloSeries(Answer):
    """The counts of an objective, over time."""

    name: Name
    """Name of the objective."""
    range: TimeRange
    """How far back it reaches."""
    slice_s: Seconds
    """How much time a slice is."""
    targets: tuple[TargetSeries, ...]
    """Every target on which something was counted."""


@router.get("/probes/{name}/series", tags=["probes"], response_description="The durations.")
def probe_series(
    archive: Stored, snapshot: Snapshot, name: ProbeName, asked: Annotated[InstanceParameters, Query()]
) -> ProbeSeries:
    """How long publishing and delivery took, and how old the oldest message became, over time."""
    instances = [
        instance.probe_instance.key
        for instance in snapshot.probe_instances
        if instance.probe_instance.probe == name and asked.agrees(instance.probe_instance)
    ]
    if not instances:
        raise HTTPException(404, f"no probe runs as {name} there; /api/v1/probes has those that do")
    span = asked.span(snapshot)
    found = tuple(_of_instance(archive, instance, span) for instance in instances)
    return ProbeSeries(name=name, range=span.reach, bin_s=span.bin_s, probe_instances=found)


@router.get("/slos/{name}/series", tags=["objectives"], response_description="The counts.")
def slo_series(archive: Stored, snapshot: StoredSnapshot, name: SloName, asked: Annotated[ChartParameters, Query()]) -> SloSeries:
    """The good, bad and undecided counts of each target, over time."""
    return _of_objective(archive, objective_of(archive, name), asked.span(snapshot))


def _of_instance(archive: Archive, instance: InstanceKey, span: ChartSpan) -> InstanceSeries:
    points = tuple(map(PointAnswer.model_validate, bins_of(archive, instance, span)))
    return InstanceSeries(target=instance.target, vantage=instance.vantage, part=instance.part, points=points)


def _of_objective(archive: Archive, objective: Objective, span: ChartSpan) -> SloSeries:
    found = sorted(slices_of(archive, objective, span).items())
    targets = tuple(TargetSeries(target=target, slices=_slices(counted)) for target, counted in found)
    return SloSeries(name=objective.name, range=span.reach, slice_s=span.reach.slice_s, targets=targets)


def _slices(counted: Mapping[float, SliCounts]) -> tuple[SliceAnswer, ...]:
    return tuple(
        SliceAnswer(at=datetime.fromtimestamp(at, UTC), good=one.good, bad=one.bad, undecided=one.undecided)
        for at, one in sorted(counted.items())
    )
