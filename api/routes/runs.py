"""Runs that have ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from api.listed_pages import encode_page
from api.models.runs import RunAnswer, RunDetail, RunPage
from api.query_parameters import QueryParameters, RunParameters
from api.response_cache import EncodedAnswer, ResponseCache
from api.view import Archive

RunName = Annotated[str, Path(max_length=200, description="Its `run_id`.", examples=["ordering-1f3a9c02"])]


def router(answers: ResponseCache, archive: Archive) -> APIRouter:
    """`GET /runs` and `GET /runs/{run_id}`."""
    routes = APIRouter(tags=["runs"])

    @routes.get("/runs", response_model=RunPage, response_description="A page of runs.")
    async def runs(request: Request, asked: Annotated[RunParameters, Query()]) -> Response:
        """Runs that have ended, by when they began, the newest first."""

        def make() -> EncodedAnswer:
            page = archive.queries.listed_runs(asked.wanted, limit=asked.limit, cursor=asked.cursor)
            return encode_page(page, RunAnswer)

        return await answers.encoded(request, make)

    @routes.get("/runs/{run_id}", response_model=RunDetail, response_description="The run.")
    async def run(request: Request, run_id: RunName, _: Annotated[QueryParameters, Query()]) -> Response:
        """One run, with everything that was counted in it."""

        def make() -> RunDetail:
            record = archive.queries.run(run_id)
            if record is None:
                raise HTTPException(
                    404, f"no run is called {run_id}; it may not have ended, have ended under maintenance, or not be kept any more"
                )
            return RunDetail.of(record)

        return await answers.answer(request, make)

    return routes
