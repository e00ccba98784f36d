"""Runs of `long_lived` hand over to each other, across restarts, and whatever goes wrong in between accuses nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from prober.brokers.push.endpoint import PushEndpoint
from prober.clock import on_machine
from prober.config.models import Schedule
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.embedded.faults import Fault
from prober.errors import CheckpointUnavailable
from prober.probes.catalogue import ProbeName
from prober.probes.resources import OURS
from prober.runs.classification import Observation
from prober.runs.handover import Checkpoint, CheckpointsInMemory
from prober.runs.result import RunResult
from prober.runs.sink import RunBegun, RunEnded
from prober.simulation.network_conditions import CALM
from prober.simulation.prober import SimulatedProber, broker_of
from prober.simulation.service import SimulatedService
from prober.simulation.virtual_time import VirtualTime
from prober.simulation.world import defaults
from prober.slo.figures import Figure

MINUTE_S = 60.0
TAKEN_OVER = "messages_taken_over"
WAITING = 100
"""Messages that wait between two runs: 10 on each of 10 keys."""


class Results:
    """A sink that keeps how runs ended, also those that were cut short."""

    def __init__(self) -> None:
        self.kept: list[RunResult] = []

    def begin(self, run: RunBegun) -> Results:
        return self

    def event(self, seen: Observation) -> None:
        pass

    def ended(self, end: RunEnded) -> None:
        self.kept.append(end.result)


class World:
    """One service, and one prober after the other with the same checkpoints."""

    def __init__(self, loop: VirtualTime, faults: tuple[Fault, ...]) -> None:
        self._loop = loop
        (target,) = defaults().targets
        settings = target.probes[ProbeName.LONG_LIVED].model_copy(update={"schedule": Schedule(interval=timedelta(minutes=1))})
        self._target = target.model_copy(update={"probes": {ProbeName.LONG_LIVED: settings}})
        self._config = defaults().model_copy(update={"targets": (self._target,)})
        self._pushes, self._sink = PushEndpoint("", 0, "simulated"), Results()
        self._service = SimulatedService(faults, CALM, Random(1), self._pushes.app())
        self.checkpoints: Any = CheckpointsInMemory()
        self.results = self._sink.kept

    async def probe_for(self, seconds: float) -> list[RunResult]:
        """A prober works for so long, and is stopped then; what its runs were."""
        before = len(self.results)
        prober = SimulatedProber(self._config, self._service.network, self._pushes, [self._sink], self.checkpoints)
        prober.start()
        await asyncio.sleep(seconds)
        await prober.stop()
        assert prober.faults == []
        return self.results[before:]

    async def delete(self, name: str) -> None:
        """Somebody deletes a topic or subscription."""
        broker = broker_of(self._target, self._service.network, self._pushes)
        assert await broker.admin.delete(name, OURS)
        await broker.close()

    def set_clock_forward(self, by: timedelta) -> None:
        """It is later all of a sudden."""
        self._loop.set_forward += by

    async def stop(self) -> None:
        """Ends the service."""
        await self._service.stop()


def simulated(scenario: Callable[[World], Awaitable[None]], *faults: Fault) -> None:
    """Carries a scenario out in virtual time."""
    loop = VirtualTime()

    async def whole() -> None:
        world = World(loop, faults)
        await scenario(world)
        await world.stop()

    with on_machine(loop.machine(1)), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(whole())


def test_what_a_run_leaves_is_verified_after_a_restart_days_later() -> None:
    async def scenario(world: World) -> None:
        (first,) = await world.probe_for(MINUTE_S / 2)
        await asyncio.sleep(3 * 86_400)
        second, third = await world.probe_for(1.5 * MINUTE_S)
        assert [each.verdict for each in world.results] == [Verdict.PASS] * 3
        assert {(each.topic, each.subscription) for each in world.results} == {(first.topic, first.subscription)}
        assert TAKEN_OVER not in first.counters
        assert Figure.LONG_LIVED_WAITED not in first.figures
        assert second.counters[TAKEN_OVER] == third.counters[TAKEN_OVER] == WAITING
        assert 3 * 86_400 < second.figures[Figure.LONG_LIVED_WAITED] < second.figures[Figure.LONG_LIVED_AGE] < 3 * 86_400 + 61
        assert second.counters["publishes_confirmed"] == second.counters["deliveries_first"] == 3 * WAITING

    simulated(scenario)


def test_a_message_that_waited_and_is_passed_over_is_found() -> None:
    async def scenario(world: World) -> None:
        await world.probe_for(MINUTE_S / 2)
        (second,) = await world.probe_for(MINUTE_S / 2)
        assert second.verdict is Verdict.FAIL
        assert second.counters[TAKEN_OVER] == WAITING
        assert (Kind.ORDER_GAP, Status.VIOLATION) in second.counts
        assert {status for kind, status in second.counts if kind is not Kind.ORDER_GAP} == {Status.INDETERMINATE}

    simulated(scenario, Fault("skip_waiting", start=MINUTE_S / 2 - 1))


@pytest.mark.parametrize("after_s", [0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_process_that_ends_in_the_middle_of_a_run_costs_what_waited_and_accuses_nobody(after_s: float) -> None:
    async def scenario(world: World) -> None:
        await world.probe_for(MINUTE_S / 2)
        await world.probe_for(after_s)
        last = (await world.probe_for(1.5 * MINUTE_S))[-1]
        assert {each.verdict for each in world.results} <= {Verdict.PASS, Verdict.UNKNOWN}
        assert (last.verdict, last.counters[TAKEN_OVER]) == (Verdict.PASS, WAITING)
        assert len({each.topic for each in world.results}) == 1

    simulated(scenario)


@pytest.mark.parametrize("what", ["subscription", "topic"])
def test_what_was_deleted_meanwhile_is_made_anew_and_nothing_is_missing(what: str) -> None:
    async def scenario(world: World) -> None:
        (first,) = await world.probe_for(MINUTE_S / 2)
        await world.delete(getattr(first, what))
        second, third = await world.probe_for(1.5 * MINUTE_S)
        assert (second.verdict, third.verdict) == (Verdict.PASS, Verdict.PASS)
        assert second.subscription == third.subscription != first.subscription
        assert TAKEN_OVER not in second.counters
        assert third.counters[TAKEN_OVER] == WAITING

    simulated(scenario)


@pytest.mark.parametrize(("what", "said"), [("topic", "confirmed no publish"), ("subscription", "NOT_FOUND")])
def test_what_is_deleted_while_the_prober_runs_is_made_anew_after_one_run_that_says_so(what: str, said: str) -> None:
    async def scenario(world: World) -> None:
        async def delete() -> None:
            await asyncio.sleep(1.5 * MINUTE_S)
            await world.delete(getattr(world.results[0], what))

        results, _ = await asyncio.gather(world.probe_for(5.5 * MINUTE_S), delete())
        verdicts = [each.verdict for each in results]
        assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.UNKNOWN, *[Verdict.PASS] * (len(verdicts) - 3)]
        assert len(verdicts) >= 5
        assert said in results[2].reason
        assert results[-1].subscription != results[0].subscription
        assert results[-1].counters[TAKEN_OVER] == WAITING

    simulated(scenario)


@pytest.mark.parametrize("restart", [False, True])
def test_keys_that_are_a_week_old_are_left_for_new_ones(restart: bool) -> None:
    async def scenario(world: World) -> None:
        async def a_week_later() -> None:
            await asyncio.sleep(MINUTE_S / 2)
            world.set_clock_forward(timedelta(days=7, minutes=1))

        await asyncio.gather(world.probe_for(MINUTE_S / 2 if restart else 2.5 * MINUTE_S), a_week_later())
        results = [*world.results, *await world.probe_for(1.5 * MINUTE_S)]
        assert {each.verdict for each in results} == {Verdict.PASS}
        assert len({each.topic for each in results}) == 2
        assert results[0].topic != results[-1].topic
        assert results[-1].counters[TAKEN_OVER] == WAITING

    simulated(scenario)


class Unreadable:
    """Checkpoints that nobody can reach for a while."""

    def __init__(self, kept: CheckpointsInMemory, *broken: str) -> None:
        self._kept, self._broken = kept, broken

    async def read(self, name: str) -> Checkpoint | None:
        self._check("read")
        return await self._kept.read(name)

    async def take(self, name: str, epoch: str) -> bool:
        self._check("take")
        return await self._kept.take(name, epoch)

    async def save(self, name: str, checkpoint: Checkpoint) -> None:
        self._check("save")
        await self._kept.save(name, checkpoint)

    def _check(self, call: str) -> None:
        if call in self._broken:
            raise CheckpointUnavailable("the store is down")


@pytest.mark.parametrize("broken", ["read", "take"])
def test_while_checkpoints_cannot_be_read_nothing_is_verified_and_what_waits_waits_on(broken: str) -> None:
    async def scenario(world: World) -> None:
        (first,) = await world.probe_for(MINUTE_S / 2)
        kept, world.checkpoints = world.checkpoints, Unreadable(world.checkpoints, broken)
        down = await world.probe_for(1.5 * MINUTE_S)
        assert {(each.verdict, each.reason, each.unreachable) for each in down} == {(Verdict.UNKNOWN, "the store is down", False)}
        world.checkpoints = kept
        (last,) = await world.probe_for(MINUTE_S / 2)
        assert (last.verdict, last.counters[TAKEN_OVER], last.topic) == (Verdict.PASS, WAITING, first.topic)

    simulated(scenario)


def test_what_could_not_be_handed_over_is_acknowledged_unverified() -> None:
    async def scenario(world: World) -> None:
        kept, world.checkpoints = world.checkpoints, Unreadable(world.checkpoints, "save")
        (first,) = await world.probe_for(MINUTE_S / 2)
        assert (first.verdict, first.counters["handovers_failed"]) == (Verdict.PASS, 1)
        world.checkpoints = kept
        second, third = await world.probe_for(1.5 * MINUTE_S)
        assert (second.verdict, third.verdict) == (Verdict.PASS, Verdict.PASS)
        assert third.counters[TAKEN_OVER] == WAITING

    simulated(scenario)


def test_of_two_processes_with_one_name_only_one_takes_over() -> None:
    async def scenario(world: World) -> None:
        await world.probe_for(MINUTE_S / 2)
        world.checkpoints.take = _never
        (second,) = await world.probe_for(MINUTE_S / 2)
        assert second.verdict is Verdict.UNKNOWN
        assert "another process took the checkpoint" in second.reason

    simulated(scenario)


async def _never(_name: str, _epoch: str) -> bool:
    return False
