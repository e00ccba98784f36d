"""Findings, and the evidence for each, to take away: as a trace file and as a drawing."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from api.finding_case import ROWS_MAX, case_of, showing
from api.headers import DRAWING_POLICY
from api.listed_pages import encode_page
from api.models.findings import FindingAnswer, FindingDetail, FindingPage, trace_file_name
from api.query_parameters import EvidenceParameters, FindingParameters, QueryParameters, Shown
from api.response_cache import EncodedAnswer, ResponseCache
from api.support_bundle import SupportBundle
from api.swim_lanes import NoDiagram, swim_lanes
from api.view import Archive
from prober.sinks.status.records import FindingRecord

TRACE: Final = "application/jsonl"
DRAWING: Final = "image/svg+xml"
BUNDLE: Final = "application/zip"

FindingName = Annotated[str, Path(max_length=200, description="Its `finding_id`.", examples=["ordering-1f3a9c02-1"])]


def router(answers: ResponseCache, archive: Archive) -> APIRouter:
    """`GET /findings` and `GET /findings/{finding_id}`, and its `/trace`, `/diagram.svg` and `/bundle`."""
    routes = APIRouter(tags=["findings"])

    @routes.get("/findings", response_model=FindingPage, response_description="A page of findings.")
    async def findings(request: Request, asked: Annotated[FindingParameters, Query()]) -> Response:
        """Findings, by when they were found, the newest first. Information is only counted, in its run."""

        def make() -> EncodedAnswer:
            page = archive.queries.listed_findings(asked.wanted, limit=asked.limit, cursor=asked.cursor)
            return encode_page(page, FindingAnswer)

        return await answers.encoded(request, make)

    @routes.get("/findings/{finding_id}", response_model=FindingDetail, response_description="The evidence.")
    async def finding(request: Request, finding_id: FindingName, _: Annotated[QueryParameters, Query()]) -> Response:
        """A finding with everything that is needed to believe it, or to doubt it.

        That is the smallest history that shows it, the witnesses in it, the bounds that it relies on, and how the prober was.
        """

        def make() -> FindingDetail:
            record = _finding_of(archive, finding_id)
            return FindingDetail.of(record, archive.queries.run(record.run_id))

        return await answers.answer(request, make)

    _add_evidence(routes, answers, archive)
    _add_bundle(routes, answers, archive)
    return routes


def _add_evidence(routes: APIRouter, answers: ResponseCache, archive: Archive) -> None:
    """`GET /findings/{finding_id}/trace` and `GET /findings/{finding_id}/diagram.svg`."""

    @routes.get(
        "/findings/{finding_id}/trace",
        response_class=Response,
        responses={200: {"description": "The trace file.", "content": {TRACE: {"schema": {"type": "string"}}}}},
    )
    async def trace(finding_id: FindingName, asked: Annotated[EvidenceParameters, Query()]) -> Response:
        """The evidence as a trace file, which `ordering-prober verify` judges the same, if it is proven."""

        def make() -> bytes:
            record = showing(_finding_of(archive, finding_id, on_key=asked.show is Shown.KEY), asked.show)
            if record.evidence is None:
                raise HTTPException(404, f"there is no trace of {finding_id}: {record.unproven_because}")
            return record.evidence.trace.encode()

        name = f'attachment; filename="{trace_file_name(finding_id, asked.show)}.jsonl"'
        return Response(await answers.ask(make), headers={"Content-Disposition": name}, media_type=TRACE)

    @routes.get(
        "/findings/{finding_id}/diagram.svg",
        response_class=Response,
        responses={200: {"description": "The drawing.", "content": {DRAWING: {"schema": {"type": "string"}}}}},
    )
    async def drawing(finding_id: FindingName, asked: Annotated[EvidenceParameters, Query()]) -> Response:
        """The evidence as a drawing: publisher, service and subscribers, what went between them, and what is wrong."""

        def make() -> bytes:
            try:
                record = showing(_finding_of(archive, finding_id, on_key=asked.show is Shown.KEY), asked.show)
                return swim_lanes(record, rows_max=ROWS_MAX[asked.show]).encode()
            except NoDiagram as why:
                raise HTTPException(404, f"there is no drawing of {finding_id}: {why}") from None

        headers = {"Content-Security-Policy": DRAWING_POLICY}
        return Response(await answers.ask(make), headers=headers, media_type=DRAWING)


def _add_bundle(routes: APIRouter, answers: ResponseCache, archive: Archive) -> None:
    """`GET /findings/{finding_id}/bundle`."""

    @routes.get(
        "/findings/{finding_id}/bundle",
        response_class=Response,
        responses={200: {"description": "A zip file.", "content": {BUNDLE: {"schema": {"type": "string", "format": "binary"}}}}},
    )
    async def bundle(finding_id: FindingName, _: Annotated[QueryParameters, Query()]) -> Response:
        """All that whoever runs the service asks for: the trace, its events in UTC, the drawing, the settings, how to repeat it."""

        def make() -> bytes:
            record = _finding_of(archive, finding_id, on_key=True)
            site = next((told.site for told in archive.queries.sites() if told.site.key == record.site), None)
            return SupportBundle(case_of(record, archive.queries.run(record.run_id), None), site).as_zip()

        name = f'attachment; filename="{trace_file_name(finding_id)}.zip"'
        return Response(await answers.ask(make), headers={"Content-Disposition": name}, media_type=BUNDLE)


def _finding_of(archive: Archive, finding_id: str, *, on_key: bool = False) -> FindingRecord:
    """A finding as it is kept; 404 if it is not."""
    record = archive.queries.finding(finding_id, on_key=on_key)
    if record is None:
        raise HTTPException(404, f"no finding is called {finding_id}; it may not be kept any more")
    return record
