"""Errors are problem details, and every answer carries the headers that keep a browser from harm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urljoin

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from tests.unit.api.asking import EUROPE, StubView, ask, view
from tests.unit.api.pages import Page

SECRET = "password=hunter2"


def broken(app: FastAPI) -> None:
    """Adds a path that fails, one that fails half-way, and one that takes a number."""

    async def half() -> AsyncIterator[str]:
        yield "half"
        raise RuntimeError(SECRET)

    @app.get("/broken")
    async def fail() -> None:
        raise RuntimeError(SECRET)

    @app.get("/half")
    async def begin() -> StreamingResponse:
        return StreamingResponse(half())

    @app.get("/number")
    async def number(of: int) -> int:
        return of


def problem(asked: StubView, path: str, method: str = "GET") -> dict[str, object]:
    response = ask(asked, path, method, change=broken)
    assert response.headers["content-type"] == "application/problem+json"
    answer: dict[str, object] = response.json()
    assert answer["status"] == response.status_code
    return answer


def test_nothing_there() -> None:
    assert problem(view(EUROPE), "/api/v1/nonsense") == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "there is nothing at /api/v1/nonsense",
        "instance": "/api/v1/nonsense",
    }


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/healthz", "GET, HEAD"),
        ("/api/v1/status", "GET, HEAD"),
        ("/api/v1/keys/a/b", "GET, HEAD"),
        ("/", "GET, HEAD"),
        ("/static/page.css", "GET, HEAD"),
        ("/openapi.json", "GET, HEAD"),
        ("/api/v1/probes/ordering/runs", "POST"),
        ("/both", "GET, HEAD, POST"),
    ],
)
@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "TRACE", "BREW", "GET", "HEAD"])
def test_a_path_says_which_methods_it_has(path: str, allowed: str, method: str) -> None:
    """Also to somebody without the token, whom a token would not help."""

    def two(app: FastAPI) -> None:
        app.add_api_route("/both", lambda: "read")
        app.add_api_route("/both", lambda: "changed", methods=["POST"])

    response = ask(view(EUROPE), path, method, change=two)
    if method not in allowed:
        assert (response.status_code, response.headers["allow"]) == (405, allowed)
    else:
        assert response.status_code != 405


def test_an_instance_is_a_uri_reference() -> None:
    """Whatever the path was."""
    assert problem(view(EUROPE), "/a%0D%0Ab%00%1B%22%20%C3%A9%F0%9F%94%91:@!$&'()*+,;=-._~")["instance"] == (
        "/a%0D%0Ab%00%1B%22%20%C3%A9%F0%9F%94%91:@!$&'()*+,;=-._~"
    )


def test_a_parameter_of_the_wrong_kind() -> None:
    answer = problem(view(EUROPE), "/number?of=many")
    assert answer["status"] == 400
    assert str(answer["detail"]).startswith("of: Input should be a valid integer")


def test_a_mistake_of_ours_is_reported_to_the_service_and_not_to_the_client() -> None:
    asked = view(EUROPE)
    answer = problem(asked, "/broken")
    assert answer["title"] == "Internal Server Error"
    assert SECRET not in str(answer)
    assert [str(error) for error in asked.errors] == [SECRET]


def test_what_fails_half_way_is_broken_off_and_reported() -> None:
    asked = view(EUROPE)
    with pytest.raises(RuntimeError, match=SECRET):
        ask(asked, "/half", change=broken)
    assert [str(error) for error in asked.errors] == [SECRET]


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/api/v1/status", "/healthz", "/metrics", "/static/page.css", "/nowhere", "/broken"]
)
def test_every_answer_is_safe_to_show(path: str) -> None:
    headers = ask(view(EUROPE), path, change=broken).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert policy["form-action"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-cache"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/api/v1/status", "/api/v1/runs", "/healthz", "/readyz", "/metrics", "/static/page.css", "/api/v1/keys/k"],
)
def test_head_is_answered_like_get_without_the_body(path: str) -> None:
    asked = view(EUROPE)
    head, get = (ask(asked, path, method) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (get.status_code, b"") == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers["content-length"] == get.headers["content-length"]


def test_a_slash_too_many_is_not_redirected() -> None:
    assert ask(view(EUROPE), "/metrics/").status_code == 404


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    "path", ["/nowhere", "/api/v1/nonsense", "/a/b%2Fc/d?e=/", "/static/none.css", "/runs/none", "/api/v1/runs?limit=0"]
)
def test_people_get_a_page_from_which_they_find_back(path: str) -> None:
    response = ask(view(EUROPE), path, headers={"Accept": BROWSER})
    assert response.status_code == (400 if "limit" in path else 404)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "Accept" in response.headers["vary"].split(", ")
    found = Page(response.text)
    start = urljoin(f"http://prober{path}", next(link for link in found.values("href") if link.endswith("incidents")))
    assert start == "http://prober/incidents"
    assert "Back to the status page" in found.said()


@pytest.mark.parametrize(
    "accept", ["application/json", "application/problem+json, text/html;q=0.5", "text/html;q=0, */*", "application/json;q=x"]
)
@pytest.mark.parametrize("path", ["/nowhere", "/api/v1/nonsense"])
def test_programs_get_problem_details(path: str, accept: str) -> None:
    response = ask(view(EUROPE), path, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")


def test_a_program_gets_them_where_there_could_be_a_page() -> None:
    response = ask(view(EUROPE), "/runs/none", headers={"Accept": "application/json"})
    assert response.json()["detail"].startswith("no run is called none;")
    assert ask(view(EUROPE), "/runs/none").headers["content-type"].startswith("text/html")
