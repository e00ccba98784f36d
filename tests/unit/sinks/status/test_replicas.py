"""Several probers and several replicas of the API on one store: how probe instances stand, what was counted, what jobs said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from prober.config.following import ConfigurationStatus
from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.monitoring.comparison import OwnSubscriptionStatus, Point, ProberSide, Reading, Side
from prober.sinks.live.condition import Condition
from prober.sinks.status.database import Database
from prober.sinks.status.migration import prepare
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.slices import KEPT_S, LONG_S, MINUTE_SLICE_S, Series
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts
from tests.streams import ORDERS_STREAM, stream, top_key
from tests.unit.sinks.status.examples import INSTANCE, ORDER_IN_EUROPE, RETENTION, START, US, entry, result, snapshot

REDELIVERY = Series("europe", "order", "redelivery")


def test_two_probers_and_two_replicas_of_the_api_agree(url: str) -> None:
    """Both write at the same time, runs of the same probe instance and of others, and each run twice."""
    databases = [Database(url) for _ in range(4)]
    probers, replicas = [StatusStore(each) for each in databases[:2]], [StatusQueries(each) for each in databases[2:]]
    prepare(databases[0])

    def probe(number: int) -> None:
        store, name = probers[number], f"prober-{number}"
        for turn in range(20):
            kinds = (Kind.GHOST,) if turn % 3 else ()
            runs = [
                entry(f"{name}-{turn:02}", *kinds, at=START + turn, instance=name),
                entry(f"{name}-us-{turn:02}", probe_instance=US),
            ]
            store.record(runs)
            store.record(runs)
            reported = snapshot(SliCounts(), START + turn, result(at=START + turn))
            counted = [Slice(name, "europe", "order", "order", MINUTE_SLICE_S, START // 60 * 60, SliCounts(turn))]
            store.heartbeat(ProberRecord(name, "1", START, START + turn), reported.probe_instances, counted)
            store.tidy(RETENTION, START)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(probe, range(2)))
    first, second = (
        (each.runs(limit=500), each.findings(limit=500), each.probe_instances(), each.counts(HOUR_S, START + 20.0), each.probers())
        for each in replicas
    )
    assert first == second
    runs, findings, statuses, counts, reported = first
    assert len({record.run_id for record in runs.items}) == len(runs.items) == 80
    assert len(findings.items) == 2 * 13
    assert [status.instance for status in statuses] == ["prober-0", "prober-1"]
    assert counts == {Series("europe", "order", "order"): SliCounts(2 * 19)}
    assert [each.instance for each in reported] == ["prober-0", "prober-1"]
    for each in databases:
        each.close()


class TestStanding:
    def test_an_instance_stands_as_its_prober_says(self, store: StatusStore, queries: StatusQueries) -> None:
        shown = snapshot(SliCounts(), START + 5.0, result(at=START))
        store.heartbeat(ProberRecord("prober-0", "1.2.3", START, START + 5.0), shown.probe_instances)
        store.heartbeat(ProberRecord("prober-0", "1.2.3", START, START + 5.0), shown.probe_instances)
        (reported,) = queries.probe_instances()
        assert (reported.status, reported.probe_instance) == (Condition.PASS, INSTANCE)
        assert (reported.verdict, reported.last_run_id, reported.last_pass_at) == (Verdict.PASS, "run-1", START + 2.0)
        assert queries.probers() == (ProberRecord("prober-0", "1.2.3", START, START + 5.0),)

    def test_own_subscriptions_are_kept(self, store: StatusStore, queries: StatusQueries) -> None:
        reading = Reading(Point(5.0, START), acked=Point(60.0, START), gap_s=180.0)
        side = ProberSide(Side.LATE, 90.0, here=True)
        reported = OwnSubscriptionStatus("projects/p/subscriptions/s", "europe", 60.0, START, "no\0 permission", reading, side)
        store.heartbeat(ProberRecord("prober-0", "1", START, START, own=(reported, reported.unknown("?"))), (), ())
        [prober] = queries.probers()
        assert prober.own == (replace(reported, failure="no\N{REPLACEMENT CHARACTER} permission"), reported.unknown("?"))

    def test_streams_are_kept_with_their_top_keys(self, store: StatusStore, queries: StatusQueries) -> None:
        hostile, kept = (top_key(f"acct-{text}", 1.0, 0.1) for text in ("\0", "\N{REPLACEMENT CHARACTER}"))
        earlier = replace(ORDERS_STREAM, top=tuple(replace(one, minute=None) for one in ORDERS_STREAM.top))
        store.heartbeat(ProberRecord("prober-0", "1", START, START, streams=(ORDERS_STREAM, earlier, stream(hostile))), (), ())
        [prober] = queries.probers()
        assert prober.streams == (ORDERS_STREAM, earlier, stream(kept))

    def test_which_configuration_is_in_force_is_kept(self, store: StatusStore, queries: StatusQueries) -> None:
        reported = ConfigurationStatus("p.yaml", "3f1c", START, ("api.port",), START + 1.0, "p.yaml: is not\0YAML")
        store.heartbeat(ProberRecord("prober-0", "1.2.3", START, START + 5.0, (), reported))
        (prober,) = queries.probers()
        assert prober.configuration == replace(reported, refusal="p.yaml: is not\N{REPLACEMENT CHARACTER}YAML")

    def test_counts_of_all_processes_add_up_over_a_window(self, store: StatusStore, queries: StatusQueries) -> None:
        def counted(process: str, at: float, good: int, bad: int, definition: str = "order") -> list[Slice]:
            return [
                Slice(process, "europe", "order", definition, length_s, at // length_s * length_s, SliCounts(good, bad))
                for length_s in KEPT_S
            ]

        now = START // LONG_S * LONG_S + 60.0
        reported = [
            *counted("p1", now, 10, 1),
            *counted("p2", now, 20, 0),
            *counted("p1", now - HOUR_S, 100, 0),
            *counted("p1", now - 10 * DAY_S, 1000, 0),
            *counted("p1", now, 7, 7, "redelivery"),
        ]
        for _ in range(2):
            store.heartbeat(ProberRecord("p", "1", START, now), slices=reported)
        assert queries.counts(300.0, now) == {ORDER_IN_EUROPE: SliCounts(30, 1), REDELIVERY: SliCounts(7, 7)}
        assert queries.counts(HOUR_S, now)[ORDER_IN_EUROPE] == SliCounts(130, 1)
        assert queries.counts(30 * DAY_S, now)[ORDER_IN_EUROPE] == SliCounts(1130, 1)
