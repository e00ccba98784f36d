"""Live view: the run in progress, as a page and as server-sent events. A viewer gets a few rows a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from api.dependencies import Service, Stored
from api.formatting import shown_key
from api.query_parameters import LiveParameters
from api.templates import rendered_macro, rendered_page, root_of
from api.view import Archive
from api.words import number
from prober.clock import monotonic_s
from prober.core import events
from prober.core.events import EVENT_NAMES, Event
from prober.core.findings import Finding, Kind
from prober.evidence.explain import explain
from prober.sinks.live.feed import (
    EVENTS_KEPT_MAX,
    KEY_EVENTS_KEPT_MAX,
    VIEWERS_MAX,
    LiveFeed,
    Step,
    TooManyViewers,
    Viewer,
    WatchedRun,
)
from prober.sinks.status.database import StatusError
from prober.sinks.status.listings import PAGE_MAX, FindingFilter

TICK_S: Final = 0.25
STEPS_PER_TICK_MAX: Final = 50
"""Maximum number of rows that a viewer gets at once; more would delay measurements on the same event loop."""
STREAM_MAX_S: Final = 600.0
"""Maximum duration of a stream.

The browser opens another one while the page is shown.
"""

router = APIRouter(include_in_schema=False)

Asked = Annotated[LiveParameters, Query()]


@router.get("/live", response_class=HTMLResponse)
async def live_page(request: Request, view: Service, archive: Stored, asked: Asked) -> HTMLResponse:
    """Return the page of the requested run, or of the newest one, in its present state."""
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
    """Return the ids of a run's findings in the store; none while it cannot be queried."""
    try:
        found = archive.queries.findings(FindingFilter(run_id=run_id), limit=PAGE_MAX).items
    except StatusError:
        return {}
    return {(one.kind, one.subscription, one.key, one.t): one.finding_id for one in found}


async def viewer(
    request: Request, view: Service, asked: Asked, last_event_id: Annotated[int | None, Header()] = None
) -> AsyncIterator[Viewer | None]:
    """Watch the requested run, from the last event of the client on; None for HEAD. A dependency. Raises `HTTPException`."""
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
    """Yield new rows of a run, and changes of the page around them, until the run or the server ends."""
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
    run = watching.run
    silent_s = silence_s(run, watching.key, monotonic_s())
    return {
        "head": rendered_macro("live_steps.html", "head", lanes_of(run)),
        "state": rendered_macro("live_steps.html", "state", run),
        "note": rendered_macro("live_steps.html", "note", feed, VIEWERS_MAX, silent_s),
        "others": rendered_macro("live_steps.html", "others", feed.runs(), run),
    }


# --- events of a run under way as rows with a lane for the publisher and for each subscriber: who did what with which message ---


SUBSCRIBERS_MAX: Final = 4
"""Maximum number of subscribers with a lane of their own; further ones share one lane."""
SHORT_NAME_MAX: Final = 4
WITNESSES_MAX: Final = 8
"""Maximum number of events listed for a finding."""
_WORDS: Final = {
    events.PublishInvoked: "publish {} →",
    events.Published: "← confirmed {}",
    events.PublishFailed: "← failed {}",
    events.PublishUnknown: "← outcome of {} unknown",
    events.PublishAbandoned: "{} given up",
    events.Delivered: "→ {}",
    events.Acked: "← ack {}",
    events.Nacked: "← nack {}",
    events.AckConfirmed: "→ ack of {} confirmed",
    events.LeaseModified: "← lease of {}",
    events.DeadLettered: "{} dead-lettered",
}


FoundAt: TypeAlias = tuple[Kind, str, str, float]
"""Kind, subscription, key and time of a finding, which identify it in a run."""


class Witness(NamedTuple):
    """Number of an event that proves a finding, and whether its row is shown."""

    number: int
    is_shown: bool


class ShownFinding(NamedTuple):
    """A finding in words, with the events that prove it. `page`: address of its page, or of its run's; empty: none yet."""

    finding: Finding
    words: str
    witnesses: tuple[Witness, ...]
    page: str


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A row: `after_s`: time since the first event; `lane`: number of its lane, None: all lanes."""

    number: int
    after_s: float | None
    lane: int | None
    lane_name: str
    key: str
    words: str
    findings: tuple[ShownFinding, ...]


def lanes_of(run: WatchedRun) -> tuple[str, ...]:
    """Return the names of the lanes: the publisher, the first subscribers, and the number of further ones."""
    named = [_name(run, subscriber) for subscriber in list(run.places)[:SUBSCRIBERS_MAX]]
    more = len(run.places) - len(named)
    return ("publisher", *named, *([f"{number(more)} more"] if more else []))


def keys_of(run: WatchedRun, asked: str) -> tuple[str, ...]:
    """Return the selectable keys of a run, including the requested key; an empty one is none."""
    return tuple(sorted({*run.keys, asked} - {""}))


def silence_s(run: WatchedRun, key: str, now: float) -> float | None:
    """Return the time since the last event of a run in progress, or of a key; None: it has ended. `now`: recorder's clock."""
    latest = [step.event.t for step in run.steps_of(key)[-1:] if step.event is not None]
    return None if run.verdict is not None else max(0.0, now - (latest[0] if latest else run.begun_t))


def shown_steps(run: WatchedRun, steps: Iterable[Step], key: str, pages: Mapping[FoundAt, str]) -> Iterator[ShownStep]:
    """Yield the rows of events; for an ordering key without findings on other keys. `pages`: ids of findings with a page."""
    kept = run.steps_of(key)
    numbers = {one.message_id: one.seq for one in _events(kept) if isinstance(one, events.Published | events.Delivered)}
    shown, lanes = {step.number for step in kept}, lanes_of(run)
    for step in steps:
        found = [finding for finding in step.findings if key in ("", finding.key)]
        findings = tuple(_finding(run, finding, shown, pages) for finding in found)
        if step.event is None:
            yield ShownStep(step.number, None, None, "", "", f"the run ended: {run.verdict}", findings)
        else:
            words, lane = _words(step.event, numbers), _lane(run, step.event)
            lane_name = "" if lane is None else lanes[lane]
            yield ShownStep(step.number, step.event.t - run.first_t, lane, lane_name, step.key or "", words, findings)


def _events(steps: Iterable[Step]) -> Iterator[Event]:
    return (step.event for step in steps if step.event is not None)


def _finding(run: WatchedRun, finding: Finding, shown: Container[int], pages: Mapping[FoundAt, str]) -> ShownFinding:
    witnesses = tuple(Witness(number, number in shown) for number in finding.witnesses[:WITNESSES_MAX])
    finding_id = pages.get((finding.kind, finding.subscription, finding.key, finding.t))
    page = f"findings/{quote(finding_id, safe='')}" if finding_id else f"runs/{quote(run.run_id, safe='')}" if run.verdict else ""
    return ShownFinding(finding, explain(finding, None), witnesses, page)


def _words(event: Event, numbers: dict[str, int]) -> str:
    message_id = str(getattr(event, "message_id", ""))
    message = getattr(event, "seq", None) or numbers.get(message_id, message_id)
    return _WORDS.get(type(event), EVENT_NAMES[type(event)]).format(message)


def _lane(run: WatchedRun, event: Event) -> int | None:
    if isinstance(event, events.PublishEvent):
        return 0
    session = getattr(event, "session", None)
    if session is None:
        return None
    owner = run.owners.get((getattr(event, "subscription", ""), session), "")
    return 1 + min(run.places.get(owner, SUBSCRIBERS_MAX), SUBSCRIBERS_MAX)


def _name(run: WatchedRun, subscriber: str) -> str:
    short = subscriber.removeprefix(f"{run.run_id}-")
    return f"subscriber {short}" if len(short) <= SHORT_NAME_MAX else shown_key(short)
