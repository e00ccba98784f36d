"""Runs and counts over time, on both stores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prober.core.verdict import Verdict
from prober.runs.result import Durations
from prober.sinks.live.condition import Condition
from prober.sinks.status.database import Database
from prober.sinks.status.over_time import BinOfRuns, OverTime, ProberStart, RunsOfCell, WorstDurations
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.records import Entry
from prober.sinks.status.slices import LONG_S, SHORT_S, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective, SliCounts
from tests.unit.sinks.status.examples import INSTANCE, LIBRARY, entry

LATENCY = Indicator.PUBLISH_LATENCY
AGE = Indicator.OLDEST_UNACKED_MESSAGE_AGE
BEGIN = 1_772_366_400.0
ORDER = Objective("order", Indicator.ORDER, 0.99, 30 * DAY_S)


@pytest.fixture
def over_time(store: StatusStore, database: Database) -> OverTime:
    return OverTime(database)


def lasting(number: int, at: float, *known: float, took_s: float = 2.0) -> Entry:
    """A run that ended then, and what it knows of a latency."""
    made = entry(f"run-{number}", at=at - 2.0, verdict=Verdict.PASS)
    durations = {LATENCY: Durations(9, known[0], known[1], known[2])} if known else {}
    return replace(made, run=replace(made.run, durations=durations, duration_s=took_s))


def test_of_the_runs_of_a_bin_the_worst_counts(store: StatusStore, over_time: OverTime) -> None:
    store.record(
        [
            lasting(0, BEGIN - 3600.0, 9.0, 9.0, 9.0),
            lasting(1, BEGIN + 10.0, 0.2, 0.3, 0.5),
            lasting(2, BEGIN + 50.0, 0.1, 0.4, 0.4, took_s=3.0),
            lasting(3, BEGIN + 59.5),
            lasting(4, BEGIN + 190.0),
            entry("other", at=BEGIN + 20.0, probe_instance=LIBRARY),
        ]
    )
    found = over_time.runs(INSTANCE.key, BEGIN, 60.0, (LATENCY, AGE))
    assert found == (
        BinOfRuns(BEGIN + 10.0, BEGIN + 59.5, 3, 3.0, {LATENCY: 2, AGE: 0}, {LATENCY: WorstDurations(0.2, 0.4, 0.5)}),
        BinOfRuns(BEGIN + 190.0, BEGIN + 190.0, 1, 2.0, {LATENCY: 0, AGE: 0}, {}),
    )


def test_however_many_runs_there_were_the_bins_are_few(store: StatusStore, over_time: OverTime) -> None:
    store.record([lasting(number, BEGIN + 7.0 * number + 2.0, 0.1, 0.2, 0.3) for number in range(100)])
    found = over_time.runs(INSTANCE.key, BEGIN - 60.0, 240.0, (LATENCY,))
    assert (len(found), sum(one.runs for one in found)) == (3, 100)


def test_a_cell_counts_its_runs_and_names_the_newest_of_the_worst(store: StatusStore, over_time: OverTime) -> None:
    broken, usual = Verdict.FAIL, "AFFINITY_SPLIT"
    runs = [
        ("old", BEGIN - 1.0, Verdict.PASS, ""),
        ("pass", BEGIN, Verdict.PASS, ""),
        ("gap", BEGIN + 10.0, broken, "ORDER_GAP"),
        ("gap-again", BEGIN + 20.0, broken, "ORDER_GAP"),
        ("split", BEGIN + 30.0, broken, usual),
        ("lost", BEGIN + 70.0, Verdict.UNKNOWN, "no answer for 12 s"),
        ("lost-again", BEGIN + 80.0, Verdict.UNKNOWN, "no answer for 15 s"),
    ]
    entries = [entry(name, at=at, verdict=verdict) for name, at, verdict, _ in runs]
    reasons = {name: reason for name, _, _, reason in runs}
    store.record([replace(one, run=replace(one.run, reason=reasons[one.run.run_id])) for one in entries])
    store.record([entry("elsewhere", at=BEGIN + 130.0, verdict=Verdict.PASS, probe_instance=LIBRARY)])
    first = int(BEGIN // 60.0)
    assert over_time.verdicts(BEGIN, BEGIN + 600.0, 60.0) == {
        INSTANCE.key: {
            first: RunsOfCell({Condition.PASS: 1, Condition.FAIL: 2, Condition.WARN: 1}, "gap-again", "ORDER_GAP"),
            first + 1: RunsOfCell({Condition.UNKNOWN: 2}, "lost-again", "no answer for 15 s"),
        },
        LIBRARY.key: {first + 2: RunsOfCell({Condition.PASS: 1}, "elsewhere", "")},
    }
    assert over_time.verdicts(BEGIN, BEGIN + 600.0, 60.0)[INSTANCE.key][first].worst is Condition.FAIL


def test_histograms_add_up_by_cell(store: StatusStore, over_time: OverTime) -> None:
    def spread(number: int, at: float, *taken_s: float) -> Entry:
        made = lasting(number, at + 2.0)
        return replace(made, run=replace(made.run, durations={LATENCY: Durations.of(taken_s)} if taken_s else {}))

    store.record(
        [spread(0, BEGIN, 0.001, 0.3), spread(1, BEGIN + 50.0, 0.3), spread(2, BEGIN + 60.0), spread(3, BEGIN + 120.0, 99.0)]
    )
    store.record([lasting(4, BEGIN + 130.0, 0.1, 0.2, 0.3)])
    found = over_time.histograms(INSTANCE.key, LATENCY, BEGIN, BEGIN + 600.0, 60.0)
    first = int(BEGIN // 60.0)
    assert {number: (counts[0], counts[8], counts[-1], sum(counts)) for number, counts in found.items()} == {
        first: (1, 2, 0, 3),
        first + 2: (0, 0, 1, 1),
    }


def test_starts_of_probers_within_the_time(store: StatusStore, over_time: OverTime) -> None:
    runs = [("first", 1.0, "1.4.0", BEGIN - 100.0), ("second", 50.0, "1.5.0", BEGIN + 40.0), ("third", 60.0, "1.5.0", BEGIN + 40.0)]
    for name, after_s, version, started_at in runs:
        made = entry(name, at=BEGIN + after_s)
        prober = replace(made.run.prober, version=version, started_at=started_at)
        store.record([replace(made, run=replace(made.run, prober=prober))])
    assert over_time.starts("europe", BEGIN, BEGIN + 600.0) == (ProberStart(BEGIN + 40.0, "prober-0", "1.5.0"),)
    assert over_time.starts("us", BEGIN, BEGIN + 600.0) == ()


def test_nothing_is_nothing(over_time: OverTime) -> None:
    assert over_time.runs(INSTANCE.key, BEGIN, 60.0, (LATENCY,)) == ()
    assert over_time.counts(ORDER, BEGIN, BEGIN + 60.0, SHORT_S) == {}
    assert over_time.verdicts(BEGIN, BEGIN + 60.0, 60.0) == {}


def test_counts_add_up_by_target_and_bin(store: StatusStore, over_time: OverTime) -> None:
    def one(
        process: str, at: float, counts: SliCounts, length_s: int = SHORT_S, target: str = "europe", name: str = "order"
    ) -> Slice:
        return Slice(process, target, name, definition_of(ORDER), length_s, at, counts)

    slices = [
        one("p", BEGIN, SliCounts(10, 1)),
        one("q", BEGIN, SliCounts(20, 0, 3)),
        one("p", BEGIN + 600.0, SliCounts(5)),
        one("p", BEGIN + 900.0, SliCounts(7)),
        one("p", BEGIN, SliCounts(1, 1), target="us"),
        one("p", BEGIN, SliCounts(99), name="other"),
        one("p", BEGIN - 300.0, SliCounts(99)),
        one("p", BEGIN, SliCounts(1000), LONG_S),
        replace(one("p", BEGIN, SliCounts(99)), definition="before"),
    ]
    store.heartbeat(ProberRecord("p", "1", BEGIN, BEGIN), slices=slices)
    assert over_time.counts(ORDER, BEGIN, BEGIN + 3600.0, SHORT_S) == {
        "europe": {BEGIN: SliCounts(30, 1, 3), BEGIN + 600.0: SliCounts(5), BEGIN + 900.0: SliCounts(7)},
        "us": {BEGIN: SliCounts(1, 1)},
    }
    assert over_time.counts(ORDER, BEGIN, BEGIN + 3600.0, 900)["europe"] == {
        BEGIN: SliCounts(35, 1, 3),
        BEGIN + 900.0: SliCounts(7),
    }
    assert over_time.counts(ORDER, BEGIN, BEGIN + 3600.0, 7200)["europe"] == {BEGIN: SliCounts(1000)}
