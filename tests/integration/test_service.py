"""`ordering-prober run` as its user runs it: it shows verdicts soon, stops cleanly, and blames nobody for what breaks around it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from prober.clock import monotonic_s
from prober.probes.catalogue import PROBES
from tests.commands import PROGRAM, ROOT
from tests.integration.programs import PATIENCE_S, SOME_PROBES, eventually, get, program, series, server, service, status

OFTEN = {
    f"ORDERING_PROBER_PROBES__{name.upper()}__{key}": value
    for name in ("ordering", "redelivery", "affinity")
    for key, value in {"SCHEDULE": '{"interval": "1s"}', "JITTER": "0s"}.items()
}
"""Runs follow each other closely, so that whatever happens happens in the middle of one."""


def verdicts(url: str) -> dict[str, str]:
    return {site["probe"]: site["verdict"] for site in status(url)["sites"]}


def failing(url: str) -> float:
    """Findings that accuse the service."""
    return sum(series(url, 'findings_total status="violation"') + series(url, 'findings_total status="liveness"'))


def passes(url: str) -> float:
    return sum(series(url, 'probe_runs_total verdict="pass"'))


def passes_of_each(url: str) -> list[float]:
    """The same of each probe, in a fixed order."""
    return [sum(series(url, f'probe_runs_total verdict="pass" probe="{name}"')) for name in json.loads(SOME_PROBES)]


def test_a_first_verdict_of_each_probe_is_soon_shown_and_ctrl_c_stops_it() -> None:
    with service(ORDERING_PROBER_TARGETS__0__PROBES=json.dumps(list(PROBES))) as (running, url):
        eventually(lambda: None not in verdicts(url).values() and "PASS" in verdicts(url).values())
        assert verdicts(url).keys() == set(PROBES)
        assert set(verdicts(url).values()) <= {"PASS", "UNKNOWN"}  # a machine under load leaves some undecided
        page = get(f"{url}/")
        assert all(name in page for name in PROBES)
        assert '"ready":true' in get(f"{url}/readyz")
        assert get(f"{url}/healthz")
        assert running.stop() == 0


def test_it_starts_by_itself(tmp_path: Path) -> None:
    """The other tests fork it from a process that has imported everything; see `tests.forking`."""
    settings = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db"}
    with subprocess.Popen([*PROGRAM, "run"], cwd=ROOT, env=os.environ | settings, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (url,) = next(found.groups() for line in process.stdout if (found := re.search(r"status page: (\S+)/", line)))
        assert get(f"{url}/healthz")
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 0


def test_what_it_scrapes_pleases_promtool() -> None:
    found = shutil.which("promtool", path=os.pathsep.join([str(ROOT / ".venv/bin"), os.environ.get("PATH", "")]))
    if found is None:
        assert not os.environ.get("CI"), "promtool is missing"
        pytest.skip("promtool is missing; install it (Debian, Ubuntu: apt install prometheus)")
    with service() as (_, url):
        eventually(lambda: set(verdicts(url).values()) == {"PASS"})
        checked = subprocess.run(
            [found, "check", "metrics"], input=get(f"{url}/metrics"), capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_exemplars_are_there_for_those_who_ask_for_openmetrics() -> None:
    with service() as (_, url):
        eventually(lambda: passes(url) >= 1)
        asked = Request(f"{url}/metrics", headers={"Accept": "application/openmetrics-text"})
        with urlopen(asked, timeout=5) as answer:
            assert '# {run_id="ordering-' in answer.read().decode()


def test_while_the_target_hangs_metrics_answer_and_the_age_grows() -> None:
    with server() as (target, address), service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (_, url):
        eventually(lambda: passes(url) >= 3)
        target.send(signal.SIGSTOP)

        def oldest_s() -> float:
            return max(series(url, "oldest_unacked_message_age_seconds"))

        eventually(lambda: oldest_s() > 3.0)
        first_s, first_t = oldest_s(), monotonic_s()
        eventually(lambda: oldest_s() > first_s + 5.0)
        assert oldest_s() - first_s == pytest.approx(monotonic_s() - first_t, abs=1.0)
        target.send(signal.SIGCONT)
        before = passes(url)
        eventually(lambda: passes(url) > before and oldest_s() < 3.0)
        assert failing(url) == 0


@pytest.mark.parametrize("moment_s", [0.3, 0.9, 1.7])
def test_a_server_that_is_killed_and_comes_back_is_not_accused(moment_s: float) -> None:
    with server() as (target, address), service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (_, url):
        eventually(lambda: passes(url) >= 2)
        begun_t = monotonic_s()
        eventually(lambda: monotonic_s() > begun_t + moment_s)
        target.kill()
        with server(int(address.rpartition(":")[2])):
            before = passes_of_each(url)
            eventually(lambda: all(now > then for now, then in zip(passes_of_each(url), before, strict=True)))
            assert failing(url) == 0
            assert sum(series(url, "internal_errors_total")) == 0


@pytest.mark.parametrize("moment_s", [0.2, 0.7, 1.3])
def test_a_prober_that_is_killed_and_started_again_accuses_nobody(moment_s: float) -> None:
    with server() as (_, address):
        for _ in range(2):
            with service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (prober, url):
                eventually(lambda url=url: passes(url) >= 1)  # type: ignore[misc]
                begun_t = monotonic_s()
                eventually(lambda begun_t=begun_t: monotonic_s() > begun_t + moment_s)  # type: ignore[misc]
                prober.kill()
        with service(PUBSUB_EMULATOR_HOST=address, **OFTEN) as (_, url):
            eventually(lambda: passes(url) >= 6 and all(passes_of_each(url)))
            assert failing(url) == 0


def test_a_planted_fault_is_shown() -> None:
    with service(ORDERING_PROBER_EMBEDDED__FAULTS='["swap_in_batch:p=0.2"]') as (_, url):
        eventually(lambda: failing(url) > 0)
        eventually(lambda: verdicts(url)["ordering"] == "FAIL")
        assert sum(series(url, 'order_checks_total result="bad"')) > 0
        page = get(f"{url}/")
        assert "FAIL" in page
        assert "ORDER_" in page


def test_wrong_configurations_are_one_line(tmp_path: Path) -> None:
    with service() as (_, url):
        port = url.rpartition(":")[2]
        with program("run", environ={"ORDERING_PROBER_API__PORT": port}) as second:
            assert second.process.wait(60) == 2
            assert second.said("(taken)")
    file = tmp_path / "wrong.yaml"
    file.write_text("targets: 7\n")
    with program("run", "--config", str(file)) as wrong:
        assert wrong.process.wait(60) == 2
