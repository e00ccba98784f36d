"""A request that is too large is refused before anything is done for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr
from starlette.types import Message

from api import middleware
from api.app import create_app
from api.middleware import BODY_BYTES_MAX
from prober.config.models import Api
from tests.unit.api.asking import EUROPE, StubView, ask, client_of, view

RUNS = "/api/v1/probes/ordering/runs"
JSON = {"Authorization": "Bearer t", "Content-Type": "application/json"}


def guarded() -> StubView:
    asked = view(EUROPE)
    asked.settings = Api(token=SecretStr("t"))
    return asked


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
    monkeypatch.setattr(middleware, "BODY_WAIT_MAX_S", 0.0)
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
