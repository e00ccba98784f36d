"""A client that has an answer is not sent it again."""

from __future__ import annotations

import pytest

from prober.core.verdict import Verdict
from tests.unit.api.asking import EUROPE, US, ask, end, view
from tests.unit.api.kept import full_view

POLLED = ("/api/v1/status", "/api/v1/probes", "/api/v1/slos", "/api/v1/findings", "/api/v1/runs", "/api/v1/runs/run-1")


@pytest.mark.parametrize("path", POLLED)
def test_who_has_the_answer_is_not_sent_it_again(path: str) -> None:
    asked = full_view()
    first = ask(asked, path)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = ask(asked, path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "no-cache"
    for unknown in ('"other"', 'W/"0"', "", tag[:-2] + '"'):
        assert ask(asked, path, headers={"If-None-Match": unknown}).content == first.content


def test_of_the_status_it_tells_what_changed_and_not_that_time_passed() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.PASS)
    before = ask(asked, "/api/v1/status").headers["etag"]
    asked.live.skipped(EUROPE, "overlap", asked.now)
    assert ask(asked, "/api/v1/status").headers["etag"] != before


def test_of_the_status_it_stays_while_nothing_happens() -> None:
    asked = view(EUROPE, US)
    end(asked, EUROPE, Verdict.FAIL)
    asked.now += 200.0
    first = ask(asked, "/api/v1/status")
    asked.now += 3.0  # a heartbeat, and runs are overdue for longer
    again = ask(asked, "/api/v1/status", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    later = ask(asked, "/api/v1/status").json()
    assert later["at"] != first.json()["at"]
    assert later["probers"][0]["last_heartbeat_at"] != first.json()["probers"][0]["last_heartbeat_at"]
    assert later["probe_instances"][1]["overdue_s"] != first.json()["probe_instances"][1]["overdue_s"] is not None


def test_of_the_status_it_changes_when_a_run_becomes_overdue() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL)
    before = ask(asked, "/api/v1/status")
    assert before.json()["probe_instances"][0]["overdue_s"] is None
    asked.now += 60.0
    asked.tell()
    after = ask(asked, "/api/v1/status")
    assert (after.json()["probe_instances"][0]["status"], after.json()["probe_instances"][0]["overdue_s"] is None) == (
        "FAIL",
        False,
    )
    assert after.headers["etag"] != before.headers["etag"]


def test_head_tells_the_same_and_an_error_nothing() -> None:
    asked = full_view()
    assert ask(asked, "/api/v1/runs", "HEAD").headers["etag"] == ask(asked, "/api/v1/runs").headers["etag"]
    assert "etag" not in ask(asked, "/api/v1/runs/none").headers
    assert ask(asked, "/api/v1/runs/none", headers={"If-None-Match": "*"}).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/runs?limit=2", "/api/v1/incidents.atom?limit=1"])
def test_a_client_that_has_a_page_still_learns_the_next_one(path: str) -> None:
    asked = full_view()
    first = ask(asked, path)
    again = ask(asked, path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.links) == (304, first.links)
    assert first.links["next"]
