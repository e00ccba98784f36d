"""Reading the reports of the nightly jobs, whole, half written, and while they are replaced. What the jobs write is read in tests/spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prober.core.verdict import Verdict
from prober.reports import reader as reports
from prober.reports.reader import ReportReader
from prober.reports.values import KeyCourse
from prober.sinks.history.store import HistoryError
from prober.sinks.metrics.label_values import Job

DAY = date(2026, 11, 20)
FINISHED = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)

Row = Mapping[str, Any]


def key(name: str, score: float, subscription: str = "s", **evidence: Any) -> Row:
    about = {"target": "prod", "environment": "production", "region": "eu", "topic": "t", "subscription": subscription, "key": name}
    measured: Row = {"peak_bytes_per_s": None, "backlog_max": None, **evidence}
    return {
        **about,
        "class": "skewed",
        "reasons": ["skewed"],
        "score": score,
        "advice": "split",
        "messages": 9,
        "share": 0.3,
        **measured,
    }


def window(objective: str, target: str, window_s: float) -> Row:
    counts = {"good": 9, "bad": 1, "undecided": 0, "minutes": 3}
    known = (
        "error_ratio",
        "error_ratio_low",
        "error_ratio_high",
        "error_ratio_least",
        "error_ratio_most",
        "burn_rate",
        "budget_left",
    )
    numbers = {**dict.fromkeys(known, 0.1), "burn_rate_low": None, "burn_rate_high": None, "exhausted_in_s": None}
    about = {"objective": objective, "indicator": "order", "target": target, "window_s": window_s}
    return {**about, **counts, **numbers, "never_exhausted": False}


def alert(objective: str, *firing: datetime) -> Row:
    about = {"objective": objective, "target": "prod", "severity": "page", "long_s": 3600.0, "short_s": 300.0, "factor": 14.4}
    spans = [{"since": since, "until": FINISHED} for since in firing]
    minutes = {"firing_minutes": len(firing), "quiet_minutes": 3, "unknown_minutes": 4}
    return {**about, "threshold": 0.1, "can_fire": True, "state": "quiet", **minutes, "firing": spans}


def spender(value: str | None, bad: int, others: int = 0) -> Row:
    about = {"objective": "order", "target": "prod", "by": "key"}
    return {**about, "value": value, "bad": bad, "share": 0.5, "others": others}


def put(
    folder: Path,
    job: str,
    day: date = DAY,
    *,
    verdict: str = "PASS",
    tables: Mapping[str, Sequence[Row]] | None = None,
    **numbers: Any,
) -> Path:
    """A report as the jobs write it."""
    report = folder / job / f"date={day}"
    for table, rows in (tables or {}).items():
        (report / table).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), report / table / "part-00000.zstd.parquet")
    counted = {table: len(rows) for table, rows in (tables or {}).items()}
    about = {"version": 1, "job": job, "date": str(day), "rows": counted, "verdict": verdict, "line": f"{job}: {verdict}"}
    report.mkdir(parents=True, exist_ok=True)
    reported = {"finished_at": FINISHED.isoformat(), "duration_s": 7.5}
    (report / "summary.json").write_text(json.dumps({**about, **reported, **numbers}))
    return report


def test_where_there_is_nothing_there_is_no_report(tmp_path: Path) -> None:
    reader = ReportReader(str(tmp_path / "nowhere"))
    assert reader.days(Job.HOT_KEYS) == []
    assert (reader.latest_day(Job.HOT_KEYS), reader.summary(Job.HOT_KEYS, DAY), reader.last_success(Job.HOT_KEYS)) == (
        None,
        None,
        None,
    )
    assert (reader.hot_keys(DAY), reader.slo_burn(DAY), reader.summaries(DAY)) == (None, None, {})


def test_a_summary_says_what_came_out_and_when(tmp_path: Path) -> None:
    put(tmp_path, "retention", files_before=7)
    summary = ReportReader(str(tmp_path)).summary("retention", DAY)
    assert summary is not None
    assert (summary.job, summary.day, summary.verdict, summary.line) == ("retention", DAY, Verdict.PASS, "retention: PASS")
    assert (summary.finished_at, summary.duration_s, summary.rows) == (FINISHED.timestamp(), 7.5, {})
    assert summary.numbers == {"files_before": 7}


def test_the_latest_days_come_first_and_what_is_no_day_is_none(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        put(tmp_path, Job.HOT_KEYS, date(2026, 11, number))
    for other in ("_writing-date=2026-11-09", "date=soon", "elsewhere"):
        (tmp_path / Job.HOT_KEYS / other).mkdir()
    (tmp_path / Job.HOT_KEYS / "date=2026-11-04").mkdir()  # nothing in it yet
    reader = ReportReader(str(tmp_path))
    assert reader.days(Job.HOT_KEYS, 3) == [date(2026, 11, 4), date(2026, 11, 3), date(2026, 11, 2)]
    assert reader.latest_day(Job.HOT_KEYS) == date(2026, 11, 3)


def test_the_jobs_of_a_day(tmp_path: Path) -> None:
    first, *others = Job
    for job in others:
        put(tmp_path, job)
    put(tmp_path, first, date(2026, 11, 19))
    assert set(ReportReader(str(tmp_path)).summaries(DAY)) == set(others)


def test_a_success_is_a_verdict_and_the_last_one_counts(tmp_path: Path) -> None:
    for day, verdict, at in ((18, "PASS", 1000), (19, "FAIL", 3000), (20, "PASS", 2000), (21, "UNKNOWN", 4000)):
        put(tmp_path, Job.HOT_KEYS, date(2026, 11, day), verdict=verdict, finished_at=datetime.fromtimestamp(at, UTC).isoformat())
    reader = ReportReader(str(tmp_path))
    assert reader.last_success(Job.HOT_KEYS) == 3000.0
    assert reader.last_success("nightly") is None


@pytest.mark.parametrize(
    "text", ["", '{"version": 1, "job', "[]", '{"version": 2}', '{"version": 1, "rows": {}, "verdict": "FINE"}']
)
def test_a_summary_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    (put(tmp_path, Job.HOT_KEYS) / "summary.json").write_text(text)
    reader = ReportReader(str(tmp_path))
    assert (reader.summary(Job.HOT_KEYS, DAY), reader.hot_keys(DAY), reader.last_success(Job.HOT_KEYS)) == (None, None, None)


# --- hot keys ----------------------------------------------------------------------------------------------------------------

SPREAD: Row = {
    **dict.fromkeys(("target", "environment", "region", "topic", "subscription"), "x"),
    **dict.fromkeys(("keys", "messages", "bytes", "hot", "left_out"), 1),
    **dict.fromkeys(("median", "p90", "p99", "top_share", "top_ten_share", "zipf_exponent")),
    "exact": False,
}


def hot(folder: Path, *keys: Row) -> Path:
    return put(folder, Job.HOT_KEYS, tables={"keys": keys, "subscriptions": [SPREAD]}, left_out=2)


def test_the_hottest_keys_come_first_with_what_was_measured(tmp_path: Path) -> None:
    hot(tmp_path, key("b", 0.3), key("c", 0.9, backlog_max=7.0), key("a", 0.3))
    report = ReportReader(str(tmp_path)).hot_keys(DAY, limit=2)
    assert report is not None
    assert [(one.key, one.heat, one.reasons, one.evidence) for one in report.keys] == [
        ("c", "skewed", ("skewed",), {"backlog_max": 7.0}),
        ("a", "skewed", ("skewed",), {}),
    ]
    assert report.left_out == 3
    (spread,) = report.subscriptions
    assert (spread.exact, spread.median, spread.messages) == (False, None, 1)


def test_the_course_of_a_key_is_read_where_the_job_wrote_it(tmp_path: Path) -> None:
    part = {"at": 1_772_366_400, "bytes_per_s": 9.5, "backlog": 7, "age_s": 1.5}
    hot(tmp_path, key("a", 0.9, course=[part]), key("b", 0.3, course=None))
    report = ReportReader(str(tmp_path)).hot_keys(DAY)
    assert report is not None
    assert [one.course for one in report.keys] == [(KeyCourse(1_772_366_400, 9.5, 7, 1.5),), ()]
    assert report.keys[0].evidence == {}


def test_the_keys_of_one_subscription(tmp_path: Path) -> None:
    hot(tmp_path, key("b", 0.3, "one"), key("c", 0.9, "other"))
    reader = ReportReader(str(tmp_path))
    report, none = reader.hot_keys(DAY, subscription="one"), reader.hot_keys(DAY, target="staging")
    assert report is not None
    assert none is not None
    assert ([one.key for one in report.keys], none.keys) == (["b"], ())


def test_more_rows_than_are_looked_at_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "ROWS_MAX", 3)
    hot(tmp_path, *(key(str(number), 1.0 - number / 10) for number in range(5)))
    report = ReportReader(str(tmp_path)).hot_keys(DAY)
    assert report is not None
    assert ([one.key for one in report.keys], report.left_out) == (["0", "1", "2"], 2 + 2)


def test_a_table_that_is_not_all_there_is_no_report(tmp_path: Path) -> None:
    report = hot(tmp_path, key("a", 0.5))
    file = report / "keys" / "part-00000.zstd.parquet"
    content = file.read_bytes()
    reader = ReportReader(str(tmp_path))
    assert reader.hot_keys(DAY) is not None
    file.write_bytes(content[: len(content) // 2])
    assert reader.hot_keys(DAY) is None
    file.unlink()
    assert reader.hot_keys(DAY) is None
    file.parent.rmdir()
    assert reader.hot_keys(DAY) is None
    assert reader.summary(Job.HOT_KEYS, DAY) is not None


def test_columns_of_another_version_are_no_report(tmp_path: Path) -> None:
    put(tmp_path, Job.HOT_KEYS, tables={"keys": [{"key": "a"}], "subscriptions": [SPREAD]})
    assert ReportReader(str(tmp_path)).hot_keys(DAY) is None


# --- burn --------------------------------------------------------------------------------------------------------------------


def burnt(folder: Path) -> None:
    tables = {
        "windows": [window("order", "prod", 3600.0), window("fast", "prod", 60.0), window("order", "prod", 300.0)],
        "alerts": [alert("order", datetime(2026, 11, 20, 12, tzinfo=UTC)), alert("fast")],
        "spenders": [spender(None, 9, 4), spender("a", 1), spender("b", 5)],
    }
    put(folder, Job.SLO_BURN, verdict="FAIL", tables=tables)


def test_what_a_day_spent(tmp_path: Path) -> None:
    burnt(tmp_path)
    report = ReportReader(str(tmp_path)).slo_burn(DAY)
    assert report is not None
    assert report.summary.verdict is Verdict.FAIL
    assert [(one.objective, one.window_s, one.error_ratio, one.burn_rate_low) for one in report.windows] == [
        ("fast", 60.0, 0.1, None),
        ("order", 300.0, 0.1, None),
        ("order", 3600.0, 0.1, None),
    ]
    assert [(one.objective, one.firing) for one in report.alerts] == [
        ("fast", ()),
        ("order", ((datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp(), FINISHED.timestamp()),)),
    ]
    assert [(one.value, one.bad, one.others) for one in report.spenders] == [("b", 5, 0), ("a", 1, 0), (None, 9, 4)]
    assert report.left_out == 0


def test_what_one_objective_spent(tmp_path: Path) -> None:
    burnt(tmp_path)
    report = ReportReader(str(tmp_path)).slo_burn(DAY, objective="fast")
    assert report is not None
    assert ([one.objective for one in report.windows], report.spenders) == (["fast"], ())


# --- places ------------------------------------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / Job.HOT_KEYS / f"date={DAY}" / "summary.json").mkdir(parents=True)  # opening that fails, as a broken disk would
    with pytest.raises(HistoryError, match=r"^the reports at .* cannot be read: .+$"):
        ReportReader(str(tmp_path)).hot_keys(DAY)
    with pytest.raises(HistoryError):
        ReportReader("ftp://somewhere/reports")


def test_a_report_that_is_replaced_meanwhile_is_one_or_the_other(tmp_path: Path) -> None:
    """Eight threads read while the report changes from one with one key to one with two, back and forth."""
    old = hot(tmp_path / "old", key("a", 0.1))
    new = hot(tmp_path / "new", key("a", 0.2), key("b", 0.2))
    (new / "summary.json").write_text((new / "summary.json").read_text().replace("01:02:03", "01:02:04"))
    place = tmp_path / "reports" / Job.HOT_KEYS / f"date={DAY}"
    place.parent.mkdir(parents=True)
    old.rename(place)
    waiting = [new, tmp_path / "aside"]
    reader = ReportReader(str(tmp_path / "reports"))

    def ask(_: int) -> set[tuple[int, float]]:
        found = [reader.hot_keys(DAY) for _ in range(40)]
        return {(len(one.keys), one.keys[0].score) for one in found if one is not None}

    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(ask, range(8))
        for _ in range(100):
            place.rename(waiting[1])
            waiting[0].rename(place)
            waiting.reverse()
        assert set().union(*answers) <= {(1, 0.1), (2, 0.2)}
    assert reader.hot_keys(DAY) is not None
