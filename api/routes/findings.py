"""Findings, and the dossier of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.archive import Archive
from api.models.findings import Dossier, FindingPage
from api.query_parameters import FindingQuestion, Question
from api.response_cache import Answering
from api.routes.evidence import FindingName, finding_of


def router(answering: Answering, archive: Archive) -> APIRouter:
    """`GET /findings` and `GET /findings/{finding_id}`."""
    routes = APIRouter(tags=["findings"])

    @routes.get("/findings", response_model=FindingPage, response_description="A page of findings.")
    async def findings(request: Request, asked: Annotated[FindingQuestion, Query()]) -> Response:
        """Findings, by when they were found, the newest first. Information is only counted, in its run."""

        def make() -> FindingPage:
            page = archive.queries.listed_findings(asked.wanted, limit=asked.limit, cursor=asked.cursor)
            return FindingPage.model_validate(page)

        return await answering.answer(request, make)

    @routes.get("/findings/{finding_id}", response_model=Dossier, response_description="The evidence.")
    async def finding(request: Request, finding_id: FindingName, _: Annotated[Question, Query()]) -> Response:
        """A finding with everything that is needed to believe it, or to doubt it.

        That is the smallest history that shows it, the witnesses in it, the bounds that it relies on, and how the prober was.
        """

        def make() -> Dossier:
            record = finding_of(archive, finding_id)
            return Dossier.of(record, archive.queries.run(record.run_id))

        return await answering.answer(request, make)

    return routes
