"""What is recorded counts the same everywhere: metrics, the status store's slices, the recorded rules, and `slo-burn`.

It is the simulated days, with their faults and a prober that stood still, and beside them a target with a run for every case in which it
is easy to count differently. It is reported to the listeners of a live prober event by event, and read from its files by Spark.

Left out are the two indicators of slices of time, which a live prober samples whether a run goes on or not (docs/jobs.md), and that of the
control plane, of which there is no record. Of durations metrics have no undecided ones: a histogram holds what took some time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import Final

import pyarrow.parquet as pq
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from pyspark.sql import SparkSession

from prober.alerting import objectives as rules
from prober.alerting.catalogue import OBJECTIVES, rule_files
from prober.config.loading import load
from prober.runs.classification import Classifier, Observation
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.sink import KeptHistory, RunEnded
from prober.simulation.world import Simulated
from prober.sinks.history.reader import HistoryReader, Recorded, StoredRun
from prober.sinks.history.schema import EVENTS, LAGGED
from prober.sinks.live.state import LiveRun, LiveState
from prober.sinks.metrics import Metrics, TargetMetrics
from prober.sinks.metrics.measurements import Measurements
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.slices import Series, Slices, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.counts import BREACHES, SloCounters, is_overdue
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, DEFAULTS, MINUTE_S, PERIOD_S, Objective, SliCounts
from spark_jobs import slo_burn
from spark_jobs.history import History
from spark_jobs.work import NOT_RECORDED, Reports, Settings, Work
from tests.alerts.tools import said
from tests.spark.cases import CUT, CUT_SHORT, cases
from tests.spark.simulated import QUIET, TARGET
from tests.spark.taped import DAY, MIDNIGHT, write
from tests.unit.sinks.history.recording import findings_in
from tests.unit.sinks.metrics.scraping import page

SAMPLED: Final = {Indicator.OLDEST_UNACKED_MESSAGE_AGE, Indicator.STALLED_KEYS}
CHECKED: Final = {*BREACHES, Indicator.COMPLETENESS}
OBJECTIVES_OF_DAY: Final = (
    *(one for one in DEFAULTS if one.indicator not in SAMPLED | NOT_RECORDED),
    Objective("redelivery_latency", Indicator.REDELIVERY_LATENCY, 0.99, PERIOD_S, 0.25),
    Objective("quick_receipts", Indicator.END_TO_END_LATENCY, 0.9, PERIOD_S, 0.1),
)
TARGETS: Final = dict.fromkeys((TARGET, "prod", CUT), ("production", "europe-west1"))
"""Environment and region by target. They matter only in that the recorded rules keep them."""

Counts = dict[tuple[str, str], SliCounts]
"""By target and objective; what nothing was counted for is missing."""


@dataclass(frozen=True)
class Reported:
    """What a live prober counted that day: what is scraped of it, and its status store."""

    scraped: list[Sample]
    store: Path


@pytest.fixture(scope="module")
def history(simulated_days: tuple[Path, list[Simulated]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, (days, _) = tmp_path_factory.mktemp("conformance") / "history", simulated_days
    copytree(days, folder)
    write(folder, *cases())
    return folder


@pytest.fixture(scope="module")
def reported(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """The day as a live prober would have counted it: run after run, in the order in which they ended."""
    metrics, slices, location = Metrics(OBJECTIVES_OF_DAY), Slices("p"), tmp_path_factory.mktemp("status") / "status.db"
    targets = {name: _Target(name, metrics) for name in TARGETS}
    reader = HistoryReader(str(history))
    rows = pq.read_table(history / EVENTS.name, columns=["run_id", "number", LAGGED]).to_pylist()
    lagged_s = {(row["run_id"], row["number"]): row[LAGGED] or 0.0 for row in rows}
    overdue: dict[str, set[tuple[str, str]]] = {}
    for found in findings_in(history):
        if is_overdue(found.made.finding):
            overdue.setdefault(found.run_id, set()).add((found.made.finding.subscription, found.made.finding.key))
    for run in reader.runs():
        target = targets[run.context.target]
        target.tell(run, reader.events(None, run_ids=(run.run_id,)), lagged_s, overdue.get(run.run_id, set()))
        for series, total in target.totals(run.at):
            slices.record(series, total, run.at)
    database = Database(f"sqlite:///{location}")
    store = StatusStore(database)
    store.prepare()
    store.heartbeat(ProberRecord("p", "1", MIDNIGHT, MIDNIGHT + DAY_S), (), slices.as_slices(slices.take()))
    database.close()
    body = page(metrics)[1].decode()
    return Reported([sample for family in text_string_to_metric_families(body) for sample in family.samples], location)


@pytest.fixture(scope="module")
def stored(reported: Reported) -> Counts:
    """Through the status store, by its own question."""
    database = Database(f"sqlite:///{reported.store}")
    named = {(one.name, definition_of(one)): one for one in OBJECTIVES_OF_DAY}
    found = StatusQueries(database).counts(2 * DAY_S, MIDNIGHT + DAY_S)
    database.close()
    return {(series.target, named[series[1:]].name): counts for series, counts in found.items()}


@pytest.fixture(scope="module")
def burnt(history: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """Through Spark."""
    reports = Reports(spark, str(tmp_path_factory.mktemp("reports")))
    settings = Settings(objectives=OBJECTIVES_OF_DAY)
    work = Work(spark, History(spark, str(history)), reports, DAY, MIDNIGHT + DAY_S + timedelta(hours=1).seconds, settings)
    for day in (QUIET, DAY):
        slo_burn.count_minutes(work, day, OBJECTIVES_OF_DAY)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in reports.read(slo_burn.MINUTES_JOB, slo_burn.COUNTS_TABLE, [QUIET, DAY], slo_burn.MINUTES).collect():
        found = counts.setdefault((row.target, row.objective), Counter())
        found.update(good=row.good, bad=row.bad, undecided=row.undecided)
    return {name: SliCounts(one["good"], one["bad"], one["undecided"]) for name, one in counts.items()}


def test_spark_counts_what_the_status_store_holds(stored: Counts, burnt: Counts) -> None:
    def ended(counts: Counts) -> Counts:
        return {name: one for name, one in counts.items() if name[0] != CUT}

    assert ended(burnt) == ended(stored)


def test_what_a_run_proved_before_it_was_cut_short_is_bad_and_nothing_of_its_checks_is_good(stored: Counts, burnt: Counts) -> None:
    """What is undecided in it nobody counts online: nobody was left to."""
    expected = {"order": (0, 1), "completeness": (0, 1), "quick_receipts": (0, 5)}
    for counts in (stored, burnt):
        found = {name: (one.good, one.bad) for (target, name), one in counts.items() if target == CUT}
        assert {name: found[name] for name in expected} == expected
    decided = [
        {name: (one.good, one.bad) for name, one in counts.items() if one.decided and name[0] == CUT} for counts in (stored, burnt)
    ]
    assert decided[0] == decided[1]


def test_what_passed_its_deadline_is_late_for_every_threshold(stored: Counts) -> None:
    late = [name for name, one in ((one.name, one) for one in OBJECTIVES_OF_DAY) if one.indicator is Indicator.END_TO_END_LATENCY]
    assert len(late) > 1
    assert all(stored[CUT, name].bad >= 1 for name in late)


def test_the_metrics_hold_the_same_checks(reported: Reported, stored: Counts) -> None:
    families = {"order": "order", "redelivery": "redelivery", "affinity": "affinity", "completeness": "delivery"}
    for target in TARGETS:
        for objective, family in families.items():
            results = {
                result: sum(
                    int(sample.value)
                    for sample in reported.scraped
                    if sample.name == f"pubsub_prober_{family}_checks_total"
                    and (sample.labels["target"], sample.labels["result"]) == (target, result)
                )
                for result in ("good", "bad", "undecided")
            }
            assert SliCounts(**results) == stored.get((target, objective), SliCounts()), (target, objective)


def test_the_recorded_rules_say_the_same(reported: Reported, stored: Counts, tmp_path: Path) -> None:
    """Everything is scraped at 0, and once more when the day is over: so an increase over that time is what was counted."""
    window_s = 5 * MINUTE_S
    (tmp_path / OBJECTIVES).write_text(rule_files(OBJECTIVES_OF_DAY)[OBJECTIVES], encoding="utf-8")
    before = " ".join(["0"] * 19)
    series = [
        {
            "series": _written(sample, job="ordering-keys-prober", instance="i"),
            "values": f"{before} {sample.value:.0f} {sample.value:.0f}",
        }
        for sample in reported.scraped
        if sample.name.endswith(("_total", "_bucket", "_count"))
    ]
    asked = []
    for objective in OBJECTIVES_OF_DAY:
        for name, number in ((rules.bad_series(window_s), "bad"), (rules.decided_series(window_s), "decided")):
            expected = []
            for target, (environment, region) in TARGETS.items():
                labels = {"target": target, "environment": environment, "region": region}
                labels |= {"slo": objective.name, "indicator": str(objective.indicator)}
                value = getattr(stored.get((target, objective.name), SliCounts()), number)
                expected.append({"labels": _named(name, labels), "value": value})
            asked.append({"expr": f'{name}{{slo="{objective.name}"}}', "eval_time": "5m", "exp_samples": expected})
    story = {
        "rule_files": [OBJECTIVES],
        "evaluation_interval": "15s",
        "tests": [{"name": "day", "interval": "15s", "input_series": series, "promql_expr_test": asked}],
    }
    (tmp_path / "day.yaml").write_text(yaml.safe_dump(story), encoding="utf-8")
    code, words = said("promtool", "test", "rules", tmp_path / "day.yaml")
    assert code == 0, words


def test_the_day_has_something_of_everything(stored: Counts) -> None:
    """Good, bad and undecided of each indicator, as far as it can be that."""
    for objective in OBJECTIVES_OF_DAY:
        total = sum((one for (_, name), one in stored.items() if name == objective.name), SliCounts())
        assert total.good, objective.name
        assert total.bad, objective.name
        assert total.undecided, objective.name


# --- a live prober -----------------------------------------------------------------------------------------------------------


class _Target:
    """Who listens to the runs on one target."""

    def __init__(self, name: str, metrics: Metrics) -> None:
        environment, region = TARGETS[name]
        about = {"name": name, "environment": environment, "region": region}
        self._metrics: TargetMetrics = metrics.watch(load(None, {}).targets[0].model_copy(update=about), ["t"], ["s"])
        self._counters = SloCounters(OBJECTIVES_OF_DAY)
        self._name = name
        self._live = LiveState((), OBJECTIVES_OF_DAY, version="1", instance="p", started_at=MIDNIGHT)

    def tell(
        self, run: StoredRun, events: Iterable[Recorded], lagged_s: Mapping[tuple[str, int], float], overdue: set[tuple[str, str]]
    ) -> None:
        """The events of a run, as its recorder reported them, and its end. One that has none in the history was cut short."""
        topic, subscription = self._metrics.topic("t"), self._metrics.subscription("s")
        key = InstanceKey(self._name, run.context.probe, "wire")
        listener = Measurements(self._metrics, topic, {"s": subscription}, self._counters, {}, key)
        first = next(iter(run.rules))
        classifier = Classifier(run.run_id, first if len(run.rules) > 1 else "")
        overdue_keys = {key for name, key in overdue if name == first}
        for recorded in events:
            kind, latency = classifier.classify(recorded.event)
            if latency is not None:
                latency = latency._replace(lagged_s=lagged_s[recorded.run_id, recorded.number])
            listener.event(Observation(recorded.event, kind, latency, ()))
        result = run.result or replace(CUT_SHORT, run_id=run.run_id)
        counts = run.result is None or bool(run.result.checks)  # else it ended under maintenance
        end = RunEnded(
            result,
            (),
            KeptHistory((), {}, 0),
            run.at,
            counts=counts,
            cut_short=run.result is None,
            undecided=classifier.undecided(overdue_keys if counts else ()),
            overdue=classifier.overdue(overdue_keys) if counts else 0,
        )
        listener.ended(end)
        instance = ProbeInstance(self._name, run.context.probe, "wire", interval_s=60.0)
        self._live.watched(instance, run.at)
        LiveRun(self._live, instance).ended(end)

    def totals(self, at: float) -> Iterator[tuple[Series, SliCounts]]:
        """What was counted so far, as it is asked to the status store."""
        for objective, total in self._counters.totals.items():
            self._live.counted(self._name, objective, total)
        for slo in self._live.snapshot(at).slos:
            yield Series(slo.target, slo.objective.name, definition_of(slo.objective)), slo.total


def _written(sample: Sample, **more: str) -> str:
    return _named(sample.name, sample.labels | more)


def _named(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{{{', '.join(f'{label}={value!r}'.replace(chr(39), chr(34)) for label, value in labels.items())}}}"
