"""Lists of what is stored: newest first, page by page, of what agrees with a filter. Each page is found as fast as the first one.

Where a page ended is a cursor, text that is opaque to those who pass it on. A list is ordered by a time and a name, the newest first; a
cursor holds both, and continues behind them whatever was added or deleted meanwhile. It also holds a mark of the filter, since it means
nothing with another one. It gives access to nothing, so it is checked strictly instead of being signed, and works with every replica.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Final, TypeAlias

from sqlalchemy import ColumnElement, Double, RowMapping, Table, Text, literal, select, tuple_

from prober.sinks.status import tables
from prober.sinks.status.database import Database, StatusError
from prober.sinks.status.records import FindingFilter, IncidentFilter, RunFilter
from prober.sinks.status.rows import text_of

CURSOR_LENGTH_MAX: Final = 1_000
PAGE_MAX: Final = 500

Filter: TypeAlias = RunFilter | FindingFilter | IncidentFilter


class BadCursor(StatusError):
    """A text is not a cursor of this list with this filter."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last item of a page: its time and its name."""

    at: float
    name: str


def write_cursor(position: Position, wanted: object) -> str:
    """The cursor of a position in the list that a filter gives."""
    text = json.dumps([_mark(wanted), position.at, position.name], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, wanted: object) -> Position:
    """Where to go on. Raises `BadCursor` for anything that `write_cursor` does not give for this filter."""
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
    """Tells filters apart. They are frozen dataclasses of plain values, whose text says all."""
    return hashlib.sha256(repr(wanted).encode("utf-8", "replace")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed: a table, and its columns that have the time and the name by which it is ordered.

    Every field of its filter is the name of a column, or one of `since`, `until` and `open`.
    """

    table: Table
    at: str
    name: str


RUNS: Final = Listing(tables.runs, "started_at", "run_id")
FINDINGS: Final = Listing(tables.findings, "found_at", "finding_id")
INCIDENTS: Final = Listing(tables.incidents, "first_at", "incident_id")


def page_of(
    database: Database, listing: Listing, wanted: Filter, limit: int, cursor: str | None
) -> tuple[Sequence[RowMapping], str | None]:
    """At most `limit` (and `PAGE_MAX`) rows, and the cursor of the next page; None: this is the last one. Raises `BadCursor`."""
    limit = max(1, min(limit, PAGE_MAX))
    columns = listing.table.c
    at, name = columns[listing.at], columns[listing.name]
    query = select(listing.table).where(*conditions(listing, wanted))
    if cursor is not None:
        position = read_cursor(cursor, wanted)
        query = query.where(tuple_(at, name) < tuple_(literal(position.at, Double), literal(position.name, Text)))
    rows = database.rows(query.order_by(at.desc(), name.desc()).limit(limit + 1))
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], write_cursor(Position(last[listing.at], last[listing.name]), wanted)


def conditions(listing: Listing, wanted: Filter) -> Iterator[ColumnElement[bool]]:
    """What a row that agrees with a filter fulfils."""
    columns = listing.table.c
    at = columns[listing.at]
    for name, value in ((field.name, getattr(wanted, field.name)) for field in fields(wanted)):
        if value is None:
            continue
        match name:
            case "since":
                yield at >= value
            case "until":
                yield at < value
            case "open":
                yield columns.closed_at.is_(None) if value else columns.closed_at.is_not(None)
            case _:
                yield columns[name] == text_of(value)
