"""How everything stands, for programs."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.current_status import CurrentStatus
from api.models.status import Prober, ProberList, StatusAnswer
from api.query_parameters import QueryParameters
from api.response_cache import EncodedAnswer, ResponseCache, encode_answer, response_of
from prober.sinks.live.snapshot import StatusSnapshot


def router(answers: ResponseCache, current: CurrentStatus) -> APIRouter:
    """`GET /status` and `GET /probers`."""
    routes = APIRouter(tags=["status"])
    latest: tuple[StatusSnapshot, asyncio.Task[EncodedAnswer]] | None = None

    @routes.get("/status", response_model=StatusAnswer, response_description="How everything stands.")
    async def status(request: Request, _: Annotated[QueryParameters, Query()]) -> Response:
        """How everything stands: overall, per probe on each target, per objective.

        The overall verdict has three values. UNKNOWN means that nothing can be said, and is never shown as good. The ETag changes when
        something happens, and not because time passes: `at`, `last_heartbeat_at`, `counted_since`, `measured`, `budget_left` and the
        length of `overdue_s` do not change it.
        """
        nonlocal latest
        snapshot = await current.snapshot()
        if latest is None or latest[0] is not snapshot or _failed(latest[1]):
            latest = snapshot, asyncio.create_task(answers.ask(lambda: _encoded(snapshot)))  # once, for all who ask now
        return response_of(request, await asyncio.shield(latest[1]))

    @routes.get("/probers", response_model=ProberList, response_description="The probers.")
    async def probers(request: Request, _: Annotated[QueryParameters, Query()]) -> Response:
        """Every prober that writes to the store, and whether it still does."""
        snapshot = await current.snapshot()
        return await answers.answer(request, lambda: ProberList(items=tuple(map(Prober.model_validate, snapshot.probers))))

    return routes


def _encoded(snapshot: StatusSnapshot) -> EncodedAnswer:
    return encode_answer(StatusAnswer.model_validate(snapshot))


def _failed(task: asyncio.Task[EncodedAnswer]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
