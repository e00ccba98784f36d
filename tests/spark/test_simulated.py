"""The jobs on two simulated days, against what the simulations know and a direct count; and what is read back of their reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from shutil import copytree

import pytest
from pyspark.sql import SparkSession

from prober.core.findings import FAILING, Status
from prober.core.verdict import Verdict
from prober.embedded.faults import Fault
from prober.reports.reader import ReportReader
from prober.simulation.observation import RunNote, caught_as
from prober.simulation.world import Simulated, simulate
from prober.sinks.metrics.label_values import Job
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, DEFAULTS, HOUR_S, SliCounts
from spark_jobs import nightly, slo_burn
from spark_jobs.history import History
from spark_jobs.work import Reports, Settings, Work
from tests.spark.direct import Row, counted, rows_of
from tests.spark.simulated import LATE, QUIET, TARGET
from tests.spark.taped import DAY, MIDNIGHT

pytestmark = pytest.mark.nightly

MORNING = MIDNIGHT + DAY_S + HOUR_S
FAULTS = {"swap_in_batch", "split_holder", "stall_key", "redeliver_unacked_only"}
"""Those that violate a guarantee."""
BEGINS = {QUIET: MIDNIGHT - DAY_S, DAY: MIDNIGHT}


@dataclass(frozen=True)
class Night:
    """A history, what the simulations know of it, and the reports of one night."""

    folder: Path
    simulated: list[Simulated]
    work: Work
    reader: ReportReader

    @property
    def notes(self) -> dict[str, RunNote]:
        """What the simulations know of each run."""
        return {note.run_id: note for one in self.simulated for note in one.notes}

    def ended(self, day: date) -> dict[str, Row]:
        """The runs that ended on a day."""
        began = BEGINS[day]
        rows = [row for row in rows_of(self.folder / "history", "runs") if row["verdict"] is not None]
        return {row["run_id"]: row for row in rows if began <= row["time"].timestamp() < began + DAY_S}

    def table(self, job: Job, table: str, day: date) -> list[Row]:
        """A table of a report."""
        return rows_of(self.folder / "reports" / job / f"date={day}", table)


@pytest.fixture(scope="module")
def night(spark: SparkSession, simulated_days: tuple[Path, list[Simulated]], tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Both days, the second of which is the one asked for; it finds that the first one has not been reported on."""
    folder, (days, simulated) = tmp_path_factory.mktemp("simulated"), simulated_days
    copytree(days, folder / "history")
    history, reports = History(spark, str(folder / "history")), Reports(spark, str(folder / "reports"))
    work = Work(spark, history, reports, DAY, MORNING, Settings(look_back_days=1))
    outcome = nightly.run(work)
    assert outcome.line == f"nightly {DAY}: FAIL, hot-keys PASS, slo-burn FAIL, reverify FAIL, retention PASS; done again: {QUIET}"
    return Night(folder, simulated, work, ReportReader(str(folder / "reports")))


# --- reverify ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", [QUIET, DAY])
def test_what_is_verified_again_is_what_was_found_online(night: Night, day: date) -> None:
    def reported(rows: list[Row]) -> Counter[tuple[str, ...]]:
        names = ("run_id", "subscription", "key", "kind", "status")
        return Counter(tuple(row[name] for name in names) for row in rows if row["status"] != Status.INFO)

    ended = night.ended(day).keys()
    online = [row for row in rows_of(night.folder / "history", "findings") if row["run_id"] in ended]
    assert reported(night.table(Job.REVERIFY, "findings", day)) == reported(online)
    assert night.table(Job.REVERIFY, "differences", day) == []
    runs = {row["run_id"]: row for row in night.table(Job.REVERIFY, "runs", day)}
    assert runs.keys() == ended
    assert [row for row in runs.values() if row["verdict"] != row["online_verdict"]] == []


def test_what_is_verified_again_is_what_the_simulations_know(night: Night) -> None:
    """What violated no guarantee is not found, and what did is, as what it must be."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for day in (QUIET, DAY):
        for row in night.table(Job.REVERIFY, "findings", day):
            if row["status"] in set(FAILING):
                found[row["run_id"]].add(row["kind"])
    assert found == {note.run_id: set(note.found) for note in night.notes.values() if note.found}
    assert not found.keys() & {note.run_id for note in night.notes.values() if note.clean}
    assert not found.keys() & night.ended(QUIET).keys()
    injected = [(fault, note) for note in night.notes.values() for fault in note.injected if caught_as(fault, note.probe)]
    assert {fault for fault, _ in injected} == FAULTS
    assert [one for one in injected if found[one[1].run_id].isdisjoint(caught_as(one[0], one[1].probe))] == []


def test_both_days_have_runs_of_every_verdict_that_they_should_have(night: Night) -> None:
    assert {row["verdict"] for row in night.ended(QUIET).values()} == {Verdict.PASS}
    assert {row["verdict"] for row in night.ended(DAY).values()} == set(Verdict)
    assert any(row["started_at"].timestamp() < MIDNIGHT for row in night.ended(DAY).values())


# --- slo-burn ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", [QUIET, DAY])
def test_burn_rates_are_those_of_a_direct_count(night: Night, day: date) -> None:
    """Every objective over the day: checks as runs made them online, latencies and publishes from the events themselves."""
    report = night.reader.slo_burn(day)
    assert report is not None
    windows = {one.objective: one for one in report.windows if one.window_s == DAY_S and one.target == TARGET}
    expected = counted(night.folder / "history", BEGINS[day], BEGINS[day] + DAY_S)
    assert len(expected) == 7
    for indicator, counts in expected.items():
        objective = next(one for one in DEFAULTS if one.indicator is indicator)
        window = windows[objective.name]
        assert (window.good, window.bad, window.undecided) == (counts.good, counts.bad, counts.undecided), indicator
        assert (window.burn_rate, window.error_ratio) == (objective.burn_rate(counts), counts.error_ratio)
        assert (counts.bad > 0) == (day == DAY), indicator


def test_alerts_would_have_fired_when_a_fault_was_injected_often(night: Night) -> None:
    report, quiet = night.reader.slo_burn(DAY), night.reader.slo_burn(QUIET)
    assert report is not None
    assert quiet is not None
    assert [one for one in quiet.alerts if one.firing] == []
    began: defaultdict[str, list[float]] = defaultdict(list)
    for one in report.alerts:
        if one.severity == "page":
            began[one.objective] += [since - MIDNIGHT for since, _ in one.firing]
    for objective in ("order", "redelivery", "completeness", "publish_availability", "end_to_end_latency"):
        assert any(0.0 <= since_s < 5 * 60.0 for since_s in began[objective]), objective


def test_who_spent_the_budget_of_order(night: Night) -> None:
    report = night.reader.slo_burn(DAY, objective="order")
    assert report is not None
    spent: Counter[str] = Counter()
    for row in night.ended(DAY).values():
        spent[row["probe"]] += sum(check["bad"] for check in row["checks"] if check["indicator"] == Indicator.ORDER)
    assert {one.value: one.bad for one in report.spenders if one.by == "probe"} == +spent
    assert {"key", "subscription", "vantage", "region"} <= {one.by for one in report.spenders}


# --- hot-keys, summaries, nights that are repeated -------------------------------------------------------------------------------


@pytest.mark.parametrize("day", [QUIET, DAY])
def test_no_key_is_hot_that_a_probe_loads_like_any_other(night: Night, day: date) -> None:
    """The traffic of each subscription is that of a direct count."""
    report = night.reader.hot_keys(day)
    assert report is not None
    assert report.keys == ()
    published: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(night.folder / "history", "events"):
        if row["event"] == "publish" and BEGINS[day] <= row["time"].timestamp() < BEGINS[day] + DAY_S:
            published[row["topic"]][row["key"]] += 1
    spread = {one.topic: (one.messages, one.keys) for one in report.subscriptions}
    assert spread == {topic: (keys.total(), len(keys)) for topic, keys in published.items()}


def test_every_job_leaves_a_summary(night: Night) -> None:
    summaries = night.reader.summaries(DAY)
    assert set(summaries) == set(Job)
    failed = {job for job, one in summaries.items() if one.verdict is Verdict.FAIL}
    assert failed == {Job.NIGHTLY, Job.SLO_BURN, Job.REVERIFY}
    assert all(one.finished_at > 0.0 and one.duration_s > 0.0 for one in summaries.values())
    assert night.reader.latest_day(Job.SLO_BURN) == DAY
    assert night.reader.last_success(Job.NIGHTLY) == summaries[Job.NIGHTLY].finished_at
    assert set(summaries[Job.NIGHTLY].numbers["jobs"]) == {Job.HOT_KEYS, Job.SLO_BURN, Job.REVERIFY, Job.RETENTION}


def test_what_was_read_is_no_news(night: Night) -> None:
    for day in (QUIET, DAY):
        assert not nightly.inputs_of(night.work, day).are_news_to(night.work.reports.summary(Job.NIGHTLY, day))


def test_a_night_that_is_repeated_says_the_same_and_picks_up_what_came_late(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prober that could not ship its files of the first day in time received messages out of order."""
    monkeypatch.setattr(nightly, "JOBS", {job: nightly.JOBS[job] for job in (Job.HOT_KEYS, Job.REVERIFY)})
    for name in ("history", "reports"):
        copytree(night.folder / name, tmp_path / name)
    history = History(night.work.spark, str(tmp_path / "history"))
    reports = Reports(night.work.spark, str(tmp_path / "reports"))
    (note,) = simulate(LATE, str(tmp_path / "history")).notes
    outcome = nightly.run(replace(night.work, history=history, reports=reports))
    assert outcome.line == f"nightly {DAY}: FAIL, hot-keys PASS, reverify FAIL; done again: {QUIET}"
    reader = ReportReader(str(tmp_path / "reports"))
    late = reader.summary(Job.REVERIFY, QUIET)
    assert late is not None
    assert set(late.numbers["kinds"]) == set(note.found) == {"ORDER_GAP", "ORDER_INVERSION"}
    before, after = night.reader.summaries(DAY), reader.summaries(DAY)
    for job in (Job.HOT_KEYS, Job.REVERIFY):
        assert after[job].numbers == before[job].numbers
        assert after[job].finished_at > before[job].finished_at


def test_burn_rates_of_a_period_count_what_came_late(spark: SparkSession, tmp_path: Path) -> None:
    by_message = {Indicator.PUBLISH_AVAILABILITY, Indicator.PUBLISH_LATENCY, Indicator.END_TO_END_LATENCY}
    about = {one.indicator: one.name for one in DEFAULTS if one.indicator in by_message}
    objectives = tuple(one for one in DEFAULTS if one.indicator in about)
    simulate(LATE, str(tmp_path / "history"))
    history, reports = History(spark, str(tmp_path / "history")), Reports(spark, str(tmp_path / "reports"))
    work = Work(spark, history, reports, DAY, MORNING, Settings(objectives=objectives))

    def reported() -> dict[tuple[str, float], SliCounts]:
        """What long windows count, by objective and window."""
        slo_burn.run(work)
        report = ReportReader(str(tmp_path / "reports")).slo_burn(DAY)
        assert report is not None
        long = [one for one in report.windows if one.window_s >= 3 * DAY_S]
        return {(one.objective, one.window_s): SliCounts(one.good, one.bad, one.undecided) for one in long}

    def direct() -> dict[tuple[str, float], SliCounts]:
        found = counted(tmp_path / "history", MIDNIGHT - DAY_S, MIDNIGHT + DAY_S)
        return {(name, window_s): found[indicator] for indicator, name in about.items() for window_s in (3 * DAY_S, 30 * DAY_S)}

    in_time = direct()
    assert reported() == in_time
    simulate(replace(LATE, seed=LATE.seed + 1, faults=(Fault("slow_delivery", 0.3),)), str(tmp_path / "history"))
    assert reported() == direct()
    assert [name for name, before in in_time.items() if direct()[name].good <= before.good] == []
    assert direct()["end_to_end_latency", 3 * DAY_S].bad > 0
