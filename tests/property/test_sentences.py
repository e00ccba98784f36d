"""Whatever a simulated service does wrong: what the reasons of the findings state is in the record."""

from __future__ import annotations

from itertools import islice

import pytest

from prober.core.findings import Status
from prober.core.rules import Mode
from prober.core.verifier import Verifier
from tests.nightly import nightly_but
from tests.sentences import untrue
from tests.simulation.faults import FAULTS
from tests.simulation.service import simulate_run

SEEDS = (2, 4, 6)
BY_DAY = (2,)
PER_RUN = 40


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("seed", nightly_but(BY_DAY, SEEDS))
def test_a_reason_states_what_is_in_the_record(seed: int, mode: Mode) -> None:
    checked = 0
    for fault in FAULTS[mode]:
        run = simulate_run(seed, mode, fault)
        verifier = Verifier(run.rules, subscriptions=run.rules_by_subscription, rules_by_subscription=run.rules_by_subscription)
        found = [*(one for event in run.events for one in verifier.observe(event)), *verifier.finish()]
        for finding in islice((one for one in found if one.status is not Status.INFO), PER_RUN):
            assert list(untrue(run.events, finding)) == [], f"fault {fault}"
            checked += 1
    assert checked
