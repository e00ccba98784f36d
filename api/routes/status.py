"""Current status, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from api.dependencies import Snapshot
from api.headline import not_the_service
from api.middleware import tag_of
from api.models.status import Prober, ProberList, StatusAnswer
from api.query_parameters import QueryParameters

router = APIRouter(tags=["status"])


@router.get("/status", response_description="How everything stands.")
def status(snapshot: Snapshot, response: Response, _: Annotated[QueryParameters, Query()]) -> StatusAnswer:
    """Report the status: overall, per probe on each target, per objective.

    The overall verdict has three values. UNKNOWN means inconclusive, and is never shown as good. The ETag changes with events, not with
    time: `at`, `last_heartbeat_at`, `counted_since`, `measured`, `budget_left` and the length of `overdue_s` do not change it.
    """
    targets = {instance.probe_instance.target for instance in snapshot.probe_instances}
    answer = StatusAnswer.model_validate(snapshot).model_copy(update={"notices": not_the_service(snapshot, targets)})
    response.headers["ETag"] = tag_of(answer.timeless().model_dump_json().encode())
    return answer


@router.get("/probers", response_description="The probers.")
def probers(snapshot: Snapshot, _: Annotated[QueryParameters, Query()]) -> ProberList:
    """List all probers that have written to the store, and whether they are silent."""
    return ProberList(items=tuple(map(Prober.model_validate, snapshot.probers)))
