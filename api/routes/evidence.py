"""The evidence for a finding, to take away: as a trace file and as a drawing."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response
from starlette.exceptions import HTTPException

from api.archive import Archive
from api.headers import DRAWING_POLICY
from api.lanes import NoDiagram, diagram
from api.models.findings import file_name
from api.query_parameters import Question
from api.response_cache import Answering
from prober.sinks.status.records import FindingRecord

TRACE: Final = "application/jsonl"
DRAWING: Final = "image/svg+xml"

FindingName = Annotated[str, Path(max_length=200, description="Its `finding_id`.", examples=["ordering-1f3a9c02-1"])]


def finding_of(archive: Archive, finding_id: str) -> FindingRecord:
    """A finding as it is kept; 404 if it is not."""
    record = archive.queries.finding(finding_id)
    if record is None:
        raise HTTPException(404, f"no finding is called {finding_id}; it may not be kept any more")
    return record


def router(answering: Answering, archive: Archive) -> APIRouter:
    """`GET /findings/{finding_id}/trace` and `GET /findings/{finding_id}/diagram.svg`."""
    routes = APIRouter(tags=["findings"])

    @routes.get(
        "/findings/{finding_id}/trace",
        response_class=Response,
        responses={200: {"description": "The trace file.", "content": {TRACE: {"schema": {"type": "string"}}}}},
    )
    async def trace(finding_id: FindingName, _: Annotated[Question, Query()]) -> Response:
        """The evidence as a trace file, which `ordering-prober verify` judges the same, if it is proven."""

        def make() -> bytes:
            text = archive.queries.trace(finding_id)
            if text is None:
                raise HTTPException(404, f"there is no trace of {finding_id}: {finding_of(archive, finding_id).unproven_because}")
            return text.encode()

        name = f'attachment; filename="{file_name(finding_id)}.jsonl"'
        return Response(await answering.ask(make), headers={"Content-Disposition": name}, media_type=TRACE)

    @routes.get(
        "/findings/{finding_id}/diagram.svg",
        response_class=Response,
        responses={200: {"description": "The drawing.", "content": {DRAWING: {"schema": {"type": "string"}}}}},
    )
    async def drawing(finding_id: FindingName, _: Annotated[Question, Query()]) -> Response:
        """The evidence as a drawing: publisher, service and subscribers, what went between them, and what is wrong."""

        def make() -> bytes:
            try:
                return diagram(finding_of(archive, finding_id)).encode()
            except NoDiagram as why:
                raise HTTPException(404, f"there is no drawing of {finding_id}: {why}") from None

        headers = {"Content-Security-Policy": DRAWING_POLICY}
        return Response(await answering.ask(make), headers=headers, media_type=DRAWING)

    return routes
