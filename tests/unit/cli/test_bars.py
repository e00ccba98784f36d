"""The bar of runs: it counts only what is known."""

from __future__ import annotations

import io
import sys

import pytest

from prober.cli.bars import while_running


def test_a_bar_without_a_number_of_runs_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with while_running() as show:
        assert "None" not in screen.getvalue()
        show("ordering, pull and 3 more", 5, 1)
    assert "ordering, pull and 3 more" in screen.getvalue()
    assert "1 of 5" in screen.getvalue()
    assert "None" not in screen.getvalue()
