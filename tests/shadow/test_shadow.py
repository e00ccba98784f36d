"""The checker that is to come accuses no legal history, and finds what the one in use finds."""

from __future__ import annotations

import pytest

from prober.checker.verifier import Verifier
from prober.core.rules import Mode
from tests.documented.service import legal_history
from tests.shadow.compare import compared, definite, new
from tests.simulation.faults import Fault
from tests.simulation.service import simulate_run

FOUND_BY_SEED = (
    (Mode.STREAMING, (2, 31, 42, 87, 205, 359, 420, 441, 1075, 500216, 501035, 503428, 504494, 505077)),
    (Mode.PULL, (54, 89, 132, 144, 501227, 501356)),
    (Mode.PUSH, (8, 54, 63, 92, 171, 235, 302, 574, 872, 501059, 503893)),
)
"""Legal histories that an earlier version accused."""
BROKEN = (
    (Mode.STREAMING, Fault("skip_first")),
    (Mode.STREAMING, Fault("split")),
    (Mode.STREAMING, Fault("reorder_run")),
    (Mode.PULL, Fault("overlap")),
    (Mode.PULL, Fault("batch_reverse")),
    (Mode.PUSH, Fault("past_nack")),
)


@pytest.mark.parametrize("mode", Mode)
def test_legal_histories_are_not_accused(mode: Mode) -> None:
    for seed in range(40):
        assert new(simulate_run(seed, mode)) == [], f"seed {seed}"


@pytest.mark.parametrize(("mode", "seed"), [(mode, seed) for mode, seeds in FOUND_BY_SEED for seed in seeds])
def test_legal_histories_that_were_accused_once(mode: Mode, seed: int) -> None:
    assert new(simulate_run(seed, mode)) == []


@pytest.mark.parametrize("mode", Mode)
def test_what_the_documents_allow_is_not_accused(mode: Mode) -> None:
    for seed in range(40):
        history = legal_history(mode, seed)
        rules = next(iter(history.rules.values()))
        checker = Verifier(rules, subscriptions=history.rules, rules_by_subscription=history.rules)
        assert definite(checker, history.events) == [], f"seed {seed}"


@pytest.mark.parametrize(("mode", "fault"), BROKEN)
def test_faults_are_found_as_often(mode: Mode, fault: Fault) -> None:
    seeds = compared(mode, fault, range(8)).seeds
    assert len(seeds["new"]) >= len(seeds["old"]), seeds
    assert seeds["both"]
