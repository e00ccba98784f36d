"""Heat maps: what is not known is no zero, and a little is not nothing."""

from __future__ import annotations

from datetime import date

from api.charts import BUCKETS, TimeRange
from api.heat_map import LEVELS, Measure, key_map, latency_map
from api.timeline import timeline_span
from prober.reports.values import KeyCourse, ReportedKey
from tests.unit.api.asking import NOON

DAY = date(2026, 3, 1)


def key(name: str, *course: KeyCourse) -> ReportedKey:
    return ReportedKey("europe", "test", "", "t", "s", name, "stalled", 1.0, ("stalled",), "Split it.", 9, 0.5, {}, course)


def test_each_key_has_a_row_of_half_hours() -> None:
    parts = (KeyCourse(NOON, 100.0, 0, 0.0), KeyCourse(NOON + 1800.0, 400_000.0, 1, 30.0), KeyCourse(NOON + 3600.0, 0.0, 400, 60.0))
    found = key_map([key("a", *parts), key("b"), key("c", KeyCourse(NOON, 100.0, 100, 60.0))], DAY, Measure.BACKLOG)
    assert found is not None
    assert [(row.name, row.most, len(row.cells)) for row in found.rows] == [("a", "400", 48), ("c", "100", 48)]
    assert [(cell.level, cell.words) for cell in found.rows[0].cells[23:28]] == [
        (None, "11:30: nothing is known"),
        (0, "12:00: 0"),
        (1, "12:30: 1"),
        (LEVELS, "13:00: 400"),
        (None, "13:30: nothing is known"),
    ]
    assert found.bounds[-1] == "400"


def test_every_measure_in_its_unit() -> None:
    keys = [key("a", KeyCourse(NOON, 400_000.0, 7, 90.0))]
    maps = [key_map(keys, DAY, measure) for measure in Measure]
    assert [one.rows[0].most for one in maps if one is not None] == ["7", "1 min", "400 kB/s"]


def test_without_any_course_there_is_no_map() -> None:
    assert key_map([key("a")], DAY, Measure.AGE) is None


def test_latencies_by_bucket_the_longest_at_the_top_with_the_threshold() -> None:
    counts = [0] * len(BUCKETS)
    counts[3], counts[4] = 9, 1
    cell = int(NOON // 1800)
    found = latency_map({cell: counts}, timeline_span(NOON, TimeRange.DAY), 0.05)
    assert found is not None
    assert [(row.name, row.cells[-1].level, row.cells[0].level) for row in found.rows] == [
        ("SLO: to 50 ms", 0, None),
        ("to 20 ms", 2, None),
        ("to 10 ms", LEVELS, None),
    ]
    assert latency_map({cell: [0] * len(BUCKETS)}, timeline_span(NOON, TimeRange.DAY), None) is None


def test_nothing_but_zeros_is_a_map() -> None:
    found = key_map([key("a", KeyCourse(NOON, 0.0, 0, 0.0))], DAY, Measure.AGE)
    assert found is not None
    assert found.rows[0].cells[24].level == 0
