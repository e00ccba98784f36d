"""What is asked of Prometheus and Alertmanager, and what their answers mean. Their place is taken by a server that answers as told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from aiohttp import web

from prober.drills.chain import ALERT, ANSWER_MAX, Alertmanager, Conversation, NoAnswer, Prometheus

Result = TypeVar("Result")
OURS = {"alertname": ALERT, "drill": "drop"}
OVERDUE = {"alertname": "PubsubProberDrillOverdue", "drill": "drop"}


@asynccontextmanager
async def answering(body: Any, status: int = 200) -> AsyncIterator[str]:
    """A server with this answer to everything, and its URL."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=text, status=status, content_type="application/json")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def asked(body: Any, question: Callable[[Conversation, str], Awaitable[Result]], status: int = 200) -> Result:
    """What is made of an answer."""

    async def scenario() -> Result:
        async with answering(body, status) as url, Conversation() as conversation:
            return await question(conversation, url)

    return asyncio.run(scenario())


def fires(body: Any, status: int = 200) -> str | None:
    return asked(body, lambda conversation, url: Prometheus(conversation, url).sees("drop"), status)


def arrived(body: Any) -> str | None:
    return asked(body, lambda conversation, url: Alertmanager(conversation, url).sees("drop"))


def in_prometheus(*alerts: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"alerts": list(alerts)}}


def in_alertmanager(labels: dict[str, str], state: str) -> dict[str, Any]:
    return {"labels": labels, "status": {"state": state, "silencedBy": [], "inhibitedBy": []}}


@pytest.mark.parametrize(
    ("alert", "note"),
    [
        ({"labels": OURS, "state": "firing"}, ""),
        ({"labels": OURS, "state": "pending"}, None),
        ({"labels": {**OURS, "drill": "jitter"}, "state": "firing"}, None),
        ({"labels": OVERDUE, "state": "firing"}, None),
    ],
)
def test_the_alert_of_this_drill_must_fire(alert: dict[str, Any], note: str | None) -> None:
    assert fires(in_prometheus(alert)) == note


def test_a_rule_that_is_not_loaded_is_noticed() -> None:
    def missing(*names: str) -> str:
        groups = [{"name": "g", "rules": [{"name": name, "type": "alerting"} for name in names]}]
        return asked({"data": {"groups": groups}}, lambda conversation, url: Prometheus(conversation, url).missing_rule())

    assert missing("PubsubProberWatchdog", ALERT) == ""
    assert missing("PubsubProberWatchdog") == f"Prometheus has no rule {ALERT}; load those of alerts/"


@pytest.mark.parametrize(
    ("alerts", "note"),
    [
        ([], None),
        ([in_alertmanager(OURS, "active")], ""),
        ([in_alertmanager(OURS, "suppressed")], "held back there by a silence or an inhibition"),
        ([in_alertmanager(OURS, "suppressed"), in_alertmanager(OURS, "active")], ""),
        ([in_alertmanager(OVERDUE, "active")], None),
    ],
)
def test_the_alert_of_this_drill_must_be_at_alertmanager(alerts: list[dict[str, Any]], note: str | None) -> None:
    assert arrived(alerts) == note


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (in_prometheus(), 503, "answered 503"),
        (b"<html>", 200, "did not answer in JSON"),
        (b"\xff", 200, "did not answer in JSON"),
        (b"[" * 100_000, 200, "did not answer in JSON"),
        ({"data": {"alerts": [{"labels": None, "state": "firing"}]}}, 200, "in a form that the prober does not know"),
        ([], 200, "in a form that the prober does not know"),
        (b" " * (ANSWER_MAX + 1), 200, "answered more than 16 MiB"),
    ],
)
def test_an_answer_that_nobody_understands_is_none(body: Any, status: int, words: str) -> None:
    with pytest.raises(NoAnswer, match=words):
        fires(body, status)


def test_where_nobody_listens_there_is_no_answer() -> None:
    async def scenario() -> None:
        async with answering({}) as url:
            pass
        async with Conversation() as conversation:
            await Alertmanager(conversation, url).sees("drop")

    with pytest.raises(NoAnswer, match="does not answer"):
        asyncio.run(scenario())
