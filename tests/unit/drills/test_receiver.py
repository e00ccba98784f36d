"""Where pages arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from prober.drills.chain import ALERT, BODY_MAX, Receiver
from prober.errors import ConfigError
from prober.sinks.metrics import Metrics, Scrapes


def page(drill: str = "drop", status: str = "firing", name: str = ALERT) -> dict[str, Any]:
    """As Alertmanager sends it."""
    alert = {"status": status, "labels": {"alertname": name, "drill": drill}, "annotations": {}, "startsAt": "2026-12-20T00:00:00Z"}
    return {"version": "4", "groupKey": "{}", "status": status, "receiver": "fire-drill", "alerts": [alert]}


def receiving(scenario: Callable[[Receiver, aiohttp.ClientSession, str], Awaitable[None]]) -> None:
    """A receiver on loopback that awaits a page about `drop`."""

    async def run() -> None:
        metrics = Metrics()
        metrics.drills(["drop"])
        receiver = Receiver("127.0.0.1", 0, Scrapes(metrics).page)
        await receiver.start()
        try:
            receiver.expect("drop")
            async with aiohttp.ClientSession() as session:
                await scenario(receiver, session, f"http://{receiver.address}")
        finally:
            await receiver.stop()

    asyncio.run(run())


def test_a_page_about_the_drill_ends_the_wait_until_the_next_is_expected() -> None:
    async def scenario(receiver: Receiver, session: aiohttp.ClientSession, url: str) -> None:
        assert await receiver.sees("drop") is None
        async with session.post(f"{url}/pages", json=page()) as answer:
            assert (answer.status, await answer.json()) == (200, {"alerts": 1})
        assert await receiver.sees("drop") == ""
        receiver.expect("drop")
        assert await receiver.sees("drop") is None

    receiving(scenario)


@pytest.mark.parametrize("document", [page("jitter"), page(status="resolved"), page(name="PubsubProberDrillOverdue")])
def test_what_is_no_page_about_the_drill_is_taken_and_ends_nothing(document: dict[str, Any]) -> None:
    async def scenario(receiver: Receiver, session: aiohttp.ClientSession, url: str) -> None:
        async with session.post(f"{url}/pages", json=document) as answer:
            assert answer.status == 200
        assert await receiver.sees("drop") is None
        assert await receiver.sees("jitter") is None

    receiving(scenario)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"[]", 400),
        (b"7", 400),
        (b"[" * 100_000, 400),
        (b'{"alerts": 7}', 400),
        (b'{"alerts": [{"status": "firing"}]}', 400),
        (b'{"alerts": [{"status": "firing", "labels": [1]}]}', 400),
        (json.dumps({"alerts": "x" * BODY_MAX}).encode(), 413),
    ],
)
def test_what_is_no_page_is_refused(body: bytes, status: int) -> None:
    async def scenario(receiver: Receiver, session: aiohttp.ClientSession, url: str) -> None:
        async with session.post(f"{url}/pages", data=BytesIO(body)) as answer:
            assert answer.status == status
        assert await receiver.sees("drop") is None

    receiving(scenario)


def test_it_can_be_scraped() -> None:
    async def scenario(_receiver: Receiver, session: aiohttp.ClientSession, url: str) -> None:
        async with session.get(f"{url}/metrics", headers={"Accept": "application/openmetrics-text"}) as answer:
            assert answer.content_type == "application/openmetrics-text"
            assert "pubsub_prober_drill_runs_total" in await answer.text()

    receiving(scenario)


def test_a_port_that_is_taken_is_one_line() -> None:
    async def scenario(receiver: Receiver, _session: aiohttp.ClientSession, _url: str) -> None:
        second = Receiver("127.0.0.1", int(receiver.address.rpartition(":")[2]))
        with pytest.raises(ConfigError, match=r"name another with drills\.port$"):
            await second.start()

    receiving(scenario)
