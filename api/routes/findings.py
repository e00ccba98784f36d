"""Findings, and the evidence for each, to take away: as a trace file and as a drawing."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from api.dependencies import Stored
from api.finding_case import case_of, showing
from api.lookups import finding_of, page_asked
from api.middleware import DRAWING_POLICY
from api.models.findings import FindingDetail, FindingPage, trace_file_name
from api.query_parameters import EvidenceParameters, FindingParameters, QueryParameters
from api.support_bundle import SupportBundle
from api.swim_lanes import NoDiagram, swim_lanes
from api.view import Archive
from prober.sinks.status.records import FindingRecord, Shown

TRACE: Final = "application/jsonl"
DRAWING: Final = "image/svg+xml"
BUNDLE: Final = "application/zip"

FindingName = Annotated[str, Path(max_length=200, description="Its `finding_id`.", examples=["ordering-1f3a9c02-1"])]

router = APIRouter(tags=["findings"])


@router.get("/findings", response_description="A page of findings.")
def findings(request: Request, response: Response, archive: Stored, asked: Annotated[FindingParameters, Query()]) -> FindingPage:
    """Findings, by when they were found, the newest first. Information is only counted, in its run."""
    return FindingPage.model_validate(page_asked(archive.queries.findings, asked, request, response))


@router.get("/findings/{finding_id}", response_description="The evidence.")
def finding(archive: Stored, finding_id: FindingName, _: Annotated[QueryParameters, Query()]) -> FindingDetail:
    """A finding with everything that is needed to believe it, or to doubt it.

    That is the smallest history that shows it, the witnesses in it, the bounds that it relies on, and how the prober was.
    """
    record = finding_of(archive, finding_id)
    return FindingDetail.of(record, archive.queries.run(record.run_id))


@router.get(
    "/findings/{finding_id}/trace",
    response_class=Response,
    responses={200: {"description": "The trace file.", "content": {TRACE: {"schema": {"type": "string"}}}}},
)
def trace(archive: Stored, finding_id: FindingName, asked: Annotated[EvidenceParameters, Query()]) -> Response:
    """The evidence as a trace file; if it is proven, `ordering-prober verify` comes to the same finding."""
    record = _shown(archive, finding_id, asked.show)
    if record.evidence is None:
        raise HTTPException(404, f"there is no trace of {finding_id}: {record.unproven_because}")
    name = f'attachment; filename="{trace_file_name(finding_id, asked.show)}.jsonl"'
    return Response(record.evidence.trace, headers={"Content-Disposition": name}, media_type=TRACE)


@router.get(
    "/findings/{finding_id}/diagram.svg",
    response_class=Response,
    responses={200: {"description": "The drawing.", "content": {DRAWING: {"schema": {"type": "string"}}}}},
)
def drawing(archive: Stored, finding_id: FindingName, asked: Annotated[EvidenceParameters, Query()]) -> Response:
    """The evidence as a drawing: publisher, service and subscribers, what went between them, and what is wrong."""
    try:
        drawn = swim_lanes(_shown(archive, finding_id, asked.show))
    except NoDiagram as why:
        raise HTTPException(404, f"there is no drawing of {finding_id}: {why}") from None
    return Response(drawn, headers={"Content-Security-Policy": DRAWING_POLICY}, media_type=DRAWING)


@router.get(
    "/findings/{finding_id}/bundle",
    response_class=Response,
    responses={200: {"description": "A zip file.", "content": {BUNDLE: {"schema": {"type": "string", "format": "binary"}}}}},
)
def bundle(archive: Stored, finding_id: FindingName, _: Annotated[QueryParameters, Query()]) -> Response:
    """The support bundle of a finding.

    It contains the trace, its events in UTC, the diagram, the settings, and the commands that repeat the run.
    """
    record = finding_of(archive, finding_id)
    instance = next(
        (
            reported.probe_instance
            for reported in archive.queries.probe_instances()
            if reported.probe_instance.key == record.probe_instance
        ),
        None,
    )
    packed = SupportBundle(case_of(record, archive.queries.run(record.run_id), None), instance).as_zip()
    name = f'attachment; filename="{trace_file_name(finding_id)}.zip"'
    return Response(packed, headers={"Content-Disposition": name}, media_type=BUNDLE)


def _shown(archive: Archive, finding_id: str, shown: Shown) -> FindingRecord:
    """A finding with the evidence that is asked for; 404 if there is no such finding."""
    return showing(finding_of(archive, finding_id), shown)
