"""Looks at the user's own subscriptions, with a Cloud Monitoring that says what a test wants."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from prober.clock import wall_s
from prober.config.loading import load
from prober.core.events import Delivered
from prober.core.rules import Rules
from prober.monitoring.cloud import MonitoringError
from prober.monitoring.comparison import Late, OwnSubscriptionStatus, Point, ReadFailure, Reading, shown
from prober.probes.context import DeliveryKind
from prober.runs.backlog import Backlog
from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.schedule import own_subscriptions
from prober.schedule.own_subscriptions import OwnSubscriptions
from prober.sinks.metrics import Metrics
from tests.unit.sinks.metrics.scraping import samples

MINE, OTHER = "projects/shop/subscriptions/mine", "projects/bank/subscriptions/other"


class Cloud:
    """Answers of Cloud Monitoring by project."""

    answers: Mapping[str, Reading | MonitoringError]

    def __init__(self, _: object) -> None:
        self.closed = False

    def read(self, names: Iterable[str], now: float) -> Mapping[str, Reading]:
        [name] = names
        answer = self.answers[name]
        if isinstance(answer, MonitoringError):
            raise answer
        return {name: answer}

    def close(self) -> None:
        self.closed = True


class World:
    """Two own subscriptions beside the embedded server, whose oldest message is so old, in seconds."""

    def __init__(self, pending: float = 0.0) -> None:
        environ = {f"ORDERING_PROBER_MONITORING__SUBSCRIPTIONS__{at}__NAME": name for at, name in enumerate((MINE, OTHER))}
        self.reported: tuple[OwnSubscriptionStatus, ...] = ()
        self.metrics = Metrics()
        self.own = OwnSubscriptions(
            load(None, environ), lambda series: {"s": Backlog(pending)}, lambda target: None, self.metrics, self._hear
        )

    def _hear(self, reported: tuple[OwnSubscriptionStatus, ...]) -> None:
        self.reported = reported

    def look(self, *, received: int = 1, kind: str = "first", age_s: float | None = None) -> dict[str, Late]:
        """A run ends, the ages are noted, everything is read: who is late, by name.

        `age_s`: the run observed what others publish, and a message came that was so old.
        """

        async def once() -> None:
            await self.own._age()
            rules = {"s": Rules(publishes_recorded=age_s is None)}
            begun = SimpleNamespace(probe_instance=SimpleNamespace(target="embedded"), rules=rules, started_at=wall_s())
            heard = self.own.begin(cast(RunBegun, begun))
            for how, stored_at in ((DeliveryKind.FIRST, wall_s() - (age_s or 0.0)), (DeliveryKind.REDELIVERY, 0.0)):
                came = Delivered(1.0, "s", "k", "A", "", 1, "m", publish_time=int(stored_at * 1e9))
                heard.event(Observation(came, how, None, ()))
            result = SimpleNamespace(counters={f"deliveries_{kind}": received})
            heard.ended(cast(RunEnded, SimpleNamespace(ended_at=wall_s(), result=result)))
            await self.own._look()

        asyncio.run(once())
        return {one.status.name: one.late for one in shown(self.reported, wall_s())}

    def value(self, name: str, **labels: str) -> float:
        [found] = [
            one.value
            for one in samples(self.metrics)
            if one.name == f"pubsub_prober_{name}" and labels.items() <= one.labels.items()
        ]
        return found


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    given: dict[str, Any] = dict.fromkeys((MINE, OTHER), Reading(Point(5.0, wall_s() + 5.0)))
    monkeypatch.setattr(Cloud, "answers", given, raising=False)
    monkeypatch.setattr(own_subscriptions, "CloudMonitoring", Cloud)
    return given


def test_nobody_is_late(answers: dict[str, Any]) -> None:
    world = World()
    assert world.look() == {MINE: Late.NOBODY, OTHER: Late.NOBODY}
    assert world.value("own_late", own_subscription=MINE, who="nobody") == 1.0
    assert world.value("own_oldest_unacked_message_age_seconds", own_subscription=MINE) == 5.0
    assert world.value("own_late_after_seconds", own_subscription=MINE) == 60.0


def test_the_service_is_late(answers: dict[str, Any]) -> None:
    assert World(61.0).look()[MINE] is Late.SERVICE


def test_a_prober_that_receives_nothing_cannot_tell(answers: dict[str, Any]) -> None:
    assert World().look(received=0)[MINE] is Late.UNKNOWN


@pytest.mark.parametrize(("age_s", "late"), [(0.5, Late.NOBODY), (61.0, Late.SERVICE)])
def test_beside_a_stream_that_others_publish_the_age_is_that_of_what_came(
    answers: dict[str, Any], age_s: float, late: Late
) -> None:
    assert World().look(kind="unrecorded", age_s=age_s)[MINE] is late


def test_what_cannot_be_read_is_unknown_counted_and_logged_once(answers: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.look()
    answers[MINE] = MonitoringError(ReadFailure.PERMISSION, "no permission to read it")
    with caplog.at_level(logging.WARNING):
        assert world.look() == {MINE: Late.UNKNOWN, OTHER: Late.NOBODY}
        world.look()
    assert [record.getMessage() for record in caplog.records] == [f"{MINE} cannot be read: no permission to read it"]
    assert world.value("own_read_failures_total", own_subscription=MINE, reason="permission") == 2.0
    assert world.value("own_late", own_subscription=MINE, who="unknown") == 1.0
    assert str(world.value("own_oldest_unacked_message_age_seconds", own_subscription=MINE)) == "nan"


def test_a_mistake_of_ours_leaves_nothing_known(answers: dict[str, Any]) -> None:
    world = World()
    world.look()
    world.own.failed(RuntimeError())
    assert {one.late for one in shown(world.reported, wall_s())} == {Late.UNKNOWN}
    assert world.value("internal_errors_total", component="scheduler") == 1.0


def test_it_is_reported_before_the_first_look_and_closed_at_the_end(answers: dict[str, Any]) -> None:
    world = World()

    async def enter() -> set[Late]:
        async with world.own:
            return {one.late for one in shown(world.reported, wall_s())}

    assert asyncio.run(enter()) == {Late.UNKNOWN}
    assert cast(Cloud, world.own._cloud).closed
