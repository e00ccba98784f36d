"""Dependencies of the routes: the service, the archive, and the state of everything now.

Routes are plain functions, which FastAPI calls in threads, so they may ask the archive. The service answers on the event loop only, so a
route that asks the service is a coroutine.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, FastAPI, Request

from api.current_status import CurrentStatus
from api.view import Archive, View
from api.view_models import PageContents
from prober.config.models import Api
from prober.sinks.live.snapshot import StatusSnapshot


def provide(app: FastAPI, view: View, archive: Archive, settings: Api) -> None:
    """Provides an application with what its routes depend on."""
    app.state.view, app.state.archive, app.state.is_ending = view, archive, False
    app.state.current, app.state.contents = CurrentStatus(view, archive), PageContents(archive, settings)


async def _view(request: Request) -> View:
    view: View = request.app.state.view
    return view


async def _archive(request: Request) -> Archive:
    archive: Archive = request.app.state.archive
    return archive


async def _snapshot(request: Request) -> StatusSnapshot:
    current: CurrentStatus = request.app.state.current
    return await current.snapshot()


async def _stored_snapshot(request: Request) -> StatusSnapshot:
    current: CurrentStatus = request.app.state.current
    return await current.stored_snapshot()


async def _contents(request: Request) -> PageContents:
    contents: PageContents = request.app.state.contents
    return contents


Service: TypeAlias = Annotated[View, Depends(_view)]
Stored: TypeAlias = Annotated[Archive, Depends(_archive)]
Snapshot: TypeAlias = Annotated[StatusSnapshot, Depends(_snapshot)]
"""The state of everything, by all probers of the store."""
StoredSnapshot: TypeAlias = Annotated[StatusSnapshot, Depends(_stored_snapshot)]
"""The same for routes whose answer is in the store only: 503 while it cannot be read."""
Contents: TypeAlias = Annotated[PageContents, Depends(_contents)]
