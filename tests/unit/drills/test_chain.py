"""The way of a drill's alert to whoever is reported, where pages arrive, and what the steps mean together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from io import BytesIO
from typing import Any, TypeVar

import aiohttp
import pytest
import yaml
from aiohttp import web

from prober.alerting.catalogue import rule_files
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.drills.chain import (
    ALERT,
    BODY_MAX,
    DRILL,
    Alertmanager,
    Conversation,
    NoAnswer,
    Prometheus,
    Receiver,
    Step,
    StepName,
    concluded,
)
from prober.drills.drill import EARLIER_S, DrillResult
from prober.errors import ConfigError
from prober.sinks.metrics import Metrics, Scrapes
from prober.sinks.metrics.families import DRILL_FINDINGS, FAMILIES

Result = TypeVar("Result")
OURS = {"alertname": ALERT, "drill": "drop"}
OVERDUE = {"alertname": "PubsubProberDrillOverdue", "drill": "drop"}
PASSED = Step(StepName.FINDING, Verdict.PASS, 0.5)
FAILED = Step(StepName.RULE, Verdict.FAIL, note="did not come within 60 s")
UNSEEN = Step(StepName.ALERTMANAGER, Verdict.UNKNOWN, note="nobody answers")
LEFT_OUT = Step(StepName.RECEIVER, Verdict.UNKNOWN, note="not followed: no port", followed=False)


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


@pytest.mark.parametrize(
    ("steps", "verdict", "reason"),
    [
        ((PASSED,), Verdict.PASS, ""),
        ((PASSED, LEFT_OUT), Verdict.PASS, ""),
        ((PASSED, UNSEEN), Verdict.UNKNOWN, "alertmanager: nobody answers"),
        ((PASSED, FAILED, UNSEEN, LEFT_OUT), Verdict.FAIL, "rule: did not come within 60 s"),
        ((LEFT_OUT,), Verdict.UNKNOWN, "nothing was followed"),
    ],
)
def test_a_drill_passes_if_every_step_that_was_followed_did(steps: tuple[Step, ...], verdict: Verdict, reason: str) -> None:
    assert concluded(steps) == (verdict, reason)


def test_what_was_not_followed_is_listed_and_has_no_seconds() -> None:
    result = DrillResult("drop", "integrity", Verdict.PASS, "", (PASSED, LEFT_OUT), (), 1, 1.0, 0)
    assert result.not_followed == (StepName.RECEIVER,)
    assert result.steps_s == {"finding": 0.5}


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


@cache
def rule() -> dict[str, Any]:
    texts = rule_files(load(None, {}).objectives).values()
    rules = [one for text in texts for group in yaml.load(text, Loader=yaml.CSafeLoader)["groups"] for one in group["rules"]]
    (found,) = [one for one in rules if one.get("alert") == ALERT]
    return dict(found)


def test_the_alert_is_about_findings_of_drills_and_keeps_their_name() -> None:
    expression = rule()["expr"]
    assert DRILL_FINDINGS.full_name in expression
    assert not [family for family in FAMILIES if family.full_name in expression and "target" in family.labels]
    assert f"sum by ({DRILL}, " in expression


def test_it_wakes_up_nobody() -> None:
    assert rule()["labels"] == {"severity": "none", "owner": "prober"}


def test_it_ends_while_the_next_drill_waits_for_it() -> None:
    assert "offset 3m" in rule()["expr"]
    assert EARLIER_S > 180.0 + 60.0
