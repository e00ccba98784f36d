"""What was simulated is kept, and not simulated again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.errors import ConfigError
from prober.simulation import many
from prober.simulation.many import Order, simulated
from prober.simulation.results import Results
from prober.simulation.world import Simulated
from tests.unit.simulation.test_detection import note, plan

HOURS = 0.05
NOTES = (note("drop", {"ORDER_GAP": 2.0}), note(clean=True, judged=False))


def one(seed: int) -> Simulated:
    return Simulated(plan("drop", seed), NOTES, ("a mistake",))


def results(path: Path, hours: float = HOURS) -> Results:
    return Results(path, hours, ("drop",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "results.jsonl"


def test_what_is_kept_comes_back_as_it_was(path: Path) -> None:
    first = results(path)
    for seed in (4, 2, 3):
        first.add(one(seed))
    again = results(path)
    assert again.seeds == first.seeds == {2, 3, 4}
    assert list(again.of(range(3))) == [one(2)]


def test_only_what_is_not_there_is_simulated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def simulate(_order: Order, seed: int) -> Simulated:
        asked.append(seed)
        return one(seed)

    monkeypatch.setattr(many, "_simulated", simulate)

    def start(last: int) -> Iterator[int]:
        order = Order(range(1, last + 1), HOURS, ("drop",))
        return (each.plan.seed for each in simulated(order, 1, results=results(path)))

    assert list(start(2)) == [1, 2]
    assert list(start(3)) == [1, 2, 3]
    assert asked == [1, 2, 3]


def test_a_line_that_was_cut_off_does_not_count(path: Path) -> None:
    results(path).add(one(1))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"seed": 2, "fau')
    again = results(path)
    assert again.seeds == {1}
    again.add(one(2))
    assert [each.plan.seed for each in results(path).of(range(9))] == [1, 2]


def test_results_of_other_simulations_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results(path)
    with pytest.raises(ConfigError, match="of another program, length or faults"):
        results(path, hours=1.0)
    monkeypatch.setattr("prober.simulation.results.program", lambda: "changed")
    with pytest.raises(ConfigError, match="of another program"):
        results(path)


def test_what_is_no_file_of_results_is_told(tmp_path: Path, path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be kept in"):
        results(tmp_path)
    results(path)
    with path.open("a", encoding="utf-8") as file:
        file.write("[1]\n")
    with pytest.raises(ConfigError, match="has no results of simulations"):
        results(path)
