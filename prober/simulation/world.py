"""One simulation from start to end: a service, a network, consecutive probers, and disturbances."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from math import inf
from random import Random
from typing import Any, Final, cast

from prober.brokers.push.endpoint import PushEndpoint
from prober.clock import on_machine
from prober.config.loading import load
from prober.config.models import Config
from prober.config.sections import HistorySettings
from prober.runs.handover import CheckpointsInMemory
from prober.runs.sink import RunSink
from prober.simulation.observation import Observer, RunNote
from prober.simulation.plan import WHOLE_HOUR_S, Disturbance, Plan, Trouble
from prober.simulation.prober import SimulatedProber
from prober.simulation.service import SimulatedService
from prober.simulation.virtual_time import VirtualTime
from prober.sinks.history.writer import HistorySink, HistoryWriter

INSTANCE: Final = "simulated"
BUSY_FOR_S: Final = 30.0
BUSY_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """Result of a simulation; `faults`: exceptions in the project's own code."""

    plan: Plan
    notes: tuple[RunNote, ...]
    faults: tuple[str, ...]

    @property
    def events(self) -> int:
        """Number of recorded events."""
        return sum(note.events for note in self.notes)


@cache
def defaults() -> Config:
    """Return the configuration without user settings."""
    return load(None, {"ORDERING_PROBER_INSTANCE": INSTANCE})


def simulate(plan: Plan, history: str | None = None) -> Simulated:
    """Run a simulation in an event loop of its own.

    `history`: location of a history to write; None: no history.
    """
    loop = VirtualTime()
    with _quiet(), on_machine(loop.machine(plan.seed)), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(_World(plan, loop).live(history))


class _World:
    def __init__(self, plan: Plan, loop: VirtualTime) -> None:
        self._plan, self._loop = plan, loop
        self._faults: list[Exception] = []
        self._checkpoints = CheckpointsInMemory()  # a status store outlives the prober

    async def live(self, history: str | None) -> Simulated:
        async with recorded(history, f"seed-{self._plan.seed}") as sinks:
            return await self._live(sinks)

    async def _live(self, sinks: Sequence[RunSink]) -> Simulated:
        plan = self._plan
        self._loop.set_exception_handler(self._failed)
        self._config = _configured(plan)
        self._pushes = PushEndpoint("", 0, INSTANCE)
        self._service = SimulatedService(plan.faults, plan.conditions, Random(f"network {plan.seed}"), self._pushes.app())
        observer = Observer(self._service.faults.ledger)
        self._sinks = [observer, *sinks]
        self._begin()
        for disturbance in plan.disturbances:
            await asyncio.sleep(max(0.0, disturbance.at_s - self._loop.time()))
            await self._happen(disturbance)
        await asyncio.sleep(max(0.0, plan.hours * WHOLE_HOUR_S - self._loop.time()))
        await self._end()
        await self._service.stop()
        faults = [*self._faults, *self._service.network.faults]
        return Simulated(plan, tuple(observer.notes), tuple(map(repr, faults)))

    def _begin(self) -> None:
        self._prober = SimulatedProber(self._config, self._service.network, self._pushes, self._sinks, self._checkpoints)
        self._prober.start()

    async def _end(self) -> None:
        await self._prober.stop()
        self._faults += self._prober.faults

    async def _happen(self, disturbance: Disturbance) -> None:
        amount, network = disturbance.amount, self._service.network
        match disturbance.trouble:
            case Trouble.CUT:
                network.cut(amount)
            case Trouble.RESTART:
                await self._end()
                self._begin()
            case Trouble.KILL:
                network.cut(inf)
                await self._end()
                network.cut(amount)
                self._begin()
            case Trouble.CLOCK:
                self._loop.set_forward += timedelta(seconds=amount)
            case Trouble.PAUSE:
                self._loop.stand_still(amount)
            case Trouble.BUSY:
                for _ in range(int(BUSY_FOR_S / BUSY_EVERY_S)):
                    self._loop.stand_still(amount)
                    await asyncio.sleep(BUSY_EVERY_S)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._faults.append(cast(Exception, context.get("exception") or RuntimeError(context["message"])))


def _configured(plan: Plan) -> Config:
    config = defaults()
    (target,) = config.targets
    return config.model_copy(update={"targets": (target.model_copy(update={"probes": dict(plan.probes)}),)})


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log output of a simulation."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


# --- the history of a simulation: the writer of the service, without its threads. The same seed writes the same files ---------


FLUSH_EVERY_S: Final = 60.0


@asynccontextmanager
async def recorded(location: str | None, process: str) -> AsyncIterator[list[RunSink]]:
    """Provide the sinks that write the history; none without a location.

    `process` names the files.
    """
    if location is None:
        yield []
        return
    writer = HistoryWriter(HistorySettings(location=location), process=process)
    flushing = asyncio.create_task(_keep_flushing(writer), name="history")
    try:
        yield [HistorySink(writer)]
    finally:
        flushing.cancel()
        writer.flush()
        writer.end_segment()
        writer.ship()
        writer.close()


async def _keep_flushing(writer: HistoryWriter) -> None:
    while True:
        await asyncio.sleep(FLUSH_EVERY_S)
        writer.flush()
