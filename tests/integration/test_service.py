"""`ordering-prober run` as its user runs it: it shows verdicts soon, stops cleanly, and blames nobody for what breaks around it.

With a status store, what was found lasts over a restart, and a store that is down stops nothing. What a new user sees in the first
minutes is a few lines of the set-up, a log that is named when it fails, and what to try next.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from prober.cli.run import A_FAULT, FAULTS_VARIABLE, next_steps
from prober.clock import monotonic_s
from prober.config.loading import load
from prober.probes.catalogue import PROBES
from tests.alerts.tools import tool
from tests.commands import PROGRAM, ROOT
from tests.forking import called
from tests.integration.daemons import written
from tests.integration.programs import PATIENCE_S, SOME_PROBES, eventually, get, series, server, service, status
from tests.nightly import nightly_but

OFTEN = {
    f"ORDERING_PROBER_PROBES__{name.upper()}__{key}": value
    for name in ("ordering", "redelivery", "affinity")
    for key, value in {"SCHEDULE": '{"interval": "1s"}', "JITTER": "0s"}.items()
} | {"ORDERING_PROBER_PROBES__ORDERING__RATE": "4000"}
"""Runs follow each other closely, so that whatever happens happens in the middle of one."""
LOGGED = ROOT / ".ci" / "logged"
ORDERING_OFTEN = {
    "ORDERING_PROBER_TARGETS__0__PROBES": '["ordering"]',
    "ORDERING_PROBER_PROBES__ORDERING__SCHEDULE": '{"interval": "1s"}',
    "ORDERING_PROBER_PROBES__ORDERING__JITTER": "0s",
    "ORDERING_PROBER_PROBES__ORDERING__RATE": "4000",
}

SURE = 3
"""When so many runs had it, a few without it show that it is over."""


def verdicts(url: str) -> dict[str, str]:
    return {instance["probe"]: instance["verdict"] for instance in status(url)["probe_instances"]}


def failing(url: str) -> float:
    """Findings that accuse the service."""
    return sum(series(url, 'findings_total status="violation"') + series(url, 'findings_total status="liveness"'))


def passes(url: str) -> float:
    return sum(series(url, 'probe_runs_total verdict="pass"'))


def passes_of_each(url: str) -> list[float]:
    """The same of each probe, in a fixed order."""
    return [sum(series(url, f'probe_runs_total verdict="pass" probe="{name}"')) for name in json.loads(SOME_PROBES)]


@pytest.mark.parametrize("probes", nightly_but([SOME_PROBES], [SOME_PROBES, json.dumps(list(PROBES))]), ids=["some", "all"])
def test_a_first_verdict_of_each_probe_is_soon_shown_and_ctrl_c_stops_it(probes: str) -> None:
    with service(ORDERING_PROBER_TARGETS__0__PROBES=probes) as (running, url):
        assert running.said("see a violated guarantee: (.*)").endswith(" ordering-prober run")
        eventually(lambda: None not in verdicts(url).values() and "PASS" in verdicts(url).values())
        assert verdicts(url).keys() == set(json.loads(probes))
        assert set(verdicts(url).values()) <= {"PASS", "UNKNOWN"}  # a machine under load leaves some undecided
        page = get(f"{url}/")
        assert all(name in page for name in json.loads(probes))
        assert '"ready":true' in get(f"{url}/readyz")
        assert get(f"{url}/healthz")
        assert running.stop() == 0


def test_it_starts_by_itself_and_warns_of_a_region_that_nobody_knows(tmp_path: Path) -> None:
    """The other tests fork it from a process that has imported everything; see `tests.forking`."""
    target = {"name": "eu", "endpoint": "europe-wset1", "project": "my-project", "environment": "test", "probes": ["ordering"]}
    store = {"url": f"sqlite:///{tmp_path}/status.db"}
    config = written(tmp_path / "prober.yaml", {"targets": [target], "api": {"port": 0}, "status": store})
    command = [*PROGRAM, "run", "--config", str(config)]
    with (
        server() as (_, address),
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PUBSUB_EMULATOR_HOST": address},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        lines = iter(process.stdout)
        warning = next(line for line in lines if "WARNING" in line.upper())
        assert re.search(r"prober\.yaml: targets\[0\]\.endpoint \(line \d+\): .*did you mean europe-west1\?", warning)
        (url,) = next(found.groups() for line in lines if (found := re.search(r"status page: (\S+)/", line)))
        assert get(f"{url}/healthz")
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 0


def test_while_the_target_hangs_metrics_answer_and_the_age_grows() -> None:
    with server() as (target, address), service(PUBSUB_EMULATOR_HOST=address, **ORDERING_OFTEN) as (_, url):
        eventually(lambda: passes(url) >= 1)
        target.send(signal.SIGSTOP)

        def oldest_s() -> float:
            return max(series(url, "oldest_unacked_message_age_seconds"))

        eventually(lambda: oldest_s() > 3.0)
        first_s, first_t = oldest_s(), monotonic_s()
        eventually(lambda: oldest_s() > first_s + 3.0)
        assert oldest_s() - first_s == pytest.approx(monotonic_s() - first_t, abs=1.0)
        target.send(signal.SIGCONT)
        before = passes(url)
        eventually(lambda: passes(url) > before and oldest_s() < 3.0)
        assert failing(url) == 0


@pytest.mark.parametrize("moment_s", nightly_but([0.9], [0.3, 0.9, 1.7]))
def test_a_server_that_is_killed_and_comes_back_is_not_accused(moment_s: float) -> None:
    with server() as (target, address), service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (_, url):
        eventually(lambda: passes(url) >= 1)
        begun_t = monotonic_s()
        eventually(lambda: monotonic_s() > begun_t + moment_s)
        target.kill()
        with server(int(address.rpartition(":")[2])):
            before = passes_of_each(url)
            eventually(lambda: all(now > then for now, then in zip(passes_of_each(url), before, strict=True)))
            assert failing(url) == 0
            assert sum(series(url, "internal_errors_total")) == 0


@pytest.mark.parametrize("moment_s", nightly_but([0.7], [0.2, 0.7, 1.3]))
def test_a_prober_that_is_killed_and_started_again_accuses_nobody(moment_s: float) -> None:
    with server() as (_, address):
        with service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (prober, url):
            assert prober.said(r"probing emulator at (\S+), named by PUBSUB_EMULATOR_HOST") == address
            eventually(lambda: passes(url) >= 1)
            begun_t = monotonic_s()
            eventually(lambda: monotonic_s() > begun_t + moment_s)
            prober.kill()
        with service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (_, url):
            eventually(lambda: all(passes_of_each(url)))
            assert failing(url) == 0


def items(url: str, path: str) -> list[dict[str, Any]]:
    return list(json.loads(get(f"{url}/api/v1/{path}"))["items"])


def assert_well_formed_metrics(url: str) -> None:
    checked = subprocess.run(
        [tool("promtool"), "check", "metrics"], input=get(f"{url}/metrics"), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    asked = Request(f"{url}/metrics", headers={"Accept": "application/openmetrics-text"})
    with urlopen(asked, timeout=PATIENCE_S) as answer:
        assert '# {run_id="ordering-' in answer.read().decode()


def test_what_was_found_is_there_with_its_evidence_and_still_after_a_restart(tmp_path: Path) -> None:
    environ = {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db", **ORDERING_OFTEN}
    with service(ORDERING_PROBER_EMBEDDED__FAULTS='["swap_in_batch:p=0.5"]', **environ) as (running, url):
        eventually(lambda: any(one["runs"] >= SURE for one in items(url, "incidents?open=true&symptom=order")))
        eventually(lambda: verdicts(url)["ordering"] == "FAIL")
        assert sum(series(url, 'order_checks_total result="bad"')) > 0
        assert not [line for line in running.lines if "what to try next" in line.lower()]
        page = get(f"{url}/")
        assert "FAIL" in page
        assert "ORDER_" in page
        assert_well_formed_metrics(url)
        found = items(url, "findings?status=violation&probe=ordering")[0]
        shown = json.loads(get(f"{url}/api/v1/findings/{found['finding_id']}"))
        assert shown["explanation"] == found["explanation"]
        assert "<svg" in get(f"{url}/api/v1/findings/{found['finding_id']}/diagram.svg")
        trace = tmp_path / "trace.jsonl"
        trace.write_text(get(f"{url}/api/v1/findings/{found['finding_id']}/trace"), encoding="utf-8")
        verified = called("verify", str(trace), "--format", "json")
        assert verified.returncode == 1, verified.stderr
        kinds = {(one["kind"], one["status"]) for one in json.loads(verified.stdout)["findings"]}
        assert (found["kind"], found["status"]) in kinds
        assert running.stop() == 0

    with service(**environ) as (_, url):
        eventually(
            lambda: (
                {instance["verdict"] for instance in status(url)["probe_instances"] if instance["probe"] == "ordering"} == {"PASS"}
            )
        )
        instance = next(instance for instance in status(url)["probe_instances"] if instance["probe"] == "ordering")
        assert {run["verdict"] for run in instance["history"]} >= {"PASS", "FAIL"}
        assert found["finding_id"] in get(f"{url}/findings/{found['finding_id']}")
        (incident,) = items(url, "incidents?open=true&symptom=order")
        assert incident["runs_total"] > incident["runs"] >= SURE
        assert items(url, "findings?open=true&status=violation&probe=ordering")


def test_a_store_that_is_down_stops_nothing_and_is_reported_of() -> None:
    nowhere = "postgresql://prober@127.0.0.1:1/status"
    with service(ORDERING_PROBER_STATUS__URL=nowhere, **ORDERING_OFTEN) as (running, url):
        eventually(lambda: passes(url) >= 1)
        eventually(lambda: any("status store" in trouble for trouble in status(url)["troubles"]))
        assert status(url)["probe_instances"][0]["verdict"] == "PASS"
        assert "status store" in get(f"{url}/")
        assert series(url, "status_store_up") == [0.0]
        assert sum(series(url, "status_failures_total")) > 0
        with pytest.raises(OSError, match="503"):
            urlopen(f"{url}/api/v1/runs", timeout=30)
        assert running.stop() == 0


def logged(log: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", LOGGED, log, "sh", "-c", script], capture_output=True, text=True, check=False)


def test_a_set_up_that_works_says_nothing_and_keeps_its_log(tmp_path: Path) -> None:
    log = tmp_path / "setup.log"
    assert (said := logged(log, "echo one; echo two >&2")).returncode == 0
    assert said.stdout + said.stderr == ""
    assert logged(log, "echo three").returncode == 0
    assert re.findall("^(one|two|three)$", log.read_text(), re.MULTILINE) == ["one", "two", "three"]


def test_a_set_up_that_fails_shows_its_last_lines_and_names_the_log(tmp_path: Path) -> None:
    log = tmp_path / "setup.log"
    said = logged(log, "seq 1 100; exit 7")
    assert said.returncode == 7
    lines = said.stderr.splitlines()
    assert lines[-2:] == ["100", f"error: the set-up failed; all that was said is in {log}"]
    assert len(lines) < 20
    assert "\n1\n2\n" in log.read_text()


def test_what_to_try_next_is_what_the_program_can_do() -> None:
    assert load(None, {FAULTS_VARIABLE: f'["{A_FAULT}"]'}).embedded.faults
    commands = re.findall(r"bin/ordering-prober (\w+)", next_steps(".venv/bin/ordering-prober"))
    assert commands == ["run", "faults", "check"]
    assert A_FAULT in (ROOT / "README.md").read_text(encoding="utf-8")
