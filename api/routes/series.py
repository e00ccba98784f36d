"""Charts of the pages, as numbers for programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.exceptions import HTTPException

from api.charts import TimeRange
from api.dependencies import Snapshot, Stored, StoredSnapshot
from api.lookups import objective_of
from api.models.base import Answer, Count, Counts, OfPlace, Probe, Seconds, Target, Time
from api.models.slos import Name
from api.query_parameters import ChartParameters, InstanceParameters
from api.recent import bins_of, slices_of
from api.routes.probes import ProbeName
from api.routes.slos import SloName
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

router = APIRouter()


class Longest(Answer):
    """Maxima over several runs; for the age of the oldest message all three values are equal."""

    p50_s: Seconds
    """Largest median."""
    p99_s: Seconds
    """Largest 99th percentile."""
    max_s: Seconds
    """Largest maximum."""


class PointAnswer(Answer, schema="Point"):
    """Runs of a period in which at least one ended."""

    first_at: Time
    """End of the first run."""
    last_at: Time
    """End of the last run."""
    runs: Count
    """Number of runs."""
    known: Annotated[Mapping[Indicator, int], Field(examples=[{"publish_latency": 2}])]
    """Number of runs with a measurement, by indicator."""
    durations: Mapping[Indicator, Longest]
    """Durations of these runs; an indicator without a measurement is missing."""


class InstanceSeries(OfPlace):
    """Durations at one probe instance."""

    points: tuple[PointAnswer, ...]
    """Points, the oldest first; periods without ended runs have none."""


class ProbeSeries(Answer):
    """Durations of a probe, over time."""

    name: Probe
    """Name of the probe."""
    range: TimeRange
    """Length of the period."""
    bin_s: Seconds
    """Period of a point."""
    probe_instances: tuple[InstanceSeries, ...]
    """All requested probe instances."""


class SliceAnswer(Counts, schema="Slice"):
    """Counts of a period."""

    at: Time
    """Start of the period."""


class TargetSeries(Answer):
    """Counts of one target."""

    target: Target
    """Name of the target."""
    slices: tuple[SliceAnswer, ...]
    """Slices, the oldest first; periods without counts have none."""


class SloSeries(Answer):
    """Counts of an objective, over time."""

    name: Name
    """Name of the objective."""
    range: TimeRange
    """Length of the period."""
    slice_s: Seconds
    """Period of a slice."""
    targets: tuple[TargetSeries, ...]
    """All targets with counts."""


@router.get("/probes/{name}/series", tags=["probes"], response_description="The durations.")
def probe_series(
    archive: Stored, snapshot: Snapshot, name: ProbeName, asked: Annotated[InstanceParameters, Query()]
) -> ProbeSeries:
    """Return latencies of publishes and deliveries, and the age of the oldest message, over time."""
    instances = [
        instance.probe_instance.key
        for instance in snapshot.probe_instances
        if instance.probe_instance.probe == name and asked.agrees(instance.probe_instance)
    ]
    if not instances:
        raise HTTPException(404, f"no probe runs as {name} there; /api/v1/probes has those that do")
    span = asked.span(snapshot)
    found = tuple(
        InstanceSeries(
            target=instance.target,
            vantage=instance.vantage,
            part=instance.part,
            points=tuple(map(PointAnswer.model_validate, bins_of(archive, instance, span))),
        )
        for instance in instances
    )
    return ProbeSeries(name=name, range=span.reach, bin_s=span.bin_s, probe_instances=found)


@router.get("/slos/{name}/series", tags=["objectives"], response_description="The counts.")
def slo_series(archive: Stored, snapshot: StoredSnapshot, name: SloName, asked: Annotated[ChartParameters, Query()]) -> SloSeries:
    """Return the good, bad and undecided counts of each target, over time."""
    span = asked.span(snapshot)
    found = sorted(slices_of(archive, objective_of(archive, name), span).items())
    targets = tuple(TargetSeries(target=target, slices=_slices(counted)) for target, counted in found)
    return SloSeries(name=name, range=span.reach, slice_s=span.reach.slice_s, targets=targets)


def _slices(counted: Mapping[float, SliCounts]) -> tuple[SliceAnswer, ...]:
    return tuple(
        SliceAnswer(at=datetime.fromtimestamp(at, UTC), good=one.good, bad=one.bad, undecided=one.undecided)
        for at, one in sorted(counted.items())
    )
