"""What the history has of a run that goes on when the prober is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.core.verdict import Verdict
from prober.runs.sink import KeptHistory, RunEnded
from prober.sinks.history.checking import RunRecord
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.writer import HistoryRun
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder, result


@pytest.mark.parametrize(("counts", "bad"), [(True, 1), (False, 0)])
def test_a_run_that_goes_on_when_the_prober_is_stopped_ends_then_with_what_was_proven(
    tmp_path: Path, counts: bool, bad: int
) -> None:
    recorder = Recorder(tmp_path)
    log = recorder.begin()
    for event in history("P1 A<1@1"):
        log.record(event)
    checks = {Indicator.ORDER: SliCounts(good=5, bad=1)}
    stopped = result(verdict=Verdict.UNKNOWN, checks=checks)
    HistoryRun(log).ended(RunEnded(stopped, (), KeptHistory((), {}, 4), 0.0, counts, cut_short=True))
    recorder.save()
    recorder.kill()
    (run,) = HistoryReader(str(recorder.location)).runs()
    assert run.record == RunRecord(events=4, stopped=True)
    assert run.result is not None
    assert sum(checked.bad for checked in run.result.checks.values()) == bad
    assert sum(checked.good for checked in run.result.checks.values()) == 0
