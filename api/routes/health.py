"""Endpoints for the machines that monitor the service: liveness, readiness and metrics."""

from __future__ import annotations

from typing import TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from api.dependencies import Service
from api.models.status import Health, ReadinessAnswer

UNAVAILABLE = 503
Answered = TypeVar("Answered", Health, ReadinessAnswer)

router = APIRouter()


@router.get(
    "/healthz",
    tags=["health"],
    response_description="It can go on.",
    responses={UNAVAILABLE: {"model": Health, "description": "Only a restart helps."}},
)
async def healthz(view: Service, response: Response) -> Health:
    """Report liveness: 200 while the event loop answers and no part has ended that only a restart brings back.

    Violated guarantees of a target do not make the prober unhealthy.
    """
    alive = view.alive()
    return _answer(response, Health(alive=alive), is_well=alive)


@router.get(
    "/readyz",
    tags=["health"],
    response_description="It does its work.",
    responses={UNAVAILABLE: {"model": ReadinessAnswer, "description": "Not ready; says why."}},
)
async def readyz(view: Service, response: Response) -> ReadinessAnswer:
    """Report readiness: 200 if runs are scheduled and can be recorded, 503 with the problems otherwise."""
    readiness = view.readiness()
    return _answer(response, ReadinessAnswer.model_validate(readiness), is_well=readiness.ready)


@router.get("/metrics", tags=["metrics"], response_class=PlainTextResponse, response_description="The metrics.")
async def metrics(request: Request, view: Service) -> Response:
    """Return all metrics, as OpenMetrics or in the older text format, according to the Accept header."""
    content_type, body = await view.metrics(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": content_type, "Vary": "Accept"})


def _answer(response: Response, answer: Answered, *, is_well: bool) -> Answered:
    response.status_code = 200 if is_well else UNAVAILABLE
    return answer
