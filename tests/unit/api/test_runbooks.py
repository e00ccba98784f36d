"""The runbooks as pages: all are served, all links lead to a page, placeholders are filled in safely, and other pages link them."""

from __future__ import annotations

import asyncio
import re
import shlex
from functools import cache
from html import unescape
from posixpath import dirname, join, normpath
from textwrap import dedent
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from api.headline import BURNS, SPENT, TROUBLES, UNREACHABLE, runbook_of_trouble
from api.runbooks import INDEX, PARAMETERS, Reader, parsed, runbook_address, runbooks
from prober.config.models import Api
from prober.core.verdict import Verdict
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.slices import KEPT_S, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import SliCounts
from tests.commands import ROOT, RUNBOOKS
from tests.unit.api.asking import EUROPE, NOON, STUCK, StubView, ask, client_of, copy_of, end, view
from tests.unit.api.pages import Page
from tests.unit.api.test_hostile import TEXTS, quoted

FILES = {path.stem: path for path in RUNBOOKS.glob("*.md")}
NAMES = sorted(FILES.keys() - {INDEX})
ADDRESSES = ["/runbooks", *(f"/runbooks/{name}" for name in NAMES)]


@cache
def app() -> FastAPI:
    asked = view()
    return create_app(asked, asked.archive, asked.settings)


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


def commands_of(text: str) -> list[str]:
    """The blocks of commands and queries of a page, as they are copied."""
    blocks = re.findall(r'<code data-copy="[^"]*">(.*?)</code>', text, re.DOTALL)
    return [unescape(re.sub(r"</?span[^>]*>", "", block)) for block in blocks]


@pytest.mark.parametrize("name", NAMES)
def test_every_runbook_is_a_page_with_all_that_it_says(name: str) -> None:
    found, text = page(f"/runbooks/{name}"), FILES[name].read_text(encoding="utf-8")
    said = found.said()
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert {value for tag, attributes in found.elements if tag == "h2" for value in [attributes["id"]]} == {
        section.lower().replace(" ", "-") for section in sections
    }
    blocks = [dedent(block) for block in re.findall(r"^ *```\w+\n(.*?)\n *```$", text, re.MULTILINE | re.DOTALL)]
    shown = commands_of(get(f"/runbooks/{name}").text)
    assert shown == [block.strip().replace("$PROBER/", "http://prober/") for block in blocks]
    assert f"{name} {runbooks()[name].summary}" in said


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
    assert "About the prober PubsubProberAbsent Prometheus has no scrape target of the prober." in found.said()
    assert {"placeholders", "tools"} <= set(found.values("id"))
    assert "runbooks/PubsubOrderViolated" not in page("/").values("href")


def test_the_name_of_the_file_leads_to_the_page() -> None:
    assert get("/runbooks/PubsubHotKeys.md").text == get("/runbooks/PubsubHotKeys").text


def test_a_link_to_another_runbook_leads_to_its_page_and_hands_on_the_values() -> None:
    links = "[a](Other.md) [b](Other.md#fix) [c](README.md#tools) [d](#here) [e](https://example.com/x) [f](javascript:alert(1))"
    text = f"# T\n\n> One. Two.\n\n{links}\n"
    book = parsed("T", text)
    assert book.summary == "One."
    found = Page(book.lead(Reader("../", query={"target": "a&b", "other": "x", "kind": ""})))
    assert list(found.values("href")) == [
        "../runbooks/Other?target=a%26b",
        "../runbooks/Other?target=a%26b#fix",
        "../runbooks#tools",
        "#here",
        "https://example.com/x",
    ]


def test_html_and_pictures_in_the_text_are_only_text() -> None:
    text = "# T\n\n> S.\n\n## <b onclick=x>\n\n<script>alert(1)</script>\n\n![i](//x/a.png)\n\n```sh\n</code><img src=x>\n```\n"
    book = parsed("T", text)
    found = Page(book.lead(Reader()) + book.body(Reader()))
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


def test_they_are_no_part_of_the_api() -> None:
    assert not any("runbooks" in path for path in ask(view(), "/openapi.json").json()["paths"])


def test_addresses() -> None:
    assert runbook_address("A", "https://example.com/books/", "../") == "https://example.com/books/A.md"
    assert (runbook_address("A", None, ""), runbook_address("A", None, "../")) == ("runbooks/A", "../runbooks/A")
    assert runbook_address("A", None, "", {"target": "a b", "kind": "K"}) == "runbooks/A?target=a+b&kind=K"


HOSTILE = """a'; touch /tmp/x; echo "$(id)" `id` & <script>alert(1)</script> \\ \" | cat"""


class TestPlaceholders:
    """Values from the address of a page in its commands."""

    def test_values_fill_in_commands_addresses_and_queries(self) -> None:
        shown = commands_of(get("/runbooks/PubsubOrderViolated?target=europe&kind=ORDER_GAP&id=run-1-1").text)
        assert shown[0] == "kubectl exec POD -- ordering-prober status findings --kind ORDER_GAP --target europe"
        assert shown[1].startswith('curl -s "http://prober/api/v1/findings/run-1-1/trace" > finding.jsonl')
        assert shown[-1].endswith("alertname=PubsubOrderViolated target=europe kind=ORDER_GAP")
        query = commands_of(get("/runbooks/PubsubErrorBudgetBurn?slo=order").text)[1]
        assert query == 'slo:pubsub_prober_burn_rate:ratio5m{slo="order"}'

    @pytest.mark.parametrize("value", ["", "-rf", "a\nb", "a\u202eb", "a" * 2000])
    def test_a_placeholder_without_a_proper_value_stays(self, value: str) -> None:
        asked = f"/runbooks/PubsubOrderViolated?{urlencode({'target': value, 'pod': 'x', 'file': 'y'})}"
        assert commands_of(get(asked).text) == commands_of(get("/runbooks/PubsubOrderViolated").text)

    @pytest.mark.parametrize("name", [*NAMES, INDEX])
    def test_hostile_values_stay_one_word_of_the_shell_and_text_on_the_page(self, name: str) -> None:
        """Each word of a command with harmless values has its counterpart with hostile ones."""
        texts = []
        for value in ("harmless", HOSTILE):
            asked = dict.fromkeys(PARAMETERS.pattern.split("|"), value)
            texts.append(get(f"/runbooks{'' if name == INDEX else f'/{name}'}?{urlencode(asked)}").text)
        assert "<script>alert" not in texts[1]
        assert [tag for tag, _ in Page(texts[0]).elements] == [tag for tag, _ in Page(texts[1]).elements]
        for harmless, hostile in zip(*map(commands_of, texts), strict=True):
            if harmless.startswith(("kubectl", "curl", "amtool", "ordering-prober")):
                percent = quote(HOSTILE, safe="")
                assert [word.replace(percent, "harmless").replace(HOSTILE, "harmless") for word in shlex.split(hostile)] == (
                    shlex.split(harmless)
                )

    def test_a_hostile_value_stays_within_the_string_of_a_query(self) -> None:
        query = commands_of(get(f"/runbooks/PubsubErrorBudgetBurn?{urlencode({'slo': HOSTILE})}").text)[1]
        escaped = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
        assert query == f'slo:pubsub_prober_burn_rate:ratio5m{{slo="{escaped}"}}'

    def test_the_introduction_lists_them(self) -> None:
        rows = re.findall(r"^\| (`[A-Z].+?`) \| (the label|`finding_id`)", FILES[INDEX].read_text(encoding="utf-8"), re.MULTILINE)
        listed = {word.lower() for words, _ in rows for word in re.findall(r"`(\w+)`", words)}
        assert listed == set(PARAMETERS.pattern.split("|"))

    def test_the_browser_puts_the_address_in_that_it_used(self) -> None:
        """A proxy may serve the pages below a path that only the browser knows."""
        spans = [attributes for tag, attributes in page("/runbooks/PubsubOrderViolated").elements if "data-address" in attributes]
        assert spans
        assert {attributes["data-address"] for attributes in spans} == {"../"}

    def test_a_hostile_host_name_is_not_filled_in(self) -> None:
        text = parsed("T", '# T\n\n```sh\ncurl "$PROBER/healthz"\n```\n').lead(Reader("../", "http://a$(id)/"))
        assert commands_of(text) == ['curl "$PROBER/healthz"']

    def test_no_placeholder_stands_in_quotes_that_its_value_would_end(self) -> None:
        for name, path in FILES.items():
            for block in re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
                for quoted_text in re.findall(r"'[^']*'|\"(?!\$PROBER/)[^\"]*\"", block):
                    assert not [word for word in re.findall(r"[A-Z_]+", quoted_text) if PARAMETERS.fullmatch(word.lower())], name


class TestLinked:
    """Where the other pages lead to them; to the configured copy if there is one."""

    @pytest.mark.parametrize(
        ("path", "root"), [("/", ""), ("/incidents", ""), ("/incidents/run-1-loss", "../"), ("/probes/ordering", "../")]
    )
    def test_an_incident(self, path: str, root: str) -> None:
        asked = broken()
        query = "?target=europe&probe=ordering&kind=STUCK&id=run-1-1"
        assert f"{root}runbooks/PubsubDeliveryOverdue{query}" in Page(ask(asked, path).text).values("href")
        asked.settings = Api(runbooks="https://example.com/books/")
        assert f"https://example.com/books/PubsubDeliveryOverdue.md{query}" in Page(ask(asked, path).text).values("href")

    def test_a_finding(self) -> None:
        links = Page(ask(broken(), "/findings/run-1-1").text).values("href")
        assert "../runbooks/PubsubDeliveryOverdue?target=europe&probe=ordering&kind=STUCK&id=run-1-1&key=k" in links

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
        assert f"runbooks/{UNREACHABLE}?target=europe" in Page(ask(asked, "/").text).values("href")
        assert f"../runbooks/{UNREACHABLE}?target=europe&probe=ordering" in Page(ask(asked, "/probes/ordering").text).values("href")

    @pytest.mark.parametrize(("bad", "linked"), [(0, set()), (1_000, {BURNS, SPENT})])
    def test_an_objective_whose_alerts_fire(self, bad: int, linked: set[str]) -> None:
        asked, url = view(EUROPE), copy_of("empty")
        asked.write_to(url)
        order = next(one for one in asked.archive.objectives if one.name == "order")
        counts = [
            Slice("p", EUROPE.target, order.name, definition_of(order), length_s, NOON - back_s, SliCounts(1_000, bad, 0))
            for length_s in KEPT_S
            for back_s in (length_s, 4 * 3_600)
        ]
        StatusStore(Database(url)).heartbeat(ProberRecord("prober-1", "1", NOON, NOON), (), counts)
        links = set(Page(ask(asked, "/slos/order").text).values("href"))
        assert {link for link in links if "runbooks/" in link} == {f"../runbooks/{name}?slo=order&target=europe" for name in linked}
        assert linked <= set(NAMES)
