"""The first thing that a reader of README.md sees is what the program prints, line by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prober.cli import main

ROOT = Path(__file__).parents[2]


def example() -> tuple[str, str]:
    """The command of README.md that verifies a file, and what it is said to print."""
    found = re.search(
        r"^```\n\$ ordering-prober (verify [^\n]*)\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found[1], found[2]


def test_the_example_is_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """But for what `...` leaves out."""
    command, printed = example()
    monkeypatch.chdir(ROOT)
    assert main(command.split()) == 1
    parts = [re.escape(part) for part in printed.split("    ...\n")]
    assert len(parts) == 2
    assert re.fullmatch("(?:.*\n)+?".join(parts), capsys.readouterr().out)
