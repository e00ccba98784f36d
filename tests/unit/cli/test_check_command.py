"""`ordering-prober check` says when it is not the user's service that it checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli import check, main
from prober.config.loading import VARIABLE_PREFIX
from prober.runs.result import RunResult
from tests.commands import Output

NOTICE = "no configuration given: checking the embedded server, not your service; use --config FILE\n"


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> list[RunResult]:
        return []

    monkeypatch.setattr(check, "run_checks", nothing)
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)


def test_without_a_configuration_a_notice_says_that_the_embedded_server_is_checked(capsys: Output) -> None:
    assert main(["check"]) == 3  # nothing ran
    assert capsys.readouterr().err == NOTICE


@pytest.mark.parametrize("variable", ["PUBSUB_EMULATOR_HOST", f"{VARIABLE_PREFIX}TARGETS__0__ENDPOINT"])
def test_a_service_that_the_environment_names_needs_no_notice(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1:1")
    monkeypatch.setenv(f"{VARIABLE_PREFIX}TARGETS__0__PROJECT", "p-1")
    monkeypatch.setenv(f"{VARIABLE_PREFIX}TARGETS__0__ENVIRONMENT", "test")
    main(["check"])
    assert capsys.readouterr().err == ""


def test_a_named_service_or_file_needs_no_notice(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text("targets: [{name: mine, endpoint: embedded}]\n")
    main(["check", "--endpoint", "127.0.0.1:1"])
    main(["check", "--config", str(file)])
    assert capsys.readouterr().err == ""
