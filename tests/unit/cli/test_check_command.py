"""`ordering-prober check` says when it is not the user's service that it checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli import check, main
from prober.cli.check_runs import CheckRequest, wanted
from prober.config.loading import VARIABLE_PREFIX, load
from prober.probes.catalogue import PROBES
from prober.runs.result import RunResult
from tests.commands import Output

NOTICE = "no configuration given: checking the embedded server, not your service; use --config FILE\n"


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[CheckRequest]:
    """What would have been checked: nothing runs."""
    requests: list[CheckRequest] = []

    async def nothing(_config: object, request: CheckRequest, *_: object) -> list[RunResult]:
        requests.append(request)
        return []

    monkeypatch.setattr(check, "run_checks", nothing)
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    return requests


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A configuration with two targets, one of them with one probe only."""
    path = tmp_path / "prober.yaml"
    path.write_text("targets: [{name: one}, {name: two, probes: [affinity]}]\n")
    return str(path)


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


def test_one_target_and_one_probe_of_a_file(file: str, asked: list[CheckRequest]) -> None:
    main(["check", "--config", file, "--target", "one", "--probe", "ordering"])
    main(["check", "--config", file, "--target", "one", "--target", "two"])
    assert [(request.targets, request.probes) for request in asked] == [(("one",), ("ordering",)), (("one", "two"), ())]


def test_only_what_is_asked_for_is_planned(file: str) -> None:
    def planned(*targets: str, probes: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        request = CheckRequest(probes, targets)
        return [(instance.target.name, instance.probe) for each in load(file, {}).targets for instance in wanted(each, request)]

    assert planned("two") == [("two", "affinity")]
    assert planned(probes=("affinity",)) == [("one", "affinity"), ("two", "affinity")]
    assert len(planned()) == len(PROBES) + 1


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--target", "three"], "no target is called three; there are one, two"),
        (["--probe", "walking"], f"no probe is called walking; there are {', '.join(sorted(PROBES))}"),
        (
            ["--target", "two", "--probe", "ordering"],
            "the probe ordering does not run on two from the vantage wire: nothing to check",
        ),
    ],
)
def test_what_cannot_be_checked_is_one_line(file: str, arguments: list[str], reported: str, capsys: Output) -> None:
    assert main(["check", "--config", file, *arguments]) == 2
    assert capsys.readouterr().err == f"ordering-prober: {reported}\n"
