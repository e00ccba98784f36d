"""`ordering-prober verify HISTORY`: a paragraph per run that does not pass, a summary, and all of it in JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prober.cli import main
from prober.cli.verify_report import KEY_SHOWN_MAX, shortened
from tests.commands import Output
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder

GAP = "P1,2,3 A<1@1 A<3@1.2 A ack 1,3@1.4 end @500"
RIGHT = "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 end @500"


@pytest.fixture
def location(tmp_path: Path) -> str:
    """One run that fails on a long key, later one that passes, and one that was cut short."""
    recorder = Recorder(tmp_path / "history")
    recorder.record(history(GAP, key="k" * 1000), "gap")
    for run_id, line in (("right", RIGHT), ("cut", "P1 A<1@1")):
        recorder.clock.now += 100.0
        events = [replace(event, t=event.t + recorder.clock.now) for event in history(line)]
        if run_id == "right":
            recorder.record(events, run_id)
        else:
            log = recorder.begin(run_id)
            for event in events:
                log.record(event)
    recorder.save()
    recorder.kill()
    return str(tmp_path / "history")


def test_text_has_what_does_not_pass_and_a_summary(location: str, capsys: Output) -> None:
    assert main(["verify", location]) == 1
    out = capsys.readouterr().out
    headings = [line for line in out.splitlines() if not line.startswith(" ")]
    assert headings == [
        "run cut (ordering on demo, 2026-01-02 03:24:05 UTC): UNKNOWN (4 events; the run was cut short, or still goes on)",
        "run gap (ordering on demo, 2026-01-02 03:04:05 UTC): FAIL (12 events; 1 violation; 1 liveness finding)",
        f"{location}: 3 runs, 30 events: 1 PASS, 1 FAIL, 1 UNKNOWN; --all prints those that pass, too",
    ]
    assert "    witnesses: events 4 5 7 9\n" in out
    assert "k" * KEY_SHOWN_MAX not in out


def test_all_has_the_runs_that_pass(location: str, capsys: Output) -> None:
    main(["verify", location, "--all"])
    out = capsys.readouterr().out
    assert "run right (ordering on demo, 2026-01-02 03:14:05 UTC): PASS (14 events)\n" in out
    assert out.endswith("1 PASS, 1 FAIL, 1 UNKNOWN\n")


def test_json_is_an_object_per_run(location: str, capsys: Output) -> None:
    main(["verify", location, "--format", "json"])
    found = {row["run"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {run_id: row["verdict"] for run_id, row in found.items()} == {"right": "PASS", "gap": "FAIL", "cut": "UNKNOWN"}
    assert found["cut"]["reason"] == "the run was cut short, or still goes on"
    assert {name: found["gap"][name] for name in ("history", "target", "probe")} == {
        "history": location,
        "target": "demo",
        "probe": "ordering",
    }
    assert [finding["witnesses"] for finding in found["gap"]["findings"]] == [[4, 5, 7, 9], [4, 5, 9]]


def test_one_key_chooses_the_runs_and_the_findings(location: str, capsys: Output) -> None:
    assert main(["verify", location, "--key", "k" * 1000]) == 1
    assert "1 run, 12 events: 0 PASS, 1 FAIL, 0 UNKNOWN" in capsys.readouterr().out
    assert main(["verify", location, "--key", "nothing"]) == 3
    assert "no recorded event matches" in capsys.readouterr().err


def test_a_long_key_keeps_its_beginning_and_its_end() -> None:
    assert shortened("customer-7") == "customer-7"
    assert shortened("a" * 500 + "-tail") == f"{'a' * 56}...{'a' * 11}-tail (505 characters)"
