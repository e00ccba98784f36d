"""HTML pages. They are rendered on the server, from the same store and the same snapshot as the responses for programs."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from api.dependencies import Contents, Snapshot, StoredSnapshot
from api.problems import wrong
from api.query_parameters import (
    ChartParameters,
    EvidenceParameters,
    FindingParameters,
    HotKeyPageParameters,
    IncidentParameters,
    InstanceParameters,
    QueryParameters,
    RunParameters,
)
from api.runbooks import Reader
from api.templates import rendered_page, root_of
from api.view_models import Values

_FORM_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)

Asked = TypeVar("Asked", bound=QueryParameters)

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


async def as_page(request: Request) -> None:
    """Mark errors of a request to be answered with a page, unless the client prefers data. A dependency."""
    request.state.is_page = True


# --- current state ---------------------------------------------------------------------------------------------------------------


@router.get("/")
def status_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of the current status."""
    return _page(request, "status.html", contents.status(_asked(request, ChartParameters), snapshot))


@router.get("/findings")
def findings_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of findings, newest first."""
    return _page(request, "findings.html", contents.findings(_asked(request, FindingParameters), snapshot))


@router.get("/incidents")
def incidents_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of incidents, newest first."""
    return _page(request, "incidents.html", contents.incidents(_asked(request, IncidentParameters), snapshot))


@router.get("/incidents/{incident_id}")
def incident_page(request: Request, contents: Contents, snapshot: Snapshot, incident_id: str) -> HTMLResponse:
    """Return the page of one incident."""
    return _page(request, "incident.html", contents.incident(incident_id, snapshot))


@router.get("/runs")
def runs_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of runs, newest first."""
    return _page(request, "runs.html", contents.runs(_asked(request, RunParameters), snapshot))


@router.get("/hot-keys")
def hot_keys_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of the hot keys of a day, and the current top keys of observed streams."""
    return _page(request, "hot_keys.html", contents.hot_keys(_asked(request, HotKeyPageParameters), snapshot))


# --- objectives and probes -------------------------------------------------------------------------------------------------------


@router.get("/slos")
def objectives_page(request: Request, contents: Contents, snapshot: StoredSnapshot) -> HTMLResponse:
    """Return the page of all objectives."""
    return _page(request, "slos.html", contents.objectives(snapshot))


@router.get("/slos/{name}")
def objective_page(request: Request, contents: Contents, snapshot: StoredSnapshot, name: str) -> HTMLResponse:
    """Return the page of one objective."""
    return _page(request, "slo.html", contents.objective(name, _asked(request, ChartParameters), snapshot))


@router.get("/comparisons")
def comparisons_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of comparisons of targets."""
    return _page(request, "comparisons.html", contents.comparisons(snapshot))


@router.get("/probes")
def probes_page(request: Request, contents: Contents, snapshot: Snapshot) -> HTMLResponse:
    """Return the page of all probe instances, by probe."""
    return _page(request, "probes.html", contents.probe_instances(snapshot))


@router.get("/probes/{probe:path}")
def probe_page(request: Request, contents: Contents, snapshot: Snapshot, probe: str) -> HTMLResponse:
    """Return the page of the probe instances of a probe; in full, if only one matches."""
    asked = _validated(InstanceParameters, dict(request.query_params))  # an empty part is a filter too
    return _page(request, "probe.html", contents.probe(probe, asked, snapshot))


# --- past records ----------------------------------------------------------------------------------------------------------------


@router.get("/findings/{finding_id}")
def finding_page(request: Request, contents: Contents, snapshot: Snapshot, finding_id: str) -> HTMLResponse:
    """Return the page of one finding with all its data."""
    return _page(request, "finding.html", contents.finding(finding_id, _asked(request, EvidenceParameters).show, snapshot))


@router.get("/runs/{run_id}")
def run_page(request: Request, contents: Contents, run_id: str) -> HTMLResponse:
    """Return the page of one run."""
    return _page(request, "run.html", contents.run(run_id))


@router.get("/keys")
def key_page(request: Request, contents: Contents, key: Annotated[str, Query()] = "") -> HTMLResponse:
    """Return the page of the findings on a key."""
    return _page(request, "key.html", contents.key(key))


@router.get("/runbooks")
def runbooks_page(request: Request, contents: Contents) -> HTMLResponse:
    """Return the page of all runbooks."""
    return _page(request, "runbooks.html", contents.books(_reader(request)))


@router.get("/runbooks/{name}")
def runbook_page(request: Request, contents: Contents, name: str) -> HTMLResponse:
    """Return the page of an alert's runbook, with its placeholders filled in from the query."""
    return _page(request, "runbook.html", contents.book(name, _reader(request)))


@router.get("/docs")
def reference_page(request: Request) -> HTMLResponse:
    """Return the page of operations and responses of the API."""
    return _page(request, "docs.html", {"document": request.app.openapi()})


def _reader(request: Request) -> Reader:
    return Reader(root_of(request), str(request.base_url), request.query_params)


def _page(request: Request, template: str, values: Values) -> HTMLResponse:
    return rendered_page(template, {"root": root_of(request), "address": request.base_url, **values})


def _asked(request: Request, question: type[Asked]) -> Asked:
    """Return the parameters of the address, without those that a form leaves empty, and with times in UTC. Raises `HTTPException`."""
    given = {name: value for name, value in request.query_params.items() if value}
    return _validated(question, {name: _in_utc(value) if name in {"since", "until"} else value for name, value in given.items()})


def _validated(question: type[Asked], given: dict[str, str]) -> Asked:
    try:
        return question.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise HTTPException(400, "; ".join(wrong({**one, "loc": ("query", *one["loc"])}) for one in found)) from None


def _in_utc(value: str) -> str:
    """Return a time with its zone: a field of a form contains none, and leaves out seconds that are 0."""
    return f"{value}{':00' * (len(value) == 16)}Z" if _FORM_TIME.fullmatch(value) else value
