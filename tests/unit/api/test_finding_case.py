"""The page of a finding: all that is needed to believe it, and to judge it again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prober.cli import main
from tests.unit.api.asking import ask
from tests.unit.api.kept import answer, full_view

FINDING = "/api/v1/findings/run-2-1"


def test_what_it_says() -> None:
    shown = answer(FINDING)
    evidence, links, prober = (shown.pop(name) for name in ("evidence", "links", "prober"))
    explanation = shown.pop("explanation")
    assert explanation.startswith("Pub/Sub delivered message 4 to A right after message 2 and skipped message 3, which")
    assert shown == {
        "finding_id": "run-2-1",
        "run_id": "run-2",
        "probe": "ordering",
        "target": "europe",
        "vantage": "wire",
        "part": "",
        "instance": "prober-0",
        "found_at": "2026-01-02T03:05:07Z",
        "kind": "REDELIVERY_SKIP",
        "status": "violation",
        "subscription": "s",
        "key": "k",
        "t": 2.1,
        "closed_at": "2026-01-02T03:10:07Z",
        "doubt": "",
        "facts": shown["facts"],
        "assumptions": {"delivery_delay_max_s": 5.0, "clock_error_s": 0.0, "one_record_per_message_id": 1.0},
        "witnesses": shown["witnesses"],
        "after": shown["after"],
        "unproven_because": "",
        "judge_again": "ordering-prober verify --explain run-2-1.jsonl",
    }
    assert shown["facts"]["seq"] == 4
    assert prober["instance"] == "prober-0"
    assert links == {
        "run": "/api/v1/runs/run-2",
        "trace": f"{FINDING}/trace",
        "diagram": f"{FINDING}/diagram.svg",
        "probe": "/api/v1/probes/ordering",
        "key": "/api/v1/keys?key=k",
    }
    assert (evidence["proven"], evidence["complete"], evidence["among"]) == (True, True, 15)
    assert [line["line"] for line in evidence["events"]] == list(range(2, 2 + len(evidence["events"])))
    assert sum(line["witness"] for line in evidence["events"]) == 3


def test_every_link_leads_somewhere() -> None:
    asked = full_view()
    for name, path in answer(FINDING)["links"].items():
        assert ask(asked, path).status_code == 200, name


def test_the_trace_is_judged_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(FINDING)
    response = ask(full_view(), shown["links"]["trace"])
    assert response.headers["content-disposition"] == 'attachment; filename="run-2-1.jsonl"'
    assert response.headers["content-type"] == "application/jsonl"
    file = tmp_path / "run-2-1.jsonl"
    file.write_bytes(response.content)
    assert main(["verify", "--format", "json", str(file)]) == 1
    (judged,) = json.loads(capsys.readouterr().out)["findings"]
    assert (judged["kind"], judged["status"], judged["key"]) == (shown["kind"], shown["status"], shown["key"])
    seen = re.search(r" Seen at [0-9:]+ UTC \(t=2\.100 s\)\.", shown["explanation"])  # a trace file knows no time of day
    assert seen is not None
    assert judged["explanation"] == shown["explanation"].replace(seen[0], "")
    assert judged["witnesses"] == [line["line"] for line in shown["evidence"]["events"] if line["witness"]]


def test_the_diagram_is_a_drawing_that_can_do_nothing() -> None:
    response = ask(full_view(), f"{FINDING}/diagram.svg")
    assert (response.status_code, response.headers["content-type"]) == (200, "image/svg+xml")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "sandbox" in response.headers["content-security-policy"]
    assert ElementTree.fromstring(response.text).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("what", ["", "/trace", "/diagram.svg"])
def test_no_such_finding(what: str) -> None:
    detail = answer(f"/api/v1/findings/run-2-9{what}", 404)["detail"]
    assert detail == "no finding is called run-2-9; it may not be kept any more"


def test_evidence_that_cannot_be_drawn_is_no_mistake_of_ours() -> None:
    assert answer("/api/v1/findings/run-3-1/diagram.svg", 404)["detail"].startswith("there is no drawing of run-3-1: ")
