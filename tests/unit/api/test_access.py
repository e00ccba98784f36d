"""Who may do what: every combination of configuration, method, path and what is presented."""

from __future__ import annotations

import base64

import pytest
from pydantic import SecretStr

from prober.config.models import Api, Reads
from tests.unit.api.asking import EUROPE, StubView, ask, view

TOKEN = "s3cret-ü"
RUNS = "/api/v1/probes/ordering/runs"
READ = ("/", "/docs", "/openapi.json", "/static/page.css", "/api/v1/status", "/api/v1/runs")
OPEN = ("/healthz", "/readyz", "/metrics")


def service(token: str | None = TOKEN, reads: Reads = Reads.OPEN) -> StubView:
    asked = view(EUROPE)
    asked.settings = Api(token=None if token is None else SecretStr(token), reads=reads)
    return asked


def header(scheme: str, secret: str, user: str = "anybody") -> dict[str, str]:
    """An Authorization header as bytes of UTF-8, which is what clients send."""
    if scheme == "Basic":
        secret = base64.b64encode(f"{user}:{secret}".encode()).decode()
    return {"Authorization": f"{scheme} {secret}".encode()}  # type: ignore[dict-item]  # httpx takes bytes, too


def test_without_a_token_nothing_can_be_begun() -> None:
    asked = service(token=None)
    response = ask(asked, RUNS, "POST", header("Bearer", ""))
    assert response.status_code == 403
    assert "set ORDERING_PROBER_API__TOKEN" in response.json()["detail"]
    assert asked.begun == []


@pytest.mark.parametrize("reads", list(Reads))
def test_the_right_token_begins_a_run(reads: Reads) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        asked = service(reads=reads)
        assert ask(asked, RUNS, "POST", header(scheme, TOKEN)).status_code == 202
        assert asked.begun == [EUROPE.key]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": TOKEN.encode()},
        header("Bearer", "s3cret"),
        header("Bearer", TOKEN + "x"),
        header("Bearer", TOKEN.upper()),
        {"Authorization": b"Bearer s3cret-\xfc"},
        {"Authorization": b"Bearer \xff\xfe\x80"},
        header("Bearer", "x" * 20_000),
        header("Token", TOKEN),
        header("Basic", TOKEN),  # a browser adds it to requests that another page makes
    ],
)
def test_nothing_else_does(headers: dict[str, str]) -> None:
    asked = service()
    response = ask(asked, RUNS, "POST", headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="ordering-prober"'
    assert response.headers["content-type"] == "application/problem+json"
    assert asked.begun == []


@pytest.mark.parametrize("path", READ)
def test_reading_needs_the_token_only_if_the_configuration_says_so(path: str) -> None:
    assert ask(service(reads=Reads.OPEN), path).status_code == 200
    guarded = service(reads=Reads.TOKEN)
    for method in ("GET", "HEAD"):
        refused = ask(guarded, path, method)
        assert refused.status_code == 401
        assert [one.partition(" ")[0] for one in refused.headers.get_list("www-authenticate")] == ["Bearer", "Basic"]
    assert ask(guarded, path, headers=header("Bearer", TOKEN)).status_code == 200
    assert ask(guarded, path, headers=header("Basic", TOKEN)).status_code == 200


@pytest.mark.parametrize(
    "credentials", ["", "%%%", "YQ", base64.b64encode(TOKEN.encode()).decode(), base64.b64encode(b"\xff:\xff").decode()]
)
def test_a_wrong_password_reads_nothing(credentials: str) -> None:
    assert ask(service(reads=Reads.TOKEN), "/api/v1/status", headers={"Authorization": f"Basic {credentials}"}).status_code == 401


@pytest.mark.parametrize("path", OPEN)
def test_health_and_metrics_are_always_open(path: str) -> None:
    assert ask(service(reads=Reads.TOKEN), path).status_code == 200


def test_a_token_that_is_asked_for_and_not_configured_lets_nobody_read() -> None:
    response = ask(service(token=None, reads=Reads.TOKEN), "/api/v1/status", headers=header("Bearer", ""))
    assert response.status_code == 403
    assert response.json()["detail"].startswith("nothing can be read here, since no token is configured")


def test_no_other_origin_is_let_in() -> None:
    asked = service()
    preflight = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in ask(asked, RUNS, "OPTIONS", preflight).headers
    assert "access-control-allow-origin" not in ask(asked, "/api/v1/status", headers={"Origin": "https://example.com"}).headers
