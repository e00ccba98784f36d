"""`GET /api/v1/status`: the snapshot, field by field, in a form that programs can rely on."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from pydantic import ValidationError

from api.models.status import StatusAnswer
from prober.core.verdict import Verdict
from prober.runs.probe_instance import ProbeInstance
from prober.slo.objectives import SliCounts
from tests.unit.api.asking import EUROPE, NOON, STUCK, US, StubView, ask, end, view


def no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def status(asked: StubView) -> dict[str, Any]:
    """The answer, read by a parser that takes no NaN and no infinity."""
    response = ask(asked, "/api/v1/status")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    answer: dict[str, Any] = json.loads(response.text, parse_constant=no_number)
    return answer


def test_overall() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.PASS)
    answer = status(asked)
    assert {name: answer[name] for name in ("at", "verdict", "since", "version", "instance", "started_at")} == {
        "at": "2026-03-01T12:00:00Z",
        "verdict": "PASS",
        "since": "2026-03-01T11:59:55Z",
        "version": "0.1.0",
        "instance": "prober-0",
        "started_at": "2026-03-01T11:59:00Z",
    }


def test_an_outage_and_open_incidents_are_reported_as_on_the_page() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL, STUCK)
    end(asked, EUROPE, Verdict.UNKNOWN, at=NOON - 1.0, unreachable=True)
    said = status(asked)
    assert said["open_incidents"] == 2
    assert (said["status"], said["verdict"], said["probe_instances"][0]["status"]) == ("OUTAGE", "UNKNOWN", "OUTAGE")


def test_embedded_servers_are_named() -> None:
    embedded = replace(EUROPE, endpoint="embedded (127.0.0.1:8085)")
    assert status(view(US))["notices"] == []
    assert status(view(embedded, US))["notices"] == ["europe is the prober's embedded server, not Google Cloud Pub/Sub."]


def test_an_instance_that_has_not_run_yet() -> None:
    (instance,) = status(view(EUROPE))["probe_instances"]
    assert instance == {
        "target": "europe",
        "probe": "ordering",
        "vantage": "wire",
        "part": "",
        "environment": "production",
        "region": "europe-west1",
        "endpoint": "europe-west1-pubsub.googleapis.com:443",
        "labels": {"team": "messaging"},
        "guarantee": "Messages of a key are received in order.",
        "topic": "projects/p/topics/t",
        "subscription": "projects/p/subscriptions/s",
        "subscriptions": ["projects/p/subscriptions/s"],
        "schedule": "every 10s",
        "interval_s": 10.0,
        "verdict": None,
        "status": "STARTING",
        "since": None,
        "overdue_s": 30.0,
        "running_since": None,
        "next_run_at": None,
        "last_run": None,
        "last_pass_at": None,
        "history": [],
        "runs": {"PASS": 0, "FAIL": 0, "UNKNOWN": 0},
        "findings": [],
        "findings_dropped": 0,
        "runs_expected": 0,
        "runs_skipped": 0,
        "last_skip": None,
        "maintenance": None,
    }


def test_an_instance_that_failed() -> None:
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL, STUCK, reason="STUCK")
    asked.live.started(EUROPE, NOON - 1.5)
    asked.live.planned(EUROPE, NOON + 3.25)
    asked.live.skipped(EUROPE, "overlap", NOON - 1.0)
    asked.live.under_maintenance(EUROPE, "works", NOON)
    (instance,) = status(asked)["probe_instances"]
    run = {
        "run_id": "run-1",
        "verdict": "FAIL",
        "reason": "STUCK",
        "started_at": "2026-03-01T11:59:53Z",
        "duration_s": 2.0,
        "internal_error": False,
    }
    assert (instance["verdict"], instance["status"], instance["maintenance"]) == ("FAIL", "MAINTENANCE", "works")
    assert instance["running_since"] == "2026-03-01T11:59:58.500000Z"
    assert instance["next_run_at"] == "2026-03-01T12:00:03.250000Z"
    assert instance["last_skip"] == {"reason": "overlap", "at": "2026-03-01T11:59:59Z"}
    assert instance["history"] == [run]
    assert instance["last_run"] == run | {
        "seed": 0,
        "topic": "",
        "subscription": "",
        "findings": [{"kind": "STUCK", "status": "liveness", "count": 1}],
        "counters": {},
    }
    (finding,) = instance["findings"]
    stuck = "Message 7 was published and confirmed but not delivered, and the key stalled since 11:59:01 UTC (t=1.000 s)."
    assert finding.pop("explanation").startswith(stuck)
    assert finding == {
        "finding_id": "run-1-1",
        "run_id": "run-1",
        "found_at": "2026-03-01T11:59:55Z",
        "kind": "STUCK",
        "status": "liveness",
        "subscription": "projects/p/subscriptions/s",
        "key": "k",
        "t": 3.5,
    }


def test_objectives() -> None:
    asked = view(EUROPE, US)
    end(asked, EUROPE, Verdict.PASS)
    asked.live.counted("europe", "publish_latency", SliCounts(990, 10, 5))
    slos = {(slo["target"], slo["name"]): slo for slo in status(asked)["slos"]}
    order = slos["europe", "order"]
    assert (order["good"], order["bad"], order["undecided"], order["error_ratio"], order["verdict"]) == (200, 0, 0, 0.0, "UNKNOWN")
    latency = slos["europe", "publish_latency"]
    assert (latency["indicator"], latency["objective"], latency["threshold_s"]) == ("publish_latency", 0.99, 0.5)
    assert (latency["window_s"], latency["labels"], latency["error_ratio"]) == (2592000.0, {}, 0.01)
    assert latency["budget_left"] == pytest.approx(1.0 - latency["measured"])
    assert 0.004 < latency["bounds"]["low"] < 0.01 < latency["bounds"]["high"] < 0.025
    nothing = slos["us", "redelivery"]
    assert (nothing["error_ratio"], nothing["budget_left"], nothing["verdict"]) == (None, None, "UNKNOWN")
    assert nothing["bounds"] == {"low": 0.0, "high": 1.0}


def test_a_number_that_json_does_not_have_is_an_error_of_ours() -> None:
    with pytest.raises(ValidationError, match="finite"):
        StatusAnswer.model_validate(view(ProbeInstance("europe", "ordering", "wire", interval_s=inf)).snapshot())


def test_while_nothing_can_be_written_this_process_says_what_it_knows() -> None:
    """The store still answers, with what was so before."""
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.PASS)
    assert ask(asked, "/api/v1/status").json()["verdict"] == "PASS"
    asked.stored = False
    asked.writer = None
    end(asked, EUROPE, Verdict.FAIL)
    shown = ask(asked, "/api/v1/status").json()
    assert shown["verdict"] == "FAIL"
    assert "what the status store has is out of date: only what this process knows by itself is shown" in shown["troubles"]
