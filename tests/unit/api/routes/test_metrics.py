"""The page of metrics over HTTP."""

from __future__ import annotations

import asyncio
import threading

import pytest

from api.app import create_app
from api.standalone import Alone
from prober.config.following import ConfigurationFile
from prober.config.loading import load
from prober.config.models import Api
from tests.unit.api.asking import client_of, nothing_kept
from tests.unit.sinks.metrics.scraping import PATIENCE_S, Renderings


def test_others_are_answered_while_metrics_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    renderings = Renderings(monkeypatch)

    async def scenario() -> None:
        view = Alone(ConfigurationFile(load(None, {})), nothing_kept(), "1.2.3")
        app = create_app(view, nothing_kept(), Api())
        async with client_of(app) as client:
            scrape = asyncio.create_task(client.get("/metrics"))
            async with asyncio.timeout(PATIENCE_S):
                while not renderings.begun.is_set():
                    await asyncio.sleep(0)
            assert (await client.get("/openapi.json")).status_code == 200
            renderings.may_go_on.set()
            assert "pubsub_prober_build_info" in (await scrape).text

    asyncio.run(scenario())
    assert renderings.went_on == [True], "the rendering held up everybody until it gave up"
    assert threading.get_ident() not in renderings.threads
