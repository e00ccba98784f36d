"""What was simulated is kept, and not simulated again."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.errors import ConfigError
from prober.simulation import many
from prober.simulation.detection import Detection
from prober.simulation.many import Order, simulated
from prober.simulation.results import Results
from prober.simulation.world import Simulated
from tests.unit.simulation.test_detection import note, plan

HOURS = 0.05
NOTES = (note("drop", {"ORDER_GAP": 2.0}), note("drop"), note(clean=True, found={"PHANTOM": 1.0}), note(clean=True, verified=False))


def one(seed: int) -> Simulated:
    return Simulated(plan("drop", seed), NOTES, ("a mistake",))


def results(path: Path, hours: float = HOURS) -> Results:
    return Results(path, hours, ("drop",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "results.json"


def test_the_sum_comes_back_as_it_was(path: Path) -> None:
    first = results(path)
    for seed in (7, 2, 3):
        first.add(one(seed))
    first.write()
    again = results(path)
    assert again.seeds == [(2, 3), (7, 7)]
    assert again.without(range(1, 9)) == [1, 4, 5, 6, 8]
    assert again.detection == first.detection == Detection.of(map(one, (7, 2, 3)))
    again.add(one(4))
    assert again.detection == Detection.of(map(one, (7, 2, 3, 4)))


def test_what_is_added_is_written_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.simulation.results.WRITTEN_EVERY", 2)
    first = results(path)
    for seed in range(3):
        first.add(one(seed))
    assert results(path).seeds == [(0, 1)]


def test_only_what_is_not_there_is_simulated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def simulate(_order: Order, seed: int) -> Simulated:
        asked.append(seed)
        return one(seed)

    monkeypatch.setattr(many, "_simulated", simulate)

    def start(last: int) -> list[int]:
        order = Order(range(1, last + 1), HOURS, ("drop",))
        return [each.plan.seed for each in simulated(order, 1, results=results(path))]

    assert start(2) == [1, 2]
    assert start(3) == [3]
    assert asked == [1, 2, 3]
    assert results(path).seeds == [(1, 3)]


def test_results_of_other_simulations_are_refused(path: Path) -> None:
    results(path).write()
    with pytest.raises(ConfigError, match="of another program, length or faults"):
        results(path, hours=1.0)
    path.write_text(path.read_text(encoding="utf-8").replace('"program": "', '"program": "0'), encoding="utf-8")
    with pytest.raises(ConfigError, match="of another program"):
        results(path)


def test_what_is_no_file_of_results_is_reported(tmp_path: Path, path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be kept in"):
        results(tmp_path)
    path.parent.mkdir()
    for text in ("", "[1]", "{}"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="has no results of simulations"):
            results(path)
    path.unlink()
    kept = results(path)
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be kept in"):
        kept.write()
