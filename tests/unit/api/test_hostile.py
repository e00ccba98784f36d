"""Hostile input: whatever is sent, the answer is a refusal or a correct one, never a mistake of ours, and never what was not asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from api.app import create_app
from tests.unit.api.asking import StubView, client_of
from tests.unit.api.kept import full_view

TEXTS = {
    "quote": "' OR '1'='1",
    "comment": "x'; DROP TABLE runs; --",
    "union": "x' UNION SELECT 1,2,3 --",
    "wildcard": "%",
    "underscore": "_______",
    "format": "%s%n{0}",
    "template": "{{7*7}}${7*7}<%= 7*7 %>",
    "script": "<script>alert(1)</script>",
    "traversal": "../../etc/passwd",
    "encoded twice": "..%2f..%2fetc%2fpasswd",
    "backslashes": "..\\..\\etc\\passwd",
    "nul": "a\0b",
    "line breaks": "a\r\nSet-Cookie: x=1",
    "lone surrogate": "\ud800",
    "right to left": "\u202eabc",
    "other digits": "\u0661\u0662",
    "emoji": "\U0001f511" * 20,
    "long": "x" * 1_024,
}
FILTERS = ("probe", "target", "vantage", "part")
FINDING_FILTERS = ("key", "subscription", "target", "run", "probe", "vantage", "part")
NUMBERS = ("-1", "0", "501", "9" * 400, "1e9", "1.5", "0x10", "NaN", "", "\u0661", "true", "1;2")
TIMES = (
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "1969-12-31T23:59:59.999999999Z",
)
NO_TIMES = (
    "2026-02-30T00:00:00Z",
    "24:00",
    "now()",
    "-1",
    "1e400",
    "2026-01-01T00:00:00+99:99",
    "2026-01-01T25:00:00Z",
    "2026-01-01T00:00:00Z\0",
)


@pytest.fixture(scope="module")
def asked() -> StubView:
    return full_view()


@pytest.fixture(scope="module")
def app(asked: StubView) -> FastAPI:
    return create_app(asked, asked.archive, asked.settings)


@pytest.fixture
def nothing_is_wrong(asked: StubView) -> Iterator[None]:
    """No request was answered with a mistake of ours."""
    yield
    assert asked.errors == []


pytestmark = pytest.mark.usefixtures("nothing_is_wrong")


def get(app: FastAPI, path: str, **params: str) -> httpx.Response:
    """The answer, which is one of these whatever was asked."""

    async def asking() -> httpx.Response:
        async with client_of(app) as client:
            return await client.get(
                path + ("?" + "&".join(f"{name}={quoted(value)}" for name, value in params.items()) if params else "")
            )

    response = asyncio.run(asking())
    assert response.status_code in (200, 400, 404, 414)
    assert "set-cookie" not in response.headers
    return response


def quoted(value: str) -> str:
    """Every byte percent-encoded; what UTF-8 does not have, as bytes that are not UTF-8."""
    return "".join(f"%{byte:02X}" for byte in value.encode("utf-8", "surrogatepass"))


def items(response: httpx.Response) -> list[Any]:
    found: list[Any] = response.json()["items"]
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_in_filters_finds_only_itself(app: FastAPI, text: str) -> None:
    for name in FILTERS:
        assert items(get(app, "/api/v1/runs", **{name: text})) == []
    for name in FINDING_FILTERS:
        assert items(get(app, "/api/v1/findings", **{name: text})) == []
    assert get(app, "/api/v1/keys", key=text).json()["findings"] == []


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_no_control_character_at_all(app: FastAPI, code: int) -> None:
    for text in (chr(code), f"prober-0{chr(code)}"):
        assert get(app, "/api/v1/runs", instance=text).status_code == 400
        assert get(app, "/runs", instance=text).status_code == 400


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_in_place_of_a_choice_is_refused(app: FastAPI, text: str) -> None:
    for path, name in (
        ("runs", "verdict"),
        ("findings", "kind"),
        ("findings", "status"),
        ("findings", "open"),
        ("runs", "limit"),
        ("runs", "since"),
        ("reports", "date"),
    ):
        assert get(app, f"/api/v1/{path}", **{name: text}).status_code == 400


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_in_place_of_a_name_is_not_found(app: FastAPI, text: str) -> None:
    for path in (
        "runs/{}",
        "findings/{}",
        "findings/{}/trace",
        "findings/{}/diagram.svg",
        "findings/{}/bundle",
        "probes/{}",
        "slos/{}",
    ):
        response = get(app, "/api/v1/" + path.format(quoted(text)))
        assert response.status_code in (400, 404)
        assert response.headers["content-type"] == "application/problem+json"
        assert "root:" not in response.text


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fapp.py", "/static//etc/passwd", "/static/%00"]
)
def test_no_file_outside_of_its_folder_is_given(app: FastAPI, path: str) -> None:
    assert get(app, path).status_code == 404


@pytest.mark.parametrize("number", NUMBERS)
def test_limits_that_are_none(app: FastAPI, number: str) -> None:
    assert get(app, "/api/v1/runs", limit=number).status_code == 400
    assert get(app, "/api/v1/hot-keys", limit=number).status_code == 400


@pytest.mark.parametrize("time", TIMES)
def test_far_times(app: FastAPI, time: str) -> None:
    for path in ("runs", "findings"):
        since, until = (len(items(get(app, f"/api/v1/{path}", **{name: time}))) for name in ("since", "until"))
        assert sorted((since, until)) == [0, len(items(get(app, f"/api/v1/{path}")))]
    assert get(app, "/api/v1/subscriptions", since=time).status_code == 200


@pytest.mark.parametrize("time", NO_TIMES)
def test_times_that_are_none(app: FastAPI, time: str) -> None:
    for path in ("runs", "findings", "subscriptions"):
        assert get(app, f"/api/v1/{path}", since=time).status_code == 400


@pytest.mark.parametrize(
    "bad",
    ["", "x", "%", "AAAA", "\u0661", "x" * 2_000],
)
def test_cursors_that_are_none(app: FastAPI, bad: str) -> None:
    for path in ("runs", "findings"):
        response = get(app, f"/api/v1/{path}", cursor=bad)
        assert response.status_code == 400
        assert len(response.content) < 1_000


def test_many_and_strange_parameters(app: FastAPI) -> None:
    for query in (
        "&" * 500,
        "=" * 500,
        "a=" + "&a=" * 500,
        "%ff=%fe",
        "limit[]=1",
        "limit=1&limit=2",
        "__proto__=1",
        ";",
        "?" * 100,
    ):
        assert get(app, f"/api/v1/runs?{query}").status_code in (200, 400)


@pytest.mark.parametrize("header", ["If-None-Match", "Accept", "Range", "X-Forwarded-For", "X-HTTP-Method-Override", "Cookie"])
def test_strange_headers_change_nothing(app: FastAPI, header: str) -> None:
    async def asking() -> None:
        async with client_of(app) as client:
            for value in (b"\xff\xfe", b'"' * 1_000, b"W/" * 1_000, b"DELETE", b"bytes=0-0", b"*/*;q=NaN"):
                for path in ("/api/v1/runs", "/metrics", "/"):
                    assert (await client.get(path, headers={header.encode(): value})).status_code == 200

    asyncio.run(asking())
