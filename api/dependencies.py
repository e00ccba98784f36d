"""Dependencies of the routes: the service, the archive, the current status, and the wait for a run that has just ended.

Routes are plain functions, which FastAPI calls in threads, so they may query the archive. The service answers on the event loop only, so a
route that calls the service is a coroutine.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from api.problems import RETRY_AFTER_S, refused
from api.recent import Recent
from api.view import Archive, View
from prober.clock import monotonic_s, wall_s
from prober.config.models import Api
from prober.sinks.live.snapshot import StatusSnapshot
from prober.sinks.status.database import StatusError, StoreIncompatible, StoreUnavailable
from prober.sinks.status.overview import Overview
from prober.sinks.status.prober_records import SILENT_AFTER_S


def provide(app: FastAPI, view: View, archive: Archive, settings: Api) -> None:
    """Attach the dependencies of the routes to an application."""
    app.state.view, app.state.archive, app.state.settings, app.state.is_ending = view, archive, settings, False
    app.state.current, app.state.recent = CurrentStatus(view, archive), Recent(archive)


def _state(name: str) -> Any:
    """Depend on an attribute of the application's state. (A coroutine, since FastAPI runs plain functions in a thread.)"""

    async def value(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(value)


async def _snapshot(request: Request) -> StatusSnapshot:
    current: CurrentStatus = request.app.state.current
    return await current.snapshot()


async def _stored_snapshot(request: Request) -> StatusSnapshot:
    current: CurrentStatus = request.app.state.current
    return await current.stored_snapshot()


Service: TypeAlias = Annotated[View, _state("view")]
Stored: TypeAlias = Annotated[Archive, _state("archive")]
Snapshot: TypeAlias = Annotated[StatusSnapshot, Depends(_snapshot)]
"""Current status from all probers of the store."""
StoredSnapshot: TypeAlias = Annotated[StatusSnapshot, Depends(_stored_snapshot)]
"""The same for routes whose data exists in the store only: 503 while it cannot be read."""
Cached: TypeAlias = Annotated[Recent, _state("recent")]


ARRIVAL_MAX_S: Final = 10.0
ASKED_EVERY_S: Final = 0.2


class NotWrittenYet(HTTPException):
    """Error: a run has ended, and the requested data about it is not stored yet."""

    def __init__(self, run_id: str) -> None:
        why = f"run {run_id} has ended and is still being written with its evidence; ask again in some seconds"
        super().__init__(503, why, {"Retry-After": str(RETRY_AFTER_S)})


class RunArrivals:
    """Dependency of routes about one run, finding or incident: the wait for the storage of a run that has just ended.

    Without it a request about the run would get 404. A run is stored together with its findings and their evidence. Creating the evidence
    takes seconds, and meanwhile the id of the run is known: from the log, from exemplars in Prometheus, or to the client that started it.
    The process of the run knows that it is not stored yet. Other processes read that from the store: a heartbeat contains the newest run of
    each probe instance. Announcements of a silent prober are ignored.

    The wait is limited to `ARRIVAL_MAX_S`; if the run is not stored by then, or cannot be stored now, the response is 503.
    """

    def __init__(self, view: View, archive: Archive) -> None:
        self._view, self._archive = view, archive

    async def __call__(self, request: Request) -> None:
        """Wait until the run of a request is stored, if its storage is expected. Raises `NotWrittenYet`."""
        run_id = _run_of(request)
        until_t = monotonic_s() + ARRIVAL_MAX_S
        while run_id and await self._is_to_come(run_id):
            if not self._view.is_stored() or monotonic_s() >= until_t:
                raise NotWrittenYet(run_id)
            await asyncio.sleep(ASKED_EVERY_S)

    async def absent(self, request: Request, error: Exception) -> Response:
        """Return the response for a missing record. Raises `NotWrittenYet` if its run was announced during the look-up."""
        run_id = _run_of(request)
        if run_id and await self._is_to_come(run_id):
            raise NotWrittenYet(run_id) from error
        return await refused(request, error)

    async def _is_to_come(self, run_id: str) -> bool:
        if self._view.is_unwritten(run_id):
            return True
        return run_id in await run_in_threadpool(self._archive.queries.announced, wall_s() - SILENT_AFTER_S)


def _run_of(request: Request) -> str:
    """Return the run id in an address; empty: none. Ids of findings and incidents are the run id with a suffix."""
    names = request.path_params
    part = names.get("finding_id") or names.get("incident_id") or ""
    return str(names.get("run_id") or part.rpartition("-")[0])


FRESH_S: Final = 1.0
"""Age up to which an answer is reused."""
UNREACHABLE: Final = "the status store cannot be reached: only what this process knows by itself is shown"
UNWRITTEN: Final = "what the status store has is out of date: only what this process knows by itself is shown"


class CurrentStatus:
    """Content of the status store; while it cannot be read or written, the state of this process alone, marked as that."""

    def __init__(self, view: View, archive: Archive) -> None:
        self._view, self._archive = view, archive
        self._answer: asyncio.Task[StatusSnapshot] | None = None
        self._answered_t = 0.0
        self._failure: StatusError | None = None

    async def snapshot(self) -> StatusSnapshot:
        """Return the current status. Never fails: without the store it is the state of this process, marked as that."""
        if self._answer is None or (self._answer.done() and monotonic_s() - self._answered_t >= FRESH_S):
            self._answer = asyncio.create_task(self._ask())
        return await asyncio.shield(self._answer)

    async def stored_snapshot(self) -> StatusSnapshot:
        """Return the current status from the store. Raises `StatusError` if the store cannot be read."""
        snapshot = await self.snapshot()
        if not snapshot.stored:
            raise self._failure or StoreUnavailable(UNWRITTEN)
        return snapshot

    async def _ask(self) -> StatusSnapshot:
        try:
            return await self._stored()
        finally:
            self._answered_t = monotonic_s()

    async def _stored(self) -> StatusSnapshot:
        live = self._view.snapshot()
        self._failure = None
        if not self._view.is_stored():
            return replace(live, troubles=(*live.troubles, UNWRITTEN))
        try:
            return await asyncio.to_thread(Overview(self._archive.queries, self._archive.objectives).snapshot, live)
        except StatusError as error:  # whose text may name hosts and folders, which must not be exposed
            self._failure = error
            return replace(live, troubles=(*live.troubles, str(error) if isinstance(error, StoreIncompatible) else UNREACHABLE))
