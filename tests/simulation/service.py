"""A legal Pub/Sub subscription with its publisher and its clients under virtual time, from one seed.

`simulate` gives what the checker is to believe (`Rules`) and what the recorder wrote. Without a fault everything in it is legal by
sections 3 and 5 of the specification, and as unpleasant as they allow; where legality is not obvious the modules say why: `topic` for
the log, `lane` for the send order, `streaming`, `pull` and `push` for who may hold what. With a fault the same service has one bug.

A run has two phases. First everything happens at once. Then publishing stops, nothing goes wrong any more and every delivery is
acknowledged, until the log is delivered and nothing is outstanding; the record ends after a quiet time that is longer than every
deadline (`Ended(drained=True)`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from prober.core.events import Ended, Event, Sought
from prober.core.rules import Mode, Rules
from tests.simulation import pull, push, streaming
from tests.simulation.options import NEVER, Fault, Options, rules_for, swarm
from tests.simulation.topic import Publisher, Topic
from tests.simulation.world import SUBSCRIPTION, World

LONGEST_TROUBLE_S = 1500.0
LONGEST_DRAIN_S = 200_000.0
LONGEST_DRAIN_OF_A_BROKEN_SERVICE_S = 1000.0


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run. `fired` tells what the service's bug did and when, `seen` counts what else happened."""

    rules: Rules
    events: list[Event]
    fired: list[str]
    seen: Counter[str]


def simulate(seed: int, mode: Mode, options: Options | None = None) -> tuple[Rules, list[Event]]:
    """A legal run."""
    run = simulate_run(seed, mode, options=options)
    return run.rules, run.events


def simulate_run(seed: int, mode: Mode, fault: Fault | None = None, options: Options | None = None) -> Run:
    """A run, with a bug or without."""
    system = _System(seed, options or _for_fault(seed, swarm(seed, mode), fault), fault)
    return system.run(seed)


def _for_fault(seed: int, options: Options, fault: Fault | None) -> Options:
    """A bug must have the occasion to show: what it needs is switched on, and what would excuse or hide it is off or rarer.

    A message left out is invisible where it was a publisher's duplicate, one not sent again where its acknowledgement was only lost,
    acknowledged ones left out where the run begins with them, having gone further back than it had to.
    """
    if fault is None:
        return options
    random = Random(f"occasion {seed}")
    return replace(
        options,
        request_loss=0.3 * options.request_loss,
        reply_loss=0.3 * options.reply_loss,
        partial=0.3 * options.partial,
        zombie=0.3 * options.zombie,
        ack_loss=0.3 * options.ack_loss,
        deeper_rewind=0.0,
        spontaneous_every_s=NEVER if fault is Fault.REDELIVER_UNACKED_ONLY else options.spontaneous_every_s,
        seek=False,
        exactly_once=options.exactly_once and random.random() < 0.3,
        dead_letter=0,
        bursts=max(4, options.bursts),
        burst_max=max(3, options.burst_max),
        burst_gap_s=min(8.0, options.burst_gap_s),
        clients=max(2, options.clients),
        nack=max(options.nack, random.uniform(0.02, 0.2)),
        break_every_s=random.uniform(5, 40) if fault is Fault.RESUME_PAST else options.break_every_s,
        batch_max=max(3, options.batch_max),
        flow=max(3, options.flow),
    )


class _System:
    """Wires the parts together and runs them."""

    def __init__(self, seed: int, options: Options, fault: Fault | None) -> None:
        self.world = World(Random(f"run {options.mode} {seed}"), options, fault)
        self.client, self.publishers = _parts(self.world)

    def run(self, seed: int) -> Run:
        world, options = self.world, self.world.options
        rules = rules_for(seed, options)
        self.client.start()
        for publisher in self.publishers:
            publisher.start()
        self._every(options.spontaneous_every_s, self.client.service.spontaneous)
        if world.fault is not None:
            self._every(options.burst_gap_s, self.client.service.misbehave)
        if options.seek:
            world.after(world.between(1, options.bursts * options.burst_gap_s + 5), self._seek)
        self._trouble()
        self._drain()
        world.run(world.now + 2 * rules.delivery_deadline_s + 100)
        world.record(Ended(world.now, drained=True))
        return Run(rules, world.events, world.fired, world.seen)

    def _every(self, mean_s: float, action: Callable[[], None]) -> None:
        if mean_s >= NEVER:
            return

        def again() -> None:
            if not self.world.draining:
                action()
                self.world.after(self.world.random.expovariate(1 / mean_s), again)

        self.world.after(self.world.random.expovariate(1 / mean_s), again)

    def _seek(self) -> None:
        world = self.world
        settle = 4 * world.options.delay_max_s + 2
        world.note("seek")
        world.record(Sought(world.now, SUBSCRIPTION, settle))
        world.after(world.between(0, settle / 2), self._sought)

    def _sought(self) -> None:
        for lane in self.client.service.lanes.values():
            lane.seek()
        self.client.service.wake_all()

    def _trouble(self) -> None:
        world = self.world
        while world.now < LONGEST_TROUBLE_S and not all(publisher.done for publisher in self.publishers):
            world.run(world.now + 1)
        world.run(world.now + world.between(0, 2 * world.options.lease_s))

    def _drain(self) -> None:
        world = self.world
        world.draining = True
        begin = world.now
        end = begin + (LONGEST_DRAIN_S if world.fault is None else LONGEST_DRAIN_OF_A_BROKEN_SERVICE_S)
        world.run(begin + 60)
        while not self._drained() and world.now < end:
            world.run(world.now + 10)
        if world.fault is None and not self._drained():
            raise AssertionError("the legal service did not drain")
        if isinstance(self.client, pull.Client):
            self.client.stopped = True

    def _drained(self) -> bool:
        lanes = self.client.service.lanes.values()
        return all(publisher.done for publisher in self.publishers) and all(lane.idle for lane in lanes)


def _parts(world: World) -> tuple[streaming.Client | pull.Client | push.Client, list[Publisher]]:
    keys = [f"k{number}" for number in range(1, world.options.keys + 1)]
    client: streaming.Client | pull.Client | push.Client
    if world.options.mode is Mode.STREAMING:
        client = streaming.Client(world)
        client.service.lanes = {key: streaming.StreamLane(world, key) for key in keys}
    elif world.options.mode is Mode.PULL:
        client = pull.Client(world)
        client.service.lanes = {key: pull.PullLane(world, key) for key in keys}
    else:
        client = push.Client(world)
        client.service.lanes = {key: push.PushLane(world, key) for key in keys}
    topic = Topic(world, client.service.append)
    return client, [Publisher(world, topic, key) for key in keys]
