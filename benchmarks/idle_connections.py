"""Whether everybody is answered while many clients connect and do little: idle, with half a request, or with half a body.

    python -m benchmarks.idle_connections [--connections N] [--seconds S]
    python -m benchmarks.idle_connections [--connections N] --of URL

A third of the connections each; whatever the server closes is opened again at once. Meanwhile health and status are asked every half
second over connections of their own. Told is how they were answered, and after how long connections of each kind were closed. With
`--of` nothing is served, asked or told: the connections go to whoever serves there, until the process is ended.
"""

from __future__ import annotations

import argparse
import asyncio
from asyncio import StreamReader
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter

import httpx
from pydantic import SecretStr

from api.app import create_app
from prober.config.models import Api
from prober.serving.server import serve
from tests.unit.api.asking import EUROPE, view

EVERY_S = 0.5
DRIP_S = 1.0
GET = b"GET /api/v1/status HTTP/1.1\r\nHost: prober\r\n"
POST = (
    b"POST /api/v1/probes/ordering/runs HTTP/1.1\r\nHost: prober\r\nAuthorization: Bearer t\r\n"
    b"Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n"
)
KINDS = {"idle": (b"", b""), "half headers": (GET, b"X: y\r\n"), "half bodies": (POST, b" ")}
ASKED = ("/healthz", "/api/v1/status")


async def hold(url: httpx.URL, kind: str, closed: Callable[[float], None]) -> None:
    """Keeps a connection of a kind open, again and again."""
    first, drip = KINDS[kind]
    while True:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        began = perf_counter()
        ending = asyncio.create_task(_read(reader))
        with suppress(ConnectionError):
            writer.write(first)
            while not (await asyncio.wait((ending,), timeout=DRIP_S))[0]:
                writer.write(drip)
                await writer.drain()
        await ending
        closed(perf_counter() - began)
        writer.close()


def kinds_of(connections: int) -> list[str]:
    """Of which kind each of so many is."""
    return [list(KINDS)[number % len(KINDS)] for number in range(connections)]


async def occupy(url: httpx.URL, connections: int) -> None:
    """Keeps so many open, without end."""
    await asyncio.gather(*(hold(url, kind, lambda _: None) for kind in kinds_of(connections)))


async def _read(reader: StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


async def measure(connections: int, seconds: float) -> None:
    """Serves, holds and asks; prints what came of it."""
    asked = view(EUROPE)
    asked.settings = Api(token=SecretStr("t"))
    asked.tell()
    announced: asyncio.Queue[str] = asyncio.Queue()
    app = create_app(asked, asked.archive, asked.settings)
    serving = asyncio.create_task(serve(app, "127.0.0.1", 0, announce=announced.put_nowait))
    url = httpx.URL(await announced.get())
    lasted: dict[str, list[float]] = defaultdict(list)
    holding = [asyncio.create_task(hold(url, kind, lasted[kind].append)) for kind in kinds_of(connections)]
    answers, took_s = await _ask(url, seconds)
    for task in (*holding, serving):
        task.cancel()
    await asyncio.gather(*holding, serving, return_exceptions=True)
    for path in ASKED:
        codes = ", ".join(f"{count} x {code}" for (of, code), count in answers.items() if of == path)
        print(f"{path}: {codes}; at most {1_000 * max(took_s[path]):.0f} ms")
    for kind, times in lasted.items():
        print(f"{kind}: {len(times)} closed, after {min(times):.1f} to {max(times):.1f} s" if times else f"{kind}: none closed")


async def _ask(url: httpx.URL, seconds: float) -> tuple[Counter[tuple[str, int]], dict[str, list[float]]]:
    answers: Counter[tuple[str, int]] = Counter()
    took_s: dict[str, list[float]] = defaultdict(list)
    end = perf_counter() + seconds
    while perf_counter() < end:
        for path in ASKED:
            async with httpx.AsyncClient(base_url=url, timeout=seconds) as client:  # connects each time, as an orchestrator does
                began = perf_counter()
                answers[path, (await client.get(path)).status_code] += 1
                took_s[path].append(perf_counter() - began)
        await asyncio.sleep(EVERY_S)
    return answers, took_s


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--of", type=httpx.URL, metavar="URL", help="only connect there, until this process is ended")
    asked = parser.parse_args()
    if asked.of is not None:
        asyncio.run(occupy(asked.of, asked.connections))
    asyncio.run(measure(asked.connections, asked.seconds))


if __name__ == "__main__":
    main()
