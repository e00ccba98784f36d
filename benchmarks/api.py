"""How fast the API answers many readers of a full store: p50 and p99 under 10 clients, on SQLite and on PostgreSQL.

    python -m benchmarks.api [--runs N] [--findings N] [--clients C] [--seconds S] [--store sqlite|postgresql|both]

The store is filled with runs and findings of 30 days (seeded). The API runs in a process of its own, by its own server; the clients ask
over loopback, each its next question as soon as it has an answer, so the server is always busy: what is measured is the time behind 9
others. Every row also tells how many requests a second that were and what one cost the server in CPU time, which other programs on
the machine change least, and how that compares to the cheapest request there is (/healthz, "x"). The last lines compare pages of a list.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import quantiles
from time import perf_counter
from urllib.parse import quote, urlsplit

from api.app import create_app
from api.standalone import Alone
from api.view import Archive
from benchmarks.figures import CannotMeasureError, Figure
from benchmarks.full_store import KINDS, SITES, fill
from benchmarks.processes import cpu_s
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.cycles import collect_rarely
from prober.serving.server import serve_until, stop_signals
from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from tests.unit.sinks.status.postgresql import PostgreSQL, find_binaries

PAGE = 1_000
WARM_UP_S = 0.5
CLIENTS = 10
P99_MAX_MS = 150.0
FLOOR = "healthz"


# --- what is asked -----------------------------------------------------------------------------------------------------------


def questions(findings: Sequence[str], runs: int, random: Random) -> dict[str, Callable[[], str]]:
    """Paths to ask, by what is measured; those with a choice differ from request to request."""

    def time() -> str:
        return f"2026-02-{random.randrange(1, 29):02}T{random.randrange(24):02}:00:00Z"

    def runs_filtered() -> str:
        site = random.choice(SITES)
        choices = (
            f"probe={site.probe}",
            f"verdict={random.choice(list(Verdict))}",
            f"target={site.target}",
            f"target={site.target}&probe={site.probe}&verdict=FAIL",
        )
        return f"/api/v1/runs?{random.choice(choices)}&until={time()}"

    def findings_filtered() -> str:
        kind, status = random.choice(KINDS)
        choices = (
            f"kind={kind}",
            f"status={status}",
            f"key=key-{random.randrange(1_000)}",
            f"subscription={quote(random.choice(SITES).subscription, safe='')}",
            f"kind={kind}&status={status}",
        )
        return f"/api/v1/findings?{random.choice(choices)}&until={time()}"

    return {
        FLOOR: lambda: "/healthz",
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
        "a run": lambda: f"/api/v1/runs/{SITES[(number := random.randrange(runs)) % len(SITES)].probe}-{number:08x}",
    }


@dataclass(frozen=True)
class Measured:
    """What the clients saw, and what it cost the server."""

    times_s: list[float]
    elapsed_s: float
    cpu_s: float

    def quantile_ms(self, percent: int) -> float:
        """In milliseconds."""
        return quantiles(self.times_s, n=100, method="inclusive")[percent - 1] * 1e3

    @property
    def cpu_ms(self) -> float:
        """Of the server per request."""
        return self.cpu_s / len(self.times_s) * 1e3


@dataclass(frozen=True)
class Server:
    """A process that answers."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Its CPU time so far."""
        return cpu_s(self.pid)


class Client:
    """A reader with a connection of its own: the least that speaks HTTP, since a library takes longer to ask than the server to answer."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def get(self, path: str) -> bytes:
        """The body of an answer, which must be one."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        body = await self._reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        assert head.startswith(b"HTTP/1.1 200 "), (path, head, body)
        return body


@asynccontextmanager
async def clients(url: str, number: int) -> AsyncIterator[list[Client]]:
    """So many of them."""
    address = urlsplit(url)
    async with AsyncExitStack() as stack:
        opening = (Client(address.hostname or "", address.port or 0) for _ in range(number))
        yield [await stack.enter_async_context(client) for client in opening]


async def measure(server: Server, path: Callable[[], str], options: argparse.Namespace) -> Measured:
    """Lets all clients ask for some seconds."""
    times: list[float] = []

    async def ask_until(client: Client, until: float) -> None:
        while (began := perf_counter()) < until:
            await client.get(path())
            times.append(perf_counter() - began)

    async with clients(server.url, options.clients) as asking:
        await asyncio.gather(*(ask_until(client, perf_counter() + WARM_UP_S) for client in asking))
        times.clear()
        began, used = perf_counter(), server.cpu_s()
        await asyncio.gather(*(ask_until(client, began + options.seconds) for client in asking))
        return Measured(times, perf_counter() - began, server.cpu_s() - used)


async def page_of(client: Client, path: str, number: int) -> str:
    """The address of a page of a list."""
    address = path
    for _ in range(number - 1):
        address = f"{path}?cursor={json.loads(await client.get(address))['next_cursor']}"
    return address


async def ask(server: Server, findings: Sequence[str], options: argparse.Namespace) -> Mapping[str, Measured]:
    """Prints a line per question; what was measured, by question."""
    told: dict[str, Measured] = {}
    for name, path in questions(findings, options.runs, Random(1)).items():
        if not options.only or name in options.only:
            told[name] = await measure(server, path, options)
            report(name, told[name], next(iter(told.values())).cpu_ms)
    for name, listed, stored in (("runs", "/api/v1/runs", options.runs), ("findings", "/api/v1/findings", options.findings)):
        if not options.only or name in options.only:
            await compare_pages(server, listed, min(PAGE, stored // 50), options)
    return told


async def compare_pages(server: Server, path: str, number: int, options: argparse.Namespace) -> None:
    """One line: a page far back against the first one."""
    async with clients(server.url, 1) as (client,):
        far = await page_of(client, path, number)
    first, last = [await measure(server, partial(str, address), options) for address in (path, far)]
    ratios = f"{last.quantile_ms(50) / first.quantile_ms(50):.2f}x by p50, {last.cpu_ms / first.cpu_ms:.2f}x by CPU time"
    print(f"  page {number:,} of {path} to page 1: {ratios}", flush=True)


def report(name: str, measured: Measured, floor_ms: float) -> None:
    """One line."""
    rate = len(measured.times_s) / measured.elapsed_s
    print(
        f"  {name:20} p50 {measured.quantile_ms(50):7.1f} ms   p99 {measured.quantile_ms(99):7.1f} ms   {rate:7,.0f}/s"
        f"   server CPU {measured.cpu_ms:6.2f} ms ({measured.cpu_ms / floor_ms:4.1f}x)",
        flush=True,
    )


# --- the two processes -------------------------------------------------------------------------------------------------------


async def serve(url: str) -> None:
    """The API alone, as `ordering-prober api` serves it."""
    collect_rarely()
    config = load(None, {})
    database = Database(url)
    with stop_signals() as stop:
        async with Alone(config, database, "benchmark") as view:
            app = create_app(view, Archive(StatusQueries(database), tuple(config.objectives)), config.api)
            await serve_until(stop, app, "127.0.0.1", 0, announce=lambda address: print(address, flush=True))


def benchmark(name: str, url: str, options: argparse.Namespace) -> Mapping[str, Measured]:
    """Fills a store, serves it and asks."""
    began = perf_counter()
    with closing(Database(url)) as database:
        findings = fill(database, options.runs, options.findings)
        if not database.is_sqlite:
            with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")  # as autovacuum does soon after
    print(f"{name}: {options.runs:,} runs and {options.findings:,} findings written in {perf_counter() - began:.0f} s", flush=True)
    command = [sys.executable, "-m", "benchmarks.api", "--serve", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            return asyncio.run(ask(Server(server.stdout.readline().strip(), server.pid), findings, options))
        finally:
            server.terminate()


def stores(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The empty stores that are wanted, one after the other; each is gone when the next one is asked for.

    Raises CannotMeasureError if PostgreSQL is wanted and not installed.
    """
    if options.store != "postgresql":
        with tempfile.TemporaryDirectory(prefix="okp-bench-") as folder:
            yield "SQLite", f"sqlite:///{folder}/status.db"
    if options.store != "sqlite":
        programs = find_binaries()
        if programs is None:
            raise CannotMeasureError("PostgreSQL is missing: install it with `apt-get install postgresql`")
        with PostgreSQL(programs) as started:
            yield "PostgreSQL", started.new_database()


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What is wanted; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--store", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--only", action="append", help="only this row; may be given several times")
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def figures() -> Iterator[Figure]:
    """What the report says of the API: the time of the slowest of a hundred, and CPU against the cheapest request there is."""
    for name, url in stores(options_of([])):
        measured = benchmark(name, url, options_of([]))
        floor_ms = measured[FLOOR].cpu_ms
        for question, one in measured.items():
            if question != FLOOR:
                yield Figure(f"{name}, {question}: p99 of {CLIENTS} clients", "ms", (one.quantile_ms(99),), P99_MAX_MS)
                yield Figure(f"{name}, {question}: CPU", f"times {FLOOR}", (one.cpu_ms / floor_ms,))


def main() -> None:
    """Serves, or measures."""
    options = options_of()
    if options.serve:
        asyncio.run(serve(options.serve))
        return
    for name, url in stores(options):
        benchmark(name, url, options)


if __name__ == "__main__":
    main()
