"""The commands `store status`, `store upgrade` and `store downgrade`: what they print and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prober.cli import main
from tests.commands import Output
from tests.unit.sinks.status.later import ADDITIVE, BREAKING, program_with


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the store, which does not exist yet."""
    path = tmp_path / "status.db"
    monkeypatch.setenv("ORDERING_PROBER_STATUS__URL", f"sqlite:///{path}")
    return path


def store(*arguments: str) -> int:
    return main(["store", *arguments])


def test_the_status_of_a_missing_file_creates_none(file: Path, capsys: Output) -> None:
    assert store("status") == 1
    assert not file.exists()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"store: sqlite:///{file}"
    assert "revision: none" in shown
    assert "compatible: no: the status store is empty" in shown


def test_a_store_of_this_program_has_no_pending_steps(file: Path, capsys: Output) -> None:
    assert store("upgrade") == 0
    assert capsys.readouterr().out == f"sqlite:///{file}: empty; now revision 1\n"
    assert store("upgrade") == 0
    assert capsys.readouterr().out == f"sqlite:///{file}: revision 1\n"
    assert store("status") == 0
    assert {"revision: 1", "compatible: yes", "pending: none"} <= set(capsys.readouterr().out.splitlines())


def test_pending_steps_name_the_oldest_program_afterwards(capsys: Output) -> None:
    store("upgrade")
    with program_with(ADDITIVE, BREAKING):
        capsys.readouterr()
        assert store("status") == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[-3] == "pending: 2"
        assert lines[-2].startswith("  2: Notes on runs")
        assert lines[-2].endswith("Oldest program afterwards: 1.")
        assert lines[-1].endswith("Oldest program afterwards: 3.")
        assert store("upgrade", "--to", "2") == 0
    assert store("status") == 0  # of the earlier program, on a newer store that fits


def test_a_newer_store_that_does_not_fit(capsys: Output) -> None:
    with program_with(ADDITIVE, BREAKING):
        store("upgrade")
    capsys.readouterr()
    assert store("status", "--format", "json") == 2
    shown = json.loads(capsys.readouterr().out)
    assert (shown["revision"], shown["program_revision"], shown["compatible"], shown["pending"]) == ("3", "1", False, [])
    assert shown["reason"].startswith("the status store has revision 3, for which this program (revision 1) is too old: run ")
    assert store("upgrade") == 2
    assert capsys.readouterr().err == f"ordering-prober: {shown['reason']}\n"


def test_a_downgrade_asks_and_pins(file: Path, capsys: Output) -> None:
    with program_with(ADDITIVE):
        store("upgrade")
        assert store("downgrade", "--to", "1") == 2
        assert "add --yes to downgrade" in capsys.readouterr().err
        assert store("downgrade", "--to", "1", "--yes") == 0
        assert capsys.readouterr().out == f"sqlite:///{file}: revision 2; now revision 1, pinned until `store upgrade`\n"
        assert store("status") == 1
        assert "revision: 1, pinned by `store downgrade`" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["downgrade"], "Missing option '--to'."),
        (["downgrade", "--to", "2", "--yes"], "no revision is called 2; there is 1"),
        (["upgrade", "--to", "x"], "no revision is called x; there is 1"),
        (["downgrade", "--to", "1", "--yes"], "the status store is empty"),
    ],
    ids=["no revision", "unknown to downgrade", "unknown to upgrade", "empty"],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: Output) -> None:
    assert store(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["status"], ["upgrade"], ["downgrade", "--to", "1", "--yes"]], ids=["status", "upgrade", "downgrade"]
)
def test_a_store_that_cannot_be_reached(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("ORDERING_PROBER_STATUS__URL", "postgresql://prober:secret@127.0.0.1:1/none")
    assert store(*command) == 3
    assert "127.0.0.1" in (error := capsys.readouterr().err)
    assert "secret" not in error
