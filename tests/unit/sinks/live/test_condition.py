"""Conditions: the worst of several, and what a run comes to."""

from __future__ import annotations

import pytest

from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition, of_run, worst_of


def test_the_worst_counts_and_of_nothing_nothing_is_known() -> None:
    assert worst_of([Condition.PASS, Condition.WARN, Condition.STARTING]) is Condition.WARN
    assert worst_of([Condition.MAINTENANCE, Condition.PASS]) is Condition.PASS
    assert worst_of(Condition) is Condition.OUTAGE
    assert worst_of([]) is Condition.UNKNOWN


def test_unknown_never_becomes_a_verdict() -> None:
    verdicts = {one: one.verdict for one in Condition}
    assert [one for one, verdict in verdicts.items() if verdict is Verdict.PASS] == [Condition.PASS]
    assert [one for one, verdict in verdicts.items() if verdict is Verdict.FAIL] == [Condition.FAIL, Condition.WARN]
    assert verdicts[Condition.MAINTENANCE] is None


@pytest.mark.parametrize(
    ("verdict", "reason", "condition"),
    [
        (Verdict.FAIL, "AFFINITY_SPLIT", Condition.WARN),
        (Verdict.FAIL, "AFFINITY_SPLIT, STUCK", Condition.FAIL),
        (Verdict.FAIL, "", Condition.FAIL),
        (Verdict.UNKNOWN, "AFFINITY_SPLIT", Condition.UNKNOWN),
        (Verdict.PASS, "", Condition.PASS),
    ],
)
def test_only_usual_behaviour_warns(verdict: Verdict, reason: str, condition: Condition) -> None:
    assert of_run(verdict, reason) is condition
