"""Records and objectives by name, for programs and for people. Each function raises a 404 where there is none."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from api.view import Archive
from prober.sinks.live.incidents import Incident
from prober.sinks.status.records import FindingRecord, RunRecord
from prober.slo.objectives import Objective


def run_of(archive: Archive, run_id: str) -> RunRecord:
    """A run as it is kept."""
    run = archive.queries.run(run_id)
    if run is None:
        why = "it may not have ended, have ended under maintenance, or not be kept any more"
        raise HTTPException(404, f"no run is called {run_id}; {why}")
    return run


def finding_of(archive: Archive, finding_id: str) -> FindingRecord:
    """A finding with its evidence."""
    record = archive.queries.finding(finding_id)
    if record is None:
        raise HTTPException(404, f"no finding is called {finding_id}; it may not be kept any more")
    return record


def incident_of(archive: Archive, incident_id: str) -> Incident:
    """An incident as it is kept."""
    incident = archive.queries.incident(incident_id)
    if incident is None:
        raise HTTPException(404, f"no incident is called {incident_id}; it may not be kept any more")
    return incident


def objective_of(archive: Archive, name: str) -> Objective:
    """The objective of this name."""
    objective = next((one for one in archive.objectives if one.name == name), None)
    if objective is None:
        raise HTTPException(404, f"no objective is called {name}; there are {', '.join(one.name for one in archive.objectives)}")
    return objective
