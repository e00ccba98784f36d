"""The chart of an incident: its failed runs, and what happened meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from api.incident_chart import incident_chart
from prober.core.findings import Kind
from prober.core.kinds import Symptom
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Acknowledgement, Incident
from prober.sinks.status.over_time import OverTime, ProberStart, RunsOfCell
from tests.unit.api.asking import NOON

WIRE = InstanceKey("europe", "ordering", "wire")
OTHER = InstanceKey("europe", "affinity", "wire")
BEGIN = NOON - 600.0


class Kept:
    """A store with one bad minute at the affected probe instance, and others elsewhere."""

    def verdicts(self, since: float, until: float, cell_s: float) -> dict[InstanceKey, dict[int, RunsOfCell]]:
        number = int(BEGIN // cell_s)
        bad = RunsOfCell({Condition.PASS: 1, Condition.FAIL: 2, Condition.WARN: 1, Condition.UNKNOWN: 7}, "run-1", "ORDER_GAP")
        good = RunsOfCell({Condition.PASS: 3}, "run-2", "")
        return {WIRE: {number: bad, number + 1: good}, OTHER: {number + 1: bad}}

    def starts(self, target: str, since: float, until: float) -> tuple[ProberStart, ...]:
        return (ProberStart(BEGIN - 60.0, "prober-0", "1.5.0"),) if target == "europe" else ()


def incident(**more: Any) -> Incident:
    affected = {WIRE: Counter({Kind.ORDER_GAP: 2})}
    return Incident("i", "europe", Symptom.ORDER, BEGIN, BEGIN + 120.0, NOON + 3000.0, affected, **more)


def test_bad_runs_among_those_with_a_verdict_at_the_affected_probe_instances() -> None:
    data = incident_chart(cast(OverTime, Kept()), incident(), NOON).plot.data
    assert data is not None
    known = [value for value in data.series[0].values if value is not None]
    assert known == [0.75, 0.0]
    assert data.span[0] <= BEGIN - 900.0 < NOON <= data.span[1]


def test_what_happened_is_marked_in_order() -> None:
    acknowledged = Acknowledgement(NOON - 100.0, "ada", "", None)
    ended = incident(acknowledged=acknowledged, first_acknowledged_at=NOON - 300.0, closed_at=NOON - 50.0)
    chart = incident_chart(cast(OverTime, Kept()), ended, NOON)
    assert [one.what for one in chart.moments] == [
        "deployment: prober-0 started with version 1.5.0",
        "first finding",
        "last finding",
        "first acknowledged",
        "acknowledged by ada",
        "closed",
    ]
    assert chart.plot.data is not None
    assert [mark.label for mark in chart.plot.data.marks] == ["1", "2", "3", "4", "5", "6"]
    assert chart.plot.words == "share of failed runs: at most 75 %; 6 moments marked"
