"""The page of a finding: all that is needed to believe it, and to verify it again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest

from api.finding_case import NOT_PROVEN, case_of
from api.support_bundle import SupportBundle
from prober.cli import main
from prober.core.findings import Status
from prober.sinks.status.records import Shown
from tests.unit.api.asking import ask
from tests.unit.api.drawing import found
from tests.unit.api.kept import answer, full_view
from tests.unit.api.pages import Page

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
        "closed_at": None,
        "incident_id": "run-2-redelivery",
        "doubt": "",
        "facts": shown["facts"],
        "reasons": shown["reasons"],
        "assumptions": {"delivery_delay_max_s": 5.0, "clock_error_s": 0.0, "one_record_per_message_id": 1.0},
        "witnesses": shown["witnesses"],
        "after": shown["after"],
        "unproven_because": "",
        "verify_again": "ordering-prober verify --explain run-2-1.jsonl",
    }
    assert shown["facts"]["seq"] == 4
    assert all(reason.startswith("not ") for reason in shown["reasons"])
    assert prober["instance"] == "prober-0"
    assert links == {
        "run": "/api/v1/runs/run-2",
        "trace": f"{FINDING}/trace",
        "diagram": f"{FINDING}/diagram.svg",
        "bundle": f"{FINDING}/bundle",
        "probe": "/api/v1/probes/ordering",
        "incident": "/api/v1/incidents/run-2-redelivery",
        "key": "/api/v1/keys?key=k",
    }
    assert (evidence["proven"], evidence["complete"], evidence["among"]) == (True, True, 15)
    assert [line["line"] for line in evidence["events"]] == list(range(2, 2 + len(evidence["events"])))
    assert sum(line["witness"] for line in evidence["events"]) == 3


def test_every_link_leads_somewhere() -> None:
    asked = full_view()
    for name, path in answer(FINDING)["links"].items():
        assert ask(asked, path).status_code == 200, name


def test_the_trace_is_verified_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(FINDING)
    response = ask(full_view(), shown["links"]["trace"])
    assert response.headers["content-disposition"] == 'attachment; filename="run-2-1.jsonl"'
    assert response.headers["content-type"] == "application/jsonl"
    file = tmp_path / "run-2-1.jsonl"
    file.write_bytes(response.content)
    assert main(["verify", "--format", "json", str(file)]) == 1
    (verified,) = json.loads(capsys.readouterr().out)["findings"]
    assert (verified["kind"], verified["status"], verified["key"]) == (shown["kind"], shown["status"], shown["key"])
    seen = re.search(r" Seen at [0-9:]+ UTC \(t=2\.100 s\)\.", shown["explanation"])  # a trace file knows no time of day
    assert seen is not None
    assert verified["explanation"] == shown["explanation"].replace(seen[0], "")
    assert verified["witnesses"] == [line["line"] for line in shown["evidence"]["events"] if line["witness"]]


def test_everything_on_the_key_is_shown_when_it_is_asked_for() -> None:
    asked = full_view()
    smallest, on_key = (ask(asked, f"{FINDING}/trace?show={show}") for show in ("smallest", "key"))
    assert on_key.headers["content-disposition"] == 'attachment; filename="run-2-1-key.jsonl"'
    events, all_events = (response.text.splitlines()[1:] for response in (smallest, on_key))
    assert len(events) < len(all_events)
    assert set(events) < set(all_events)
    page, other = (Page(ask(asked, f"/findings/run-2-1{show}").text) for show in ("", "?show=key"))
    assert "Minimal reproduction" in page.said()
    assert f"{len(all_events)} events on its subscription" in other.said()
    for each, current in ((page, "smallest"), (other, "key")):
        (shown,) = (
            attributes["href"] for tag, attributes in each.elements if tag == "a" and attributes.get("aria-current") == "true"
        )
        assert shown == f"?show={current}#history"
    drawings = [ask(asked, f"{FINDING}/diagram.svg{show}").text for show in ("", "?show=key")]
    for drawing, count in zip(drawings, (len(events), len(all_events)), strict=True):
        assert f"Sequence diagram of {count} events" in drawing
    assert "../api/v1/findings/run-2-1/trace?show=key" in set(other.values("href"))


def test_what_is_left_out_of_the_key_is_said() -> None:
    calm = " ".join(f"P{seq}@{seq} A<{seq}@{seq}.1 A ack {seq}@{seq}.2" for seq in range(1, 200))
    record = found(f"{calm} P200@200 P201@200 ok200=m200@200.1 ok201=m201@200.1 A<201,200@201")
    on_key = case_of(record, None, None, Shown.KEY)
    assert re.search("[0-9]{3} earlier ones are not kept. The drawing leaves out [0-9]{3} of them", on_key.proof)
    assert on_key.proof.endswith("Verified again, they give the same finding.")
    assert "events left out" in on_key.drawing
    assert record.on_key is not None
    cut_off = replace(record, on_key=replace(record.on_key, proven=False))
    assert case_of(cut_off, None, None, Shown.KEY).proof.endswith(NOT_PROVEN)


def test_of_a_finding_that_was_kept_without_its_key_that_is_said() -> None:
    before = replace(found("P1,2,3 A<1@1 A<3@2 A<2@3"), on_key=None)
    assert case_of(before, None, None).drawing
    assert case_of(before, None, None, Shown.KEY).undrawn == "everything on its key was not kept when it was found"


def test_nothing_else_can_be_shown() -> None:
    assert answer(f"{FINDING}/trace?show=more", 400)
    assert ask(full_view(), "/findings/run-2-1?show=more").status_code == 400


def test_the_bundle_is_verified_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run-2-1.zip"
    file.write_bytes(ask(full_view(), f"{FINDING}/bundle").content)
    assert main(["verify", "--explain", str(file)]) == 1
    said = capsys.readouterr().out
    assert f"{file}: FAIL" in said
    assert "X <-- wrong" in said


def test_the_diagram_is_a_drawing_that_can_do_nothing() -> None:
    response = ask(full_view(), f"{FINDING}/diagram.svg")
    assert (response.status_code, response.headers["content-type"]) == (200, "image/svg+xml")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "sandbox" in response.headers["content-security-policy"]
    assert ElementTree.fromstring(response.text).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("what", ["", "/trace", "/diagram.svg", "/bundle"])
def test_no_such_finding(what: str) -> None:
    detail = answer(f"/api/v1/findings/run-2-9{what}", 404)["detail"]
    assert detail == "no finding is called run-2-9; it may not be kept any more"


def test_evidence_that_cannot_be_drawn_is_no_mistake_of_ours() -> None:
    assert answer("/api/v1/findings/run-3-1/diagram.svg", 404)["detail"].startswith("there is no drawing of run-3-1: ")


def test_the_bundle_has_what_whoever_runs_the_service_asks_for() -> None:
    response = ask(full_view(), f"{FINDING}/bundle")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/zip")
    assert response.headers["content-disposition"] == 'attachment; filename="run-2-1.zip"'
    with ZipFile(BytesIO(response.content)) as bundle:
        files = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert set(files) == {"README.txt", "trace.jsonl", "key.jsonl", "timeline.txt", "diagram.txt", "finding.json"}
    assert files["trace.jsonl"] == ask(full_view(), f"{FINDING}/trace").text
    assert json.loads(files["finding.json"])["finding_id"] == "run-2-1"
    assert "X <-- wrong" in files["diagram.txt"]
    readme = files["README.txt"]
    assert re.search(r"ordering-prober check --probe ordering --target europe --vantage wire --seed [0-9]+\n", readme)
    assert re.search(r"libraries +google-cloud-pubsub [0-9.]+, grpcio [0-9.]+ ", readme)
    for reported in ("ack_deadline_s", "exactly_once", "retry_backoff_max_s", "region", "endpoint", "one publish request"):
        assert reported in readme
    events = files["timeline.txt"].splitlines()[1:]
    assert len(events) == len(files["trace.jsonl"].splitlines()) - 1
    assert all(re.match(r" *[0-9]+  [0-9-]{10}T[0-9:]{8}\.[0-9]{6}Z ", line) for line in events)


TRIED = ("not nacked: no nack is on record before t=2.000 s", "not <b>lost</b>: no stream ended")


def test_the_page_names_the_alternatives_that_were_tried() -> None:
    shown = found("P1,2,3 A<1@1 A<3@2 A<2@3")
    case = case_of(replace(shown, reasons=TRIED), None, None)
    assert case.reasons == TRIED
    assert case.reasons_heading == "Excluded explanations"
    page = Page(ask(full_view(), "/findings/run-2-1").text)
    said = page.said()
    assert case.reasons_heading in said
    without_wall_times = re.sub(r"[0-9:.]+ UTC \((t=[0-9.]+ s)\)", r"\1", said)
    assert without_wall_times != said
    for reason in answer(FINDING)["reasons"]:
        assert reason in without_wall_times


def test_the_page_names_what_an_explanation_assumes() -> None:
    shown = found("P1,2,3 A<1@1 A<3@2 A<2@3")
    doubted = replace(shown, status=Status.INDETERMINATE, doubt="2 may be lost", reasons=("2 may be lost", "3 too"))
    case = case_of(doubted, None, None)
    assert (case.reasons, case.reasons_heading) == (("2 may be lost", "3 too"), "Assumed by the best explanation")


def test_the_bundle_names_the_alternatives_that_were_tried() -> None:
    shown = found("P1,2,3 A<1@1 A<3@2 A<2@3")
    members = SupportBundle(case_of(replace(shown, reasons=TRIED), None, None), None).members()
    assert json.loads(members["finding.json"])["reasons"] == list(TRIED)
    assert f"Excluded explanations:\n    {TRIED[0]}\n    {TRIED[1]}\n" in members["README.txt"]


def test_the_bundle_of_a_finding_without_evidence_says_so() -> None:
    record = replace(found("P1,2,3 A<1@1 A<3@2 A<2@3"), evidence=None, on_key=None, unproven_because="nobody kept it")
    members = SupportBundle(case_of(record, None, None), None).members()
    assert set(members) == {"README.txt", "finding.json"}
    assert "There is no evidence in here: nobody kept it." in members["README.txt"]
    assert "not known: the run is not kept any more" in members["README.txt"]


def test_the_bundle_of_evidence_that_cannot_be_read_has_it_as_it_is() -> None:
    response = ask(full_view(), "/api/v1/findings/run-3-1/bundle")
    with ZipFile(BytesIO(response.content)) as bundle:
        assert set(bundle.namelist()) == {"README.txt", "finding.json", "trace.jsonl"}
