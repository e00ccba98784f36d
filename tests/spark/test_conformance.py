"""One recorded day counts the same everywhere: metrics, the status store's slices, the recorded rules, and `slo-burn`.

The day is a synthetic one, with known faults and a run of a prober that stood still, and beside it a target with a run for every case in
which it is easy to count differently. It is told to the listeners of a live prober event by event, and read from its files by Spark.

Left out are the two indicators of slices of time, which a live prober samples whether a run goes on or not (docs/jobs.md), and that of the
control plane, of which there is no record. Of durations metrics have no undecided ones: a histogram holds what took some time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from pyspark.sql import SparkSession

from prober.alerting import objectives as rules
from prober.alerting.files import OBJECTIVES, rule_files
from prober.config import load
from prober.core.events import (
    Acked,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.findings import Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.classification import Classifier, Observation
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunEnded
from prober.runs.site import Site
from prober.sinks.history.reader import HistoryReader, Recorded
from prober.sinks.history.records import StoredRun
from prober.sinks.history.schema import EVENTS, LAGGED
from prober.sinks.history.synthesis.plan import Recipe
from prober.sinks.history.synthesize import make_history
from prober.sinks.live.state import LiveRun, LiveState
from prober.sinks.metrics import Metrics, TargetMetrics
from prober.sinks.metrics.measurements import Measurements
from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import ProberRecord
from prober.sinks.status.slices import Series, Slices, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.counts import BREACHES, SloCounters, is_overdue
from prober.slo.defaults import DEFAULTS, PERIOD_S
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, MINUTE_S, Objective, SliCounts
from spark_jobs import slo_burn
from spark_jobs.history import History
from spark_jobs.work import Reports, Settings, Work
from tests.alerts.tools import said
from tests.spark.lagging import lagged
from tests.spark.taped import DAY, MIDNIGHT, S, Taped, write
from tests.unit.sinks.metrics.scraping import page

SAMPLED: Final = {Indicator.OLDEST_UNACKED_MESSAGE_AGE, Indicator.STALLED_KEYS}
CHECKED: Final = {*BREACHES, Indicator.COMPLETENESS}
OBJECTIVES_OF_DAY: Final = (
    *(one for one in DEFAULTS if one.indicator not in SAMPLED),
    Objective("redelivery_latency", Indicator.REDELIVERY_LATENCY, 0.99, PERIOD_S, 0.25),
    Objective("quick_receipts", Indicator.END_TO_END_LATENCY, 0.9, PERIOD_S, 0.1),
)
SYNTHETIC, TAPED, CUT = "target-0", "prod", "cut"
TARGETS: Final = {
    SYNTHETIC: ("production", "europe-west1"),
    TAPED: ("production", "europe-west1"),
    CUT: ("production", "europe-west1"),
}

Counts = dict[tuple[str, str], SliCounts]
"""By target and objective; what nothing was counted for is missing."""


@dataclass(frozen=True)
class Told:
    """What a live prober counted that day: what is scraped of it, and its status store."""

    scraped: list[Sample]
    store: Path


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conformance") / "history"
    make_history(str(folder), Recipe(MIDNIGHT, days=1, events=6000, targets=1, seed=5))
    write(folder, *_cases())
    return folder


@pytest.fixture(scope="module")
def told(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The day as a live prober would have counted it: run after run, in the order in which they ended."""
    metrics, slices, location = Metrics(OBJECTIVES_OF_DAY), Slices("p"), tmp_path_factory.mktemp("status") / "status.db"
    targets = {name: _Target(name, metrics) for name in TARGETS}
    reader = HistoryReader(str(history))
    rows = pq.read_table(history / EVENTS.name, columns=["run_id", "number", LAGGED]).to_pylist()
    lagged_s = {(row["run_id"], row["number"]): row[LAGGED] or 0.0 for row in rows}
    overdue: dict[str, set[str]] = {}
    for found in reader.findings():
        if is_overdue(found.made.finding):
            overdue.setdefault(found.run_id, set()).add(found.made.finding.key)
    for run in reader.runs():
        target = targets[run.context.target]
        target.tell(run, reader.events(None, run_ids=(run.run_id,)), lagged_s, overdue.get(run.run_id, set()))
        for series, total in target.totals(run.at):
            slices.told(series, total, run.at)
    database = Database(f"sqlite:///{location}")
    store = StatusStore(database)
    store.prepare()
    store.heartbeat(ProberRecord("p", "1", MIDNIGHT, MIDNIGHT + DAY_S), (), slices.as_slices(slices.take()))
    database.close()
    body = page(metrics)[1].decode()
    return Told([sample for family in text_string_to_metric_families(body) for sample in family.samples], location)


@pytest.fixture(scope="module")
def stored(told: Told) -> Counts:
    """Through the status store, by its own question."""
    database = Database(f"sqlite:///{told.store}")
    named = {(one.name, definition_of(one)): one for one in OBJECTIVES_OF_DAY}
    found = StatusQueries(database).tallies(2 * DAY_S, MIDNIGHT + DAY_S)
    database.close()
    return {(series.target, named[series[1:]].name): tally for series, tally in found.items()}


@pytest.fixture(scope="module")
def burnt(history: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """Through Spark."""
    reports = Reports(spark, str(tmp_path_factory.mktemp("reports")))
    settings = Settings(objectives=OBJECTIVES_OF_DAY)
    work = Work(spark, History(spark, str(history)), reports, DAY, MIDNIGHT + DAY_S + timedelta(hours=1).seconds, settings)
    slo_burn.count_minutes(work, DAY, OBJECTIVES_OF_DAY)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in reports.read(slo_burn.MINUTES_JOB, "tallies", [DAY], slo_burn.TALLIES).collect():
        found = counts.setdefault((row.target, row.objective), Counter())
        found.update(good=row.good, bad=row.bad, undecided=row.undecided)
    return {name: SliCounts(one["good"], one["bad"], one["undecided"]) for name, one in counts.items()}


def test_spark_counts_what_the_status_store_holds(stored: Counts, burnt: Counts) -> None:
    def ended(counts: Counts) -> Counts:
        return {name: tally for name, tally in counts.items() if name[0] != CUT}

    assert ended(burnt) == ended(stored)


def test_what_a_run_proved_before_it_was_cut_short_is_bad_and_nothing_of_its_checks_is_good(stored: Counts, burnt: Counts) -> None:
    """What is undecided in it nobody counts online: nobody was left to."""
    expected = {"order": (0, 1), "completeness": (0, 1), "quick_receipts": (0, 5)}
    for counts in (stored, burnt):
        found = {name: (tally.good, tally.bad) for (target, name), tally in counts.items() if target == CUT}
        assert {name: found[name] for name in expected} == expected
    decided = [
        {name: (one.good, one.bad) for name, one in counts.items() if one.decided and name[0] == CUT} for counts in (stored, burnt)
    ]
    assert decided[0] == decided[1]


def test_what_passed_its_deadline_is_late_for_every_threshold(stored: Counts) -> None:
    late = [name for name, one in ((one.name, one) for one in OBJECTIVES_OF_DAY) if one.indicator is Indicator.END_TO_END_LATENCY]
    assert len(late) > 1
    assert all(stored[CUT, name].bad >= 1 for name in late)


def test_the_metrics_hold_the_same_checks(told: Told, stored: Counts) -> None:
    families = {"order": "order", "redelivery": "redelivery", "affinity": "affinity", "completeness": "delivery"}
    for target in TARGETS:
        for objective, family in families.items():
            results = {
                result: sum(
                    int(sample.value)
                    for sample in told.scraped
                    if sample.name == f"pubsub_prober_{family}_checks_total"
                    and (sample.labels["target"], sample.labels["result"]) == (target, result)
                )
                for result in ("good", "bad", "undecided")
            }
            assert SliCounts(**results) == stored.get((target, objective), SliCounts()), (target, objective)


def test_the_recorded_rules_say_the_same(told: Told, stored: Counts, tmp_path: Path) -> None:
    """Everything is scraped at 0, and once more when the day is over: so an increase over that time is what was counted."""
    window_s = 5 * MINUTE_S
    (tmp_path / OBJECTIVES).write_text(rule_files(OBJECTIVES_OF_DAY)[OBJECTIVES], encoding="utf-8")
    before = " ".join(["0"] * 19)
    series = [
        {
            "series": _written(sample, job="ordering-keys-prober", instance="i"),
            "values": f"{before} {sample.value:.0f} {sample.value:.0f}",
        }
        for sample in told.scraped
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
        total = sum((tally for (_, name), tally in stored.items() if name == objective.name), SliCounts())
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
        self._tallies = SloCounters(OBJECTIVES_OF_DAY)
        self._name = name
        self._live = LiveState((), OBJECTIVES_OF_DAY, version="1", instance="p", started_at=MIDNIGHT)

    def tell(
        self, run: StoredRun, events: Iterable[Recorded], lagged_s: Mapping[tuple[str, int], float], overdue_keys: set[str]
    ) -> None:
        """The events of a run, as its recorder told them, and its end. One that has none in the history was cut short."""
        topic, subscription = self._metrics.topic("t"), self._metrics.subscription("s")
        listener = Measurements(topic, subscription, self._tallies, {}, run.context.probe)
        classifier = Classifier(run.run_id)
        for recorded in events:
            kind, latency = classifier.classify(recorded.event)
            if latency is not None:
                latency = latency._replace(lagged_s=lagged_s[recorded.run_id, recorded.number])
            listener.event(Observation(recorded.event, kind, latency, ()))
        result = run.result or replace(CUT_SHORT, run_id=run.run_id)
        end = RunEnded(
            result,
            (),
            KeptHistory((), {}, 0),
            run.at,
            counts=run.result is not None,
            cut_short=run.result is None,
            undecided=classifier.undecided(overdue_keys),
            overdue=classifier.overdue(overdue_keys),
        )
        listener.ended(end)
        site = Site(self._name, run.context.probe, "wire", interval_s=60.0)
        self._live.watched(site, run.at)
        LiveRun(self._live, site).ended(end)

    def totals(self, at: float) -> Iterator[tuple[Series, SliCounts]]:
        """What was counted so far, as it is told to the status store."""
        for objective, total in self._tallies.totals.items():
            self._live.counted(self._name, objective, total)
        for slo in self._live.snapshot(at).slos:
            yield Series(slo.target, slo.objective.name, definition_of(slo.objective)), slo.total


def _written(sample: Sample, **more: str) -> str:
    return _named(sample.name, sample.labels | more)


def _named(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{{{', '.join(f'{label}={value!r}'.replace(chr(39), chr(34)) for label, value in labels.items())}}}"


# --- cases -------------------------------------------------------------------------------------------------------------------


def _cases() -> list[Taped]:
    """A run for each case, all on one target."""
    return [
        _undecided_verdict(),
        _stood_still(),
        _lost(),
        _failed_inside(),
        _refused_and_republished(),
        _redelivered(),
        _disturbed(),
        _cut_short(),
        _at_the_threshold(),
        _unreachable(),
        _kept_from_publishing(),
        lagged(),
    ]


def _message(run: Taped, at: float, seq: int, *, confirmed: float | None = 0.05, received: float | None = 0.2) -> list[Event]:
    events: list[Event] = [PublishInvoked(at, "k", run.run_id, seq)]
    if confirmed is not None:
        events.append(Published(at + confirmed, "k", run.run_id, seq, f"{run.run_id}-{seq}"))
    if received is not None:
        events.append(Delivered(at + received, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}"))
    return events


def _check(indicator: Indicator, good: int, bad: int, undecided: int) -> dict[str, object]:
    return {"indicator": indicator.value, "good": good, "bad": bad, "undecided": undecided}


def _undecided_verdict() -> Taped:
    """What it judged is judged, although something is still owed in the end; one publish has no answer."""
    run = Taped("ordering-owed").add(Opened(100.0, S, "A", "A"))
    for seq in range(1, 5):
        run.add(*_message(run, 100.0 + seq, seq))
    run.add(*_message(run, 106.0, 5, received=None), *_message(run, 107.0, 6, confirmed=None, received=None))
    return run.ended(100.0, 130.0, "UNKNOWN", checks=[_check(Indicator.ORDER, 4, 0, 1), _check(Indicator.COMPLETENESS, 4, 0, 1)])


def _stood_still() -> Taped:
    """It stopped to judge, which the service may have caused: what it saw later is not judged, and is measured."""
    run = Taped("ordering-still").add(Opened(200.0, S, "A", "A"))
    for seq in range(1, 4):
        run.add(*_message(run, 200.0 + seq, seq))
    run.add(PublishInvoked(205.0, "k", run.run_id, 4), PublishInvoked(205.1, "k", run.run_id, 5))
    judged = len(run.events)
    run.add(
        Published(211.0, "k", run.run_id, 4, f"{run.run_id}-4"),
        PublishUnknown(211.0, "k", run.run_id, 5),
        Delivered(211.1, S, "k", "A", run.run_id, 4, f"{run.run_id}-4"),
        Nacked(211.2, S, "k", "A", f"{run.run_id}-4"),
        Delivered(219.0, S, "k", "A", run.run_id, 4, f"{run.run_id}-4"),
        *_message(run, 220.0, 6),
    )
    return run.ended(200.0, 230.0, "UNKNOWN", judged_events=judged, checks=[_check(Indicator.ORDER, 0, 0, 3)])


def _lost() -> Taped:
    """A confirmed message never comes: it is missing, which completeness says, and later than any threshold."""
    run = Taped("ordering-lost").add(Opened(300.0, S, "A", "A"))
    run.add(*_message(run, 301.0, 1), *_message(run, 302.0, 2, received=None))
    run.found(_stuck(490.0), 4)
    return run.ended(300.0, 500.0, "FAIL", checks=[_check(Indicator.ORDER, 1, 0, 0), _check(Indicator.COMPLETENESS, 1, 1, 0)])


def _stuck(at: float) -> Finding:
    return Finding(Kind.STUCK, Status.LIVENESS, S, "k", at, (2,), {})


CUT_SHORT = RunResult(
    "",
    "ordering",
    CUT,
    "wire",
    Verdict.FAIL,
    "ORDER_INVERSION, STUCK",
    0.0,
    1.0,
    checks={
        Indicator.ORDER: SliCounts(3, 1, 0),
        Indicator.COMPLETENESS: SliCounts(4, 1, 0),
        Indicator.PUBLISH_AVAILABILITY: SliCounts(undecided=100),
    },
)
"""As its recorder would have it."""


def _cut_short() -> Taped:
    """The prober was stopped; a violation had been found, and a message had passed its deadline."""
    run = Taped("ordering-cut", target=CUT).add(Opened(1300.0, S, "A", "A"))
    for seq in range(1, 5):
        run.add(*_message(run, 1300.0 + seq, seq))
    run.add(*_message(run, 1306.0, 5, received=None))
    inversion = Finding(Kind.ORDER_INVERSION, Status.VIOLATION, S, "k", 1304.5, (9, 10), {})
    return run.found(inversion, 10).found(_stuck(1430.0), 14).began(1300.0)


def _failed_inside() -> Taped:
    """A fault of the prober's own ended it; what it had measured is measured."""
    run = Taped("ordering-fault").add(Opened(600.0, S, "A", "A"))
    run.add(*_message(run, 601.0, 1), *_message(run, 602.0, 2, received=1.5))
    return run.ended(600.0, 610.0, "UNKNOWN", internal_error=True, checks=[_check(Indicator.ORDER, 0, 0, 2)])


def _refused_and_republished() -> Taped:
    run = Taped("ordering-again").add(
        Opened(700.0, S, "A", "A"),
        PublishInvoked(701.0, "k", "ordering-again", 1, intended_t=700.5),
        PublishFailed(701.2, "k", "ordering-again", 1),
        PublishInvoked(702.0, "k", "ordering-again", 2),
        PublishUnknown(703.0, "k", "ordering-again", 2),
        PublishInvoked(703.5, "k", "ordering-again", 2, generation=1),
        Published(703.6, "k", "ordering-again", 2, "b", generation=1),
        Delivered(703.7, S, "k", "A", "ordering-again", 2, "b", generation=1),
        Delivered(703.8, S, "k", "A", "ordering-again", 2, "a"),
        PublishInvoked(704.0, "k", "ordering-again", 3),
        PublishUnknown(705.0, "k", "ordering-again", 3),
    )
    return run.ended(700.0, 720.0)


def _redelivered() -> Taped:
    """Of its own messages one comes again in time, one late, one early; one of an earlier run comes again as well."""
    run = Taped("ordering-rewound").add(Opened(800.0, S, "A", "A"))
    for seq in range(1, 6):
        run.add(*_message(run, 800.0 + seq, seq))

    def again(at: float, seq: int) -> Delivered:
        return Delivered(at, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}")

    def refused(at: float, seq: int) -> Nacked:
        return Nacked(at, S, "k", "A", f"{run.run_id}-{seq}")

    run.add(refused(807.0, 1), again(807.2, 1), refused(808.0, 2), again(809.0, 2))
    run.add(LeaseModified(810.0, S, "k", "A", f"{run.run_id}-3", 60.0), again(811.0, 3))
    run.add(refused(812.0, 4), Acked(812.1, S, "k", "A", f"{run.run_id}-4"), again(813.0, 4))
    old = Delivered(814.0, S, "k", "A", "ordering-before", 9, "old")
    run.add(old, Nacked(815.0, S, "k", "A", "old"), Delivered(818.0, S, "k", "A", "ordering-before", 9, "old"))
    return run.ended(800.0, 830.0, checks=[_check(Indicator.REDELIVERY, 2, 1, 1)])


def _disturbed() -> Taped:
    """An experiment that holds messages back itself."""
    run = Taped("affinity-1", probe="affinity").add(Opened(900.0, S, "A", "A"))
    run.add(*_message(run, 901.0, 1, received=8.0), *_message(run, 902.0, 2, received=None))
    return run.ended(900.0, 930.0, checks=[_check(Indicator.AFFINITY, 1, 1, 1)])


def _unreachable() -> Taped:
    """The target was gone after two messages: what was to follow, in this run and in those that it kept waiting, was never sent."""
    run = Taped("ordering-outage").add(Opened(1200.0, S, "A", "A"))
    run.add(*_message(run, 1201.0, 1), *_message(run, 1202.0, 2))
    checks = [_check(Indicator.ORDER, 2, 0, 0), _check(Indicator.PUBLISH_AVAILABILITY, 0, 1198, 0)]
    return run.ended(1200.0, 1260.0, "UNKNOWN", reason="nobody answers", checks=checks)


def _kept_from_publishing() -> Taped:
    """Nothing was sent either, which may be the prober's own doing."""
    return Taped("ordering-kept").ended(1270.0, 1271.0, "UNKNOWN", checks=[_check(Indicator.PUBLISH_AVAILABILITY, 0, 0, 400)])


def _at_the_threshold() -> Taped:
    """Messages that take as long as they may, to the microsecond, at times that are no round numbers; and one that takes one more."""
    run = Taped("ordering-limit").add(Opened(1100.0, S, "A", "A"))
    for seq in range(1, 20):
        run.add(*_message(run, round(1100.0 + 1.1 * seq, 6), seq, confirmed=0.5, received=1.0))
    run.add(*_message(run, 1130.0, 20, confirmed=0.500001, received=1.000001))
    return run.ended(1100.0, 1140.0)
