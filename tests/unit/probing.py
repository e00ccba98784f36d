"""A prober at work in this process, at one probe instance of a target that somebody answers for only when a test lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from prober.brokers.base import SubscriptionSettings, TopicSettings
from prober.brokers.endpoint import Endpoint
from prober.brokers.push.nowhere import NOWHERE
from prober.config.loading import load
from prober.errors import BrokerUnavailable
from prober.runs.classification import Observation
from prober.runs.handover import CheckpointsInMemory
from prober.runs.sink import RunBegun, RunEnded
from prober.schedule.assignments import Assignments
from prober.schedule.instances import instances_of
from prober.schedule.probe_loop import OpenProbe, Surroundings
from prober.sinks.history.writer import HistorySink
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.live.state import LiveState
from prober.sinks.metrics import Metrics
from prober.slo.counts import SloCounters
from prober.slo.objectives import Objective

PATIENCE_S = 60.0
VARIABLES = {"ORDERING_PROBER_PROBES__ORDERING__SCHEDULE": '{"interval": "15m"}'}


class Admin:
    """The target. A run that it does not let go on waits at its first call, and ends there as unavailable when it may."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.asked: list[str] = []
        self.deleted: list[str] = []

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        self.asked.append(topic)
        await self.may_go_on.wait()
        raise BrokerUnavailable("nobody answers")

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        raise AssertionError

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        self.deleted.append(name)
        return True


class Reported:
    """A sink that keeps the results of the runs that count."""

    def __init__(self, results: list[Any]) -> None:
        self._results = results

    def begin(self, run: RunBegun) -> Reported:
        return self

    def event(self, seen: Observation) -> None:
        pass

    def ended(self, end: RunEnded) -> None:
        if end.counts:
            self._results.append(end.result)


class Work:
    """One prober with one probe instance, in the state that a test brings it into."""

    def __init__(self, history: Any = None, objectives: Sequence[Objective] = ()) -> None:
        self.admin = Admin()
        self.maintenance: str | None = None
        """Why the target is under maintenance; None: it is not."""
        self.reported: list[Any] = []
        """The results that were reported to the status store."""
        self.counters = SloCounters(objectives)
        known = load(None, VARIABLES)
        (target,) = known.targets
        instance = next(iter(instances_of(target)))
        config: Any = SimpleNamespace(targets=known.targets, maintenance_of=lambda _target, _at: self._window())
        broker: Any = SimpleNamespace(admin=self.admin, publisher=lambda _topic: None, pushes=NOWHERE)
        self.metrics = metrics = Metrics()
        open_probe = OpenProbe(instance, Endpoint("127.0.0.1:1", secure=False), broker, "me")
        self.name, self.key = instance.name, open_probe.shown.key
        self.board = LiveState((), version="1.2.3", instance="me", started_at=0.0)
        self.assignments = Assignments(config, self.board, metrics.health)
        sinks: list[Any] = [self.board, Reported(self.reported), *([] if history is None else [HistorySink(history)])]
        around = Surroundings(
            metrics.watch(target), self.board, lambda _instance, _name: sinks, self.counters, CheckpointsInMemory()
        )
        self.assignments.follow(config, [open_probe], {target.series: around})

    @property
    def shown(self) -> InstanceSnapshot:
        """The probe instance as the page shows it."""
        (instance,) = self.board.snapshot(0.0).probe_instances
        return instance

    def run(self, scenario: Coroutine[None, None, None]) -> None:
        """Carries out a scenario with the schedule at work, which begins a run at once."""

        async def whole() -> None:
            self.assignments.take(self.name)
            self.assignments.start()
            try:
                await asyncio.wait_for(scenario, PATIENCE_S)
            finally:
                self.admin.may_go_on.set()
                await self.assignments.stop()

        asyncio.run(whole())

    async def first_run(self) -> None:
        """Lets the run that the schedule begins at once end."""
        self.admin.may_go_on.set()
        await until(lambda: self.reported)
        self.admin.may_go_on.clear()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == self.name))

    def _window(self) -> object:
        return None if self.maintenance is None else SimpleNamespace(reason=self.maintenance)


async def until(condition: Callable[[], object]) -> None:
    """Waits for a condition, turn by turn of the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)
