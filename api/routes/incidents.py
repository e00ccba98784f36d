"""Incidents, one for each target and symptom, their acknowledgement, and their Atom feed (RFC 4287)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Self
from urllib.parse import quote, urlencode
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, tostring

from fastapi import APIRouter, Body, Path, Query, Request, Response, Security
from pydantic import AwareDatetime, ConfigDict, Field, FiniteFloat

from api.dependencies import Snapshot, Stored
from api.headline import closing, much, places, runbook_of, title_of
from api.lookups import incident_of, page_asked
from api.middleware import link_next
from api.models.base import API, Answer, Count, FindingId, Link, Listed, Part, Probe, Seconds, Target, Time, Vantage, values_of
from api.query_parameters import IncidentParameters, QueryParameters, as_query
from api.routes.probes import TOKEN
from api.swim_lanes.lettering import clean
from api.words import clock, iso
from prober.clock import wall_s
from prober.core.findings import Kind
from prober.core.kinds import Symptom
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Acknowledgement, Incident
from prober.sinks.status.listings import Page
from prober.slo.acknowledgements import PERIOD_S, WITHIN_S

router = APIRouter(tags=["incidents"])

IncidentId = Annotated[str, Field(examples=["ordering-1f3a9c02-redelivery"])]
NOTE_LENGTH_MAX: Final = 1_000
NAME_LENGTH_MAX: Final = 200
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Without control characters, among them line breaks and those that turn the direction of what follows."""
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Later ends count as this one, which can be written in every time zone; ends before 1970 as the beginning of that."""


ATOM: Final = "application/atom+xml"
PATH: Final = "incidents.atom"
NAMESPACE: Final = "http://www.w3.org/2005/Atom"
TEXT_LENGTH_MAX: Final = 2_000
_ROOT: Final = "../../"
"""From the feed to the start page."""
_IDS: Final = UUID("6f1c3a52-8f0e-4d0b-9a57-3c1e2b7d9f40")
"""The namespace of all ids. It must never change, or readers show everything as new."""


class AcknowledgementAnswer(Answer, schema="Acknowledgement"):
    """An acknowledgement by a person."""

    at: Time
    """Since then."""
    by: Annotated[str, Field(examples=["ada"])]
    """The name of the person who acknowledged it."""
    note: Annotated[str, Field(examples=["known to the service's owners"])]
    """The note of that person."""
    until: Time | None
    """When the acknowledgement ends; null: it holds until the incident closes."""


class AffectedAnswer(Answer, schema="Affected"):
    """A probe instance that showed the incident."""

    probe: Probe
    """Name of the probe."""
    vantage: Vantage
    """From where it looks."""
    part: Part
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    kinds: Annotated[Mapping[Kind, int], Field(examples=[{"REDELIVERY_SKIP": 3}])]
    """Number of findings by kind; none of an outage."""


class IncidentAnswer(Answer, schema="Incident"):
    """One fault of a target: everything with one symptom, whichever probes and kinds of findings show it."""

    incident_id: IncidentId
    """Unique."""
    title: Annotated[str, Field(examples=["Redeliveries leave messages out on europe"])]
    """The incident in a few words."""
    target: Target
    """On which target."""
    symptom: Symptom
    """Its visible effect."""
    status: Annotated[Condition, Field(examples=["FAIL"])]
    """OUTAGE: the target cannot be reached. FAIL: a guarantee is broken. WARN: only usual behaviour is missing."""
    first_at: Time
    """Time of the first finding; of an outage, the last success before."""
    last_at: Time
    """End of the last run with it."""
    closes_at: Time
    """When it closes if it is not seen again."""
    closed_at: Time | None
    """When it closed; null: it is open."""
    affected: tuple[AffectedAnswer, ...]
    """The probe instances that showed it."""
    findings: Count
    """Number of findings, also of those that are not kept one by one."""
    runs: Count
    """Runs with it."""
    runs_total: Count
    """All runs with a verdict at the affected probe instances since."""
    unsent: Count
    """Publishes that could not be sent in an outage."""
    runbook: Annotated[str, Field(examples=["PubsubRedeliveryViolated"])]
    """Name of the runbook."""
    exemplar: Annotated[FindingId | None, Field(examples=["ordering-1f3a9c02-1"])]
    """The finding shown for it; null: none was kept."""
    exemplar_is_proven: bool
    """Whether that has a trace for which `ordering-prober verify` comes to the same finding."""
    acknowledged: AcknowledgementAnswer | None
    """The acknowledgement in force; null: there is none."""
    raised_at: Time | None
    """When it was first stored as an outage or with a broken guarantee: from then on it is to be acknowledged. Null: it is WARN."""
    first_acknowledged_at: Time | None
    """The first acknowledgement since it was raised, also if that has ended; null: there was none."""
    findings_link: Annotated[Link, Field(examples=["/api/v1/findings?incident=ordering-1f3a9c02-redelivery"])]
    """Those that are kept."""

    @classmethod
    def of(cls, incident: Incident) -> Self:
        """The answer for an incident as it is kept."""
        said = incident.acknowledged
        return cls.model_validate(
            values_of(cls, incident)
            | {
                "affected": tuple({**instance._asdict(), "kinds": kinds} for instance, kinds in incident.affected.items()),
                "title": title_of(incident),
                "runbook": runbook_of(incident),
                "exemplar": incident.exemplar.finding_id or None,
                "exemplar_is_proven": incident.exemplar.events is not None,
                "acknowledged": None if said is None else said._asdict(),
                "findings_link": f"{API}/findings?incident={quote(incident.incident_id, safe='')}",
            }
        )


class IncidentPage(Listed):
    """Incidents, by when they began, the newest first."""

    items: tuple[IncidentAnswer, ...]
    """The incidents."""


class AcknowledgementsAnswer(Answer, schema="Acknowledgements"):
    """How many incidents of a period were acknowledged in time. Of people, not of the service: no error budget and no alert follow."""

    within_s: Annotated[Seconds, Field(examples=[300])] = WITHIN_S
    """The objective: each incident is acknowledged within this time of being raised."""
    period_s: Annotated[Seconds, Field(examples=[2592000])] = PERIOD_S
    """Incidents count that were raised so long ago at most."""
    in_time: Count
    """Acknowledged in time."""
    late: Count
    """Acknowledged later, or not, and open for longer than `within_s`."""
    pending: Count
    """Open for less than `within_s`, and not acknowledged: undecided."""
    ended: Count
    """Ended within `within_s` without an acknowledgement: neither good nor bad."""
    ratio: Annotated[FiniteFloat | None, Field(examples=[0.9])]
    """`in_time` among `in_time` and `late`; null: there are none."""
    median_s: Seconds | None
    """Median time to acknowledge, of incidents that were acknowledged; null: none was."""
    left_out: Count
    """Older incidents of the period that were not read."""


class Acknowledge(Answer):
    """An acknowledgement, in place of the one before."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=ONE_LINE, examples=["ada"])]
    """The name of the person who acknowledges it; one line."""
    note: Annotated[str, Field(max_length=NOTE_LENGTH_MAX, pattern=ONE_LINE, examples=["known to the service's owners"])] = ""
    """A note for others; one line."""
    until: Annotated[AwareDatetime | None, Field(examples=["2026-03-01T18:00:00Z"])] = None
    """From then on it counts as unknown again; without it, it holds until the incident closes. A time that has passed takes it back."""

    @property
    def until_s(self) -> float | None:
        """The end in seconds since 1970."""
        return None if self.until is None else max(0.0, min(self.until, NEVER).timestamp())


IncidentName = Annotated[str, Path(max_length=300, description="Its `incident_id`.", examples=["ordering-1f3a9c02-redelivery"])]


@router.get("/acknowledgements", response_description="Incidents by whether they were acknowledged in time.")
def acknowledgements(archive: Stored, now: Snapshot, _: Annotated[QueryParameters, Query()]) -> AcknowledgementsAnswer:
    """How many incidents of the last 30 days were acknowledged within five minutes of being raised."""
    found = archive.queries.acknowledgements(now.at)
    return AcknowledgementsAnswer.model_validate(values_of(AcknowledgementsAnswer, found) | dict(found.counts))


@router.get("/incidents", response_description="A page of incidents.")
def incidents(request: Request, response: Response, archive: Stored, asked: Annotated[IncidentParameters, Query()]) -> IncidentPage:
    """Incidents, by when they began, the newest first: one for each target and symptom."""
    page = page_asked(archive.queries.incidents, asked, request, response)
    return IncidentPage(items=tuple(map(IncidentAnswer.of, page.items)), next_cursor=page.next_cursor)


@router.get(
    f"/{PATH}",
    response_class=Response,
    responses={200: {"description": "An Atom feed (RFC 4287).", "content": {ATOM: {"schema": {"type": "string"}}}}},
)
def feed(request: Request, archive: Stored, asked: Annotated[IncidentParameters, Query()]) -> Response:
    """The same list for feed readers: an entry for each incident, updated when it begins, is acknowledged, or closes."""
    page = archive.queries.incidents(asked.wanted, limit=asked.limit, cursor=asked.cursor)
    response = Response(incident_feed(page, asked, wall_s(), archive.queries.store_id()), media_type=ATOM)
    link_next(request, response, page.next_cursor)
    return response


@router.get("/incidents/{incident_id}", response_description="The incident.")
def incident(archive: Stored, incident_id: IncidentName, _: Annotated[QueryParameters, Query()]) -> IncidentAnswer:
    """One incident."""
    return IncidentAnswer.of(incident_of(archive, incident_id))


@router.post("/incidents/{incident_id}/acknowledge", response_description="The incident.", dependencies=[Security(TOKEN)])
def acknowledge(
    archive: Stored, incident_id: IncidentName, _: Annotated[QueryParameters, Query()], said: Annotated[Acknowledge, Body()]
) -> IncidentAnswer:
    """Acknowledge an incident, until a time or until it closes.

    Pages show the acknowledgement; it has no other effect.

    It replaces an earlier acknowledgement. Needs the token: `Authorization: Bearer TOKEN`.
    """
    archive.acknowledge(incident_id, Acknowledgement(wall_s(), said.by, said.note, said.until_s))
    return IncidentAnswer.of(incident_of(archive, incident_id))


# --- incidents as an Atom feed (RFC 4287) -------------------------------------------------------------------------------------


def incident_feed(page: Page[Incident], asked: IncidentParameters, now: float, store_id: str) -> bytes:
    """The feed with this page of the list, as an XML document in UTF-8. `store_id`: what tells it from those of other deployments.

    An entry is an incident. It counts as updated when the incident begins, when a person acknowledges it, when the acknowledgement ends,
    and when the incident closes. Numbers in its text may be newer. Addresses are relative, so that they are right behind every proxy; ids
    say nothing of addresses, so they stay when the service moves.
    """
    feed = Element("feed", {"xmlns": NAMESPACE, "xml:lang": "en"})
    _add(feed, "id", _id_of(f"feed {store_id} {urlencode(sorted(as_query(asked, without={'cursor', 'limit'}).items()))}"))
    _add(feed, "title", "Incidents of ordering keys")
    _add(feed, "updated", iso(max((updated_at(incident, now) for incident in page.items), default=0.0)))
    _add(SubElement(feed, "author"), "name", "ordering-keys-prober")
    _link(feed, "self", PATH, as_query(asked), ATOM)
    _link(feed, "alternate", f"{_ROOT}incidents", as_query(asked, without={"cursor", "limit"}), "text/html")
    if page.next_cursor is not None:
        _link(feed, "next", PATH, {**as_query(asked), "cursor": page.next_cursor}, ATOM)
    for incident in page.items:
        _add_entry(feed, incident, now)
    document: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def updated_at(incident: Incident, now: float) -> float:
    """The time of the newest change that a reader should see."""
    return max(_changes(incident, now))


def _changes(incident: Incident, now: float) -> Iterator[float]:
    yield incident.first_at
    if incident.closed_at is not None:
        yield incident.closed_at
    if said := incident.acknowledged:
        yield said.at
        if said.until is not None and said.at < said.until <= now and incident.closed_at is None:
            yield said.until


def _add_entry(feed: Element, incident: Incident, now: float) -> None:
    entry, stands = SubElement(feed, "entry"), _stands(incident, now)
    _add(entry, "id", _id_of(f"incident {incident.incident_id}"))
    _add(entry, "title", f"{stands.capitalize()}: {title_of(incident)}")
    _add(entry, "published", iso(incident.first_at))
    _add(entry, "updated", iso(updated_at(incident, now)))
    for term in (stands, incident.symptom.value, incident.status.value, *incident.kinds):
        SubElement(entry, "category", {"term": term})
    _link(entry, "alternate", f"{_ROOT}incidents/{quote(incident.incident_id, safe='')}", {}, "text/html")
    if incident.exemplar.events is not None:
        proof = f"findings/{quote(incident.exemplar.finding_id, safe='')}/trace"
        _link(entry, "related", proof, {}, "application/jsonl")
    _add(entry, "content", " ".join(_said(incident, now)))


def _stands(incident: Incident, now: float) -> str:
    if incident.closed_at is not None:
        return "closed"
    return "acknowledged" if incident.is_acknowledged(now) else "open"


def _said(incident: Incident, now: float) -> Iterator[str]:
    """The description of an incident, sentence by sentence."""
    yield f"{title_of(incident)} since {clock(incident.first_at)}: {much(incident)}, last seen {clock(incident.last_at)}."
    yield f"Affected: {places(incident)}. It {closing(incident, now)}."
    if said := incident.acknowledged:
        until = "" if said.until is None else f" until {clock(said.until)}"
        note = f": {said.note}" if said.note else "."
        yield f"{'Acknowledged' if incident.is_acknowledged(now) else 'Was acknowledged'} by {said.by}{until}{note}"


def _id_of(what: str) -> str:
    return uuid5(_IDS, what).urn


def _add(parent: Element, tag: str, text: str) -> None:
    """Characters that XML does not allow become U+FFFD."""
    SubElement(parent, tag).text = clean(text, TEXT_LENGTH_MAX)


def _link(parent: Element, rel: str, path: str, query: dict[str, str], media_type: str) -> None:
    SubElement(parent, "link", {"rel": rel, "type": media_type, "href": f"{path}?{urlencode(query)}" if query else path})
