"""Time of a finding: within its run, on the clock of people."""

from __future__ import annotations

import pytest

from prober.core.findings import Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.result import RunResult


@pytest.mark.parametrize(
    ("offset_s", "found_at"),
    [
        pytest.param(1_000.0, 1_003.0, id="by the clock of the run"),
        pytest.param(2_000.0, 1_010.0, id="not after the run, if the clock was set"),
        pytest.param(0.0, 1_001.0, id="nor before it"),
        pytest.param(None, 1_010.0, id="the end of the run, if no clock is known"),
    ],
)
def test_the_time_of_a_finding(offset_s: float | None, found_at: float) -> None:
    result = RunResult("r", "ordering", "europe", "wire", Verdict.FAIL, "", 1_001.0, 9.0, clock_offset_s=offset_s)
    assert result.found_at(Finding(Kind.ORDER_GAP, Status.VIOLATION, "s", "k", 3.0, ()), 1_010.0) == found_at
