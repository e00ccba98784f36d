"""The live view: the run under way, as a page and as server-sent events. A viewer gets a few rows a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from api.dependencies import Service, Stored
from api.live_steps import FoundAt, keys_of, lanes_of, shown_steps, silence_s
from api.query_parameters import LiveParameters
from api.templates import rendered_macro, rendered_page, root_of
from api.view import Archive
from prober.clock import monotonic_s
from prober.sinks.live.feed import EVENTS_KEPT_MAX, KEY_EVENTS_KEPT_MAX, VIEWERS_MAX, LiveFeed, TooManyViewers, Viewer
from prober.sinks.status.database import StatusError
from prober.sinks.status.listings import PAGE_MAX, FindingFilter

TICK_S: Final = 0.25
STEPS_PER_TICK_MAX: Final = 50
"""Rows that a viewer gets at once; to write more of them would delay what is measured on the same event loop."""
STREAM_MAX_S: Final = 600.0
"""A stream ends after this time.

The browser opens another one while the page is shown.
"""

router = APIRouter(include_in_schema=False)

Asked = Annotated[LiveParameters, Query()]


@router.get("/live", response_class=HTMLResponse)
async def live_page(request: Request, view: Service, archive: Stored, asked: Asked) -> HTMLResponse:
    """The run that is asked for, or the newest one, as it is at the moment."""
    runs = view.feed.runs()
    run = next(filter(asked.agrees, runs), None)
    values = {"root": root_of(request), "asked": asked, "runs": runs, "run": run, "feed": view.feed}
    values |= {"kept_max": EVENTS_KEPT_MAX, "key_kept_max": KEY_EVENTS_KEPT_MAX, "viewers_max": VIEWERS_MAX}
    if run is not None:
        pages = await asyncio.to_thread(_pages, archive, run.run_id) if run.verdict is not None else {}
        values |= {"keys": keys_of(run, asked.key), "silence_s": silence_s(run, asked.key, monotonic_s())}
        values |= {"rows": tuple(shown_steps(run, run.steps_of(asked.key), asked.key, pages)), "lanes": lanes_of(run)}
    return rendered_page("live_run.html", values)


def _pages(archive: Archive, run_id: str) -> dict[FoundAt, str]:
    """The ids of the findings of a run that the store has; none while it cannot be asked."""
    try:
        found = archive.queries.findings(FindingFilter(run_id=run_id), limit=PAGE_MAX).items
    except StatusError:
        return {}
    return {(one.kind, one.subscription, one.key, one.t): one.finding_id for one in found}


async def viewer(
    request: Request, view: Service, asked: Asked, last_event_id: Annotated[int | None, Header()] = None
) -> AsyncIterator[Viewer | None]:
    """A dependency: watches the run that is asked for, behind the last event of the client; None for HEAD. Raises `HTTPException`."""
    run = next(filter(asked.agrees, view.feed.runs()), None)
    if run is None:
        raise HTTPException(404, "no such run is under way in this process")
    if request.scope.get("is_head"):
        yield None
        return
    try:
        with view.feed.watching(run, asked.key, asked.after if last_event_id is None else last_event_id) as watching:
            yield watching
    except TooManyViewers:
        raise HTTPException(503, f"{VIEWERS_MAX} viewers watch already", {"Retry-After": "30"}) from None


@router.get("/live/events", response_class=EventSourceResponse)
async def live_events(
    request: Request, view: Service, watching: Annotated[Viewer | None, Depends(viewer)]
) -> AsyncIterator[ServerSentEvent]:
    """New rows of a run, and what changed on the page around them, until the run ends, or the server does."""
    until_t = monotonic_s() + STREAM_MAX_S
    sent: dict[str, str] = {}
    while watching is not None and monotonic_s() < until_t and not request.app.state.is_ending:
        steps = watching.take(STEPS_PER_TICK_MAX)
        parts = {name: text for name, text in _parts(view.feed, watching).items() if sent.get(name) != text}
        sent |= parts
        if steps or parts:
            rows = rendered_macro("live_steps.html", "rows", tuple(shown_steps(watching.run, steps, watching.key, {})))
            yield ServerSentEvent(data={"rows": rows, "parts": parts, "is_over": watching.is_over}, id=str(watching.after))
        if watching.is_over:
            return
        await asyncio.sleep(TICK_S)


def _parts(feed: LiveFeed, watching: Viewer) -> dict[str, str]:
    """The parts of the page that change, beside its rows."""
    run = watching.run
    silent_s = silence_s(run, watching.key, monotonic_s())
    return {
        "head": rendered_macro("live_steps.html", "head", lanes_of(run)),
        "state": rendered_macro("live_steps.html", "state", run),
        "note": rendered_macro("live_steps.html", "note", feed, VIEWERS_MAX, silent_s),
        "others": rendered_macro("live_steps.html", "others", feed.runs(), run),
    }
