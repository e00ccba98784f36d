"""A history as the service writes it, and what the commands make of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from prober.core.findings import Finding
from prober.sinks.history.reader import HistoryReader
from tests.commands import run
from tests.integration.programs import eventually, series, service

FAULTS = '["swap_in_batch:p=0.02", "redeliver_unacked_only:p=0.5"]'


def described(finding: Finding) -> tuple[str, str, str]:
    return finding.key, finding.kind, finding.status


def test_a_history_says_again_what_the_service_said(tmp_path: Path) -> None:
    history = tmp_path / "history"
    environ = {"ORDERING_PROBER_HISTORY__LOCATION": str(history), "ORDERING_PROBER_EMBEDDED__FAULTS": FAULTS}
    with service(**environ) as (running, url):
        eventually(lambda: sum(series(url, "probe_runs_total")) >= 4)
        eventually(lambda: sum(series(url, 'findings_total status="violation"')) > 0)
        assert sum(series(url, "history_failures_total")) == 0
        assert running.stop() == 0

    reader = HistoryReader(str(history))
    ended = {stored.run_id for stored in reader.runs() if stored.result is not None}
    online = Counter((one.run_id, *described(one.made.finding)) for one in reader.findings() if one.run_id in ended)
    judged = run("verify", str(history), "--format", "json")
    assert judged.returncode in (1, 3), judged.stderr
    again: Counter[tuple[str, str, str, str]] = Counter()
    for row in map(json.loads, judged.stdout.splitlines()):
        run_id = row["trace"].rpartition("run ")[2].partition(",")[0]
        if run_id in ended:
            again.update((run_id, found["key"], found["kind"], found["status"]) for found in row["findings"])
    assert sum(online.values()) > 0
    assert again == online

    broken = next(key for _, key, _, status in online if status == "violation")
    assert run("verify", str(history), "--key", broken).returncode == 1
    exported = run("history", "export", str(history), "--key", broken, "-o", str(tmp_path / "trace.jsonl"))
    assert exported.returncode == 0, exported.stderr
    assert run("verify", *map(str, tmp_path.glob("trace*.jsonl"))).returncode == 1


def test_a_simulated_history_is_judged_like_any_other(tmp_path: Path) -> None:
    """Ids of messages are wrong there."""
    history = str(tmp_path / "simulated")
    simulated = run("simulate", "--fault", "duplicate_id", "--seeds", "4", "--hours", "0.03", "--history", history)
    assert simulated.returncode == 0, simulated.stderr
    judged = run("verify", history)
    assert judged.returncode == 1, judged.stderr
    assert "ID_CONFLICT" in judged.stdout
    before = run("verify", history, "--until", "2025-12-19T23:00:00Z")
    assert "no recorded event matches" in before.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["history", "export", "nowhere", "--key", "k"], "no such folder"),
        (["verify", ".", "--since", "yesterday"], "'yesterday' is not a time"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], problem: str) -> None:
    refused = run(*arguments)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert problem in refused.stderr
