"""The jobs on a day that was made up, against what was planted in it and against a direct count; and what is read back of their reports."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from prober.core.events import Acked, Delivered, Ended, Event, Opened, Published, PublishInvoked
from prober.core.findings import FAILING
from prober.core.verdict import Verdict
from prober.reports.reader import ReportReader
from prober.sinks.history.synthesis.plan import Recipe
from prober.sinks.history.synthesize import make_history
from prober.sinks.metrics.label_values import Job
from prober.slo.counts import OVERDUE
from prober.slo.indicators import DISTURBED, Indicator
from prober.slo.objectives import DAY_S, DEFAULTS, HOUR_S, SliCounts
from spark_jobs import nightly, slo_burn
from spark_jobs.history import History
from spark_jobs.work import Reports, Settings, Work
from tests.spark.taped import MIDNIGHT, S, Taped, write

QUIET: Final = date(2026, 11, 20)
DAY: Final = QUIET + timedelta(days=1)
RECIPE: Final = Recipe(MIDNIGHT, days=2, events=50_000, targets=2, seed=3)
TELLING: Final = ("violation", "liveness", "indeterminate")

Json = dict[str, Any]


@dataclass(frozen=True)
class Night:
    """A history, what is planted in it, and the reports of one night."""

    folder: Path
    truth: Json
    work: Work
    reader: ReportReader


@pytest.fixture(scope="module")
def night(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Both days, the second of which is the one asked for; it finds that the first one has not been reported on."""
    folder = tmp_path_factory.mktemp("synthesized")
    make_history(str(folder / "history"), RECIPE)
    history, reports = History(spark, str(folder / "history")), Reports(spark, str(folder / "reports"))
    work = Work(spark, history, reports, DAY, MIDNIGHT + 2 * DAY_S + HOUR_S, Settings(look_back_days=1))
    outcome = nightly.run(work)
    assert outcome.line == f"nightly {DAY}: FAIL, hot-keys FAIL, slo-burn FAIL, reverify FAIL, compact PASS; done again: {QUIET}"
    return Night(folder, json.loads((folder / "history" / "truth.json").read_text()), work, ReportReader(str(folder / "reports")))


@pytest.mark.parametrize("day", [QUIET, DAY])
def test_every_planted_hot_key_is_found_in_its_class_and_no_other(night: Night, day: date) -> None:
    planted = {(one["subscription"], one["key"]): one["class"] for one in night.truth["hot_keys"] if one["date"] == str(day)}
    report = night.reader.hot_keys(day)
    assert report is not None
    found = {(one.subscription, one.key): one.heat for one in report.keys}
    assert found == planted
    assert len(planted) == (1 if day == QUIET else 5)


def test_how_messages_are_spread_over_keys(night: Night) -> None:
    report = night.reader.hot_keys(DAY)
    assert report is not None
    (zipf,) = night.truth["zipf"]
    (spread,) = (one for one in report.subscriptions if one.topic == zipf["topic"])
    assert spread.exact
    assert spread.zipf_exponent == pytest.approx(zipf["exponent"], abs=0.1)


@pytest.mark.parametrize("day", [QUIET, DAY])
def test_what_is_judged_again_is_what_was_planted_and_what_was_found_online(night: Night, day: date) -> None:
    planted = {
        (one["run_id"], one["subscription"], one["key"], finding["kind"], finding["status"])
        for one in night.truth["violations"]
        if one["run_began"].startswith(str(day))
        for finding in one["findings"]
    }
    rows = _table(night, Job.REVERIFY, "findings", day)
    found = Counter((row["run_id"], row["subscription"], row["key"], row["kind"], row["status"]) for row in rows)
    assert set(found) == planted
    assert bool(planted) == (day == DAY)
    assert _table(night, Job.REVERIFY, "differences", day) == []
    runs = _table(night, Job.REVERIFY, "runs", day)
    assert {row["run_id"] for row in runs if row["verdict"] != row["online_verdict"]} == set()


def test_burn_rates_are_those_of_a_direct_count(night: Night) -> None:
    """Every objective over the day: the checks as `truth.json` counts them, latencies and publishes from the events themselves."""
    report = night.reader.slo_burn(DAY)
    assert report is not None
    counted = {(one.objective, one.target): one for one in report.windows if one.window_s == DAY_S}
    expected = _checks(night.truth) | _messages(night.folder / "history")
    assert len(expected) == 7 * RECIPE.targets
    for (indicator, target), tally in expected.items():
        objective = next(one for one in DEFAULTS if one.indicator is indicator)
        window = counted[objective.name, target]
        assert (window.good, window.bad, window.undecided) == (tally.good, tally.bad, tally.undecided), (indicator, target)
        assert window.burn_rate == objective.burn_rate(tally)
        assert window.error_ratio == tally.error_ratio


def test_alerts_would_have_fired_when_something_was_planted(night: Night) -> None:
    report = night.reader.slo_burn(DAY)
    quiet = night.reader.slo_burn(QUIET)
    assert report is not None
    assert quiet is not None
    assert [one for one in quiet.alerts if one.firing] == []
    began = {one["trouble"]: one["since"] for one in night.truth["windows"]}
    for objective, trouble in (("order", "order_broken"), ("end_to_end_latency", "slow_delivery")):
        spans = [span for one in report.alerts if one.objective == objective and one.severity == "page" for span in one.firing]
        hour = int(began[trouble][11:13])
        assert any(0 <= since - MIDNIGHT - DAY_S - hour * HOUR_S <= HOUR_S for since, _ in spans), (objective, spans)


def test_who_spent_the_budget_of_order(night: Night) -> None:
    report = night.reader.slo_burn(DAY, objective="order")
    assert report is not None
    spent = {(one.by, one.value) for one in report.spenders}
    assert {("key", "key-0"), ("probe", "ordering"), ("subscription", "projects/target-0/subscriptions/okp-ordering")} <= spent


def test_every_job_leaves_a_summary(night: Night) -> None:
    summaries = night.reader.summaries(DAY)
    assert set(summaries) == set(Job)
    assert {job: one.verdict for job, one in summaries.items() if one.verdict is not Verdict.FAIL} == {Job.COMPACT: Verdict.PASS}
    assert all(one.finished_at > 0.0 and one.duration_s > 0.0 for one in summaries.values())
    assert night.reader.latest_day(Job.SLO_BURN) == DAY
    assert night.reader.last_success(Job.NIGHTLY) == summaries[Job.NIGHTLY].finished_at
    assert set(summaries[Job.NIGHTLY].numbers["jobs"]) == {Job.HOT_KEYS, Job.SLO_BURN, Job.REVERIFY, Job.COMPACT}


def test_what_compaction_merged_is_no_news(night: Night) -> None:
    for day in (QUIET, DAY):
        assert not nightly.inputs_of(night.work, day).are_news_to(night.work.reports.summary(Job.NIGHTLY, day))


def test_a_night_that_is_repeated_says_the_same_and_picks_up_what_came_late(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the quiet day that a prober could not ship in time holds a message that was received out of order."""
    monkeypatch.setattr(nightly, "JOBS", {job: nightly.JOBS[job] for job in (Job.HOT_KEYS, Job.REVERIFY)})
    for name in ("history", "reports"):
        copytree(night.folder / name, tmp_path / name)
    history = History(night.work.spark, str(tmp_path / "history"))
    reports = Reports(night.work.spark, str(tmp_path / "reports"))
    write(tmp_path / "history", Taped("ordering-late").add(*_out_of_order()).ended(3600.0, 3700.0, "FAIL"), writer="late")
    outcome = nightly.run(replace(night.work, history=history, reports=reports))
    assert outcome.line == f"nightly {DAY}: FAIL, hot-keys FAIL, reverify FAIL; done again: {QUIET}"
    reader = ReportReader(str(tmp_path / "reports"))
    late = reader.summary(Job.REVERIFY, QUIET)
    assert late is not None
    assert late.numbers["kinds"] == {"ORDER_GAP": 1, "ORDER_INVERSION": 1, "REALTIME_INVERSION": 1}
    before, after = night.reader.summaries(DAY), reader.summaries(DAY)
    for job in (Job.HOT_KEYS, Job.REVERIFY):
        assert after[job].numbers == before[job].numbers
        assert after[job].finished_at > before[job].finished_at


def test_burn_rates_of_a_period_count_what_came_late(spark: SparkSession, tmp_path: Path) -> None:
    def told() -> dict[float, int]:
        """Good publishes by window."""
        slo_burn.run(work)
        report = ReportReader(str(tmp_path / "reports")).slo_burn(DAY)
        assert report is not None
        return {one.window_s: one.good for one in report.windows if one.window_s >= 3 * DAY_S}

    write(tmp_path / "history", Taped("ordering-1").add(*_out_of_order()).ended(0.0, 3700.0))
    history, reports = History(spark, str(tmp_path / "history")), Reports(spark, str(tmp_path / "reports"))
    available = next(one for one in DEFAULTS if one.indicator is Indicator.PUBLISH_AVAILABILITY)
    work = Work(spark, history, reports, DAY, MIDNIGHT + 2 * DAY_S + HOUR_S, Settings(objectives=(available,)))
    assert told() == {3 * DAY_S: 2, 30 * DAY_S: 2}
    write(tmp_path / "history", Taped("ordering-late").add(*_out_of_order()).ended(3600.0, 3700.0), writer="late")
    assert told() == {3 * DAY_S: 4, 30 * DAY_S: 4}


# --- direct counts -----------------------------------------------------------------------------------------------------------


def _table(night: Night, job: str, table: str, day: date) -> list[Json]:
    rows: list[Json] = pq.read_table(night.folder / "reports" / job / f"date={day}" / table, partitioning=None).to_pylist()
    return rows


def _checks(truth: Json) -> dict[tuple[Indicator, str], SliCounts]:
    names = {Indicator.ORDER, Indicator.REDELIVERY, Indicator.AFFINITY, Indicator.COMPLETENESS}
    return {
        (Indicator(one["indicator"]), one["target"]): SliCounts(one["good"], one["bad"], one["undecided"])
        for one in truth["tallies"]
        if one["date"] == str(DAY) and Indicator(one["indicator"]) in names
    }


def _messages(history: Path) -> dict[tuple[Indicator, str], SliCounts]:
    """Publishes and latencies by the rules at the head of `prober.slo.indicators`, event by event."""
    runs = {
        row["run_id"]: row for row in pq.read_table(history / "runs", partitioning=None).to_pylist() if row["verdict"] is not None
    }
    thresholds = {one.indicator: one.threshold_s or 0.0 for one in DEFAULTS}
    sent: dict[tuple[str, str, int], float] = {}
    confirmed: dict[tuple[str, str, int], float] = {}
    received: dict[tuple[str, str, int], float] = {}
    failed = set()
    overdue = {
        (row["run_id"], row["key"])
        for row in pq.read_table(history / "findings", partitioning=None).to_pylist()
        if row["kind"] in {kind.value for kind in OVERDUE} and row["status"] in {status.value for status in FAILING}
    }
    for row in sorted(pq.read_table(history / "events", partitioning=None).to_pylist(), key=lambda row: row["time"]):
        at, name = row["time"].timestamp(), (row["run_id"], row["key"], row["seq"])
        for kind, times in (("publish", sent), ("published", confirmed), ("delivered", received)):
            if row["event"] == kind:
                times.setdefault(name, at)
        if row["event"] == "publish_failed":
            failed.add(name)
    counts: defaultdict[tuple[Indicator, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for name, at in sent.items():
        run = runs[name[0]]
        if at < MIDNIGHT + DAY_S:
            continue
        counts[Indicator.PUBLISH_AVAILABILITY, run["target"]][name in failed] += 1
        for indicator, until in ((Indicator.PUBLISH_LATENCY, confirmed), (Indicator.END_TO_END_LATENCY, received)):
            if name not in failed and run["probe"] not in DISTURBED.get(indicator, ()):
                is_late = (
                    indicator is Indicator.END_TO_END_LATENCY and name in confirmed and name[:2] in overdue and name not in received
                )
                counts[indicator, run["target"]][1 if is_late else _place(at, until.get(name), thresholds[indicator])] += 1
    return {name: SliCounts(*numbers) for name, numbers in counts.items()}


def _place(since: float, until: float | None, threshold_s: float) -> int:
    """Whether it is good, bad or undecided."""
    return 2 if until is None else int(round((until - since) * 1e6) > round(threshold_s * 1e6))


def _out_of_order() -> list[Event]:
    events: list[Event] = [Opened(3600.0, S, "A", "A")]
    for seq in (1, 2):
        events += [
            PublishInvoked(3600.0 + seq, "k", "ordering-late", seq),
            Published(3600.1 + seq, "k", "ordering-late", seq, f"m{seq}"),
        ]
    for place, seq in enumerate((2, 1)):
        events += [
            Delivered(3610.0 + place, S, "k", "A", "ordering-late", seq, f"m{seq}"),
            Acked(3610.5 + place, S, "k", "A", f"m{seq}"),
        ]
    return [*events, Ended(3700.0, drained=True)]
