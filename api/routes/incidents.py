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
from prober.sinks.status.store import StatusStore
from prober.slo.acknowledgements import PERIOD_S, WITHIN_S

router = APIRouter(tags=["incidents"])

IncidentId = Annotated[str, Field(examples=["ordering-1f3a9c02-redelivery"])]
NOTE_LENGTH_MAX: Final = 1_000
NAME_LENGTH_MAX: Final = 200
ONE_LINE: Final = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Pattern without control characters, including line breaks and changes of the writing direction."""
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Latest end of an acknowledgement that can be written in every time zone; later ends are set to it, and ends before 1970 to 1970."""


ATOM: Final = "application/atom+xml"
PATH: Final = "incidents.atom"
NAMESPACE: Final = "http://www.w3.org/2005/Atom"
TEXT_LENGTH_MAX: Final = 2_000
_ROOT: Final = "../../"
"""Path from the feed to the start page."""
_IDS: Final = UUID("6f1c3a52-8f0e-4d0b-9a57-3c1e2b7d9f40")
"""Namespace of all ids. It must never change, or readers show all entries as new."""


class AcknowledgementAnswer(Answer, schema="Acknowledgement"):
    """An acknowledgement by a person."""

    at: Time
    """Time of the acknowledgement."""
    by: Annotated[str, Field(examples=["ada"])]
    """Name of the person who acknowledged it."""
    note: Annotated[str, Field(examples=["known to the service's owners"])]
    """The note of that person."""
    until: Time | None
    """End of the acknowledgement; null: the closing of the incident."""


class AffectedAnswer(Answer, schema="Affected"):
    """A probe instance that showed the incident."""

    probe: Probe
    """Name of the probe."""
    vantage: Vantage
    """Vantage of the probe instance."""
    part: Part
    """Part of the probe's keys, such as `2/4`; empty if they are not divided."""
    kinds: Annotated[Mapping[Kind, int], Field(examples=[{"REDELIVERY_SKIP": 3}])]
    """Number of findings by kind; empty for an outage."""


class IncidentAnswer(Answer, schema="Incident"):
    """One fault of a target: all findings with one symptom, of any probe and kind."""

    incident_id: IncidentId
    """Unique id."""
    title: Annotated[str, Field(examples=["Redeliveries skip messages on europe"])]
    """The incident in a few words."""
    target: Target
    """Name of the target."""
    symptom: Symptom
    """Its visible effect."""
    status: Annotated[Condition, Field(examples=["FAIL"])]
    """OUTAGE: the target is unreachable. FAIL: a guarantee is broken. WARN: only usual behaviour is missing."""
    first_at: Time
    """Time of the first finding; for an outage, of the last success before it."""
    last_at: Time
    """End of the last run with it."""
    closes_at: Time
    """Closing time if it does not occur again."""
    closed_at: Time | None
    """Closing time; null: it is open."""
    affected: tuple[AffectedAnswer, ...]
    """The probe instances that showed it."""
    findings: Count
    """Number of findings, including those that are not stored individually."""
    runs: Count
    """Number of runs with it."""
    runs_total: Count
    """Number of all runs with a verdict at the affected probe instances since its start."""
    unsent: Count
    """Number of publishes that could not be sent in an outage."""
    runbook: Annotated[str, Field(examples=["PubsubRedeliveryViolated"])]
    """Name of the runbook."""
    exemplar: Annotated[FindingId | None, Field(examples=["ordering-1f3a9c02-1"])]
    """Id of the finding that represents it; null: none is stored."""
    exemplar_is_proven: bool
    """Whether the exemplar has a trace for which `ordering-prober verify` makes the same finding."""
    acknowledged: AcknowledgementAnswer | None
    """Acknowledgement in force; null: none."""
    raised_at: Time | None
    """Time at which it was first stored as an outage or with a broken guarantee, which starts the time to acknowledge. Null: it is WARN."""
    first_acknowledged_at: Time | None
    """Time of the first acknowledgement since it was raised, ended ones included; null: none."""
    findings_link: Annotated[Link, Field(examples=["/api/v1/findings?incident=ordering-1f3a9c02-redelivery"])]
    """Stored findings of the incident."""

    @classmethod
    def of(cls, incident: Incident) -> Self:
        """Return the response for a stored incident."""
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
    """Incidents, ordered by start, the newest first."""

    items: tuple[IncidentAnswer, ...]
    """The incidents."""


class AcknowledgementsAnswer(Answer, schema="Acknowledgements"):
    """Incidents of a period by timeliness of their acknowledgement.

    They measure people, not the service: no error budget and no alert follow.
    """

    within_s: Annotated[Seconds, Field(examples=[300])] = WITHIN_S
    """Objective: maximum time from raising an incident to its acknowledgement."""
    period_s: Annotated[Seconds, Field(examples=[2592000])] = PERIOD_S
    """Period in which the counted incidents were raised."""
    in_time: Count
    """Number of incidents acknowledged in time."""
    late: Count
    """Number of incidents acknowledged later, or unacknowledged for longer than `within_s`."""
    pending: Count
    """Number of unacknowledged incidents that are open for less than `within_s`: undecided."""
    ended: Count
    """Number of incidents that ended within `within_s` without an acknowledgement: neither good nor bad."""
    ratio: Annotated[FiniteFloat | None, Field(examples=[0.9])]
    """`in_time` divided by the sum of `in_time` and `late`; null if both are 0."""
    median_s: Seconds | None
    """Median time to acknowledge, of acknowledged incidents; null: none."""
    left_out: Count
    """Number of older incidents of the period that were not read."""


class Acknowledge(Answer):
    """An acknowledgement, which replaces an earlier one."""

    model_config = ConfigDict(extra="forbid")

    by: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX, pattern=ONE_LINE, examples=["ada"])]
    """Name of the person who acknowledges it; one line."""
    note: Annotated[str, Field(max_length=NOTE_LENGTH_MAX, pattern=ONE_LINE, examples=["known to the service's owners"])] = ""
    """A note for others; one line."""
    until: Annotated[AwareDatetime | None, Field(examples=["2026-03-01T18:00:00Z"])] = None
    """End of the acknowledgement; without it, the closing of the incident. A time in the past revokes it."""

    @property
    def until_s(self) -> float | None:
        """End in seconds since 1970."""
        return None if self.until is None else max(0.0, min(self.until, NEVER).timestamp())


IncidentName = Annotated[str, Path(max_length=300, description="Its `incident_id`.", examples=["ordering-1f3a9c02-redelivery"])]


@router.get("/acknowledgements", response_description="Incidents by whether they were acknowledged in time.")
def acknowledgements(archive: Stored, now: Snapshot, _: Annotated[QueryParameters, Query()]) -> AcknowledgementsAnswer:
    """Count incidents of the last 30 days that were acknowledged within five minutes of being raised."""
    found = archive.queries.acknowledgements(now.at)
    return AcknowledgementsAnswer.model_validate(values_of(AcknowledgementsAnswer, found) | dict(found.counts))


@router.get("/incidents", response_description="A page of incidents.")
def incidents(request: Request, response: Response, archive: Stored, asked: Annotated[IncidentParameters, Query()]) -> IncidentPage:
    """List incidents by start, the newest first: one for each target and symptom."""
    page = page_asked(archive.queries.incidents, asked, request, response)
    return IncidentPage(items=tuple(map(IncidentAnswer.of, page.items)), next_cursor=page.next_cursor)


@router.get(
    f"/{PATH}",
    response_class=Response,
    responses={200: {"description": "An Atom feed (RFC 4287).", "content": {ATOM: {"schema": {"type": "string"}}}}},
)
def feed(request: Request, archive: Stored, asked: Annotated[IncidentParameters, Query()]) -> Response:
    """Return the list of incidents for feed readers: an entry is updated when its incident starts, is acknowledged, or closes."""
    page = archive.queries.incidents(asked.wanted, limit=asked.limit, cursor=asked.cursor)
    response = Response(incident_feed(page, asked, wall_s(), archive.queries.store_id()), media_type=ATOM)
    link_next(request, response, page.next_cursor)
    return response


@router.get("/incidents/{incident_id}", response_description="The incident.")
def incident(archive: Stored, incident_id: IncidentName, _: Annotated[QueryParameters, Query()]) -> IncidentAnswer:
    """Return one incident."""
    return IncidentAnswer.of(incident_of(archive, incident_id))


@router.post("/incidents/{incident_id}/acknowledge", response_description="The incident.", dependencies=[Security(TOKEN)])
def acknowledge(
    archive: Stored, incident_id: IncidentName, _: Annotated[QueryParameters, Query()], said: Annotated[Acknowledge, Body()]
) -> IncidentAnswer:
    """Acknowledge an incident, until a time or until it closes.

    Pages show the acknowledgement; it has no other effect.

    It replaces an earlier acknowledgement. Needs the token: `Authorization: Bearer TOKEN`.
    """
    StatusStore(archive.queries.database).acknowledge(incident_id, Acknowledgement(wall_s(), said.by, said.note, said.until_s))
    return IncidentAnswer.of(incident_of(archive, incident_id))


# --- incidents as an Atom feed (RFC 4287) -------------------------------------------------------------------------------------


def incident_feed(page: Page[Incident], asked: IncidentParameters, now: float, store_id: str) -> bytes:
    """Return the feed with this page of the list, as an XML document in UTF-8.

    `store_id`: distinguishes it from feeds of other deployments.

    An entry is an incident. It counts as updated when the incident starts, when a person acknowledges it, when the acknowledgement ends,
    and when the incident closes. Numbers in its text may be newer. Addresses are relative, so that they are valid behind every proxy; ids
    do not depend on addresses, so they stay valid when the service moves.
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
    """Return the time of the newest change that a reader should see."""
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
    yield f"{title_of(incident)} since {clock(incident.first_at)}: {much(incident)}, last seen {clock(incident.last_at)}."
    yield f"Affected: {places(incident)}. It {closing(incident, now)}."
    if said := incident.acknowledged:
        until = "" if said.until is None else f" until {clock(said.until)}"
        note = f": {said.note}" if said.note else "."
        yield f"{'Acknowledged' if incident.is_acknowledged(now) else 'Was acknowledged'} by {said.by}{until}{note}"


def _id_of(what: str) -> str:
    return uuid5(_IDS, what).urn


def _add(parent: Element, tag: str, text: str) -> None:
    """Add an element; characters that XML does not allow become U+FFFD."""
    SubElement(parent, tag).text = clean(text, TEXT_LENGTH_MAX)


def _link(parent: Element, rel: str, path: str, query: dict[str, str], media_type: str) -> None:
    SubElement(parent, "link", {"rel": rel, "type": media_type, "href": f"{path}?{urlencode(query)}" if query else path})
