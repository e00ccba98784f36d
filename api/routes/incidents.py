"""Incidents, and that somebody knows of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Request, Response, Security
from starlette.exceptions import HTTPException

from api.incident_feed import ATOM, PATH, incident_feed
from api.models.incidents import Acknowledge, Incident, IncidentPage
from api.query_parameters import IncidentParameters, QueryParameters
from api.response_cache import EncodedAnswer, ResponseCache, tag_of
from api.routes.probes import TOKEN
from api.view import Archive
from prober.clock import wall_s
from prober.sinks.live.incidents import Acknowledgement

IncidentName = Annotated[
    str, Path(max_length=300, description="Its `incident_id`.", examples=["ordering-1f3a9c02-REDELIVERY_SKIP"])
]


def router(answers: ResponseCache, archive: Archive) -> APIRouter:
    """`GET /incidents`, `GET /incidents.atom`, `GET /incidents/{incident_id}` and `POST /incidents/{incident_id}/acknowledge`."""
    routes = APIRouter(tags=["incidents"])

    @routes.get("/incidents", response_model=IncidentPage, response_description="A page of incidents.")
    async def incidents(request: Request, asked: Annotated[IncidentParameters, Query()]) -> Response:
        """Incidents, by when they began, the newest first: the findings of one kind at one site, until they are over."""

        def make() -> IncidentPage:
            page = archive.queries.incidents(asked.wanted, limit=asked.limit, cursor=asked.cursor)
            return IncidentPage(items=tuple(map(Incident.of, page.items)), next_cursor=page.next_cursor)

        return await answers.answer(request, make)

    @routes.get(
        f"/{PATH}",
        response_class=Response,
        responses={200: {"description": "An Atom feed (RFC 4287).", "content": {ATOM: {"schema": {"type": "string"}}}}},
    )
    async def feed(request: Request, asked: Annotated[IncidentParameters, Query()]) -> Response:
        """The same list for feed readers: an entry for each incident, updated when it begins, is acknowledged, or is over."""

        def make() -> EncodedAnswer:
            page = archive.queries.incidents(asked.wanted, limit=asked.limit, cursor=asked.cursor)
            written = incident_feed(page, asked, wall_s(), archive.queries.store_id())
            return EncodedAnswer(written, tag_of(written), page.next_cursor)

        return await answers.encoded(request, make, ATOM)

    @routes.get("/incidents/{incident_id}", response_model=Incident, response_description="The incident.")
    async def incident(request: Request, incident_id: IncidentName, _: Annotated[QueryParameters, Query()]) -> Response:
        """One incident."""
        return await answers.answer(request, lambda: _incident_of(archive, incident_id))

    @routes.post("/incidents/{incident_id}/acknowledge", response_description="The incident.", dependencies=[Security(TOKEN)])
    async def acknowledge(
        incident_id: IncidentName, _: Annotated[QueryParameters, Query()], said: Annotated[Acknowledge, Body()]
    ) -> Incident:
        """Says that somebody knows of an incident, until a time or until it is over. Pages show it; nothing else heeds it.

        It takes the place of what was said before. Needs the token: `Authorization: Bearer TOKEN`.
        """

        def make() -> Incident:
            archive.acknowledge(incident_id, Acknowledgement(wall_s(), said.by, said.note, said.until_s))
            return _incident_of(archive, incident_id)

        return await answers.ask(make)

    return routes


def _incident_of(archive: Archive, incident_id: str) -> Incident:
    """An incident as it is kept; 404 if it is not."""
    found = archive.queries.incident(incident_id)
    if found is None:
        raise HTTPException(404, f"no incident is called {incident_id}; it may not be kept any more")
    return Incident.of(found)
