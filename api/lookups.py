"""Pages of records, and records and objectives by name, for programs and pages. An unknown name raises 404."""

from __future__ import annotations

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from api.middleware import link_next
from api.query_parameters import ListParameters
from api.view import Archive
from prober.errors import no_such
from prober.sinks.live.incidents import Incident
from prober.sinks.status.listings import Item, Page
from prober.sinks.status.records import FindingRecord, RunRecord
from prober.slo.objectives import Objective


def page_asked(
    ask: Callable[..., Page[Item]],
    asked: ListParameters,
    request: Request,
    response: Response,
) -> Page[Item]:
    """Return the requested page of a list. The response links the next page."""
    page = ask(asked.wanted, limit=asked.limit, cursor=asked.cursor)
    link_next(request, response, page.next_cursor)
    return page


def run_of(archive: Archive, run_id: str) -> RunRecord:
    """Return a stored run."""
    run = archive.queries.run(run_id)
    if run is None:
        why = "it may not have ended, have ended under maintenance, or not be kept any more"
        raise HTTPException(404, f"no run is called {run_id}; {why}")
    return run


def finding_of(archive: Archive, finding_id: str) -> FindingRecord:
    """Return a finding with its evidence."""
    record = archive.queries.finding(finding_id)
    if record is None:
        raise HTTPException(404, f"no finding is called {finding_id}; it may not be kept any more")
    return record


def incident_of(archive: Archive, incident_id: str) -> Incident:
    """Return a stored incident."""
    incident = archive.queries.incident(incident_id)
    if incident is None:
        raise HTTPException(404, f"no incident is called {incident_id}; it may not be kept any more")
    return incident


def objective_of(archive: Archive, name: str) -> Objective:
    """Return the objective of this name."""
    objective = next((one for one in archive.objectives if one.name == name), None)
    if objective is None:
        raise HTTPException(404, no_such("objective", name, [one.name for one in archive.objectives]))
    return objective
