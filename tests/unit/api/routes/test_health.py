"""Health, readiness and metrics: the status codes that machines act on."""

from __future__ import annotations

from prober.core.verdict import Verdict
from prober.sinks.live.snapshot import Readiness
from tests.unit.api.asking import EUROPE, STUCK, ask, end, view


def test_healthy_although_a_guarantee_is_violated() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL, STUCK)
    response = ask(asked, "/healthz")
    assert (response.status_code, response.json()) == (200, {"alive": True})


def test_not_healthy_when_only_a_restart_helps() -> None:
    asked = view(EUROPE)
    asked.is_alive = False
    response = ask(asked, "/healthz")
    assert (response.status_code, response.json()) == (503, {"alive": False})


def test_ready() -> None:
    response = ask(view(EUROPE), "/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True, "problems": []})


def test_not_ready_says_why() -> None:
    asked = view(EUROPE)
    asked.ready = Readiness(False, ("the scheduler has not started", "the history is full"))
    response = ask(asked, "/readyz")
    assert response.status_code == 503
    assert response.json() == {"ready": False, "problems": ["the scheduler has not started", "the history is full"]}


def test_metrics_come_as_the_scraper_asks() -> None:
    asked = view(EUROPE)
    response = ask(asked, "/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0;q=0.5"})
    assert asked.accepts == ["application/openmetrics-text;version=1.0.0;q=0.5"]
    assert (response.status_code, response.text) == (200, "up 1\n")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["vary"] == "Accept"
