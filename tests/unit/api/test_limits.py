"""What is too much is refused, before anything is done for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from starlette.types import Message

from api import limits, problems
from api.app import create_app
from api.limits import ADDRESSES_MAX, BODY_BYTES_MAX, Buckets, Rate
from prober.config.models import Api
from tests.unit.api.asking import EUROPE, StubView, ask, client_of, view

RUNS = "/api/v1/probes/ordering/runs"
JSON = {"Authorization": "Bearer t", "Content-Type": "application/json"}


def guarded() -> StubView:
    asked = view(EUROPE)
    asked.settings = Api(token=SecretStr("t"))
    return asked


class TestBuckets:
    def test_a_burst_and_then_a_steady_rate(self) -> None:
        now = 100.0
        buckets = Buckets(Rate(per_s=2.0, burst=3), lambda: now)
        assert [buckets.take("a").wait_s for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
        now += 0.5
        assert [buckets.take("a").wait_s for _ in range(2)] == [0.0, 0.5]
        now += 1_000.0
        assert [buckets.take("a").wait_s for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]

    def test_others_are_not_concerned(self) -> None:
        buckets = Buckets(Rate(per_s=1.0, burst=1), lambda: 0.0)
        assert [buckets.take(address).wait_s for address in ("a", "b", "a", "b")] == [0.0, 0.0, 1.0, 1.0]

    def test_only_so_many_addresses_are_remembered(self) -> None:
        buckets = Buckets(Rate(per_s=1.0, burst=1), lambda: 0.0)
        for number in range(ADDRESSES_MAX + 10):
            buckets.take(str(number))
        assert len(buckets) == ADDRESSES_MAX
        assert buckets.take(str(ADDRESSES_MAX + 9)).wait_s == 1.0
        assert buckets.take("0").wait_s == 0.0  # forgotten


def test_who_asks_too_often_is_told_when_to_come_again() -> None:
    async def asking() -> None:
        asked = view(EUROPE)
        async with client_of(create_app(asked, asked.archive, asked.settings, Rate(per_s=0.001, burst=3))) as client:
            assert [(await client.get("/api/v1/status")).status_code for _ in range(3)] == [200] * 3
            refused = await client.get("/api/v1/status")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1000")
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.headers["x-content-type-options"] == "nosniff"
            for path in ("/healthz", "/readyz", "/metrics"):
                assert (await client.get(path)).status_code == 200
            assert [(await client.get("/metrics")).status_code for _ in range(3)] == [200, 200, 429]
            assert [(await client.get("/healthz")).status_code for _ in range(5)] == [200] * 5

    asyncio.run(asking())


@pytest.mark.parametrize(("path", "limit"), [("/api/v1/probers", "REQUESTS_MAX"), ("/metrics", "SCRAPES_MAX")])
def test_what_cannot_be_answered_now_is_told_when_to_come_again(path: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, limit, 1)

    async def asking() -> None:
        app, asked = FastAPI(), view(EUROPE)
        began, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            began.set()
            await go_on.wait()

        app.add_api_route(path, slow)
        app.add_api_route("/healthz", lambda: "well")
        problems.install(app, asked)
        limited = limits.RequestLimits(app, Rate(per_s=10.0, burst=10))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(limited), base_url="http://prober") as client:
            first = asyncio.create_task(client.get(path))
            await began.wait()
            refused = await client.get(path)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert (refused.headers["content-type"], refused.json()["status"]) == ("application/problem+json", 503)
            assert (await client.get("/healthz")).status_code == 200
            go_on.set()
            assert (await first).status_code == 200
            assert (await client.get(path)).status_code == 200

    asyncio.run(asking())


def test_a_client_is_told_what_it_has_left() -> None:
    async def asking() -> None:
        asked = view(EUROPE)
        async with client_of(create_app(asked, asked.archive, asked.settings, Rate(per_s=0.1, burst=2))) as client:
            answers = [await client.get(path) for path in ("/api/v1/probers", "/nowhere", "/api/v1/probers")]
            assert [answer.status_code for answer in answers] == [200, 404, 429]
            assert [answer.headers["ratelimit"] for answer in answers] == [f'"requests";r={left};t=10' for left in (1, 0, 0)]
            assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"requests";q=2;w=20'}
            assert answers[2].headers["retry-after"] == "10"
            assert (await client.get("/metrics")).headers["ratelimit"].startswith('"scrapes";r=1;')
            assert "ratelimit" not in (await client.get("/healthz")).headers

    asyncio.run(asking())


def test_a_body_that_is_announced_too_long_is_not_read() -> None:
    asked = guarded()
    response = ask(asked, RUNS, "POST", JSON, body=b" " * (BODY_BYTES_MAX + 1))
    assert (response.status_code, response.json()["detail"]) == (413, "a body may have 65,536 bytes")
    assert asked.begun == []


def test_a_body_that_turns_out_too_long_is_not_read_on() -> None:
    asked, parts = guarded(), 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal parts
        while True:
            parts += 1
            yield b" " * 4096

    async def asking() -> int:
        async with client_of(create_app(asked, asked.archive, asked.settings)) as client:
            return (await client.post(RUNS, headers=JSON, content=endless())).status_code

    assert asyncio.run(asking()) == 413
    assert parts <= 18
    assert asked.begun == []


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999999", "ten"])
def test_a_length_that_is_none(length: str) -> None:
    assert ask(guarded(), RUNS, "POST", JSON | {"Content-Length": length}).status_code == 413


def test_a_body_that_fits() -> None:
    asked = guarded()
    assert ask(asked, RUNS, "POST", JSON, body=b"{}" + b" " * (BODY_BYTES_MAX - 2)).status_code == 202


@pytest.mark.parametrize("path", ["/api/v1/runs?probe=" + "x" * 8_200, "/" + "x" * 8_200])
def test_an_address_that_is_too_long(path: str) -> None:
    response = ask(view(EUROPE), path)
    assert response.status_code == response.json()["status"] == 414
    assert len(response.content) < 1_000


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_WAIT_MAX_S", 0.0)
    asked = guarded()

    async def asking() -> list[Message]:
        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(name.lower().encode(), value.encode()) for name, value in JSON.items()]
        scope = {"type": "http", "method": "POST", "path": RUNS, "raw_path": RUNS.encode(), "query_string": b"", "headers": headers}
        await create_app(asked, asked.archive, asked.settings)(scope, receive, send)
        return sent

    assert asyncio.run(asking())[0]["status"] == 408
    assert asked.begun == []
