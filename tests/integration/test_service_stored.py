"""The service and its status store: what was found lasts, with its evidence, over a restart; a store that is down stops nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.commands import run
from tests.integration.programs import eventually, get, series, service, status

OFTEN = {"ORDERING_PROBER_PROBES__ORDERING__SCHEDULE": '{"interval": "1s"}', "ORDERING_PROBER_PROBES__ORDERING__JITTER": "0s"}

SURE = 5
"""When so many runs had it, a few without it show that it is over."""


def items(url: str, path: str) -> list[dict[str, Any]]:
    return list(json.loads(get(f"{url}/api/v1/{path}"))["items"])


def test_what_was_found_is_there_with_its_evidence_and_still_after_a_restart(tmp_path: Path) -> None:
    environ = {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db", **OFTEN}
    with service(ORDERING_PROBER_EMBEDDED__FAULTS='["swap_in_batch:p=0.5"]', **environ) as (running, url):
        eventually(lambda: any(one["runs"] >= SURE for one in items(url, "incidents?open=true&probe=ordering")))
        found = items(url, "findings?status=violation&probe=ordering")[0]
        shown = json.loads(get(f"{url}/api/v1/findings/{found['finding_id']}"))
        assert shown["explanation"] == found["explanation"]
        assert "<svg" in get(f"{url}/api/v1/findings/{found['finding_id']}/diagram.svg")
        trace = tmp_path / "trace.jsonl"
        trace.write_text(get(f"{url}/api/v1/findings/{found['finding_id']}/trace"), encoding="utf-8")
        judged = run("verify", str(trace), "--format", "json")
        assert judged.returncode == 1, judged.stderr
        kinds = {(one["kind"], one["status"]) for one in json.loads(judged.stdout)["findings"]}
        assert (found["kind"], found["status"]) in kinds
        assert running.stop() == 0

    with service(**environ) as (_, url):
        eventually(lambda: {site["verdict"] for site in status(url)["sites"] if site["probe"] == "ordering"} == {"PASS"})
        site = next(site for site in status(url)["sites"] if site["probe"] == "ordering")
        assert {run["verdict"] for run in site["history"]} >= {"PASS", "FAIL"}
        assert found["finding_id"] in get(f"{url}/findings/{found['finding_id']}")
        eventually(lambda: not items(url, "findings?open=true&status=violation&probe=ordering"))
        assert items(url, "findings?open=false&status=violation&probe=ordering")
        assert not items(url, "incidents?open=true&probe=ordering")
        assert items(url, "incidents?open=false&probe=ordering")


def test_a_store_that_is_down_stops_nothing_and_is_told_of() -> None:
    nowhere = "postgresql://prober@127.0.0.1:1/status"
    with service(ORDERING_PROBER_STATUS__URL=nowhere, **OFTEN) as (running, url):
        eventually(lambda: sum(series(url, 'probe_runs_total probe="ordering" verdict="pass"')) >= 3)
        eventually(lambda: any("status store" in trouble for trouble in status(url)["troubles"]))
        assert status(url)["sites"][0]["verdict"] == "PASS"
        assert "status store" in get(f"{url}/")
        assert series(url, "status_store_up") == [0.0]
        assert sum(series(url, "status_failures_total")) > 0
        with pytest.raises(OSError, match="503"):
            urlopen(f"{url}/api/v1/runs", timeout=30)
        assert running.stop() == 0
