"""Findings, with their evidence as a trace file and as a diagram."""

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
    """List findings by time, the newest first. Findings of status info are only counted, in their run."""
    return FindingPage.model_validate(page_asked(archive.queries.findings, asked, request, response))


@router.get("/findings/{finding_id}", response_description="The evidence.")
def finding(archive: Stored, finding_id: FindingName, _: Annotated[QueryParameters, Query()]) -> FindingDetail:
    """Return a finding with all data that is needed to confirm or refute it.

    That is the minimal reproduction, the witnesses in it, the bounds that it relies on, and the state of the prober.
    """
    record = finding_of(archive, finding_id)
    return FindingDetail.of(record, archive.queries.run(record.run_id))


@router.get(
    "/findings/{finding_id}/trace",
    response_class=Response,
    responses={200: {"description": "The trace file.", "content": {TRACE: {"schema": {"type": "string"}}}}},
)
def trace(archive: Stored, finding_id: FindingName, asked: Annotated[EvidenceParameters, Query()]) -> Response:
    """Return the evidence as a trace file; if it is proven, `ordering-prober verify` makes the same finding."""
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
    """Return the evidence as a diagram: publisher, service and subscribers, their messages, and the fault."""
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
    """Return the support bundle of a finding.

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
    return showing(finding_of(archive, finding_id), shown)
