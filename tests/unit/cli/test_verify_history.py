"""`ordering-prober verify HISTORY`: a paragraph per run that does not pass, a summary, and all of it in JSON."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from prober.cli import main
from prober.cli.findings import KEY_SHOWN_MAX, shortened
from prober.cli.history import UNASKED_MAX
from prober.core.verdict import Verdict
from tests.commands import Output
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder, result

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
        "run gap (ordering on demo, 2026-01-02 03:04:05 UTC): FAIL (12 events; 1 violation; 1 liveness finding)",
        "run cut (ordering on demo, 2026-01-02 03:24:05 UTC): UNKNOWN (4 events; the run was cut short, or still goes on)",
        f"{location}: 3 runs, 30 recorded events: 1 PASS, 1 FAIL, 1 UNKNOWN; --all prints those that pass, too",
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


def test_many_files_are_written_only_if_the_user_agrees(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "history")
    for number in range(UNASKED_MAX + 1):
        recorder.record(history("P1,2 A<1@1 A<2@2 end @500"), f"run-{number}")
    recorder.save()
    export = ["history", "export", str(recorder.location), "--key", "k", "-o", str(tmp_path / "out" / "trace.jsonl")]
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(sys, "stdin", StringIO())
    assert main(export) == 2
    assert "nobody can be asked: add --yes to write 11 files" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
    assert main([*export, "--yes"]) == 0
    assert len(list((tmp_path / "out").iterdir())) == UNASKED_MAX + 1
    recorder.kill()


def test_runs_come_in_the_order_of_time_whatever_their_names(tmp_path: Path, capsys: Output) -> None:
    recorder = Recorder(tmp_path)
    logs = [recorder.begin(run_id) for run_id in ("c", "a", "b")]
    for event in history(RIGHT):
        recorder.clock.now = event.t
        for log in logs:
            log.record(event)
    for log, run_id, duration_s in zip(logs, "cab", (500.0, 400.0, 300.0), strict=True):
        log.ended(result(run_id, duration_s=duration_s))
    recorder.save()
    recorder.kill()
    main(["verify", str(tmp_path), "--all"])
    assert re.findall(r"^run (\w)", capsys.readouterr().out, re.MULTILINE) == ["c", "a", "b"]


def test_a_damaged_file_is_named_and_counted_and_its_events_are_missing(location: str, capsys: Output) -> None:
    (path,) = (path for path in Path(location).glob("events/*/*/*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    assert main(["verify", location]) == 2
    out, err = capsys.readouterr()
    name = path.relative_to(location)
    assert err == f"{location}/{name}: damaged: its bytes are not those that were written; what is in it was not verified\n"
    assert out.splitlines()[-1] == f"{location}: 3 runs, 0 recorded events, 1 unreadable file: 0 PASS, 0 FAIL, 3 UNKNOWN"


def test_events_that_are_not_verified_are_counted(tmp_path: Path, capsys: Output) -> None:
    recorder = Recorder(tmp_path)
    log = recorder.begin()
    for event in history(RIGHT):
        log.record(event)
    log.ended(result(), verified_events=5)
    recorder.save()
    recorder.kill()
    assert main(["verify", str(tmp_path)]) == 3
    assert ": 1 run, 14 recorded events (5 verified): " in capsys.readouterr().out


def test_an_event_earlier_than_the_one_before_damages_the_record_and_is_no_finding(tmp_path: Path, capsys: Output) -> None:
    recorder = Recorder(tmp_path)
    events = history("P1 A<1@1 A ack 1@1.5 P2@2 P3@2 end @500")
    place = len(events) - 3
    recorder.record([replace(one, t=450.0) if number == place else one for number, one in enumerate(events)])
    recorder.save()
    recorder.kill()
    assert main(["verify", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert f"UNKNOWN ({place} events; verified up to damaged events)" in out
    assert err == f"run run-1: event {place + 2} is earlier than event {place + 1}; its record is damaged\n"


@pytest.mark.parametrize(("others", "code"), [(True, 0), (False, 3)])
def test_a_run_that_ended_because_the_prober_was_stopped_says_so(tmp_path: Path, capsys: Output, others: bool, code: int) -> None:
    recorder = Recorder(tmp_path)
    if others:
        recorder.record(history(RIGHT), "right")
        recorder.clock.now += 100.0
    log = recorder.begin("stopped")
    for event in history("P1 A<1@1"):
        log.record(replace(event, t=event.t + recorder.clock.now))
    log.ended(result("stopped", Verdict.UNKNOWN), stopped=True)
    recorder.save()
    recorder.kill()
    assert main(["verify", str(tmp_path)]) == code
    assert "UNKNOWN (4 events; the prober was stopped while the run went on)" in capsys.readouterr().out


def test_a_folder_that_no_prober_wrote_is_an_error(tmp_path: Path, capsys: Output) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no prober has written a history here" in line


def test_what_is_in_the_spool_only_is_mentioned(tmp_path: Path, capsys: Output) -> None:
    recorder = Recorder(tmp_path)
    recorder.begin().record(history(RIGHT)[0])
    assert recorder.writer.flush()
    recorder.kill()
    assert main(["verify", str(tmp_path)]) == 3
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r".*: [\d,]+ bytes of newer records are still in the spool and were not verified", first)
    assert "no recorded event matches" in second


def test_one_key_chooses_the_runs_and_the_findings(location: str, capsys: Output) -> None:
    assert main(["verify", location, "--key", "k" * 1000]) == 1
    assert "1 run, 12 recorded events: 0 PASS, 1 FAIL, 0 UNKNOWN" in capsys.readouterr().out
    assert main(["verify", location, "--key", "nothing"]) == 3
    assert "no recorded event matches" in capsys.readouterr().err


def test_a_long_key_keeps_its_beginning_and_its_end() -> None:
    assert shortened("customer-7") == "customer-7"
    assert shortened("a" * 500 + "-tail") == f"{'a' * 56}...{'a' * 11}-tail (505 characters)"
