"""Runs of experiments on a target that a test makes up, at a time that it passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from prober.brokers.base import Confirmed, Outgoing, Received, Unknown
from prober.brokers.push.nowhere import NOWHERE
from prober.core.rules import Rules
from prober.probes.context import Delivery, ProbeContext
from prober.probes.experiment import Experiment, Workload
from prober.probes.payload import Stamp
from prober.runs.probe_instance import ProbeInstance, Target
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.runs.sink import RunSink
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

WORKLOAD = Workload(keys=2, bursts=1, burst_messages=5)
WANTED = 10
INTERVAL_S = 15.0
RUN_ID = "ordering-5eed"
TARGET = Target("here", "p", "wire", Rules(ack_deadline_s=10.0), act_timeout_s=60.0, drain_s=0.0)

Does = Callable[[], Awaitable[None]]


async def nothing() -> None:
    """What a target does that works."""


def fails(error: Exception) -> Does:
    async def act() -> None:
        raise error

    return act


class Clock:
    """The time, as far as the run knows; it stands still unless somebody passes it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def passes(self, seconds: float) -> None:
        """Lets time go by in small steps, so that nobody seems to have stood still."""
        until_t = self.now + seconds
        while self.now < until_t:
            self.now += 0.5
            await asyncio.sleep(0.001)


class Publisher:
    """Confirms what it is given, or not."""

    unexplained_stops = 0

    def __init__(self, answers: bool = True) -> None:
        self._answers = answers
        self._ids = iter(range(1, 1000))

    async def publish(self, batch: Sequence[Outgoing], _timeout_s: float) -> list[Any]:
        return [Confirmed(str(next(self._ids))) if self._answers else Unknown("no answer") for _ in batch]

    async def resume(self, _key: str) -> None:
        pass

    async def close(self) -> None:
        pass


def broker_of(*, create: Does = nothing, check: Does = nothing, answers: bool = True) -> Any:
    """A target whose administration and data plane do this."""

    async def admin(*_: object) -> None:
        await create()

    async def check_liveness(*_: object) -> None:
        await check()

    calls = dict.fromkeys(("create_topic", "create_subscription", "delete"), admin)
    return SimpleNamespace(
        admin=SimpleNamespace(**calls), publisher=lambda _topic: Publisher(answers), pushes=NOWHERE, check_liveness=check_liveness
    )


def begun(act: Any, broker: Any, place: Provisioner | None = None, sinks: Sequence[RunSink] = ()) -> Run:
    """A run of such an experiment that has begun at these sinks."""
    experiment = Experiment("ordering", "order", act, workload=WORKLOAD)
    run = Run(experiment, broker, TARGET, place or Provisioner(TARGET, "test", lasting=True), WORKLOAD, run_id=RUN_ID)
    run.begin(ProbeInstance("here", "ordering", "wire", INTERVAL_S), sinks)
    return run


def run_of(act: Any, *, place: Provisioner | None = None, **does: Any) -> RunResult:
    """The result of such a run, on a target that does this."""

    async def scenario() -> RunResult:
        return await asyncio.wait_for(begun(act, broker_of(**does), place).carry_out(), 60.0)

    return asyncio.run(scenario())


async def publishes_all(context: ProbeContext, workload: Workload) -> None:
    for number in workload.numbers:
        await context.publish(f"key-{number}", workload.burst_messages)


def unsent(result: RunResult) -> SliCounts | None:
    return result.checks.get(Indicator.PUBLISH_AVAILABILITY)


def receives(context: ProbeContext, subscription: str, count: int) -> None:
    """The first messages of a key come to a stream of a subscription and are acknowledged."""
    session = SimpleNamespace(
        name=f"of {subscription}", subscriber=subscription, flow=None, is_over=False, ack=lambda _received: None
    )
    tap: Any = context.tap(Delivery.ack, subscription)
    tap.opened(session, None)
    for seq in range(1, count + 1):
        stamp = Stamp(RUN_ID, seq)
        tap.received(session, Received(str(seq), "", "key-0", b"", stamp.attributes("key-0", b""), 0, None))
