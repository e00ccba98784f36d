"""The example that draws charts from a history."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pytest

from tests.forking import called

EXAMPLE = Path(__file__).parents[2] / "examples" / "analyze_history.py"
DAY = date(2025, 12, 20)


def analyze(history: Path, day: date, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), str(history), "--date", day.isoformat(), "--output", str(output)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = tmp_path_factory.mktemp("simulated") / "history"
    assert called("simulate", "--seeds", "1..2", "--history", str(history)).returncode in (0, 1)
    return history


def test_it_draws_the_keys_with_the_highest_minute_and_the_burn_rates(simulated: Path, tmp_path: Path) -> None:
    done = analyze(simulated, DAY, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    files = f"{simulated}/messages/date={DAY}/*.parquet"
    query = "SELECT DISTINCT probe || ', ' || vantage FROM read_parquet(?)"
    probes = [probe for (probe,) in duckdb.connect().execute(query, [files]).fetchall()]
    hot_keys = (tmp_path / "hot_keys.svg").read_text()
    assert sum(hot_keys.count(f"({probe})") for probe in probes) == 10
    budget = (tmp_path / "budget.svg").read_text()
    assert all(
        f">{name}<" in budget for name in ("affinity (0.99)", "completeness (0.9999)", "order (0.9999)", "redelivery (0.999)")
    )


def test_what_has_no_such_day_is_one_line(simulated: Path, tmp_path: Path) -> None:
    done = analyze(simulated, date(2026, 1, 1), tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{simulated} has no messages or runs of 2026-01-01: is it a history, and a day of it?\n"
