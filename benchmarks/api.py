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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from random import Random
from statistics import quantiles
from time import perf_counter
from urllib.parse import quote, urlsplit

from api.app import create_app
from api.standalone import Alone
from api.view import Archive
from benchmarks.figures import Figure
from benchmarks.full_store import INSTANCES, KINDS, fill
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.cycles import collect_rarely
from prober.serving.server import listen, serve_until, stop_signals
from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries

FAR_PAGE = 1_000
WARM_UP_S = 0.5
ROUNDS = 3
CLIENTS = 10
P99_MAX_MS = 150.0
"""Limit of the p99 of a list, in milliseconds."""
NO_LISTS = ("status", "a finding", "a run")


# --- what is asked -----------------------------------------------------------------------------------------------------------


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
    """What is wanted; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each round")
    parser.add_argument("--url", default="", help="an empty status store, such as postgresql://...")
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def figures() -> Iterator[Figure]:
    """What the report says of the API: how long the slowest of a hundred requests takes."""
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
