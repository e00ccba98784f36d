"""Long answers are compressed for whoever takes that, and say so; nothing else about them changes."""

from __future__ import annotations

import pytest

from tests.unit.api.asking import ask
from tests.unit.api.kept import full_view

GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/api/v1/status", "/api/v1/findings", "/static/page.css"])
def test_a_long_answer_is_the_same_in_fewer_bytes(path: str) -> None:
    asked = full_view()
    plain, packed = (ask(asked, path, headers=headers) for headers in (PLAIN, GZIP))
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert "Accept-Encoding" in plain.headers["vary"]
    assert "Accept-Encoding" in packed.headers["vary"]


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/findings", "/static/page.css"])
def test_who_has_it_compressed_has_it(path: str) -> None:
    asked = full_view()
    tag = ask(asked, path, headers=GZIP).headers["etag"]
    for headers in (GZIP, PLAIN):
        again = ask(asked, path, headers=headers | {"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-encoding" not in again.headers


def test_a_short_answer_is_sent_as_it_is() -> None:
    assert "content-encoding" not in ask(full_view(), "/healthz", headers=GZIP).headers
