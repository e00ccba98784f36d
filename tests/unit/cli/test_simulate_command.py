"""The command `simulate`: what it prints, how it ends, and what it says about wrong usage."""

from __future__ import annotations

import json

import pytest

from prober.cli import main
from prober.cli.process import ExitCode
from prober.cli.simulate import detection_as_json, detection_as_text
from prober.simulation.detection import Detection
from prober.simulation.many import Order
from prober.simulation.world import Simulated
from tests.unit.simulation.test_detection import note, plan

ORDER = Order(range(5, 8), 0.25, ("drop",))
AGAIN = "ordering-prober simulate --seeds 6..6 --hours 0.25 --fault drop"


def detection() -> Detection:
    """A fault that is never found, and a false alarm."""
    return Detection.of([Simulated(plan("drop", 6), (note("drop"), note("drop"), note(found={"STUCK": 9.0}, clean=True)), ())])


def test_a_failure_is_reported_with_its_evidence_and_the_command_that_repeats_it() -> None:
    lines = detection_as_text(detection(), ORDER).splitlines()
    assert f"a false alarm in run run; again with: {AGAIN}" in lines
    assert "    a proof" in lines
    assert "drop was found in 0 of 2 observable runs of ordering, its best probe" in lines
    assert f"    not found at all; again with: {AGAIN}" in lines


def test_the_same_as_json() -> None:
    document = json.loads(detection_as_json(detection(), ORDER))
    assert [failure["again"] for failure in document["failures"]] == [AGAIN]
    assert document["missing"] == {"drop": [AGAIN]}
    assert document["below"] == ["drop"]
    (cell,) = document["matrix"]
    assert (cell["fault"], cell["probe"], cell["vantage"], cell["observable"], cell["found"]) == ("drop", "ordering", "wire", 2, 0)
    assert cell["share_high"] == pytest.approx(0.8419, abs=1e-4)


def test_a_simulation_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "1..2", "--hours", "0.01", "--fault", "hole", "--jobs", "1"]) == ExitCode.PASS
    printed = capsys.readouterr().out
    assert printed.startswith("2 simulations, 0.02 hours, ")
    assert "false alarms in " in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "5..4"], "'5..4' are no seeds; write them like 1..200"),
        (["--fault", "nonsense"], "no fault is called nonsense"),
        (["--results", "r", "--history", "h"], "give one of them"),
        (["--hours", "0"], "--hours is 0: write how many hours each simulation takes, such as 0.05"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == ExitCode.MALFORMED
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
