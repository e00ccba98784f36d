"""Targets that are compared, such as a canary with production."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.current_status import CurrentStatus
from api.models.comparisons import Comparison, ComparisonList
from api.query_parameters import QueryParameters
from api.response_cache import ResponseCache
from api.view import Archive
from prober.comparison.words import comparison_as_document


def router(answers: ResponseCache, current: CurrentStatus, archive: Archive) -> APIRouter:
    """`GET /comparisons`."""
    routes = APIRouter(tags=["comparisons"])

    @routes.get("/comparisons", response_model=ComparisonList, response_description="The comparisons.")
    async def comparisons(request: Request, _: Annotated[QueryParameters, Query()]) -> Response:
        """Every comparison of the configuration: is the candidate no worse, worse, or can nobody tell yet?"""
        now = (await current.snapshot()).at

        def found() -> ComparisonList:
            documents = map(comparison_as_document, archive.compared(now))
            return ComparisonList(items=tuple(map(Comparison.model_validate, documents)))

        return await answers.answer(request, found)

    return routes
