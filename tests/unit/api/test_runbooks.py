"""The runbooks as pages: every one is there, every link on them leads somewhere, other pages link them, and nothing else is served."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from posixpath import dirname, join, normpath
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from api.app import create_app
from api.headline import BURNS, SPENT, TROUBLES, UNREACHABLE, runbook_of_trouble
from api.runbooks import INDEX, rendered, runbook_address, runbooks
from prober.alerting.rules import RUNBOOKS
from prober.config.models import Api, Reads
from prober.core.verdict import Verdict
from prober.sinks.status.database import Database
from prober.sinks.status.records import ProberRecord, Slice
from prober.sinks.status.slices import KEPT_S, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import SliCounts
from tests.commands import ROOT
from tests.unit.api.asking import EUROPE, NOON, STUCK, StubView, ask, client_of, copy_of, end, view
from tests.unit.api.pages import Page
from tests.unit.api.standing import UNLIMITED
from tests.unit.api.test_hostile import TEXTS, quoted

FILES = {path.stem: path for path in (ROOT / RUNBOOKS).glob("*.md")}
NAMES = sorted(FILES.keys() - {INDEX})
ADDRESSES = ["/runbooks", *(f"/runbooks/{name}" for name in NAMES)]


@cache
def app() -> FastAPI:
    asked = view()
    return create_app(asked, asked.archive, asked.settings, UNLIMITED)


@cache
def get(path: str) -> httpx.Response:
    async def asking() -> httpx.Response:
        async with client_of(app()) as client:
            return await client.get(path)

    return asyncio.run(asking())


@cache
def sources() -> str:
    return "".join(path.read_text(encoding="utf-8") for folder in ("prober", "api") for path in (ROOT / folder).rglob("*.py"))


def broken() -> StubView:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL, STUCK)
    return asked


def page(path: str) -> Page:
    response = get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
    return Page(response.text)


@pytest.mark.parametrize("name", NAMES)
def test_every_runbook_is_a_page_with_all_that_it_says(name: str) -> None:
    found, text = page(f"/runbooks/{name}"), FILES[name].read_text(encoding="utf-8")
    said = found.said()
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert {value for tag, attributes in found.elements if tag == "h2" for value in [attributes["id"]]} == {
        section.lower().replace(" ", "-") for section in sections
    }
    blocks = re.findall(r"^```\w+\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    assert len([tag for tag, attributes in found.elements if tag == "code" and "data-copy" in attributes]) == len(blocks)
    for block in blocks:
        assert " ".join(block.split()) in said
    assert f"{name} {runbooks()[name].summary} Meaning" in said


@pytest.mark.parametrize("path", ADDRESSES)
def test_every_link_on_them_leads_somewhere(path: str) -> None:
    for link in page(path).values("href"):
        there = urlsplit(link)
        assert not there.scheme or there.scheme == "https", link
        if not there.scheme and not there.path.endswith(("metrics", ".css", ".svg")):
            address = normpath(join(dirname(path), there.path)) if there.path else path
            response = get("/" + address.strip("/."))
            assert response.status_code == 200, link
            assert not there.fragment or there.fragment in Page(response.text).values("id"), link


def test_the_list_has_every_runbook_with_its_first_sentence() -> None:
    found = page("/runbooks")
    assert [link for link in found.values("href") if link.startswith("runbooks/")] == [
        f"runbooks/{name}" for name in sorted(NAMES, key=lambda name: (name.startswith("PubsubProber"), name))
    ]
    assert "About the service PubsubAffinityViolated A key went to another subscriber while messages" in found.said()
    assert "About the prober PubsubProberAbsent Prometheus knows no prober at all." in found.said()
    assert {"placeholders", "tools"} <= set(found.values("id"))
    assert "runbooks/PubsubOrderViolated" not in page("/").values("href")


def test_the_name_of_the_file_leads_to_the_page() -> None:
    assert get("/runbooks/PubsubHotKeys.md").text == get("/runbooks/PubsubHotKeys").text


def test_a_link_leads_to_a_page_that_is_served_or_nowhere() -> None:
    text = (
        "# T\n\n> One. Two.\n\n[a](Other.md) [b](Other.md#what-to-do) [c](README.md#tools) [d](#here) [e](../findings.md) "
        "[../deploy.md](../deploy.md) [docs/alerts.md](../alerts.md) [f](../../LICENSE) [g](Missing.md) [h](javascript:alert(1))\n"
    )
    found = Page(rendered("T", text, frozenset({"Other", INDEX})).lead)
    assert list(found.values("href")) == ["../runbooks/Other", "../runbooks/Other#what-to-do", "../runbooks#tools", "#here"]
    assert "e in docs/findings.md ../deploy.md in docs/deploy.md docs/alerts.md f in LICENSE g in docs/runbooks/Missing.md" in (
        found.said()
    )
    assert rendered("T", text, frozenset()).summary == "One."
    assert next(Page(rendered(INDEX, text, frozenset({"Other"})).lead).values("href")) == "runbooks/Other"


def test_html_and_pictures_in_the_text_are_only_text() -> None:
    text = "# T\n\n> S.\n\n## <b onclick=x>\n\n<script>alert(1)</script>\n\n![i](//x/a.png)\n\n```sh\n</code><img src=x>\n```\n"
    book = rendered("T", text, frozenset())
    found = Page(book.lead + book.body)
    assert {tag for tag, _ in found.elements} == {"p", "h2", "a", "div", "pre", "code"}
    assert "<script>alert(1)</script>" in found.said()


@pytest.mark.parametrize(
    "text", [*TEXTS.values(), "none", "", INDEX, f"{INDEX}.md", ".md", ".", "..", "PubsubHotKeys.md.md", "pubsubhotkeys"]
)
def test_there_is_nothing_else(text: str) -> None:
    response = get(f"/runbooks/{quoted(text)}")
    assert response.status_code == 404
    assert response.headers["content-type"] in ("text/html; charset=utf-8", "application/problem+json")
    assert "root:" not in response.text


@pytest.mark.parametrize(
    "path", ["/runbooks/..%2Fstatus.html", "/runbooks/../status.html", "/runbooks/%2e%2e/status.html", "/runbooks/a/b"]
)
def test_a_path_leads_out_of_nothing(path: str) -> None:
    assert get(path).status_code == 404


def test_who_may_read_them_may_read_the_other_pages() -> None:
    asked = view()
    asked.settings = Api(reads=Reads.TOKEN, token=SecretStr("x" * 32))
    for path in ("/", "/runbooks", "/runbooks/PubsubHotKeys"):
        assert ask(asked, path).status_code == 401
        assert ask(asked, path, headers={"Authorization": f"Bearer {'x' * 32}"}).status_code == 200


def test_they_are_no_part_of_the_api() -> None:
    assert not any("runbooks" in path for path in ask(view(), "/openapi.json").json()["paths"])


def test_addresses() -> None:
    assert runbook_address("A", "https://example.com/books/", "../") == "https://example.com/books/A.md"
    assert (runbook_address("A", None, ""), runbook_address("A", None, "../")) == ("runbooks/A", "../runbooks/A")


class TestLinked:
    """Where the other pages lead to them; to the configured copy if there is one."""

    @pytest.mark.parametrize(
        ("path", "root"), [("/", ""), ("/incidents", ""), ("/incidents/run-1-STUCK", "../"), ("/probes/ordering", "../")]
    )
    def test_an_incident(self, path: str, root: str) -> None:
        asked = broken()
        assert f"{root}runbooks/PubsubDeliveryOverdue" in Page(ask(asked, path).text).values("href")
        asked.settings = Api(runbooks="https://example.com/books/")
        assert "https://example.com/books/PubsubDeliveryOverdue.md" in Page(ask(asked, path).text).values("href")

    @pytest.mark.parametrize("words", TROUBLES)
    def test_a_problem_of_the_prober(self, words: str) -> None:
        assert sources().count(words) > 1, "no problem says so any more"
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.PASS)
        asked.troubles = (f"prober-1: {words}: disk full",)
        assert runbook_of_trouble(asked.troubles[0]) in NAMES
        assert f"runbooks/{TROUBLES[words]}" in Page(ask(asked, "/").text).values("href")

    def test_a_problem_that_no_runbook_is_about(self) -> None:
        assert runbook_of_trouble("something else") == ""

    def test_an_outage(self) -> None:
        asked = view(EUROPE)
        for at in (NOON - 20.0, NOON - 10.0):
            end(asked, EUROPE, Verdict.UNKNOWN, at=at, unreachable=True)
        assert f"runbooks/{UNREACHABLE}" in Page(ask(asked, "/").text).values("href")
        assert f"../runbooks/{UNREACHABLE}" in Page(ask(asked, "/probes/ordering").text).values("href")

    @pytest.mark.parametrize(("bad", "linked"), [(0, set()), (2, {BURNS, SPENT})])
    def test_an_objective_whose_alerts_fire(self, bad: int, linked: set[str]) -> None:
        asked, url = view(EUROPE), copy_of("empty")
        asked.write_to(url)
        order = next(one for one in asked.archive.objectives if one.name == "order")
        counts = [
            Slice("p", EUROPE.target, order.name, definition_of(order), length_s, NOON - length_s, SliCounts(100, bad, 0))
            for length_s in KEPT_S
        ]
        StatusStore(Database(url)).heartbeat(ProberRecord("prober-1", "1", NOON, NOON), None, counts)
        links = set(Page(ask(asked, "/slos/order").text).values("href"))
        assert {link for link in links if "runbooks/" in link} == {f"../runbooks/{name}" for name in linked}
        assert linked <= set(NAMES)
