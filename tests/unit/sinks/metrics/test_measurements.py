"""What a run tells to the metrics, read from a scrape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from prober.config.loading import load
from prober.config.models import Config
from prober.core.events import PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.core.verifier import Verifier
from prober.runs.classification import Classifier, Latency, Observation
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.measurements import Measurements, MetricsSink
from prober.slo.counts import SloCounters
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.notation import history
from tests.unit.sinks.metrics.scraping import page

CONFIG: Config = load(None, {})


def at(probe: str) -> InstanceKey:
    """Where a probe runs."""
    return InstanceKey(CONFIG.targets[0].name, probe, "wire")


STUCK = Finding(Kind.STUCK, Status.LIVENESS, "s", "k", 9.0, (1,), {})
NONE: Mapping[str, int] = MappingProxyType({})
RESULT = RunResult("e1", "ordering", "embedded", "wire", Verdict.PASS, "", 0.0, 1.0)


class Scrape:
    """The numbers of one run of this history."""

    def __init__(
        self,
        line: str,
        intended_t: float | None = None,
        result: RunResult | None = None,
        probe: str = "ordering",
        late: int = 0,
        lagged_s: float = 0.0,
        *,
        counts: bool = True,
    ) -> None:
        metrics = Metrics(CONFIG.objectives)
        target = metrics.watch(CONFIG.targets[0])
        self.counters = SloCounters(CONFIG.objectives)
        measurements = Measurements(
            target, target.topic("t"), {"s": target.subscription("s")}, self.counters, {"run_id": "e1"}, at(probe)
        )
        verifier, classifier = Verifier(Rules(), subscriptions=["s"]), Classifier("e1")
        for event in history(line):
            reported = replace(event, intended_t=intended_t) if isinstance(event, PublishInvoked) else event
            kind, latency = classifier.classify(reported)
            latency = latency and latency._replace(lagged_s=lagged_s)
            measurements.event(Observation(reported, kind, latency, verifier.observe(event)))
        if result is not None:
            undecided = classifier.undecided()
            measurements.ended(RunEnded(result, [STUCK] * late, KeptHistory((), {}, 0), 0.0, counts, undecided=undecided))
        self.lines = page(metrics)[1].decode().splitlines()

    def __getitem__(self, text: str) -> float:
        """The sum of all series whose line holds these words, such as `publishes_total outcome="confirmed"`."""
        words = text.split()
        values = [float(line.rpartition(" ")[2]) for line in self.lines if line[0] != "#" and all(word in line for word in words)]
        assert values, text
        return sum(values)


@pytest.mark.parametrize(
    ("line", "series", "expected"),
    [
        ("P1,2,3", 'publishes_total outcome="confirmed"', 3),
        ("P1@0 fail1@1", 'publishes_total outcome="rejected"', 1),
        ("P1@0 info1@1", 'publishes_total outcome="unknown"', 1),
        ("P1,2", "publish_latency_seconds_count", 2),
        ("P1,2", "publish_latency_seconds_sum", 0.1),
        ("P1,2 A<1,2@2", 'deliveries_total kind="first"', 2),
        ("P1@0 ok1=m1@1 A<1@2", "end_to_end_latency_seconds_sum", 2),
        ("P1 A<1@2 A<1@3", 'deliveries_total kind="redelivery"', 1),
        ("P1 A<1@2 A<1@3", "redelivery_latency_seconds_count", 0),
        ("P1 A<1@2 A nack 1@2.5 A<1@3", "redelivery_latency_seconds_sum", 0.5),
        ("P1 A<1@2 A modack 1 10s@3 A<1@15", "redelivery_latency_seconds_sum", 2),
        ("P1 A<1@2 A modack 1 10s@3 A<1@5", "redelivery_latency_seconds_count", 0),
        ("P1@0 info1@1 P1'gen1@2 ok1'gen1=b1@3 A<a1(1)@4 A<b1(1)@5", 'deliveries_total kind="publisher_duplicate"', 1),
        ("P1 A<x1(1)[e0]@2", 'deliveries_total kind="foreign"', 1),
        ("P1,2,3 A<1@1 A<3@2", 'findings_total kind="ORDER_GAP" status="violation"', 1),
    ],
)
def test_what_happens_is_counted(line: str, series: str, expected: float) -> None:
    assert Scrape(line)[series] == pytest.approx(expected)


def test_latencies_count_from_the_intended_time() -> None:
    scrape = Scrape("P1@5 ok1=m1@6 A<1@7", intended_t=2.0)
    assert scrape["publish_latency_seconds_sum"] == 4
    assert scrape["end_to_end_latency_seconds_sum"] == 5
    assert scrape.counters.totals["end_to_end_latency"] == SliCounts(0, 1)
    assert scrape.counters.totals["publish_availability"] == SliCounts(1, 0)


def test_a_republished_message_is_as_late_as_it_was_first_intended() -> None:
    assert Scrape("P1@0 info1@1 P1'gen1@2 ok1'gen1=m1@3")["publish_latency_seconds_sum"] == 3


def test_the_end_tells_checks_moves_and_late_findings_once() -> None:
    result = replace(
        RESULT,
        counts={(Kind.ORDER_GAP, Status.VIOLATION): 1, (Kind.STUCK, Status.LIVENESS): 2},
        counters={"affinity_moves_outstanding_no": 3, "deliveries_unreadable": 4, "early_redeliveries": 2},
        checks={Indicator.ORDER: SliCounts(5, 1, 2), Indicator.COMPLETENESS: SliCounts(7, 2, 0)},
    )
    scrape = Scrape("P1,2,3 A<1@1 A<3@2", result=result, late=2)
    assert scrape['findings_total kind="ORDER_GAP" status="violation"'] == 1
    assert scrape['findings_total kind="STUCK"'] == 2
    assert [scrape[f'order_checks_total result="{word}"'] for word in ("good", "bad", "undecided")] == [5, 1, 2]
    assert scrape['delivery_checks_total result="bad"'] == 2
    assert scrape['affinity_moves_total outstanding="no"'] == 3
    assert scrape["early_redeliveries_total"] == 2
    assert scrape['deliveries_total kind="foreign"'] == 4


def test_what_is_observed_of_a_guarantee_is_counted_and_nothing_else() -> None:
    counters = {"idle_keys_stayed": 3, "ordering_changes_accepted": 1, "ordering_changes_refused": 0}
    scrape = Scrape("P1 A<1@1", result=replace(RESULT, counters=counters))
    assert scrape['guarantee_observations_total kind="idle_keys_stayed"'] == 3
    assert scrape['guarantee_observations_total kind="ordering_changes_accepted"'] == 1
    assert not [line for line in scrape.lines if 'kind="ordering_changes_refused"' in line]


@pytest.mark.parametrize("counts", [False, True])
def test_forgotten_keys_are_counted_also_of_a_run_that_does_not_count(*, counts: bool) -> None:
    scrape = Scrape("P1 A<1@1", result=replace(RESULT, counters={"keys_forgotten": 7}), counts=counts)
    assert scrape["keys_forgotten_total"] == 7


@pytest.mark.parametrize(("probe", "counted"), [("ordering", 1), ("redelivery", 0), ("affinity", 0)])
def test_what_an_experiment_delays_itself_is_not_the_service_s_latency(probe: str, counted: int) -> None:
    scrape = Scrape("P1 A<1@9", probe=probe)
    assert scrape["end_to_end_latency_seconds_count"] == counted
    assert scrape["publish_latency_seconds_count"] == 1
    assert scrape['deliveries_total kind="first"'] == 1
    assert scrape.counters.totals.get("end_to_end_latency", SliCounts()) == SliCounts(0, counted)


def test_what_is_under_way_when_the_run_ends_is_undecided() -> None:
    """Of four messages the first has everything, the second no receipt, the third no answer; the fourth was refused."""
    line = "P1@0 ok1=m1@0.1 A<1@0.2 P2@1 ok2=m2@1.1 P3@2 P4@3 fail4@3.1"
    counters = Scrape(line, result=RESULT).counters.totals
    assert counters["publish_availability"] == SliCounts(2, 1, 1)
    assert counters["publish_latency"] == SliCounts(2, 0, 1)
    assert counters["end_to_end_latency"] == SliCounts(1, 0, 1)
    disturbed = Scrape(line, result=RESULT, probe="affinity").counters.totals
    assert "end_to_end_latency" not in disturbed


@pytest.mark.parametrize("probe", ["ordering", "affinity"])
@pytest.mark.parametrize("cut_short", [False, True])
def test_what_passed_its_deadline_is_late_and_in_no_histogram(probe: str, *, cut_short: bool) -> None:
    metrics, counters = Metrics(CONFIG.objectives), SloCounters(CONFIG.objectives)
    target = metrics.watch(CONFIG.targets[0])
    measurements = Measurements(target, target.topic("t"), {"s": target.subscription("s")}, counters, {"run_id": "e1"}, at(probe))
    result = replace(RESULT, checks={Indicator.ORDER: SliCounts(5, 2, 1)})
    measurements.ended(RunEnded(result, (), KeptHistory((), {}, 0), 0.0, cut_short=cut_short, overdue=3))
    lines = page(metrics)[1].decode().splitlines()
    value = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    late = 0 if probe == "affinity" else 3
    assert sum(number for series, number in value.items() if "deliveries_overdue_total" in series) == late
    assert sum(number for series, number in value.items() if "end_to_end_latency_seconds_count" in series) == 0
    assert counters.totals.get("end_to_end_latency", SliCounts()) == SliCounts(bad=late)
    checks = {
        result: sum(v for s, v in value.items() if "order_checks_total" in s and f'"{result}"' in s) for result in ("good", "bad")
    }
    assert checks == {"good": 0 if cut_short else 5, "bad": 2}


@pytest.mark.parametrize("keys", [10, 10_000])
def test_the_number_of_series_does_not_depend_on_the_number_of_keys(keys: int) -> None:
    metrics = Metrics(CONFIG.objectives)
    target = metrics.watch(CONFIG.targets[0], ["t"], ["s"])
    before = names(metrics)
    topic, subscription, counters = target.topic("t"), target.subscription("s"), SloCounters(CONFIG.objectives)
    measurements = Measurements(target, topic, {"s": subscription}, counters, {"run_id": "e1"}, at("ordering"))
    classifier = Classifier("e1")
    events: list[Any] = history("P1 A<1@1 A nack 1@1.5 A<1@2 A ack 1@3")[1:]
    for number in range(keys):
        for event in events:
            own = {"message_id": f"m{number}"} if hasattr(event, "message_id") else {}
            reported = replace(event, key=f"key-{number}", **own)
            measurements.event(Observation(reported, *classifier.classify(reported), ()))
    assert names(metrics) == before
    assert sum(1 for _ in names(metrics)) < 1000


def names(metrics: Metrics) -> set[str]:
    """Every series of a scrape, without its value."""
    return {line.rpartition(" ")[0] for line in page(metrics)[1].decode().splitlines() if not line.startswith("#")}


def test_what_only_the_lag_may_have_made_late_is_in_no_histogram_and_counted() -> None:
    """Rules, which count what a histogram has beyond a threshold, and the counts of objectives say the same."""
    scrape = Scrape("P1@0 ok1=m1@9 A<1@9", lagged_s=8.9)
    assert scrape["publishes_total confirmed"] == scrape["deliveries_total first"] == 1
    assert scrape["publish_latency_seconds_count"] == scrape["end_to_end_latency_seconds_count"] == 0
    assert scrape['undecided_durations_total duration="publish_latency"'] == 1
    assert scrape['undecided_durations_total duration="end_to_end_latency"'] == 1
    assert scrape.counters.totals["publish_latency"] == scrape.counters.totals["end_to_end_latency"] == SliCounts(undecided=1)


def test_publishes_that_a_probe_has_fail_on_purpose_count_for_nothing() -> None:
    unsent = replace(RESULT, checks={Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=3)})
    scrape = Scrape("P1@0 ok1=m1@9 A<1@9 P2@10 info2@11 P3@12 fail3@13", probe="publish", result=unsent)
    assert scrape["publishes_total"] == scrape["publishes_unsent_total"] == scrape["publish_latency_seconds_count"] == 0
    assert scrape["deliveries_total first"] == 1
    assert not scrape.counters.totals.keys() & {"publish_availability", "publish_latency", "end_to_end_latency"}


def test_what_is_late_without_the_lag_is_bad() -> None:
    scrape = Scrape("P1@0 ok1=m1@9 A<1@9", lagged_s=3.0)
    assert scrape["end_to_end_latency_seconds_count"] == 1
    assert scrape["undecided_durations_total"] == 0
    assert scrape.counters.totals["end_to_end_latency"] == SliCounts(bad=1)


class TestUnreachableRuns:
    def test_a_run_that_could_not_reach_the_target_is_one(self) -> None:
        assert Scrape("", result=replace(RESULT, unreachable=True))["unreachable_runs{"] == 1

    def test_they_begin_anew_with_a_publish_that_is_confirmed(self) -> None:
        """Also where the target then does not answer: rare runs that publish and cannot receive are no total outage."""
        metrics = Metrics(CONFIG.objectives)
        target = metrics.watch(CONFIG.targets[0])
        topic, subscription, counters = target.topic("t"), target.subscription("s"), SloCounters(CONFIG.objectives)
        lost = RunEnded(replace(RESULT, unreachable=True), [], KeptHistory((), {}, 0), 0.0)
        for _ in range(3):
            measurements = Measurements(target, topic, {"s": subscription}, counters, {"run_id": "e1"}, at("ordering"))
            verifier, classifier = Verifier(Rules(), subscriptions=["s"]), Classifier("e1")
            for event in history("P1"):
                measurements.event(Observation(event, *classifier.classify(event), verifier.observe(event)))
            measurements.ended(lost)
        (line,) = (line for line in page(metrics)[1].decode().splitlines() if line.startswith("pubsub_prober_unreachable_runs{"))
        assert float(line.rpartition(" ")[2]) == 1


class Measuring:
    """The metrics and counters of a probe instance where delays are measured, run after run."""

    def __init__(self, vantage: str = "wire") -> None:
        self._metrics, self._vantage = Metrics(CONFIG.objectives), vantage
        self.counters = SloCounters(CONFIG.objectives)
        target = self._metrics.watch(CONFIG.targets[0])
        self._sink = MetricsSink(target, ["s"], self.counters, self._metrics.health, "isolation", vantage)
        self.subscription = target.subscription("s")

    def run(self, *taken: Latency, counts: bool = True, begins: float | None = None, counters: Mapping[str, int] = NONE) -> None:
        instance = ProbeInstance("embedded", "isolation", self._vantage, 10.0)
        listener = self._sink.begin(RunBegun("r", instance, {"projects/p/subscriptions/s": Rules()}, 0.0, 0))
        result = replace(RESULT, counters=counters, figures={} if begins is None else {Figure.BACKLOG_BEGINS: begins})
        listener.ended(RunEnded(result, (), KeptHistory((), {}, 0), 0.0, counts=counts, measurements=taken))

    def __getitem__(self, text: str) -> list[float]:
        lines = page(self._metrics)[1].decode().splitlines()
        return [float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"pubsub_prober_{text}")]

    def labelled(self, name: str, value: str) -> list[float]:
        """The series of a family that have a label of this value."""
        lines = page(self._metrics)[1].decode().splitlines()
        return [
            float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"pubsub_prober_{name}") and f'"{value}"' in line
        ]


def test_a_delay_that_no_event_shows_counts_for_its_objective_and_in_its_histogram() -> None:
    measuring = Measuring()
    assert measuring["head_of_line_delay_seconds_count"] == [0.0]
    delay, doubt = Latency(Indicator.HEAD_OF_LINE_DELAY, 3.0), Latency(Indicator.HEAD_OF_LINE_DELAY, 1.5, lagged_s=1.0)
    measuring.run(delay, delay._replace(seconds=0.0), doubt)
    measuring.run(delay, counts=False)
    assert measuring["head_of_line_delay_seconds_count"] == [2.0]
    assert measuring["head_of_line_delay_seconds_sum"] == [3.0]
    assert measuring.counters.totals["head_of_line_delay"] == SliCounts(1, 1, 1)


def test_a_figure_is_that_of_the_last_run_and_absent_if_that_has_none() -> None:
    measuring = Measuring()
    name = "backlog_begins_bytes_per_second"
    assert measuring[name] == []
    measuring.run(begins=5.0)
    assert measuring[name] == [5.0]
    measuring.run()
    assert measuring[name] == []
    measuring.run(begins=6.0)
    measuring.subscription.probes(0)
    assert measuring[name] == []


ANOMALIES = {"callbacks_overlapping": 3, "publishes_stopped_unexpectedly": 2, "publishes_past_a_failure": 1}


@pytest.mark.parametrize("counts", [False, True])
def test_anomalies_of_the_client_library_are_counted_by_kind_from_0(*, counts: bool) -> None:
    """Also of a run under maintenance: the library is not the service."""
    measuring = Measuring("library")
    assert measuring["library_anomalies_total"] == [0.0, 0.0, 0.0]
    measuring.run(counts=counts, counters=ANOMALIES)
    kinds = ("callback_overlap", "unexplained_stop", "publish_past_failure")
    assert [measuring.labelled("library_anomalies_total", kind) for kind in kinds] == [[3.0], [2.0], [1.0]]


def test_at_the_wire_the_same_behaviour_is_no_anomaly_and_has_no_series() -> None:
    measuring = Measuring("wire")
    measuring.run(counters=ANOMALIES)
    assert measuring["library_anomalies_total"] == []
