"""What is asked of a run that has just ended waits until the run is written, in the process that made it and in every other."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from api import dependencies
from api.app import create_app
from prober.clock import wall_s
from prober.core.verdict import Verdict
from prober.sinks.status.database import Database, StoreUnavailable
from prober.sinks.status.prober_records import SILENT_AFTER_S, ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from tests.unit.api.asking import EUROPE, STUCK, StubView, ask, client_of, end, view
from tests.unit.sinks.status.examples import INSTANCE, failed

ABOUT = (
    "/runs/run-1",
    "/findings/run-1-1",
    "/incidents/run-1-loss",
    "/api/v1/runs/run-1",
    "/api/v1/findings/run-1-1",
    "/api/v1/incidents/run-1-loss",
)


def ended() -> StubView:
    """A run has ended, and nothing of it is written."""
    asked = view(EUROPE)
    asked.now = wall_s()
    end(asked, EUROPE, Verdict.FAIL, STUCK, at=asked.now)
    return asked


def asked_meanwhile(asked: StubView, paths: tuple[str, ...], maker: StubView) -> list[httpx.Response]:
    """The answers to requests that all come before the process that made the run writes it."""

    async def asking() -> list[httpx.Response]:
        assert maker.writer is not None
        async with client_of(create_app(asked, asked.archive, asked.settings)) as client:
            waiting = [asyncio.create_task(client.get(path)) for path in paths]
            done, _ = await asyncio.wait(waiting, timeout=0.3)
            assert not done
            await asyncio.to_thread(maker.writer.write)
            return [await answer for answer in waiting]

    return asyncio.run(asking())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "ASKED_EVERY_S", 0.01)


def test_what_is_asked_of_it_waits_until_it_is_written() -> None:
    asked = ended()
    assert [answer.status_code for answer in asked_meanwhile(asked, ABOUT, asked)] == [200] * len(ABOUT)


def test_its_trace_and_bundle_are_there_as_soon_as_it_is() -> None:
    asked, (result, recorded) = view(EUROPE), failed("run-9", at=wall_s())
    assert asked.writer is not None
    asked.writer.ended(INSTANCE, result, wall_s(), recorded)
    paths = tuple(f"/api/v1/findings/run-9-1{part}" for part in ("/trace", "/diagram.svg", "/bundle"))
    assert [answer.status_code for answer in asked_meanwhile(asked, paths, asked)] == [200] * 3


def test_another_process_waits_for_what_a_heartbeat_announces() -> None:
    """A replica knows of no run; the store says which is the newest of each probe instance before that is written."""
    maker = ended()
    announce(maker, at=maker.now)
    assert [answer.status_code for answer in asked_meanwhile(replica_of(maker), ABOUT, maker)] == [200] * len(ABOUT)


def test_what_a_silent_prober_announced_is_not_waited_for() -> None:
    maker = ended()
    announce(maker, at=maker.now - 2 * SILENT_AFTER_S)
    assert ask(replica_of(maker), "/api/v1/runs/run-1").status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/runs/run-1", "/runs/run-1"])
def test_what_does_not_come_in_time_is_not_called_absent(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(dependencies, "ARRIVAL_MAX_S", 0.05)
    maker = ended()
    announce(maker, at=maker.now)
    unwritten(ask(replica_of(maker), path))


def test_what_cannot_be_written_is_not_waited_for() -> None:
    maker = ended()
    announce(maker, at=maker.now)
    replica = replica_of(maker)
    replica.stored = False
    unwritten(ask(replica, "/api/v1/runs/run-1"))


@pytest.mark.parametrize("path", ABOUT)
def test_what_is_announced_while_it_is_looked_for_is_not_called_absent(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    announced = iter((frozenset[str](), frozenset({"run-1"})))
    monkeypatch.setattr(StatusQueries, "announced", lambda *_: next(announced))
    unwritten(ask(replica_of(ended()), path))


@pytest.mark.parametrize("path", ["/api/v1/runs/run-1", "/runs/run-1"])
def test_what_nobody_can_tell_of_is_not_called_absent(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """What is announced cannot be asked, and what is written can."""

    def fail(_queries: StatusQueries, _since: float) -> frozenset[str]:
        raise StoreUnavailable("locked")

    monkeypatch.setattr(StatusQueries, "announced", fail)
    assert ask(replica_of(ended()), path).status_code == 503


def unwritten(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "run run-1 has ended and is still being written" in answer.text.replace("Run", "run")


def announce(maker: StubView, at: float) -> None:
    """A heartbeat comes through, and the run does not."""
    database = Database(str(maker.archive.queries.database))
    StatusStore(database).heartbeat(ProberRecord("prober-0", "0.1.0", at, at, ()), maker.snapshot().probe_instances)
    database.close()


def replica_of(maker: StubView) -> StubView:
    """Another process, which has the same store and no probe instances."""
    replica = view()
    replica.archive, replica.writer = maker.archive, None
    return replica
