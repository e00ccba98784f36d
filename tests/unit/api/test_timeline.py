"""The timeline: a row for each probe instance, a cell for each stretch of time, also where nothing ran."""

from __future__ import annotations

import pytest

from api.charts import TimeRange
from api.timeline import in_words, timeline_of, timeline_span
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition
from prober.sinks.status.over_time import RunsOfCell
from tests.unit.api.asking import NOON

WIRE = InstanceKey("europe", "ordering", "wire")
LIBRARY = InstanceKey("europe", "ordering", "library")
SPAN = timeline_span(NOON + 10.0, TimeRange.DAY)
LAST = int(NOON // 1800)
BROKEN = RunsOfCell({Condition.PASS: 28, Condition.FAIL: 2}, "ordering-1", "ORDER_GAP")


@pytest.mark.parametrize(("reach", "count"), [*zip(TimeRange, (60, 48, 48, 42, 90), strict=True)])
def test_a_range_has_whole_cells_up_to_now(reach: TimeRange, count: int) -> None:
    (row,) = timeline_of([WIRE], {}, timeline_span(NOON + 10.0, reach)).rows.values()
    assert len(row) == count
    assert row[-1].begin <= NOON + 10.0 < row[-1].begin + reach.cell_s


def test_each_probe_instance_has_a_row_and_each_stretch_a_cell() -> None:
    rows = timeline_of([WIRE, LIBRARY], {WIRE: {LAST: BROKEN}}, SPAN).rows
    assert [cell.runs for cell in rows[WIRE]] == [None] * 47 + [BROKEN]
    assert {cell.condition for cell in rows[LIBRARY]} == {None}


def test_a_cell_says_what_it_shows() -> None:
    row = timeline_of([WIRE], {WIRE: {LAST: BROKEN}}, SPAN).rows[WIRE]
    assert row[-1].condition is Condition.FAIL
    assert row[-1].words == "2026-03-01 12:00:00 UTC: 30 runs: 2 FAIL, 28 PASS; ORDER_GAP"
    assert row[0].words == "2026-02-28 12:30:00 UTC: no runs"
    assert in_words(row) == "30 runs: 2 FAIL, 28 PASS"
    assert in_words(row[:-1]) == "no runs"
