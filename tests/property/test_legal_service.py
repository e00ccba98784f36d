"""A legal service is never accused, whatever the seed.

Every run of the simulated service without a bug is legal by the specification (`tests.simulation.service` says why), so any violation
or liveness finding is an error of the checker. `FULL_PROPERTIES=1` tries thousands of seeds per mode.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.core.events import Ended
from prober.core.rules import Mode
from tests.judging import FAILURES, judge
from tests.simulation.service import simulate, simulate_run
from tests.simulation.trace import show

EXAMPLES = 10_000 if os.environ.get("FULL_PROPERTIES") else 400

SITUATIONS = {
    Mode.STREAMING: (
        "break with holds",
        "dead-lettered",
        "half-open",
        "lost ack",
        "lost with its stream",
        "move",
        "redelivery of acked",
        "rejected ack",
        "restart",
        "restart inside a run",
        "seek",
        "shadows",
        "spontaneous rewind",
        "unknown",
        "zombie",
    ),
    Mode.PULL: ("concurrent pulls", "dead-lettered", "late ack", "lease over", "lost response", "redelivery of acked", "seek"),
    Mode.PUSH: ("answer after the deadline", "dead-lettered", "failure", "lost answer", "lost request", "never answered", "seek"),
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", Mode)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_a_legal_run_has_no_failure(mode: Mode, seed: int) -> None:
    rules, events = simulate(seed, mode)
    failures = [finding for finding in judge(rules, events) if finding.status in FAILURES]
    assert not failures, f"seed {seed}, key {failures[0].key}:\n{show(events, failures[0].key)}"


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
    rules, events = simulate(seed, mode)
    failures = [finding for finding in judge(replace(rules, **bounds), events) if finding.status in FAILURES]
    assert not failures, f"seed {seed}, key {failures[0].key}:\n{show(events, failures[0].key)}"


@pytest.mark.parametrize("mode", Mode)
def test_the_runs_are_not_empty(mode: Mode) -> None:
    """Each situation that excuses something occurs, or the absence of failures would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        seen += simulate_run(seed, mode).seen
    assert [situation for situation in SITUATIONS[mode] if not seen[situation]] == []


@pytest.mark.parametrize("mode", Mode)
def test_a_run_is_a_function_of_its_seed(mode: Mode) -> None:
    assert simulate_run(7, mode) == simulate_run(7, mode)


@pytest.mark.parametrize("mode", Mode)
def test_a_run_is_a_record(mode: Mode) -> None:
    """Times never decrease and the end is drained."""
    for seed in range(50):
        _, events = simulate(seed, mode)
        assert all(before.t <= after.t for before, after in pairwise(events))
        assert events[-1] == Ended(events[-1].t, drained=True)
