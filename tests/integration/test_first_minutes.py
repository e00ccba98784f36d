"""What a new user sees in the first minutes: a few lines of the set-up, a log that is named when it fails, and what to try next."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from prober.cli.run import A_FAULT, FAULTS_VARIABLE, next_steps
from prober.config.loading import load
from tests.integration.programs import service

ROOT = Path(__file__).parents[2]
LOGGED = ROOT / ".ci" / "logged"


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


def test_the_service_says_it_beside_the_address_unless_a_fault_is_there_already() -> None:
    with service() as (running, _url):
        assert running.said("see a broken promise: (.*)").endswith(" ordering-prober run")
        assert running.stop() == 0
    with service(**{FAULTS_VARIABLE: f'["{A_FAULT}"]'}) as (running, _url):
        assert running.stop() == 0
        assert not [line for line in running.lines if "what to try next" in line.lower()]
