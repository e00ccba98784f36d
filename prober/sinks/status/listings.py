"""Lists of stored records: newest first, in pages, filtered. Each page costs the same as the first.

A cursor marks the end of a page; clients pass it on as opaque text. A list is ordered by time and name, newest first. The cursor contains
both, so the next page continues there, whatever was added or deleted meanwhile. It also contains a hash of the filter, because it is
invalid for another filter. A cursor grants no access, so it is validated strictly instead of signed, and works with every replica.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Final, Generic, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Double, Text, literal, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from prober.core.findings import Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.sinks.status.columns import Record
from prober.sinks.status.database import Database, StatusError
from prober.sinks.status.records import FindingRecord, IncidentRecord, RunRecord

CURSOR_LENGTH_MAX: Final = 1_000
PAGE_MAX: Final = 500

Item = TypeVar("Item")
Kept = TypeVar("Kept", bound=Record)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs that match every given value. Their start is at or after `since` and before `until`."""

    probe: str | None = None
    verdict: Verdict | None = None
    target: str | None = None
    vantage: str | None = None
    since: float | None = None
    until: float | None = None
    part: str | None = None
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Findings that match every given value. Their time is at or after `since` and before `until`."""

    kind: Kind | None = None
    status: Status | None = None
    key: str | None = None
    subscription: str | None = None
    target: str | None = None
    run_id: str | None = None
    since: float | None = None
    until: float | None = None
    open: bool | None = None
    probe: str | None = None
    vantage: str | None = None
    part: str | None = None
    instance: str | None = None
    incident_id: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Incidents that match every given value. Their start is at or after `since` and before `until`."""

    target: str | None = None
    symptom: Symptom | None = None
    open: bool | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A page of a list, newest first; `next_cursor` continues the list, None: this is the last page."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


Filter: TypeAlias = RunFilter | FindingFilter | IncidentFilter


class BadCursor(StatusError):
    """A text that is no cursor of this list with this filter."""


@dataclass(frozen=True, slots=True)
class Position:
    """Time and name of the last item of a page."""

    at: float
    name: str


def write_cursor(position: Position, wanted: object) -> str:
    """Return the cursor of a position in the list of a filter."""
    text = json.dumps([_mark(wanted), position.at, position.name], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, wanted: object) -> Position:
    """Return the position of a cursor. Raises `BadCursor` for text that `write_cursor` does not return for this filter."""
    if len(cursor) > CURSOR_LENGTH_MAX:
        raise BadCursor("the cursor is too long: pass on next_cursor as it is")
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        _, at, name = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        position = Position(at, name)
    except (ValueError, TypeError, RecursionError):
        raise BadCursor("the cursor is none of ours: pass on next_cursor as it is") from None
    if type(at) is not float or not isfinite(at) or type(name) is not str or write_cursor(position, wanted) != cursor:
        raise BadCursor("the cursor belongs to another list or filter: begin without a cursor")
    return position


def _mark(wanted: object) -> str:
    """Return a hash of a filter. Filters are frozen dataclasses of plain values, so their text is complete."""
    return hashlib.sha256(repr(wanted).encode("utf-8", "replace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Listing(Generic[Kept]):
    """Records with the time and the name by which their list is ordered.

    Every field of its filter is the name of a column, or one of `since`, `until` and `open`.
    """

    record: type[Kept]
    at: InstrumentedAttribute[float]
    name: InstrumentedAttribute[str]


RUNS: Final = Listing(RunRecord, RunRecord.started_at, RunRecord.run_id)
FINDINGS: Final = Listing(FindingRecord, FindingRecord.found_at, FindingRecord.finding_id)
INCIDENTS: Final = Listing(IncidentRecord, IncidentRecord.first_at, IncidentRecord.incident_id)


def page_of(database: Database, listing: Listing[Kept], wanted: Filter, limit: int, cursor: str | None) -> Page[Kept]:
    """Return a page of at most `limit` (and `PAGE_MAX`) records. Raises `BadCursor`."""
    limit = max(1, min(limit, PAGE_MAX))
    at, name = listing.at, listing.name
    query = select(listing.record).where(*conditions(listing, wanted))
    if cursor is not None:
        position = read_cursor(cursor, wanted)
        query = query.where(tuple_(at, name) < tuple_(literal(position.at, Double), literal(position.name, Text)))
    found = tuple(database.records(query.order_by(at.desc(), name.desc()).limit(limit + 1)))
    if len(found) <= limit:
        return Page(found)
    last = found[limit - 1]
    return Page(found[:limit], write_cursor(Position(getattr(last, at.key), getattr(last, name.key)), wanted))


def conditions(listing: Listing[Any], wanted: Filter) -> Iterator[ColumnElement[bool]]:
    """Return the SQL conditions of a filter."""
    for name, value in ((field.name, getattr(wanted, field.name)) for field in fields(wanted)):
        if value is None:
            continue
        match name:
            case "since":
                yield listing.at >= value
            case "until":
                yield listing.at < value
            case "open":
                closed_at = listing.record.closed_at
                yield closed_at.is_(None) if value else closed_at.is_not(None)
            case _:
                yield getattr(listing.record, name) == value


def of_instance(record: type[RunRecord], instance: InstanceKey) -> list[ColumnElement[bool]]:
    """Return the SQL conditions for records of a probe instance."""
    return [getattr(record, name) == value for name, value in instance._asdict().items()]
