"""Ended runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api.dependencies import Stored
from api.lookups import page_asked, run_of
from api.models.runs import RunDetail, RunPage
from api.query_parameters import QueryParameters, RunParameters

router = APIRouter(tags=["runs"])

RunName = Annotated[str, Path(max_length=200, description="Its `run_id`.", examples=["ordering-1f3a9c02"])]


@router.get("/runs", response_description="A page of runs.")
def runs(request: Request, response: Response, archive: Stored, asked: Annotated[RunParameters, Query()]) -> RunPage:
    """List ended runs by start, the newest first."""
    return RunPage.model_validate(page_asked(archive.queries.runs, asked, request, response))


@router.get("/runs/{run_id}", response_description="The run.")
def run(archive: Stored, run_id: RunName, _: Annotated[QueryParameters, Query()]) -> RunDetail:
    """Return one run with all its counts."""
    return RunDetail.model_validate(run_of(archive, run_id))
