"""Latency of the API for 10 readers of a full store: p99 of each list.

    python -m benchmarks.api [--runs N] [--findings N] [--clients C] [--seconds S] [--url URL]

The store is filled with runs and findings of 30 days (seeded): SQLite, or an empty store at a URL. The API runs in a process of its own,
with its own server. The clients send requests over loopback, each the next one as soon as it has a response, so the server is always busy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from itertools import islice
from random import Random
from statistics import quantiles
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

from sqlalchemy import insert

from api.app import create_app
from api.standalone import Alone
from api.view import Archive
from benchmarks.figures import Figure
from prober.config.loading import load
from prober.core.findings import FAILING, Finding, Kind, Status
from prober.core.kinds import symptom_of
from prober.core.verdict import Verdict
from prober.cycles import collect_rarely
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.result import Durations, RunResult
from prober.serving.server import listen, serve_until, stop_signals
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Exemplar, Incident
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.status.columns import Record, values_of
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Evidence, FindingRecord, IncidentRecord, ProberState, RunRecord
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts

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
TRACE = (
    "\n".join(
        ['{"format": "ordering-trace", "version": 1, "subscription": "s", "key": "k", "mode": "streaming", "rules": {}}']
        + ['{"t": 1.0, "event": "delivered", "session": "stream-1", "epoch": "e", "seq": 3, "generation": 0, "message_id": "m3"}']
        * 12
    )
    + "\n"
)


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


def fill(database: Database, runs: int, findings: int) -> list[str]:
    """Fill the store; return the ids of some findings."""
    StatusStore(database).prepare()
    random = Random(7)
    _insert(database, RunRecord, (a_run(number, runs, random) for number in range(runs)))
    found = [a_finding(number, findings, random) for number in range(findings)]
    _insert(database, FindingRecord, iter(found))
    _insert(database, IncidentRecord, incidents_of(found))
    evidence = values_of(Evidence(TRACE, True, True, 400, (3, 4, 9)))
    _insert(database, Evidence, (evidence | {"finding_id": row["finding_id"]} for row in found))
    StatusStore(database).heartbeat(ProberRecord("prober-0", "1.0.0", NOON, 4e9), map(a_snapshot, INSTANCES))
    return [row["finding_id"] for row in random.sample(found, min(1_000, findings))]


def _insert(database: Database, kind: type[Record], rows: Iterator[dict[str, Any]]) -> None:
    """Insert rows in batches."""
    while batch := list(islice(rows, AT_ONCE)):
        with database.writing() as connection:
            connection.execute(insert(kind), batch)


FAR_PAGE = 1_000
WARM_UP_S = 0.5
ROUNDS = 3
CLIENTS = 10
P99_MAX_MS = 150.0
"""Limit of the p99 of a list, in milliseconds."""
NO_LISTS = ("status", "a finding", "a run")


# --- questions ---------------------------------------------------------------------------------------------------------------


def questions(findings: Sequence[str], runs: int, random: Random) -> dict[str, Callable[[], str]]:
    """Return a function per measurement that returns a path to request; paths with a choice differ from request to request."""

    def time() -> str:
        return f"2026-02-{random.randrange(1, 29):02}T{random.randrange(24):02}:00:00Z"

    def runs_filtered() -> str:
        instance = random.choice(INSTANCES)
        choices = (
            f"probe={instance.probe}",
            f"verdict={random.choice(list(Verdict))}",
            f"target={instance.target}",
            f"target={instance.target}&probe={instance.probe}&verdict=FAIL",
        )
        return f"/api/v1/runs?{random.choice(choices)}&until={time()}"

    def findings_filtered() -> str:
        kind, status = random.choice(KINDS)
        choices = (
            f"kind={kind}",
            f"status={status}",
            f"key=key-{random.randrange(1_000)}",
            f"subscription={quote(random.choice(INSTANCES).subscription, safe='')}",
            f"kind={kind}&status={status}",
        )
        return f"/api/v1/findings?{random.choice(choices)}&until={time()}"

    return {
        "status": lambda: "/api/v1/status",
        "probes": lambda: "/api/v1/probes",
        "objectives": lambda: "/api/v1/slos",
        "subscriptions": lambda: "/api/v1/subscriptions",
        "runs": lambda: "/api/v1/runs",
        "runs, filtered": runs_filtered,
        "findings": lambda: "/api/v1/findings",
        "findings, open": lambda: "/api/v1/findings?open=true",
        "findings, filtered": findings_filtered,
        "incidents": lambda: "/api/v1/incidents",
        "incidents, feed": lambda: "/api/v1/incidents.atom",
        "a finding": lambda: f"/api/v1/findings/{random.choice(findings)}",
        "a run": lambda: f"/api/v1/runs/{INSTANCES[(number := random.randrange(runs)) % len(INSTANCES)].probe}-{number:08x}",
    }


class Client:
    """A reader with a connection of its own: a minimal HTTP client, since a library takes longer than the server."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def get(self, path: str) -> bytes:
        """Return the body of a response. Raises an error for any status but 200."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        body = await self._reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        assert head.startswith(b"HTTP/1.1 200 "), (path, head, body)
        return body


@asynccontextmanager
async def clients(url: str, number: int) -> AsyncIterator[list[Client]]:
    """Provide a number of connected clients."""
    address = urlsplit(url)
    async with AsyncExitStack() as stack:
        opening = (Client(address.hostname or "", address.port or 0) for _ in range(number))
        yield [await stack.enter_async_context(client) for client in opening]


async def measure(url: str, path: Callable[[], str], options: argparse.Namespace) -> tuple[float, ...]:
    """Let all clients send requests for some seconds, in several rounds; return the p99 latency of each round, in milliseconds."""

    async def ask_until(client: Client, until: float, waits: list[float]) -> None:
        while (began := perf_counter()) < until:
            await client.get(path())
            waits.append(perf_counter() - began)

    async with clients(url, options.clients) as asking:
        rounds = []
        for seconds in (WARM_UP_S, *ROUNDS * (options.seconds,)):
            waits: list[float] = []
            end = perf_counter() + seconds
            await asyncio.gather(*(ask_until(client, end, waits) for client in asking))
            rounds.append(quantiles(waits, n=100, method="inclusive")[98] * 1e3)
    return tuple(rounds[1:])


async def far_page(url: str, number: int) -> str:
    """Return the address of a page of the list of runs that is far from the first one."""
    address = "/api/v1/runs"
    async with clients(url, 1) as (client,):
        for _ in range(number - 1):
            address = f"/api/v1/runs?cursor={json.loads(await client.get(address))['next_cursor']}"
    return address


async def ask(url: str, findings: Sequence[str], options: argparse.Namespace) -> Mapping[str, tuple[float, ...]]:
    """Measure each question and print a line for it; return the p99 of each round in milliseconds, by question."""
    p99: dict[str, tuple[float, ...]] = {}
    far = await far_page(url, min(FAR_PAGE, options.runs // 50))
    for name, path in {**questions(findings, options.runs, Random(1)), "runs, page 1,000": lambda: far}.items():
        p99[name] = await measure(url, path, options)
        print(f"  {name:20} p99 {min(p99[name]):7.1f} to {max(p99[name]):7.1f} ms", flush=True)
    return p99


# --- the two processes -------------------------------------------------------------------------------------------------------


async def serve(url: str) -> None:
    """Serve the API alone, as `ordering-prober api` does."""
    collect_rarely()
    config = load(None, {})
    database = Database(url)
    with stop_signals() as stop:
        async with Alone(config, database, "benchmark") as view:
            app = create_app(view, Archive(StatusQueries(database), tuple(config.objectives)), config.api)
            await serve_until(stop, app, await listen("127.0.0.1", 0), announce=lambda address: print(address, flush=True))


def benchmark(options: argparse.Namespace) -> Mapping[str, tuple[float, ...]]:
    """Fill a store, serve it and measure."""
    with tempfile.TemporaryDirectory(prefix="okp-bench-") as folder:
        url = options.url or f"sqlite:///{folder}/status.db"
        began = perf_counter()
        with closing(Database(url)) as database:
            findings = fill(database, options.runs, options.findings)
        print(f"{options.runs:,} runs and {options.findings:,} findings written in {perf_counter() - began:.0f} s", flush=True)
        command = [sys.executable, "-m", "benchmarks.api", "--serve", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                return asyncio.run(ask(server.stdout.readline().strip(), findings, options))
            finally:
                server.terminate()


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each round")
    parser.add_argument("--url", default="", help="an empty status store, such as postgresql://...")
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def figures() -> Iterator[Figure]:
    """Yield the figures of the API: p99 of the latency of each list."""
    for question, rounds in benchmark(options_of([])).items():
        yield Figure(f"{question}: p99 of {CLIENTS} clients", "ms", rounds, None if question in NO_LISTS else P99_MAX_MS)


def main() -> None:
    """Serve, or measure."""
    options = options_of()
    if options.serve:
        asyncio.run(serve(options.serve))
        return
    benchmark(options)


if __name__ == "__main__":
    main()
