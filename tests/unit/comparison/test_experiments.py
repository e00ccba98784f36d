"""By what two targets can be compared: what both run alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.comparison.experiments import Common, common_to, targets_of
from prober.comparison.pairs import Experiment
from prober.config import ProbeName, load
from tests.unit.comparison.runs import ORDERING


def common(folder: Path, baseline: str, candidate: str) -> Common:
    file = folder / "prober.yaml"
    targets = f"[{{name: a, endpoint: embedded, probes: {baseline}}}, {{name: b, endpoint: embedded, probes: {candidate}}}]"
    file.write_text(f"targets: {targets}\nslos: {{order: false, affinity: false, redelivery: false}}\n")
    return common_to(*targets_of(load(file, {}), "a", "b"))


def test_what_both_run_is_compared_and_runs_may_begin_an_interval_apart(tmp_path: Path) -> None:
    assert common(tmp_path, "[ordering, pull]", "[push, ordering]") == Common({ORDERING: 10.0}, ())


def test_what_is_done_differently_is_not(tmp_path: Path) -> None:
    assert common(tmp_path, "{ordering: {}}", "{ordering: {keys: 11}}") == Common({}, (ProbeName.ORDERING,))


def test_how_often_makes_no_difference(tmp_path: Path) -> None:
    found = common(tmp_path, "{ordering: {}}", "{ordering: {schedule: {interval: 20s}}}")
    assert found == Common({ORDERING: 20.0}, ())


def test_vantages_and_parts_are_experiments_of_their_own(tmp_path: Path) -> None:
    probes = "{ordering: {parts: 2, vantages: [wire, library]}}", "{ordering: {parts: 2, vantages: [library]}}"
    assert set(common(tmp_path, *probes).apart_max_s) == {Experiment("ordering", "library", f"{part}/2") for part in (1, 2)}


def test_a_target_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text("targets: [{name: a, endpoint: embedded}]\n")
    with pytest.raises(KeyError):
        targets_of(load(file, {}), "z")
