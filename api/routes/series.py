"""What the charts of the pages show, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException

from api.charts import Span
from api.current_status import CurrentStatus
from api.models.series import Point, ProbeSeries, SiteSeries, Slice, SloSeries, TargetSeries
from api.query_parameters import ChartParameters, SiteParameters
from api.recent import bins_of, tallies_of
from api.response_cache import ResponseCache
from api.routes.probes import ProbeName
from api.routes.slos import SloName, objective_called
from api.view import Archive
from prober.runs.site import SiteKey
from prober.slo.objectives import Objective, SliCounts


def router(answers: ResponseCache, current: CurrentStatus, archive: Archive) -> APIRouter:
    """`GET /probes/{name}/series` and `GET /slos/{name}/series`."""
    routes = APIRouter()

    @routes.get("/probes/{name}/series", tags=["probes"], response_model=ProbeSeries, response_description="The durations.")
    async def probe_series(request: Request, name: ProbeName, asked: Annotated[SiteParameters, Query()]) -> Response:
        """How long publishing and delivery took, and how old the oldest message became, over time."""
        snapshot = await current.snapshot()
        sites = [site.site.key for site in snapshot.sites if site.site.probe == name and asked.agrees(site.site)]
        if not sites:
            raise HTTPException(404, f"no probe runs as {name} there; /api/v1/probes has those that do")
        span = asked.span(snapshot)

        def make() -> ProbeSeries:
            found = tuple(_of_site(archive, site, span) for site in sites)
            return ProbeSeries(name=name, range=span.reach, bin_s=span.bin_s, sites=found)

        return await answers.answer(request, make)

    @routes.get("/slos/{name}/series", tags=["objectives"], response_model=SloSeries, response_description="The counts.")
    async def slo_series(request: Request, name: SloName, asked: Annotated[ChartParameters, Query()]) -> Response:
        """What was good, bad and undecided on each target, over time."""
        objective, span = objective_called(name, archive), asked.span(await current.snapshot())
        return await answers.answer(request, lambda: _of_objective(archive, objective, span))

    return routes


def _of_site(archive: Archive, site: SiteKey, span: Span) -> SiteSeries:
    points = tuple(map(Point.model_validate, bins_of(archive, site, span)))
    return SiteSeries(target=site.target, vantage=site.vantage, part=site.part, points=points)


def _of_objective(archive: Archive, objective: Objective, span: Span) -> SloSeries:
    found = sorted(tallies_of(archive, objective, span).items())
    targets = tuple(TargetSeries(target=target, slices=_slices(counted)) for target, counted in found)
    return SloSeries(name=objective.name, range=span.reach, slice_s=span.reach.slice_s, targets=targets)


def _slices(counted: Mapping[float, SliCounts]) -> tuple[Slice, ...]:
    return tuple(
        Slice(at=datetime.fromtimestamp(at, UTC), good=tally.good, bad=tally.bad, undecided=tally.undecided)
        for at, tally in sorted(counted.items())
    )
