"""Messages without an ordering key, beside keys: a lost one is found, their order is free, and neither delays the other.

In virtual time (`tests.virtual_time`). A fault with an empty `key` is injected into messages without a key only.
"""

from __future__ import annotations

import json

import pytest

from prober.cli.check_report import result_as_text
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.virtual_time import in_virtual_time

KEYED, WITHOUT_KEY = 1000, 20
LATE_S = 1.0


def run(*faults: str) -> RunResult:
    environ = {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults)}
    (result,) = in_virtual_time(
        lambda: run_checks(load(None, environ), CheckRequest(probes=("ordering",)), environ, lambda _: None)
    )
    return result


@pytest.mark.parametrize("fault", ["drop", "lose_write"])
def test_a_lost_one_is_found_and_is_nothing_about_a_key(fault: str) -> None:
    result = run(f"{fault}:key=,count=1")
    assert result.verdict is Verdict.FAIL
    assert set(result.counts) == {(Kind.STUCK, Status.LIVENESS)}
    assert {one.finding.key for one in result.findings} == {""}
    assert "(liveness), without a key\n" in result_as_text(result)
    assert result.checks[Indicator.COMPLETENESS] == SliCounts(KEYED + WITHOUT_KEY - 1, 1)
    assert result.checks[Indicator.ORDER] == SliCounts(KEYED)


def test_they_may_come_in_any_order_and_count_for_no_order() -> None:
    result = run("jitter:key=,p=0.5,seed=2")
    assert result.verdict is Verdict.PASS, result.reason
    assert result.counts == {}
    assert result.counters["deliveries_without_key"] == WITHOUT_KEY
    assert result.checks[Indicator.ORDER] == SliCounts(KEYED)
    assert result.checks[Indicator.AFFINITY] == SliCounts(KEYED)


def test_late_ones_delay_no_key() -> None:
    result = run("slow_delivery:key=")
    assert result.verdict is Verdict.PASS, result.reason
    late = result.durations[Indicator.END_TO_END_LATENCY]
    assert late.count == KEYED + WITHOUT_KEY
    assert late.max_s > LATE_S
