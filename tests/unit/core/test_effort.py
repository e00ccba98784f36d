"""The work of verification is bounded by what was delivered, however many orders a history may have."""

from __future__ import annotations

import pytest

from prober.core.coverage import CREDIT_MAX, CREDIT_PER_DELIVERY, Coverage
from prober.core.rules import Mode
from prober.core.verifier import SEND_COST, Verifier
from tests.simulation.service import simulate_run

TOLERANCE = 200
"""A search ends when all that may come next was looked at."""


def test_deliveries_earn_what_searches_may_spend_and_no_more_than_so_much_is_saved() -> None:
    counts = Coverage()
    counts.deliveries_first = 5
    assert counts.credit() == CREDIT_MAX
    counts.sends = CREDIT_MAX
    assert counts.credit() == 0
    counts.deliveries_redelivery = 2
    assert counts.credit() == 2 * CREDIT_PER_DELIVERY
    counts.deliveries_first = CREDIT_MAX
    assert counts.credit() == CREDIT_MAX


@pytest.mark.parametrize("seed", [972439, 971016])
def test_histories_with_many_orders_cost_no_more_than_that(seed: int) -> None:
    run = simulate_run(seed, Mode.STREAMING, None)
    verifier = Verifier(run.rules, subscriptions=tuple(run.rules_by_subscription), rules_by_subscription=run.rules_by_subscription)
    deliveries = longest = 0
    for number, event in enumerate(run.events, 1):
        before = verifier.work
        verifier.observe(event)
        longest = max(longest, verifier.work - before)
        deliveries = verifier.counters["deliveries_first"] + verifier.counters["deliveries_redelivery"]
        assert verifier.work - number <= SEND_COST * (CREDIT_MAX + CREDIT_PER_DELIVERY * deliveries + TOLERANCE)
    verifier.finish()
    assert verifier.counters["unexplained"]
    assert SEND_COST * CREDIT_MAX / 20 < longest <= SEND_COST * (CREDIT_MAX + TOLERANCE)
