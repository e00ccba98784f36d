"""Wait for a run that has just ended until the store contains it.

Without this a request about the run would get 404 meanwhile.

A run is written with its findings and their evidence at once, so whatever leads to one of them leads to all of them. To make the evidence
takes seconds, and meanwhile the name of the run is known: from the log, from exemplars in Prometheus, or from the client that started it.
The process that made the run knows that the run is still to be written. Other processes read it from the store: a heartbeat names the
newest run of each probe instance. A run that a silent prober announced is not waited for.

Waits for `ARRIVAL_MAX_S`; a run that is not there then, or cannot be written now, is answered with 503.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from api.problems import RETRY_AFTER_S, refused
from api.view import Archive, View
from prober.clock import monotonic_s, wall_s
from prober.sinks.status.prober_records import SILENT_AFTER_S

ARRIVAL_MAX_S: Final = 10.0
ASKED_EVERY_S: Final = 0.2


class NotWrittenYet(HTTPException):
    """A run has ended, and what is asked of it is not in the store yet."""

    def __init__(self, run_id: str) -> None:
        why = f"run {run_id} has ended and is still being written with its evidence; ask again in some seconds"
        super().__init__(503, why, {"Retry-After": str(RETRY_AFTER_S)})


class RunArrivals:
    """A dependency of routes about one run, finding or incident."""

    def __init__(self, view: View, archive: Archive) -> None:
        self._view, self._archive = view, archive

    async def __call__(self, request: Request) -> None:
        """Waits until the run that a request is about is written, if it is to be. Raises `NotWrittenYet`."""
        run_id = _run_of(request)
        until_t = monotonic_s() + ARRIVAL_MAX_S
        while run_id and await self._is_to_come(run_id):
            if not self._view.is_stored() or monotonic_s() >= until_t:
                raise NotWrittenYet(run_id)
            await asyncio.sleep(ASKED_EVERY_S)

    async def absent(self, request: Request, error: Exception) -> Response:
        """Answers that there is no such thing. Raises `NotWrittenYet` if it was announced while it was looked for."""
        run_id = _run_of(request)
        if run_id and await self._is_to_come(run_id):
            raise NotWrittenYet(run_id) from error
        return await refused(request, error)

    async def _is_to_come(self, run_id: str) -> bool:
        """Whether a run has ended and is not written. Raises `StatusError`."""
        if self._view.is_unwritten(run_id):
            return True
        return run_id in await run_in_threadpool(self._archive.queries.announced, wall_s() - SILENT_AFTER_S)


def _run_of(request: Request) -> str:
    """The run that an address is about; empty: none. Findings and incidents have the name of their run, and something behind it."""
    names = request.path_params
    part = names.get("finding_id") or names.get("incident_id") or ""
    return str(names.get("run_id") or part.rpartition("-")[0])
