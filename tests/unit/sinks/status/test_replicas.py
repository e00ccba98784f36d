"""Several probers and several replicas of the API on one store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from prober.core.findings import Kind
from prober.sinks.status.database import Database
from prober.sinks.status.migration import migrate
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import (
    ProberRecord,
    Slice,
)
from prober.sinks.status.slices import SHORT_S, Series
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import HOUR_S, SliCounts
from tests.unit.sinks.status.examples import KEEPING, START, US, entry, result, snapshot


def test_two_probers_and_two_replicas_of_the_api_agree(url: str) -> None:
    """Both write at the same time, runs of the same site and of others, and each run twice."""
    databases = [Database(url) for _ in range(4)]
    probers, replicas = [StatusStore(each) for each in databases[:2]], [StatusQueries(each) for each in databases[2:]]
    migrate(databases[0])

    def probe(number: int) -> None:
        store, name = probers[number], f"prober-{number}"
        for turn in range(20):
            kinds = (Kind.GHOST,) if turn % 3 else ()
            runs = [entry(f"{name}-{turn:02}", *kinds, at=START + turn, instance=name), entry(f"{name}-us-{turn:02}", site=US)]
            store.record(runs)
            store.record(runs)
            told = snapshot(SliCounts(), START + turn, result(at=START + turn))
            counted = [Slice(name, "europe", "order", "order", SHORT_S, START // 300 * 300, SliCounts(turn))]
            store.heartbeat(ProberRecord(name, "1", START, START + turn), told.sites, counted)
            store.tidy(KEEPING, START)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(probe, range(2)))
    first, second = (
        (
            each.runs(limit=500),
            each.findings(limit=500),
            each.sites(),
            each.tallies(HOUR_S, START + 20.0),
            each.probers(),
        )
        for each in replicas
    )
    assert first == second
    runs, findings, standings, tallies, told = first
    assert len({record.result.run_id for record in runs.items}) == len(runs.items) == 80
    assert len(findings.items) == 2 * 13
    assert [standing.instance for standing in standings] == ["prober-0", "prober-1"]
    assert tallies == {Series("europe", "order", "order"): SliCounts(2 * 19)}
    assert [each.instance for each in told] == ["prober-0", "prober-1"]
    for each in databases:
        each.close()
