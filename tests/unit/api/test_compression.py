"""Long answers are compressed for whoever takes that, and say so; nothing else about them changes."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import httpx
import pytest
from fastapi import FastAPI, Response
from fastapi.responses import StreamingResponse

from api import compression
from api.compression import BYTES_MIN, REMEMBERED_MAX, Compression, takes_gzip
from tests.unit.api.asking import ask
from tests.unit.api.kept import full_view

GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5, br", True),
        ("*", True),
        ("gzip;q=1", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("*;q=0, gzip", True),
        ("gzipped", False),
        (";;,,;q=", False),
    ],
)
def test_who_takes_it(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/api/v1/status", "/api/v1/findings", "/static/page.css"])
def test_a_long_answer_is_the_same_in_fewer_bytes(path: str) -> None:
    asked = full_view()
    plain, packed = (ask(asked, path, headers=headers) for headers in (PLAIN, GZIP))
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 1.5
    assert "Accept-Encoding" in plain.headers["vary"]
    assert "Accept-Encoding" in packed.headers["vary"]
    head = ask(asked, path, "HEAD", GZIP)
    assert (head.content, head.headers["content-length"]) == (b"", packed.headers["content-length"])


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/findings", "/static/page.css"])
def test_who_has_it_compressed_has_it(path: str) -> None:
    asked = full_view()
    tag = ask(asked, path, headers=GZIP).headers["etag"]
    assert tag.startswith('W/"')
    for headers in (GZIP, PLAIN):
        again = ask(asked, path, headers=headers | {"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-encoding" not in again.headers
        assert "Accept-Encoding" in again.headers["vary"]


def test_a_short_answer_is_sent_as_it_is() -> None:
    assert "content-encoding" not in ask(full_view(), "/healthz", headers=GZIP).headers


def served(app: FastAPI, asking: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    """Asks an application whose answers are compressed."""

    async def run() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(Compression(app)), base_url="http://prober", headers=GZIP
        ) as client:
            await asking(client)

    asyncio.run(run())


def test_what_comes_in_pieces_or_is_compressed_or_no_text_is_sent_as_it_is() -> None:
    app, text = FastAPI(), b"x" * 10 * BYTES_MIN
    app.add_api_route("/pieces", lambda: StreamingResponse(iter([text, text]), media_type="text/plain"))
    app.add_api_route(
        "/packed", lambda: Response(gzip.compress(text), headers={"Content-Encoding": "gzip"}, media_type="text/plain")
    )
    app.add_api_route("/part", lambda: Response(text, 206, {"Content-Range": "bytes 0-9/99"}, media_type="text/plain"))
    app.add_api_route("/image", lambda: Response(text, media_type="image/png"))

    async def asking(client: httpx.AsyncClient) -> None:
        assert (await client.get("/pieces")).content == text + text
        assert (await client.get("/packed")).content == text
        for path in ("/part", "/image"):
            response = await client.get(path)
            assert (response.content, response.headers["content-length"]) == (text, str(len(text)))
            assert "content-encoding" not in response.headers

    served(app, asking)


def test_the_same_bytes_are_compressed_once_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def counted(text: bytes, level: int, *, mtime: float) -> bytes:
        made.append(text)
        return gzip.compress(text, level, mtime=mtime)

    monkeypatch.setattr(compression, "gzip", type("Counted", (), {"compress": staticmethod(counted)}))
    app = FastAPI()
    app.add_api_route("/{number}", lambda number: Response(number * BYTES_MIN, media_type="text/plain"))

    async def asking(client: httpx.AsyncClient) -> None:
        for _ in range(3):
            await client.get("/a")
        assert len(made) == 1
        for number in range(REMEMBERED_MAX):
            await client.get(f"/{number}-")
        await client.get("/a")
        assert len(made) == REMEMBERED_MAX + 2

    served(app, asking)
