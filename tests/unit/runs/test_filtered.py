"""A subscription with a filter, as the service and as the checker get it."""

from __future__ import annotations

from prober.probes.experiment import SubscriptionPlan
from tests.unit.runs.test_resources import World


def test_a_filtered_subscription_has_a_filter_and_rules_that_state_it() -> None:
    world = World(SubscriptionPlan(), SubscriptionPlan("filtered", filtered=True))
    world.run()
    assert [one.filter for one in world.service.made] == ["attributes:okp_even", ""]
    assert [rules.filter_every for rules in world.provisioner.rules.values()] == [0, 2]
