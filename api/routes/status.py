"""How everything stands, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.answering import Answering, Written, sent, written
from api.models.status import Prober, ProberList, StatusAnswer
from api.questions import Question
from api.standing import Standing
from prober.snapshot import Snapshot

UNLIKE = frozenset({"at"})


def router(answering: Answering, standing: Standing) -> APIRouter:
    """`GET /status` and `GET /probers`."""
    routes = APIRouter(tags=["status"])
    latest: tuple[Snapshot, Written] | None = None

    @routes.get("/status", response_model=StatusAnswer, response_description="How everything stands.")
    async def status(request: Request, _: Annotated[Question, Query()]) -> Response:
        """How everything stands: overall, per probe on each target, per objective.

        The overall verdict has three values. UNKNOWN means that nothing can be said, and is never shown as good. Two answers that differ
        only in `at` have the same ETag.
        """
        nonlocal latest
        snapshot = await standing.snapshot()
        if latest is None or latest[0] is not snapshot:
            latest = snapshot, await answering.ask(lambda: written(StatusAnswer.model_validate(snapshot), unlike=UNLIKE))
        return sent(request, latest[1])

    @routes.get("/probers", response_model=ProberList, response_description="The probers.")
    async def probers(request: Request, _: Annotated[Question, Query()]) -> Response:
        """Every prober that writes to the store, and whether it still does."""
        snapshot = await standing.snapshot()
        return await answering.answer(request, lambda: ProberList(items=tuple(map(Prober.model_validate, snapshot.probers))))

    return routes
