"""Settings that are each right and contradict each other: places that must not be the same, and what needs something else."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from prober.config.drills import Drills
from prober.config.models import Api, Embedded, HistorySettings, Sharding, StatusSettings
from prober.config.problems import Problem

_TABLES: Final = ("events", "runs", "findings", "_spool")
"""The folders of a history, which its retention, its readers and `compact` take for their own."""
_LOCAL: Final = ("", "file")


def history_problems(history: HistorySettings) -> Iterator[Problem]:
    """Places of the history that would get into each other's way."""
    location, reports = history.location, history.reports
    for key, place in (("location", location), ("reports", reports), ("spool", history.spool)):
        if place is not None and place.startswith("~"):
            yield Problem(("history", key), f"{place!r} begins with ~, which only a shell replaces: write the whole path")
    if reports is not None and location is not None:
        if _plain(reports) == _plain(location):
            yield Problem(("history", "reports"), _elsewhere("must not be the same as history.location", location))
        elif any(_inside(reports, f"{_plain(location)}/{table}") for table in _TABLES):
            yield Problem(("history", "reports"), _elsewhere("must not be in a folder of the history", location))
    local = location is not None and urlsplit(location).scheme in _LOCAL
    if local and history.spool is not None and any(_inside(history.spool, f"{location}/{table}") for table in _TABLES[:-1]):
        yield Problem(
            ("history", "spool"), f"must not be in a table of the history at {location}: leave it out, or write another folder"
        )
    if urlsplit(history.spool or "").scheme:
        yield Problem(("history", "spool"), f"{history.spool!r} must be a folder of this machine, not a URI")


def sharding_problems(sharding: Sharding, status: StatusSettings) -> Iterator[Problem]:
    """Probers that divide the work over a database that others cannot reach."""
    if sharding.group is not None and urlsplit(status.url.get_secret_value()).scheme.startswith("sqlite"):
        text = (
            "probers that share the work need one database for all of them, and SQLite is a file of one machine: set status.url (or "
            "ORDERING_PROBER_STATUS__URL) to postgresql://USER:PASSWORD@HOST/NAME, or remove sharding.group"
        )
        yield Problem(("sharding", "group"), text)


def port_problems(api: Api, embedded: Embedded, drills: Drills) -> Iterator[Problem]:
    """Two listeners on one port."""
    taken: dict[int, str] = {}
    for section, port in (("api", api.port), ("embedded", embedded.port), ("drills", drills.port)):
        if port and port in taken:
            yield Problem((section, "port"), f"{port} is {taken[port]}.port too; give each its own, or 0 for any free one")
        elif port:
            taken[port] = section


def _elsewhere(wrong: str, location: str) -> str:
    parent = posixpath.dirname(_plain(location)) or "."
    return f"{wrong}: the jobs would read their own reports as history; write a folder next to it, such as {parent}/reports"


def _plain(place: str) -> str:
    """A path or URI without options, the scheme of local files, and what does not change where it is."""
    parts = urlsplit(place)
    if parts.scheme in _LOCAL:
        return posixpath.normpath(parts.path)
    return f"{parts.scheme}://{parts.netloc}{posixpath.normpath('/' + parts.path.lstrip('/')).rstrip('/')}"


def _inside(place: str, folder: str) -> bool:
    inner, outer = _plain(place), _plain(folder)
    return inner == outer or inner.startswith(f"{outer}/")
