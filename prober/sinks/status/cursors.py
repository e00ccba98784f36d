"""Cursors: where a page ended, as text that is opaque to those who pass it on.

A list is ordered by a time and a name, the newest first; a cursor holds both, and continues behind them whatever was added or deleted
meanwhile. It also holds a mark of the filter, since it means nothing with another one. It gives access to nothing, so it is checked
strictly instead of being signed, and works with every replica.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from math import isfinite
from typing import Final

from prober.sinks.status.database import StatusError

LENGTH_MAX: Final = 1_000


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
    if len(cursor) > LENGTH_MAX:
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
