"""Latency of the API for 10 readers of a full store.

The store is a SQLite file with the runs and findings of 30 days (seeded). The API runs in a process of its own. The clients send requests
over loopback, each the next one as soon as it has a response, so the server is always busy.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import insert

from benchmarks.figures import Figure
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.kinds import symptom_of
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.result import Durations, RunResult
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Exemplar, Incident
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.status.columns import Record, values_of
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.records import FindingRecord, IncidentRecord, ProberState, RunRecord
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts
from tests.integration.programs import program

RUNS, FINDINGS = 1_000_000, 100_000
CLIENTS, ROUNDS, ROUND_S, WARM_UP_S = 10, 3, 2.0, 0.5
P99_MAX_MS = 150.0
NOON = 1_772_366_400.0  # 2026-03-01T12:00:00Z
DAYS = 30
EPISODE_S = 3 * DAY_S
AT_ONCE = 20_000
INSTANCES = tuple(
    ProbeInstance(
        f"target-{number}",
        probe,
        "wire",
        interval_s=60.0,
        environment="production",
        region=f"region-{number}",
        topic=f"projects/p/topics/okp-{number}-{probe}",
        subscription=f"projects/p/subscriptions/okp-{number}-{probe}",
    )
    for number in range(8)
    for probe in ("ordering", "redelivery", "affinity")
)
OPEN_INSTANCES = range(0, len(INSTANCES), 8)
KINDS = (
    (Kind.ORDER_GAP, Status.VIOLATION),
    (Kind.REDELIVERY_SKIP, Status.VIOLATION),
    (Kind.STUCK, Status.LIVENESS),
    (Kind.AFFINITY_MOVE, Status.INDETERMINATE),
)
SENTENCE = (
    "Pub/Sub delivered message 4 to A right after message 2 and skipped message 3, which should have been redelivered in between. "
    * 2
)
STATE = ProberState("prober-0", "1.0.0", NOON - 86_400.0 * DAYS, 1_000.0, 4_000)


def a_run(number: int, of: int, random: Random) -> dict[str, Any]:
    """Return a row of a run: the probe instances take turns; 2 % fail, 1 % are unknown."""
    instance, at = INSTANCES[number % len(INSTANCES)], NOON - DAYS * 86_400.0 * (of - number) / of
    verdict = random.choices((Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN), (97, 2, 1))[0]
    counters = {
        name: random.randrange(5_000) for name in ("events", "publishes", "deliveries_first", "redeliveries", "rewinds", "acks")
    }
    durations = Durations(200, 0.01, 0.05 + random.random() / 10, 0.2)
    result = RunResult(
        f"{instance.probe}-{number:08x}", instance.probe, instance.target, instance.vantage,
        verdict, "" if verdict is Verdict.PASS else "ORDER_GAP",
        at, 20.0, number, instance.topic, instance.subscription,
        counts={} if verdict is Verdict.PASS else {(Kind.ORDER_GAP, Status.VIOLATION): 3},
        counters=counters,
        checks={Indicator.ORDER: SliCounts(200), Indicator.REDELIVERY: SliCounts(20, 1)},
        durations={Indicator.PUBLISH_LATENCY: durations, Indicator.END_TO_END_LATENCY: durations},
    )  # fmt: skip
    return values_of(RunRecord.of(result, instance.environment, instance.region, at + 20.0, STATE))


def an_incident(instance: ProbeInstance, kind: Kind, at: float) -> tuple[str, float | None]:
    """Return the name of a finding's incident, and its end, None if it is open.

    Each target has a few per symptom; some of the newest are open.
    """
    episode = int((at - (NOON - DAYS * DAY_S)) // EPISODE_S)
    ends_at = NOON - DAYS * DAY_S + (episode + 1) * EPISODE_S
    is_open = ends_at >= NOON and instance.target in {INSTANCES[number].target for number in OPEN_INSTANCES}
    return f"{instance.target}-{episode}-{symptom_of(kind)}", None if is_open else ends_at


def a_finding(number: int, of: int, random: Random) -> dict[str, Any]:
    """Return a row of a finding; findings that fail a run belong to an incident."""
    instance, at = random.choice(INSTANCES), NOON - DAYS * 86_400.0 * (of - number) / of
    kind, status = random.choice(KINDS)
    finding = Finding(
        kind,
        status,
        instance.subscription,
        f"key-{random.randrange(1_000)}",
        12.5,
        (3, 4, 9),
        {"seq": 4, "missing": (3,)},
        "",
        {"delivery_delay_max_s": 5.0},
    )
    run_id = f"{instance.probe}-{random.randrange(of):08x}"
    incident_id, closed_at = an_incident(instance, kind, at) if status in FAILING else (None, at)
    record = FindingRecord.of(
        finding,
        instance.key,
        finding_id=f"{run_id}-{number}",
        run_id=run_id,
        instance="prober-0",
        found_at=at,
        after=9,
        explanation=SENTENCE,
    )
    return values_of(record) | {"closed_at": closed_at, "incident_id": incident_id}


def incidents_of(found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the incidents of these findings, which are ordered from the oldest."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        if row["incident_id"] is not None:
            groups.setdefault(row["incident_id"], []).append(row)
    for incident_id, rows in groups.items():
        first, last, count = rows[0], rows[-1], len(rows)
        affected = {
            InstanceKey(row["target"], row["probe"], row["vantage"], row["part"]): Counter({Kind(row["kind"]): count})
            for row in rows
        }
        incident = Incident(
            incident_id, first["target"], symptom_of(Kind(first["kind"])), first["found_at"], last["found_at"],
            last["found_at"] + DAY_S, affected, count, 10 * count, 0, Exemplar(first["finding_id"], 12), first["closed_at"],
        )  # fmt: skip
        yield values_of(IncidentRecord.of(incident))


def a_snapshot(instance: ProbeInstance) -> InstanceSnapshot:
    """Return the snapshot of a probe instance without problems."""
    return InstanceSnapshot(
        instance, Verdict.PASS, Condition.PASS, NOON,
        overdue_s=None, running_since=None, next_run_at=None, last_run=None, last_pass_at=NOON, history=(),
        runs={Verdict.PASS: 9}, findings=(), findings_dropped=0, runs_expected=9, runs_skipped=0, last_skip=None, maintenance=None,
    )  # fmt: skip


def fill(database: Database) -> None:
    """Fill the store."""
    StatusStore(database).prepare()
    random = Random(7)
    _insert(database, RunRecord, (a_run(number, RUNS, random) for number in range(RUNS)))
    found = [a_finding(number, FINDINGS, random) for number in range(FINDINGS)]
    _insert(database, FindingRecord, iter(found))
    _insert(database, IncidentRecord, incidents_of(found))
    StatusStore(database).heartbeat(ProberRecord("prober-0", "1.0.0", NOON, 4e9), map(a_snapshot, INSTANCES))


def _insert(database: Database, kind: type[Record], rows: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(rows, AT_ONCE)):
        with database.writing() as connection:
            connection.execute(insert(kind), batch)


# --- requests ----------------------------------------------------------------------------------------------------------------


def filtered_runs(random: Random) -> str:
    """Return the path of a page of runs with a filter and a time of their own."""
    instance = random.choice(INSTANCES)
    choices = (
        f"probe={instance.probe}",
        f"verdict={random.choice(list(Verdict))}",
        f"target={instance.target}",
        f"target={instance.target}&probe={instance.probe}&verdict=FAIL",
    )
    return f"/api/v1/runs?{random.choice(choices)}&until=2026-02-{random.randrange(1, 29):02}T{random.randrange(24):02}:00:00Z"


PATHS: dict[str, Callable[[Random], str]] = {
    "status": lambda _: "/api/v1/status",
    "runs, filtered": filtered_runs,
    "incidents, feed": lambda _: "/api/v1/incidents.atom",
}
"""Requests by the name of their figure: the slowest of all pages."""


async def read(url: str, path: Callable[[Random], str], until: float, random: Random) -> list[float]:
    """Send requests on one connection until a time; return their latencies in seconds. A library would take longer than the server."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    waits = []
    with closing(writer):
        while (began := perf_counter()) < until:
            writer.write(f"GET {(asked := path(random))} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
            assert head.startswith(b"HTTP/1.1 200 "), (asked, head)
            waits.append(perf_counter() - began)
    return waits


async def p99_ms(url: str, path: Callable[[Random], str], seconds: float) -> float:
    """Let all clients send requests for some seconds; return the p99 of the latency in milliseconds."""
    until = perf_counter() + seconds
    waits = await asyncio.gather(*(read(url, path, until, Random(number)) for number in range(CLIENTS)))
    return quantiles(chain.from_iterable(waits), n=100, method="inclusive")[98] * 1e3


def figures() -> Iterator[Figure]:
    """Yield the figures of the API."""
    with TemporaryDirectory(prefix="okp-bench-") as folder:
        store = f"sqlite:///{folder}/status.db"
        with closing(Database(store)) as database:
            fill(database)
        with program("api", environ={"ORDERING_PROBER_STATUS__URL": store, "ORDERING_PROBER_API__PORT": "0"}) as running:
            url = running.said(r"status page: (\S+)/")
            for name, path in PATHS.items():
                p99 = [asyncio.run(p99_ms(url, path, seconds)) for seconds in (WARM_UP_S, *ROUNDS * (ROUND_S,))][1:]
                yield Figure(f"{name}: p99 of {CLIENTS} clients", "ms", p99, None if name == "status" else P99_MAX_MS)


if __name__ == "__main__":
    for figure in figures():
        print(f"{figure.name}: {figure.best:.1f} {figure.unit}", flush=True)
