"""Two replicas of the API and two probers on one PostgreSQL: whoever is asked, the answer is the same, and pages go on at the other one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.dependencies import FRESH_S
from api.standalone import Alone
from api.view import Archive
from prober.clock import wall_s
from prober.config.following import ConfigurationFile
from prober.config.loading import load
from prober.core.findings import Kind
from prober.core.verdict import Verdict
from prober.runs.probe_instance import ProbeInstance
from prober.sinks.live.state import LiveState
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.sinks.status.examples import INSTANCE, US, entry
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries

RUNS = 60
PATHS = (
    "/api/v1/status",
    "/api/v1/probes",
    "/api/v1/probers",
    "/api/v1/runs",
    "/api/v1/findings?open=true",
    "/api/v1/subscriptions",
    "/api/v1/keys/k",
)
OF_THE_REPLICA = ("at", "since", "instance", "started_at", "version")
"""What a status says of the process that answers, or of the time when it does."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with PostgreSQL(binaries()) as server:
        yield server.new_database()


def probe(url: str, instance: str, probe_instance: ProbeInstance) -> None:
    """A prober: writes runs one after the other, some of which find something, and how its probe instance stands."""
    with closing(Database(url)) as database:
        store = StatusStore(database)
        store.prepare()
        live = LiveState([probe_instance], (), version="1", instance=instance, started_at=wall_s())
        for number in range(RUNS):
            kinds = (Kind.ORDER_GAP,) if number % 5 == 4 else ()
            written = entry(f"{instance}-{number}", *kinds, at=wall_s(), probe_instance=probe_instance, instance=instance)
            store.record([written])
            live.ended(probe_instance, written.run.result, written.run.ended_at)
            shown = live.snapshot(wall_s())
            store.heartbeat(ProberRecord(instance, "1", shown.started_at, shown.at), shown.probe_instances)


def without(answer: Any) -> Any:
    """The answer less what it says of the replica."""
    return {name: value for name, value in answer.items() if name not in OF_THE_REPLICA}


def test_one_consistent_answer(url: str) -> None:
    probers = [Thread(target=probe, args=(url, f"prober-{number}", instance)) for number, instance in enumerate((INSTANCE, US))]
    config = load(None, {})

    async def replica() -> tuple[Alone, httpx.AsyncClient]:
        archive = Archive(StatusQueries(Database(url)), tuple(config.objectives))
        view = await Alone(ConfigurationFile(config), archive, "1").__aenter__()
        app = create_app(view, archive, config.api)
        return view, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://replica")

    async def walk(clients: list[httpx.AsyncClient]) -> list[str]:
        """Every run, each page asked of the other replica than the one before."""
        found: list[str] = []
        address, turn = "/api/v1/runs?limit=7", 0
        while address:
            page = (await clients[turn % 2].get(address)).json()
            found += [item["run_id"] for item in page["items"]]
            cursor = page["next_cursor"]
            address, turn = f"/api/v1/runs?limit=7&cursor={cursor}" if cursor else "", turn + 1
        return found

    async def asking() -> None:
        views, clients = zip(*[await replica() for _ in range(2)], strict=True)
        try:
            for prober in probers:
                prober.start()
            while any(prober.is_alive() for prober in probers):
                walked = await walk(list(clients))
                assert len(walked) == len(set(walked))  # nothing twice, although the list grows
            await asyncio.sleep(FRESH_S)  # an answer may be so old
            written = {f"prober-{number}-{run}" for number in range(2) for run in range(RUNS)}
            assert set(await walk(list(clients))) == written
            for path in PATHS:
                answers = [(await client.get(path)).json() for client in clients]
                assert without(answers[0]) == without(answers[1]), path
            status = (await clients[0].get("/api/v1/status")).json()
            assert [
                (instance["target"], instance["probe"], instance["runs"]["FAIL"]) for instance in status["probe_instances"]
            ] == [("europe", "ordering", RUNS // 5), ("us", "affinity", RUNS // 5)]
            assert status["verdict"] == Verdict.FAIL
            assert [prober["instance"] for prober in status["probers"]] == ["prober-0", "prober-1"]
        finally:
            for view, client in zip(views, clients, strict=True):
                await client.aclose()
                await view.__aexit__(None, None, None)

    asyncio.run(asking())
