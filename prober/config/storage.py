"""The sections of what is kept: the history and the status store."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import SecretStr

from prober.config.values import DatabaseUrl, Days, Folder, Section, Size, Written, at_least, at_least_bytes

HISTORY_RETENTION_MIN = timedelta(days=2)
STATUS_RETENTION_MIN = timedelta(hours=1)
HISTORY_BYTES_MIN = 64 * 2**20


class HistorySettings(Section):
    """The record of every event, run and finding."""

    location: Folder | None = None
    """Where it is kept; without it there is none."""
    spool: Annotated[str, Written("path")] | None = None
    """Local folder for what is not yet written to `location`. By default next to it, or in the system's temporary folder."""
    retention: Annotated[Days, at_least(HISTORY_RETENTION_MIN, "since the nightly jobs read all of yesterday")] = timedelta(days=30)
    """Older files are deleted. At least 2d, for the nightly jobs."""
    size_max: Annotated[Size, at_least_bytes(HISTORY_BYTES_MIN, "for a history")] = 50 * 2**30
    """Above this size the oldest files are deleted. At least 64MiB."""
    reports: Folder | None = None
    """Where the nightly jobs write their reports, for the API and the status page to show; without it they show none."""


class StatusSettings(Section):
    """The store behind the API and the status page."""

    url: DatabaseUrl = SecretStr("sqlite:///ordering-prober.db")
    """SQLite, or PostgreSQL for several probers. A password in it is never shown."""
    retention: Annotated[Days, at_least(STATUS_RETENTION_MIN, "or nobody can read what was found")] = timedelta(days=30)
    """Runs and findings that are older are deleted. At least 1h."""
