"""The live view: the run under way, as a page and as server-sent events. A viewer gets a few rows a second; what it misses is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from api.dependencies import Service
from api.live_steps import keys_of, lanes_of, shown_steps
from api.query_parameters import LiveParameters
from api.templates import rendered_macro, rendered_page, root_of
from prober.clock import monotonic_s
from prober.sinks.live.feed import EVENTS_KEPT_MAX, VIEWERS_MAX, Step, TooManyViewers, Viewer, WatchedRun

TICK_S: Final = 0.25
STEPS_PER_TICK_MAX: Final = 50
"""Rows that a viewer gets at once; to write more of them would delay what is measured on the same event loop."""
STREAM_MAX_S: Final = 600.0
"""A stream ends after this time; the browser begins another one, unless nobody looks."""

router = APIRouter(include_in_schema=False)

Asked = Annotated[LiveParameters, Query()]


@router.get("/live", response_class=HTMLResponse)
async def live_page(request: Request, view: Service, asked: Asked) -> HTMLResponse:
    """The run that is asked for, or the newest one, as it is at the moment."""
    runs = view.feed.runs()
    run = next(filter(asked.agrees, runs), None)
    values = {"root": root_of(request), "asked": asked, "runs": runs, "run": run, "feed": view.feed}
    values |= {"kept_max": EVENTS_KEPT_MAX, "viewers_max": VIEWERS_MAX}
    if run is not None:
        rows = tuple(shown_steps(run, run.steps, asked.key))
        values |= {"keys": keys_of(run), "rows": rows, "lanes": lanes_of(run)}
    return rendered_page("live_run.html", values)


async def viewer(view: Service, asked: Asked, last_event_id: Annotated[int | None, Header()] = None) -> AsyncIterator[Viewer]:
    """A dependency: watches the run that is asked for, from the last event that the client has on. Raises `HTTPException`."""
    run = next(filter(asked.agrees, view.feed.runs()), None)
    if run is None:
        raise HTTPException(404, "no such run is under way in this process")
    try:
        with view.feed.watching(run, asked.after if last_event_id is None else last_event_id) as watching:
            yield watching
    except TooManyViewers:
        raise HTTPException(503, f"{VIEWERS_MAX} viewers watch already", {"Retry-After": "30"}) from None


@router.get("/live/events", response_class=EventSourceResponse)
async def live_events(
    request: Request, watching: Annotated[Viewer, Depends(viewer)], asked: Asked
) -> AsyncIterator[ServerSentEvent]:
    """New rows of a run until it ends, or the server does."""
    until_t = monotonic_s() + STREAM_MAX_S
    while monotonic_s() < until_t and not request.app.state.is_ending:
        steps = watching.take(STEPS_PER_TICK_MAX)
        if steps:
            parts = _parts(watching.run, steps, asked.key)
            is_over = steps[-1].event is None
            yield ServerSentEvent(data={**parts, "missed": watching.missed, "is_over": is_over}, id=str(watching.after))
            if is_over:
                return
        await asyncio.sleep(TICK_S)


def _parts(run: WatchedRun, steps: Iterable[Step], key: str) -> dict[str, str]:
    """The parts of the page that change: the heads of the lanes, and the new rows."""
    rows = tuple(shown_steps(run, steps, key))
    return {
        "head": rendered_macro("live_steps.html", "head", lanes_of(run)),
        "rows": rendered_macro("live_steps.html", "rows", rows),
    }
