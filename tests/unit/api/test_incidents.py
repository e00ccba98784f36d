"""Incidents over HTTP: lists, one of them, and that somebody knows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr

from prober.config.models import Api
from tests.unit.api.asking import StubView, ask
from tests.unit.api.kept import answer, full_view
from tests.unit.api.pages import Page

STUCK = "/api/v1/incidents/run-3-STUCK"
TOKEN = {"Authorization": "Bearer open-sesame", "Content-Type": "application/json"}


def guarded() -> StubView:
    asked = full_view()
    asked.settings = Api(token=SecretStr("open-sesame"))
    return asked


def acknowledge(asked: StubView, body: dict[str, Any], path: str = STUCK, headers: dict[str, str] = TOKEN) -> Any:
    return ask(asked, f"{path}/acknowledge", "POST", headers, body=json.dumps(body).encode())


def test_what_it_says() -> None:
    assert answer(STUCK) == {
        "incident_id": "run-3-STUCK",
        "target": "us",
        "probe": "affinity",
        "vantage": "wire",
        "part": "",
        "kind": "STUCK",
        "status": "liveness",
        "first_at": "2026-01-02T03:06:07Z",
        "last_at": "2026-01-02T03:06:07Z",
        "closed_at": None,
        "findings": 1,
        "runs": 1,
        "chances": 1,
        "met_in_a_row": 0,
        "closes_after": 60,
        "bad_share": 0.01,
        "history": "1",
        "exemplar": "run-3-1",
        "exemplar_is_proven": True,
        "acknowledged": None,
        "findings_link": "/api/v1/findings?incident=run-3-STUCK",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["run-4-ORDER_GAP", "run-3-STUCK", "run-2-REDELIVERY_SKIP"]),
        ("?open=true&target=us", ["run-3-STUCK"]),
        ("?open=false", []),
        ("?vantage=library", ["run-4-ORDER_GAP"]),
        ("?probe=affinity&part=", ["run-3-STUCK"]),
        ("?kind=STUCK", ["run-3-STUCK"]),
        ("?until=2026-01-02T03:06:00Z", ["run-2-REDELIVERY_SKIP"]),
    ],
)
def test_filters(query: str, found: list[str]) -> None:
    assert [one["incident_id"] for one in answer(f"/api/v1/incidents{query}")["items"]] == found


def test_pages_make_up_the_list() -> None:
    first = answer("/api/v1/incidents?limit=2")
    second = answer(f"/api/v1/incidents?limit=2&cursor={first['next_cursor']}")
    assert len(first["items"]) == 2
    assert [one["incident_id"] for one in second["items"]] == ["run-2-REDELIVERY_SKIP"]
    assert second["next_cursor"] is None


def test_what_is_not_there() -> None:
    assert "no incident is called none" in answer("/api/v1/incidents/none", 404)["detail"]
    assert acknowledge(guarded(), {"by": "ada"}, "/api/v1/incidents/none").status_code == 404


class TestAcknowledging:
    def test_it_is_kept_and_shown(self) -> None:
        asked = guarded()
        said = acknowledge(asked, {"by": "ada", "note": "known <b>", "until": "2099-03-01T18:00:00+01:00"})
        assert said.status_code == 200
        kept = ask(asked, STUCK).json()["acknowledged"]
        assert kept == said.json()["acknowledged"]
        assert (kept["by"], kept["note"], kept["until"]) == ("ada", "known <b>", "2099-03-01T17:00:00Z")
        shown = Page(ask(asked, "/incidents/run-3-STUCK").text).said()
        assert "Acknowledged by ada at" in shown
        assert "until 2099-03-01 17:00:00 UTC : known <b>" in shown
        assert "acknowledged by ada: known <b>" in Page(ask(asked, "/").text).said()

    def test_the_next_word_takes_its_place(self) -> None:
        asked = guarded()
        acknowledge(asked, {"by": "ada", "note": "one"})
        acknowledge(asked, {"by": "bob"})
        kept = ask(asked, STUCK).json()["acknowledged"]
        assert (kept["by"], kept["note"], kept["until"]) == ("bob", "", None)

    def test_it_needs_the_token(self) -> None:
        assert acknowledge(full_view(), {"by": "ada"}).status_code == 403
        assert acknowledge(guarded(), {"by": "ada"}, headers={"Content-Type": "application/json"}).status_code == 401

    @pytest.mark.parametrize(
        "body", [{}, {"by": ""}, {"by": "a", "note": "x" * 1001}, {"by": "a", "until": "2026-03-01T18:00:00"}, {"by": "a", "x": 1}]
    )
    def test_what_is_refused(self, body: dict[str, Any]) -> None:
        assert acknowledge(guarded(), body).status_code == 400
