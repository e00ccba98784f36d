"""How long a history is kept: until it is too old, or too big. Whole folders go, the oldest first."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from prober.sinks.history.store import Store, Stored

_FOLDER: Final = re.compile(r"\w+/date=(\d{4}-\d\d-\d\d)(?:/hour=(\d\d))?")


def end_of(folder: str) -> datetime | None:
    """When the hour, or day, of a folder is over; None for a folder that is not one of a history."""
    found = _FOLDER.fullmatch(folder)
    if found is None:
        return None
    try:
        begin = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        return begin + (timedelta(days=1) if found[2] is None else timedelta(hours=int(found[2]) + 1))
    except ValueError:
        return None


def enforce(store: Store, *, now: datetime, retention: timedelta, size_max: int) -> list[Stored]:
    """Deletes the history's files in folders that ended longer ago than `retention`, and then in the oldest that are left, until all
    files together have at most `size_max` bytes. Returns what was deleted.

    The folder of the current hour, or day, stays, however large. Only files that are a history's by name are counted or deleted.
    """
    folders: dict[tuple[datetime, str], list[Stored]] = {}
    for file in store.contents():
        if (end := end_of(file.folder)) is not None:
            folders.setdefault((end, file.folder), []).append(file)
    size = sum(file.size for files in folders.values() for file in files)
    deleted = []
    for (end, _), files in sorted(folders.items()):
        if end > now - retention and (size <= size_max or end > now):
            continue
        for file in files:
            store.delete(file.path)
        deleted += files
        size -= sum(file.size for file in files)
    return deleted
