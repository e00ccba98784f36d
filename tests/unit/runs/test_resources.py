"""Where runs take place: made when needed, renewed when old and empty, swept when nobody can be using it; what a clean-up may delete."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from prober.brokers.base import AdminOperation, PushConfig, SubscriptionSettings, TopicSettings
from prober.core.rules import Mode, Rules
from prober.errors import AdminUnavailable, BrokerUnavailable, NotOurs, PermissionRefused
from prober.probes.experiment import SubscriptionPlan
from prober.probes.resources import OURS
from prober.runs.lifetimes import (
    ABANDONED_AFTER_S,
    RENEWED_AFTER_S,
    RENEWED_AT_LATEST_S,
    sweep,
)
from prober.runs.probe_instance import Target
from prober.runs.resources import RENEWED_AGAIN_S, Provisioner
from tests.notation import history

RETENTION_S = 1e9
"""Longer than the machine has been up: the histories of these tests begin at 0 on its clock."""
TARGET = Target("here", "p", "wire", Rules(ack_deadline_s=10.0, message_retention_s=RETENTION_S), publish_region="europe-west1")


@dataclass
class Service:
    """A control plane in memory, and what was done with it."""

    there: dict[str, Mapping[str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    made: list[SubscriptionSettings] = field(default_factory=list)
    error: Exception | None = None

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        await self._create(topic, settings.labels)

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        self.made.append(settings)
        await self._create(subscription, settings.labels)

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        self.calls.append(f"delete {name}")
        if self.error is not None:
            raise self.error
        return labels == OURS and self.there.pop(name, None) is not None

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        return [name for name, carried in self.there.items() if name.startswith(f"{project}/") and carried == labels]

    async def _create(self, name: str, labels: Mapping[str, str]) -> None:
        self.calls.append(f"create {name}")
        if self.error is not None:
            raise self.error
        self.there[name] = labels


PUSHES: Any = SimpleNamespace(config_of=lambda name: PushConfig(f"http://127.0.0.1/{name}"))


class World:
    """A provisioner, the service that it is on, and a clock."""

    def __init__(self, *plans: SubscriptionPlan, lasting: bool = True) -> None:
        self.now = 1_700_000_000.0
        self.service: Any = Service()
        self.timed: list[AdminOperation] = []
        self.failed: list[AdminOperation] = []
        self.provisioner = Provisioner(
            TARGET,
            "me-here",
            plans or (SubscriptionPlan(),),
            lasting=lasting,
            administered=self._administered,
            now=lambda: self.now,
        )

    def _administered(self, operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
        (self.failed if failed else self.timed).append(operation)

    def run(self, *, passed: bool = True, line: str = "P1 A<1@1 A ack 1@2") -> list[str]:
        """One run; the calls that it made."""
        self.service.calls.clear()

        async def run() -> None:
            async with self.provisioner.prepared(self.service, PUSHES):
                for event in history(line):
                    self.provisioner.backlog_trackers[self.provisioner.resources.subscription].listen(event)

        asyncio.run(run())
        self.provisioner.run_ended(passed=passed)
        return [call.split()[0] for call in self.service.calls]


def test_a_subscription_of_the_dead_letter_topic_is_not_verified() -> None:
    plans = (SubscriptionPlan(dead_letter_max_attempts=5), SubscriptionPlan("letters", ordering=False, of_dead_letters=True))
    service: Any = Service()
    provisioner = Provisioner(TARGET, "me", plans, lasting=True)

    async def prepare() -> None:
        async with provisioner.prepared(service):
            pass

    asyncio.run(prepare())
    resources = provisioner.resources
    assert list(provisioner.rules) == [resources.subscription]
    assert [(one.topic, one.ordering, one.dead_letter_topic) for one in service.made] == [
        (resources.dead_letter_topic, False, ""),
        (resources.topic, True, resources.dead_letter_topic),
    ]


def test_a_filtered_subscription_has_a_filter_and_rules_that_state_it() -> None:
    world = World(SubscriptionPlan(), SubscriptionPlan("filtered", filtered=True))
    world.run()
    assert [one.filter for one in world.service.made] == ["attributes:okp_even", ""]
    assert [rules.filter_every for rules in world.provisioner.rules.values()] == [0, 2]


def test_a_place_is_made_once_and_used_again() -> None:
    world = World()
    resources = world.provisioner.resources
    assert world.run() == ["create", "create"]
    assert world.run() == []
    assert world.provisioner.resources == resources
    assert world.service.there == {resources.topic: OURS, resources.subscription: OURS}
    assert world.timed == [AdminOperation.CREATE_TOPIC, AdminOperation.CREATE_SUBSCRIPTION]


def test_a_subscription_without_ordering_is_made_and_deleted_but_not_verified() -> None:
    service: Any = Service()
    plans = (SubscriptionPlan(), SubscriptionPlan("twin", ordering=False))
    provisioner = Provisioner(TARGET, "me-here", plans, lasting=False)
    verified, twin = provisioner.resources.subscriptions

    async def run() -> None:
        async with provisioner.prepared(service):
            assert [made.ordering for made in service.made] == [False, True]
            assert {verified, twin} <= service.there.keys()

    asyncio.run(run())
    assert service.there == {}
    assert list(provisioner.rules) == [verified]
    assert provisioner.names == ("okp-me-here",)
    assert list(provisioner.backlog_trackers) == [verified]


def test_a_subscription_is_made_as_the_bounds_say() -> None:
    world = World()
    world.run()
    (made,) = world.service.made
    assert (made.ordering, made.ack_deadline_s, made.message_retention_s) == (True, 10, RETENTION_S)
    assert (made.exactly_once, made.dead_letter_topic, made.retry_maximum_backoff_s) == (False, "", None)
    assert world.provisioner.resources.region == "europe-west1"


def test_two_grounds_of_one_name_are_two_places() -> None:
    assert World().provisioner.resources != World().provisioner.resources


def test_after_a_run_that_did_not_pass_it_is_looked_at_again() -> None:
    world = World()
    world.run(passed=False)
    assert world.run() == ["create", "create"]


def test_what_does_not_last_is_deleted_after_the_run() -> None:
    world = World(lasting=False)
    assert world.run() == ["create", "create", "delete", "delete"]
    assert world.service.there == {}


def test_what_does_not_last_has_another_name_in_each_run_and_one_in_metrics() -> None:
    world = World(lasting=False)
    first, names = world.provisioner.resources, world.provisioner.names
    world.run()
    assert {world.provisioner.resources.topic, world.provisioner.resources.subscription}.isdisjoint(
        {first.topic, first.subscription}
    )
    assert world.run() == ["create", "create", "delete", "delete"]
    assert world.provisioner.names == names


def test_what_nobody_reads_is_made_before_the_first_one_and_neither_verified_nor_shown() -> None:
    world = World(SubscriptionPlan(), SubscriptionPlan("spare", ordering=False), lasting=False)
    resources = world.provisioner.resources
    assert list(world.provisioner.rules) == [resources.subscription]
    assert world.provisioner.names == ("okp-me-here",)
    world.run()
    assert world.service.calls[:3] == [
        f"create {name}" for name in (resources.topic, resources.named("spare"), resources.subscription)
    ]
    assert world.service.there == {}


@pytest.mark.parametrize(
    ("age_s", "passed", "line", "moves"),
    [
        (RENEWED_AFTER_S + 1, True, "P1 A<1@1 A ack 1@2", True),
        (RENEWED_AFTER_S - 1, True, "P1 A<1@1 A ack 1@2", False),
        (RENEWED_AFTER_S + 1, False, "P1 A<1@1 A ack 1@2", False),
        (RENEWED_AFTER_S + 1, True, "P1 A<1@1", False),
        (RENEWED_AT_LATEST_S - 1, False, "P1 A<1@1", False),
        (RENEWED_AT_LATEST_S + 1, False, "P1 A<1@1", True),
    ],
)
def test_an_old_place_is_left_when_nothing_is_pending_there(age_s: float, passed: bool, line: str, moves: bool) -> None:
    world = World()
    old = world.provisioner.resources
    world.now += age_s
    world.run(passed=passed, line=line)
    assert (world.provisioner.resources != old) is moves
    if moves:
        assert world.run() == ["create", "create", "delete", "delete"]
        assert set(world.service.there) == {world.provisioner.resources.topic, world.provisioner.resources.subscription}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("line", ["P1 A<1@1", "P1 A<1@1 A ack 1@2"])
def test_what_is_pending_by_push_does_not_wait_for_the_next_run(mode: Mode, line: str) -> None:
    """The service tries a push again less and less often, since nobody takes it between two runs."""
    world = World(SubscriptionPlan(mode=mode))
    old = world.provisioner.resources
    world.run(passed=False, line=line)
    moves = mode is Mode.PUSH and "ack" not in line
    assert (world.provisioner.resources != old) is moves
    assert world.run().count("delete") == (2 if moves else 0)


def test_what_is_not_ours_is_left_for_another_name() -> None:
    world = World()
    resources = world.provisioner.resources
    world.service.error = NotOurs("taken")
    with pytest.raises(NotOurs):
        world.run()
    assert world.provisioner.resources != resources


def test_resources_that_administration_does_not_renew_serve_on() -> None:
    world = World()
    old = world.provisioner.resources
    world.now += RENEWED_AFTER_S + 1
    world.run()
    new = world.provisioner.resources
    world.service.error = AdminUnavailable("creating a topic took longer than 30 s")
    with pytest.raises(AdminUnavailable):
        world.run()
    assert world.provisioner.resources == old != new
    world.provisioner.run_ended(passed=False)
    assert world.run() == ["create", "delete"]
    assert world.provisioner.resources == old, "they serve without being looked at"
    world.service.error = None
    world.now += RENEWED_AGAIN_S + 1
    world.run()
    assert world.provisioner.resources != old
    world.run()
    assert set(world.service.there) == {world.provisioner.resources.topic, world.provisioner.resources.subscription}


def test_leaving_gives_up_when_nobody_answers() -> None:
    world = World()
    world.run()
    world.service.error = BrokerUnavailable("gone")
    asyncio.run(world.provisioner.leave(world.service))


def test_what_was_made_once_may_serve_while_the_administration_is_down() -> None:
    world = World()
    world.run(passed=False)
    resources = world.provisioner.resources
    world.service.error = BrokerUnavailable("gone")
    world.run(passed=False)
    assert world.provisioner.resources == resources
    world.service.error = None
    world.run()
    assert world.service.calls[-2:] == [f"create {resources.topic}", f"create {resources.subscription}"]


def test_what_was_never_made_cannot_serve() -> None:
    world = World()
    world.service.error = BrokerUnavailable("gone")
    with pytest.raises(BrokerUnavailable):
        world.run()
    assert (world.failed, world.timed) == ([AdminOperation.CREATE_TOPIC], [])


def test_a_call_that_is_refused_says_nothing_about_how_fast_the_target_is() -> None:
    world = World()
    world.service.error = PermissionRefused("no")
    with pytest.raises(PermissionRefused):
        world.run()
    assert (world.failed, world.timed) == ([], [])


def test_what_cannot_be_deleted_is_left_and_the_rest_is_swept() -> None:
    world = World()
    world.run()
    service, refused = world.service, world.provisioner.resources.topic
    delete = service.delete

    async def refusing(name: str, labels: Mapping[str, str]) -> bool:
        if name == refused:
            raise PermissionRefused("no")
        return bool(await delete(name, labels))

    service.delete = refusing
    assert asyncio.run(sweep(service, "projects/p", world.now + ABANDONED_AFTER_S + 2)) == (1, 1)
    assert refused in service.there


def test_only_what_is_ours_and_long_abandoned_is_swept() -> None:
    world = World()
    world.run()
    resources, service = world.provisioner.resources, world.service
    service.there |= {
        "projects/p/topics/okp-somebody-else": OURS,
        "projects/p/topics/orders": OURS,
        "projects/p/topics/okp-x-00000001-abcdef": {"managed-by": "terraform"},
        "projects/q/topics/okp-x-00000001-abcdef": OURS,
    }
    others = set(service.there) - {resources.topic, resources.subscription}
    assert asyncio.run(sweep(service, "projects/p", world.now + ABANDONED_AFTER_S)) == (0, 0)
    assert asyncio.run(sweep(service, "projects/p", world.now + ABANDONED_AFTER_S + 2)) == (2, 0)
    assert set(service.there) == others


NOW = 1_700_000_000.0
DAY_S = 86_400.0


def name_of(age_s: float, prober: str = "me", kind: str = "topics", *, lasting: bool = False) -> str:
    return f"projects/p/{kind}/okp-{prober}-here-ordering-wire{'-lasting' if lasting else ''}-{int(NOW - age_s):08x}-abcdef"
