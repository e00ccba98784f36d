"""A service to ask, and how a test asks it."""

from __future__ import annotations

import asyncio
import atexit
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

import httpx
from fastapi import FastAPI

from api.app import create_app
from api.view import Archive
from prober.config.loading import load
from prober.config.models import Api
from prober.core.findings import Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict
from prober.monitoring.top_keys import StreamKeys
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.result import RunResult
from prober.sinks.live.feed import LiveFeed
from prober.sinks.live.snapshot import Readiness, RunOrdered, StatusSnapshot
from prober.sinks.live.state import LiveState
from prober.sinks.status.database import Database
from prober.sinks.status.entries import ProberIdentity
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.retention import RetentionPolicy
from prober.sinks.status.store import StatusStore
from prober.sinks.status.writer import StatusWriter
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, SliCounts
from tests.unit.api.standing import standing

NOON = 1772366400.0  # 2026-03-01T12:00:00Z
STARTED = NOON - 60.0
_NUMBERS = count()
EUROPE = ProbeInstance(
    target="europe",
    probe="ordering",
    vantage="wire",
    interval_s=10.0,
    schedule="every 10s",
    environment="production",
    region="europe-west1",
    endpoint="europe-west1-pubsub.googleapis.com:443",
    guarantee="Messages of a key are received in order.",
    topic="projects/p/topics/t",
    subscription="projects/p/subscriptions/s",
    labels={"team": "messaging"},
)
US = ProbeInstance(target="us", probe="redelivery", vantage="library", interval_s=30.0)
STUCK = Finding(
    Kind.STUCK, Status.LIVENESS, "projects/p/subscriptions/s", "k", 3.5, (1, 2), {"seqs": (7,), "count": 1, "since_t": 1.0}
)


def archive_at(url: str) -> Archive:
    """What is kept at a URL, where the tables are."""
    return Archive(StatusQueries(Database(url)), load(None, {}).objectives)


def new_archive(name: str) -> Archive:
    """An archive of this name with nothing in it, to make copies of. To make the tables takes longer than most tests."""
    archive = archive_at(f"sqlite:///{folder() / name}.db")
    StatusStore(archive.queries.database).prepare()
    return archive


@cache
def folder() -> Path:
    """For what is made once and read by many tests; goes away at the end."""
    made = tempfile.TemporaryDirectory(prefix="okp-api-")
    atexit.register(made.cleanup)
    return Path(made.name)


@cache
def nothing_kept() -> Archive:
    """An empty store, made once; nobody writes to it."""
    return new_archive("empty")


def copy_of(name: str) -> str:
    """The URL of a store of one's own with what is in the archive of this name."""
    copied = folder() / f"{name}-{next(_NUMBERS)}.db"
    with closing(sqlite3.connect(folder() / f"{name}.db")) as one, closing(sqlite3.connect(copied)) as other:
        one.backup(other)
    return f"sqlite:///{copied}"


@dataclass
class StubView:
    """A real live state that writes to a real store, and readiness and metrics that a test sets."""

    live: LiveState
    archive: Archive = field(default_factory=nothing_kept)
    writer: StatusWriter | None = None
    runs: int = 0
    settings: Api = field(default_factory=Api)
    now: float = NOON
    ready: Readiness = field(default_factory=lambda: Readiness(True))
    is_alive: bool = True
    stored: bool = True
    errors: list[Exception] = field(default_factory=list)
    accepts: list[str] = field(default_factory=list)
    troubles: tuple[str, ...] = ()
    streams: tuple[StreamKeys, ...] = ()
    feed: LiveFeed = field(default_factory=LiveFeed)
    begun: list[InstanceKey] = field(default_factory=list)
    refused: dict[InstanceKey, str] = field(default_factory=dict)

    def write_to(self, url: str) -> None:
        """Lets it write to the store there, and the API read from it."""
        self.archive = archive_at(url)
        self.writer = StatusWriter(
            StatusStore(Database(url)),
            ProberIdentity("prober-0", "0.1.0", STARTED),
            RetentionPolicy(DAY_S),
            clock=lambda: 0.0,
            wall_clock=lambda: STARTED,
        )

    def tell(self) -> None:
        """Sends a heartbeat, as the service does whenever something changes."""
        if self.writer is not None:
            self.writer.heartbeat(self.snapshot())
            assert self.writer.write()

    def snapshot(self) -> StatusSnapshot:
        return self.live.snapshot(self.now, self.troubles, self.streams)

    def run_now(self, instance: InstanceKey) -> RunOrdered:
        if instance not in {shown.probe_instance.key for shown in self.snapshot().probe_instances}:
            raise KeyError(instance)
        if instance in self.refused:
            return RunOrdered(None, self.refused[instance])
        self.begun.append(instance)
        return RunOrdered(f"{instance.probe}-{len(self.begun)}")

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        self.accepts.append(accept)
        return "text/plain; version=0.0.4; charset=utf-8", b"up 1\n"

    def is_stored(self) -> bool:
        return self.stored

    def is_unwritten(self, run_id: str) -> bool:
        return self.writer is not None and self.writer.is_waiting(run_id)

    def readiness(self) -> Readiness:
        return self.ready

    def alive(self) -> bool:
        return self.is_alive

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


def view(*instances: ProbeInstance) -> StubView:
    """A service that watches these probe instances and has just started."""
    objectives = load(None, {}).objectives
    nothing_kept()
    made = StubView(LiveState(instances, objectives, version="0.1.0", instance="prober-0", started_at=STARTED))
    made.write_to(copy_of("empty"))
    return made


def end(
    asked: StubView,
    instance: ProbeInstance,
    verdict: Verdict,
    *findings: Finding,
    reason: str = "",
    number: int | None = None,
    at: float = NOON - 5.0,
    unreachable: bool = False,
) -> None:
    """A run ends, with 200 messages in order: the first one, second one ... of all probe instances unless it has a number."""
    asked.runs += 1
    made = tuple(RecordedFinding(finding, 1) for finding in findings)
    counts = {item.sort: sum(other.sort == item.sort for other in made) for item in made}
    checks = {Indicator.ORDER: SliCounts(200, 0, 0)}
    result = RunResult(
        f"run-{asked.runs if number is None else number}",
        instance.probe,
        instance.target,
        instance.vantage,
        verdict,
        reason,
        at - 2.0,
        2.0,
        findings=made,
        counts=counts,
        checks=checks,
        unreachable=unreachable,
    )
    asked.live.ended(instance, result, at)
    if asked.writer is not None:
        asked.writer.ended(instance, result, at)


def ask(
    asked: StubView,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    change: Callable[[FastAPI], None] | None = None,
    body: bytes | None = None,
) -> httpx.Response:
    """What the API answers after a heartbeat. `change` does something to an application that is made for this alone."""
    asked.tell()

    async def asking(app: FastAPI) -> httpx.Response:
        async with client_of(app) as client:
            return await client.request(method, path, headers=headers, content=body)

    if change is None:
        with standing(asked) as app:
            return asyncio.run(asking(app))
    made = create_app(asked, asked.archive, asked.settings)
    change(made)
    return asyncio.run(asking(made))


def client_of(app: FastAPI) -> httpx.AsyncClient:
    """A client of an application in the same process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://prober")
