"""Comparisons in the API and on their page."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from api.app import create_app
from api.view import Archive
from prober.slo.comparison import Standing
from tests.browser.world import World
from tests.unit.api.pages import Page


def get(world: World, path: str, *, configured: bool = True) -> httpx.Response:
    view, archive = world.view, world.view.archive
    archive = archive if configured else replace(archive, comparisons=())

    async def asking() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(view, archive, view.settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://prober") as client:
            return await client.get(path)

    answer = asyncio.run(asking())
    assert world.view.errors == []
    assert answer.status_code == 200
    return answer


def test_the_api_lists_every_comparison_with_its_intervals(world: World) -> None:
    first, second = get(world, "/api/v1/comparisons").json()["items"]
    assert (first["baseline"], first["candidate"], first["missing"]) == ("europe", "us", [])
    order = next(each for each in first["aspects"] if each["aspect"] == "order")
    assert order["pairs"] > 30
    assert order["low"] <= order["difference"] <= order["high"]
    assert (second["candidate"], second["standing"], second["missing"]) == ("asia", "unknown", ["ordering (wire)"])


def test_the_page_says_how_each_candidate_stands_and_why(world: World) -> None:
    said = Page(get(world, "/comparisons").text).said()
    assert "us beside europe" in said
    assert "end_to_end_latency_p50 what half of a run did not exceed" in said
    assert "order the share that is bad: a message is bad if it was first received out of order" in said
    assert "Nobody can tell yet whether asia is no worse than europe; no pair of runs yet of: ordering (wire)" in said


def test_a_candidate_that_is_worse_leads_to_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world.view.archive.compared(world.view.now)
    monkeypatch.setattr(Archive, "compared", lambda *_: [replace(one, standing=Standing.WORSE) for one in found])
    page = Page(get(world, "/comparisons").text)
    assert "By the runs of the last 1 h" in page.said()
    assert "runbooks/PubsubCandidateWorse?baseline=" in "".join(page.values("href"))


def test_a_reader_who_configured_none_learns_how(world: World) -> None:
    assert "Name a baseline and a candidate under comparisons" in Page(get(world, "/comparisons", configured=False).text).said()
    assert get(world, "/api/v1/comparisons", configured=False).json() == {"items": []}
