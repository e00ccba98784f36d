"""A store with something in it: runs of two probe instances, one with real findings and their evidence."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import update

from api.view import Archive
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.sinks.status.entries import EndedRun, entry_of
from prober.sinks.status.records import Entry, IncidentRecord
from prober.sinks.status.store import StatusStore
from prober.slo.figures import Figure
from tests.unit.api.asking import EUROPE, NOON, StubView, ask, copy_of, new_archive, view
from tests.unit.api.asking import US as US_SHOWN
from tests.unit.sinks.status.examples import INSTANCE, LIBRARY, PROBER, START, US, entry, failed

RUNS = 7
SLASHED = "orders/2026/../ä \U0001f511?#%00"
"""A key that is not easily put in an address."""


def real(run_id: str = "run-real", at: float = START) -> Entry:
    """A run that was verified: message 3 was passed over. With the evidence for it."""
    result, recorded = failed(run_id, at=at)
    return entry_of(EndedRun(INSTANCE, result, at + 2.0, 0.0, recorded), PROBER)


def measured(one: Entry) -> Entry:
    """The same, in which a probe measured something."""
    return replace(one, run=replace(one.run, figures={Figure.BACKLOG_BEGINS: 712_345.6}))


def entries() -> list[Entry]:
    """Seven runs, one every minute, the newest last."""
    times = [START + 60.0 * number for number in range(RUNS)]
    return [
        entry("run-1", at=times[0]),
        real("run-2", times[1]),
        entry("run-3", Kind.STUCK, at=times[2], probe_instance=US, status=Status.LIVENESS),
        entry(
            "run-4",
            Kind.ORDER_GAP,
            Kind.ORDER_GAP,
            at=times[3],
            probe_instance=LIBRARY,
            key=SLASHED,
            subscription="projects/p/subscriptions/s",
        ),
        entry("run-5", at=times[4], probe_instance=LIBRARY),
        entry("run-6", at=times[5], verdict=Verdict.UNKNOWN),
        measured(entry("run-7", Kind.AFFINITY_MOVE, at=times[6], status=Status.INDETERMINATE, verdict=Verdict.PASS)),
    ]


def fill(name: str, *more: Entry) -> Archive:
    """A new archive of this name, with all of them written."""
    archive = new_archive(name)
    StatusStore(archive.queries.database).record([*more, *entries()])
    with archive.queries.database.writing() as connection:  # the runs are two months old at noon, and their incidents still open
        connection.execute(update(IncidentRecord).values(closes_at=NOON + 600.0))
    return archive


@cache
def filled() -> Archive:
    """The same, made once; nobody writes to it afterwards."""
    return fill("filled")


def full_view() -> StubView:
    """A service whose store has all of this."""
    asked = view(EUROPE, US_SHOWN)
    filled()
    asked.write_to(copy_of("filled"))
    return asked


def answer(path: str, status: int = 200) -> Any:
    """What is answered, as JSON."""
    response = ask(full_view(), path)
    assert response.status_code == status, response.text
    return response.json()
