"""Discovery of own subscriptions: what is found is read, what is left out is counted, what cannot be listed is unknown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any, cast

import pytest

from prober.brokers.base import Admin
from prober.config.loading import load
from prober.errors import BrokerError, ConfigError, PermissionRefused
from prober.monitoring.comparison import OwnSubscriptionStatus, Reading
from prober.probes.resources import OURS
from prober.schedule import own_subscriptions
from prober.schedule.own_subscriptions import OwnSubscriptions
from prober.sinks.metrics import Metrics
from tests.unit.sinks.metrics.scraping import samples

SHOP = "projects/shop/subscriptions/"


class Listing:
    """An administration that lists what a test wants."""

    def __init__(self) -> None:
        self.answers: dict[str, Mapping[str, Mapping[str, str]] | BrokerError] = {}
        self.asked: list[str] = []

    async def subscriptions(self, project: str) -> Mapping[str, Mapping[str, str]]:
        self.asked.append(project)
        answer = self.answers.get(project, {})
        if isinstance(answer, BrokerError):
            raise answer
        return answer


class Cloud:
    """Cloud Monitoring without a point."""

    def __init__(self, _: object) -> None:
        """Nothing is needed."""

    def read(self, names: list[str], now: float) -> Mapping[str, Reading]:
        return dict.fromkeys(names, Reading())


class World:
    """The rules of a configuration beside the embedded server."""

    def __init__(self, tmp_path: Path, monitoring: str, *, connected: bool = True) -> None:
        (tmp_path / "prober.yaml").write_text(f"monitoring: {{{monitoring}}}\n")
        self.listing, self.metrics, self.reported = Listing(), Metrics(), list[OwnSubscriptionStatus]()
        admin = cast(Admin, self.listing) if connected else None
        self.own = OwnSubscriptions(load(tmp_path / "prober.yaml", {}), lambda _: {}, lambda _: admin, self.metrics, self._hear)

    def _hear(self, reported: tuple[OwnSubscriptionStatus, ...]) -> None:
        self.reported = list(reported)

    def look(self, *names: str, project: str = "projects/shop", **labels: str) -> list[str]:
        """Everything is read, with these subscriptions in the project; which are watched then."""
        self.listing.answers.setdefault(project, {f"{project}/subscriptions/{name}": labels for name in names})
        self.own._discover_due_t = 0.0
        asyncio.run(self.own._look())
        self.listing.answers.clear()
        return sorted(one.name.removeprefix(SHOP) for one in self.reported)

    def discovered(self) -> dict[str, float]:
        name = "pubsub_prober_own_subscriptions_discovered"
        return {one.labels["state"]: one.value for one in samples(self.metrics) if one.name == name}

    def series(self) -> set[str]:
        return {
            one.labels["own_subscription"].removeprefix(SHOP) for one in samples(self.metrics) if "own_subscription" in one.labels
        }


@pytest.fixture(autouse=True)
def cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_subscriptions, "CloudMonitoring", Cloud)


def test_what_matches_is_read_and_ends_when_it_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path, 'discover: [{project: shop, matching: "orders-.*", late_after: 5m}]')
    assert world.look("orders-eu", "orders-us", "returns") == ["orders-eu", "orders-us"]
    assert {one.late_after_s for one in world.reported} == {300.0}
    assert world.discovered() == {"watched": 2.0, "left_out": 0.0}
    assert world.look("orders-us", "orders-in") == ["orders-in", "orders-us"] == sorted(world.series())
    assert list(world.own.troubles) == []


def test_what_is_left_out_is_counted_and_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, 'discover: [{project: shop, matching: ".*", at_most: 2}]')
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert world.look("a", "b", "c") == ["a", "b"]
    assert world.discovered() == {"watched": 2.0, "left_out": 1.0}
    assert [record.getMessage() for record in caplog.records] == [
        "monitoring.discover[0]: 1 more subscriptions match .* and are left out"
    ]


def test_all_rules_and_names_share_one_bound(tmp_path: Path) -> None:
    rules = 'discover: [{project: shop, matching: ".*", at_most: 50}, {project: shop, matching: "[sx].*"}]'
    world = World(tmp_path, f"subscriptions: [{{name: {SHOP}s000}}], {rules}")
    watched = world.look(*(f"s{number:03}" for number in range(60)), "x")
    assert len(watched) == 50
    assert "s000" in watched
    assert world.discovered()["watched"] == 49.0


def test_what_is_named_and_what_probers_made_is_not_found_again(tmp_path: Path) -> None:
    world = World(
        tmp_path, f'subscriptions: [{{name: {SHOP}first, late_after: 5m}}], discover: [{{project: shop, matching: ".*"}}]'
    )
    assert world.look("first", "second") == ["first", "second"]
    assert next(one.late_after_s for one in world.reported if one.name == f"{SHOP}first") == 300.0
    assert world.look("okp-ordering", **OURS) == ["first"]


def test_labels_in_the_project_of_the_target(tmp_path: Path) -> None:
    world = World(tmp_path, "discover: [{labels: {team: a}}]")
    world.look()
    assert world.listing.asked == ["projects/ordering-prober"]
    for team, watched in (("a", ["projects/ordering-prober/subscriptions/mine"]), ("b", [])):
        assert world.look("mine", project="projects/ordering-prober", team=team) == watched


def test_what_cannot_be_listed_stays_and_is_trouble_of_the_prober(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, 'discover: [{project: shop, matching: ".*"}]')
    assert world.look("a") == ["a"]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            world.listing.answers["projects/shop"] = PermissionRefused("no permission")
            assert world.look() == ["a"]
    text = "own subscriptions: projects/shop cannot be listed for monitoring.discover[0]: no permission"
    assert list(world.own.troubles) == [text]
    assert [record.getMessage() for record in caplog.records] == [text]
    assert all(map(isnan, world.discovered().values()))
    assert world.look("a") == ["a"]
    assert list(world.own.troubles) == []


def test_that_nothing_matches_is_one_line(tmp_path: Path) -> None:
    world = World(tmp_path, 'discover: [{project: shop, matching: "orders-.*"}]')
    assert world.look("a", "b") == []
    assert list(world.own.troubles) == [
        "own subscriptions: none of 2 others in projects/shop matches orders-.* (monitoring.discover[0])"
    ]
    assert world.discovered() == {"watched": 0.0, "left_out": 0.0}


def test_without_a_connection_nothing_is_known(tmp_path: Path) -> None:
    world = World(tmp_path, 'discover: [{project: shop, matching: ".*"}]', connected=False)
    assert world.look() == []
    where = "projects/shop cannot be listed for monitoring.discover[0]"
    assert list(world.own.troubles) == [f"own subscriptions: {where}: nothing is probed on embedded"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"matching": "orders-("}, "'orders-(' is not a regular expression: missing ), unterminated subpattern at position 7"),
        ({"project": "shop"}, "must have matching or labels"),
        ({"matching": ".*", "target": "nowhere"}, "no target is called nowhere; there is embedded"),
        ({"matching": ".*", "at_most": 51}, "at_most"),
    ],
)
def test_a_wrong_rule_is_one_line(tmp_path: Path, rule: dict[str, Any], problem: str) -> None:
    (tmp_path / "prober.yaml").write_text(f"monitoring: {{discover: [{rule}]}}\n")
    with pytest.raises(ConfigError, match=r"monitoring\.discover") as refused:
        load(tmp_path / "prober.yaml", {})
    (line,) = [line for line in str(refused.value).splitlines() if "discover" in line]
    assert problem in line
