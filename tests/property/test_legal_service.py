"""A legal service is never accused, whatever the seed.

Every run of the simulated service without a bug is legal by the specification (`tests.simulation.service` says why), so any violation
or liveness finding is an error of the checker. `FULL_PROPERTIES=1` tries thousands of seeds per mode.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.core.events import Ended
from prober.core.rules import Mode, Rules
from tests.nightly import AT_NIGHT
from tests.simulation.legal import definite, findings_of
from tests.simulation.service import simulate_run
from tests.simulation.situations import SITUATIONS
from tests.simulation.trace import show
from tests.verification import verify

EXAMPLES = 10_000 if AT_NIGHT else 40


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", Mode)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_a_legal_run_has_no_failure(mode: Mode, seed: int) -> None:
    run = simulate_run(seed, mode)
    failures = definite(findings_of(run))
    assert not failures, f"seed {seed}, key {failures[0].key}:\n{show(run.events, failures[0].key)}"


ACCUSED_ONCE = (
    (Mode.STREAMING, (2, 31, 42, 87, 205, 359, 420, 441, 1075, 500216, 501035, 503428, 504494, 505077)),
    (Mode.PULL, (54, 89, 132, 144, 501227, 501356)),
    (Mode.PUSH, (8, 54, 63, 92, 171, 235, 302, 574, 872, 501059, 503893)),
)
"""Seeds of legal histories in which an earlier version reported a violation."""


@pytest.mark.parametrize(("mode", "seed"), [(mode, seed) for mode, seeds in ACCUSED_ONCE for seed in seeds])
def test_legal_runs_that_had_a_failure_once(mode: Mode, seed: int) -> None:
    assert definite(findings_of(simulate_run(seed, mode))) == []


GENEROUS: tuple[dict[str, Any], ...] = (
    {"window": 1},
    {"window": 2},
    {"window": 16},
    {"idle_after_s": 1.0},
    {"idle_after_s": 20.0},
    {"delivery_delay_max_s": inf},
    {"ack_lag_max_s": inf},
    {"close_detection_max_s": inf},
    {"clock_error_s": 2.0},
    {"subscription_predates_first_publish": False},
    {"window": 3, "idle_after_s": 5.0, "delivery_delay_max_s": inf, "subscription_predates_first_publish": False},
)


@pytest.mark.parametrize("mode", Mode)
@settings(max_examples=EXAMPLES // 4)
@given(seed=st.integers(0, 2**32), bounds=st.sampled_from(GENEROUS))
def test_a_generous_bound_or_a_short_memory_accuses_nobody(mode: Mode, seed: int, bounds: dict[str, Any]) -> None:
    run = simulate_run(seed, mode)
    generous = {name: _no_tighter(rules, bounds) for name, rules in run.rules_by_subscription.items()}
    failures = definite(verify(run.rules, run.events, generous))
    assert not failures, f"seed {seed}, key {failures[0].key}:\n{show(run.events, failures[0].key)}"


def _no_tighter(rules: Rules, bounds: dict[str, Any]) -> Rules:
    """The rules with these bounds, except a clock error that would be smaller than the true one."""
    return replace(rules, **bounds | ({"clock_error_s": max(rules.clock_error_s, bounds.get("clock_error_s", 0.0))}))


@pytest.mark.parametrize("mode", Mode)
def test_the_runs_are_not_empty(mode: Mode) -> None:
    """Each situation that excuses something occurs, or the absence of failures would prove nothing."""
    missing = set(SITUATIONS[mode])
    for seed in range(400):
        missing -= simulate_run(seed, mode).seen.keys()
        if not missing:
            break
    assert missing == set()


@pytest.mark.parametrize("mode", Mode)
def test_a_run_is_a_function_of_its_seed(mode: Mode) -> None:
    assert simulate_run(7, mode) == simulate_run(7, mode)


@pytest.mark.parametrize("mode", Mode)
def test_a_run_is_a_record(mode: Mode) -> None:
    """Times never decrease and the end is drained."""
    for seed in range(50):
        events = simulate_run(seed, mode).events
        assert all(before.t <= after.t for before, after in pairwise(events))
        assert events[-1] == Ended(events[-1].t, drained=True)
