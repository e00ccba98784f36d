"""Whoever asks for a run that has just ended is answered when it is written, and not told that there is no such run.

A run is written with its findings and their evidence at once, so whatever leads to one of them leads to all of them. To make the evidence
takes seconds, and meanwhile the name of the run is known: from the log, from exemplars in Prometheus, from whoever began it. That it is
still to come is known to the process that made it, and to every other from the store: a heartbeat names the newest run of each site.
The store is asked for all such runs at once, and not for each that somebody wants; once more if that was before somebody came who then
finds no such run, which may have been announced meanwhile. What a prober that has fallen silent announced is not waited for.

Waits for `ARRIVAL_MAX_S`; a run that is not there then, or cannot be written now, is answered with 503 and never called absent.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from api.problems import RETRY_AFTER_S, refused
from api.response_cache import ResponseCache
from api.threads import Busy
from api.view import Archive, View
from prober.clock import monotonic_s, wall_s
from prober.sinks.status.database import StatusError
from prober.sinks.status.records import SILENT_AFTER_S

ARRIVAL_MAX_S: Final = 10.0
ASKED_EVERY_S: Final = 0.2


class NotWrittenYet(HTTPException):
    """A run has ended, and what is asked of it is not in the store yet."""

    def __init__(self, run_id: str) -> None:
        why = f"run {run_id} has ended and is still being written with its evidence; ask again in some seconds"
        super().__init__(503, why, {"Retry-After": str(RETRY_AFTER_S)})


class RunArrivals:
    """A dependency of routes about one run, finding or incident. However many wait for a run, it is looked for once."""

    def __init__(self, view: View, archive: Archive, answers: ResponseCache) -> None:
        self._view, self._archive, self._answers = view, archive, answers
        self._waited_for: dict[str, asyncio.Task[bool]] = {}
        self._announced: asyncio.Task[frozenset[str]] | None = None
        self._asked_t = -inf

    async def __call__(self, request: Request) -> None:
        """Waits until the run that a request is about is written, if it is to be. Raises `NotWrittenYet`."""
        run_id = _run_of(request)
        if not run_id:
            return
        request.state.came_t = monotonic_s()
        if run_id not in self._waited_for and not await self._is_to_come(run_id):
            return
        if not self._view.is_stored():
            raise NotWrittenYet(run_id)
        if run_id not in self._waited_for:
            self._waited_for[run_id] = asyncio.create_task(self._wait(run_id))
        if not await asyncio.shield(self._waited_for[run_id]):
            raise NotWrittenYet(run_id)

    async def absent(self, request: Request, error: Exception) -> Response:
        """Answers that there is no such thing. Raises `NotWrittenYet` if it was announced while it was looked for."""
        run_id = _run_of(request)
        if run_id and run_id in await self._announced_after(request.state.came_t):
            raise NotWrittenYet(run_id) from error
        return await refused(request, error)

    async def _wait(self, run_id: str) -> bool:
        """False: it is still to come."""
        until_t = monotonic_s() + ARRIVAL_MAX_S
        try:
            while await self._is_to_come(run_id):
                if monotonic_s() >= until_t:
                    return False
                await asyncio.sleep(ASKED_EVERY_S)
            return True
        finally:
            del self._waited_for[run_id]

    async def _is_to_come(self, run_id: str) -> bool:
        """As the store knew it `ASKED_EVERY_S` ago at most."""
        if self._view.is_unwritten(run_id):
            return True
        is_under_way = self._announced is not None and not self._announced.done()
        try:
            return run_id in await self._announced_after(-inf if is_under_way else monotonic_s() - ASKED_EVERY_S)
        except (StatusError, Busy):  # which whoever answers finds out, and says
            return False

    async def _announced_after(self, since_t: float) -> frozenset[str]:
        """The runs that are announced and not written, as the store knows them since then. Raises `StatusError` or `Busy`."""
        if self._announced is None or self._asked_t < since_t:
            self._announced, self._asked_t = asyncio.create_task(self._ask()), monotonic_s()
        return await asyncio.shield(self._announced)

    async def _ask(self) -> frozenset[str]:
        return await self._answers.ask(lambda: self._archive.queries.announced(wall_s() - SILENT_AFTER_S))


def _run_of(request: Request) -> str:
    """The run that an address is about; empty: none. Findings and incidents have the name of their run, and something behind it."""
    names = request.path_params
    part = names.get("finding_id") or names.get("incident_id") or ""
    return str(names.get("run_id") or part.rpartition("-")[0])
