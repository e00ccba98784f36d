"""Incidents as an Atom feed (RFC 4287).

Clients are chat programs, feed readers and mail gateways.

An entry is an incident. It counts as updated when the incident begins, when a person acknowledges it, when the acknowledgement ends, and
when the incident closes. Numbers in its text may be newer.

Addresses are relative, so that they are right behind every proxy; ids say nothing of addresses, so they stay when the service moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, urlencode
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, tostring

from api.headline import closing, much, places, title_of
from api.query_parameters import IncidentParameters, as_query
from api.swim_lanes.lettering import clean
from api.words import clock, iso
from prober.sinks.live.incidents import Incident
from prober.sinks.status.listings import Page

ATOM: Final = "application/atom+xml"
PATH: Final = "incidents.atom"
NAMESPACE: Final = "http://www.w3.org/2005/Atom"
TEXT_LENGTH_MAX: Final = 2_000
_ROOT: Final = "../../"
"""From the feed to the start page."""
_IDS: Final = UUID("6f1c3a52-8f0e-4d0b-9a57-3c1e2b7d9f40")
"""The namespace of all ids. It must never change, or readers show everything as new."""


def incident_feed(page: Page[Incident], asked: IncidentParameters, now: float, store_id: str) -> bytes:
    """The feed with this page of the list, as an XML document in UTF-8. `store_id`: what tells it from those of other deployments."""
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
