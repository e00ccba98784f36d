"""A legal Pub/Sub topic with its publishers, one or two subscriptions and their clients under virtual time, from one seed.

`simulate` gives what the checker is to believe (`Rules`) and what the recorders wrote. Without a fault everything in it is legal by
sections 3 and 5 of the specification as amended, and as unpleasant as they allow; where legality is not obvious the modules say why:
`topic` and `publisher` for the log, `lane` for the send order, `streaming`, `pull` and `push` for who may hold what, `streams` and
`pullers` for what gets lost, `excerpt` for what is left of the record. With a fault the same service has one bug.

A run has two phases. First everything happens at once. Then publishing stops, nothing goes wrong any more and every delivery is
acknowledged, until the log is delivered and nothing is outstanding; the record ends after a quiet time that is longer than every
deadline (`Ended(drained=True)`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from random import Random
from typing import TypeAlias

from prober.core.events import Ended, Event, Sought
from prober.core.rules import Mode, Rules
from tests.simulation import pullers, push, streams
from tests.simulation.excerpt import cut, with_hole
from tests.simulation.faults import Fault
from tests.simulation.occasion import for_fault
from tests.simulation.options import Options
from tests.simulation.publisher import Publisher
from tests.simulation.swarm import rules_for, swarm
from tests.simulation.topic import Message, Topic
from tests.simulation.world import ProbeInstance, World

SUBSCRIPTION, SECOND = "s", "t"
LONGEST_TROUBLE_S = 1500.0
LONGEST_DRAIN_S = 200_000.0
LONGEST_DRAIN_OF_A_BROKEN_SERVICE_S = 1000.0
SWEEPS_PER_RETENTION = 8

Client: TypeAlias = streams.Client | pullers.Client | push.Client
CLIENTS: dict[Mode, type[streams.Client] | type[pullers.Client] | type[push.Client]] = {
    Mode.STREAMING: streams.Client,
    Mode.PULL: pullers.Client,
    Mode.PUSH: push.Client,
}


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run. `rules` are those of the first subscription, `rules_by_subscription` names those of all.

    `fired` tells what the service's bug did and when, `seen` counts what else happened.
    """

    rules: Rules
    events: list[Event]
    fired: list[str]
    seen: Counter[str]
    rules_by_subscription: dict[str, Rules]


def simulate(seed: int, mode: Mode, options: Options | None = None) -> tuple[Rules, list[Event]]:
    """A legal run, for those who look at its first subscription only."""
    run = simulate_run(seed, mode, options=options)
    return run.rules, run.events


def simulate_run(seed: int, mode: Mode, fault: Fault | None = None, options: Options | None = None) -> Run:
    """A run, with a bug or without."""
    drawn = options or swarm(seed, mode)
    return _System(seed, drawn if fault is None else for_fault(seed, drawn, fault), fault).run()


@dataclass(slots=True)
class _Subscription:
    """A subscription with its service and clients."""

    probe_instance: ProbeInstance
    client: Client

    def append(self, message: Message) -> None:
        """What is published before the subscription exists is not for it."""
        if self.probe_instance.world.now >= self.probe_instance.options.late_s:
            self.client.service.append(message)

    def start(self) -> None:
        instance, service = self.probe_instance, self.client.service
        self.client.start()
        instance.world.every(instance.options.service.spontaneous_every_s, service.spontaneous)
        instance.world.every(instance.options.service.forget_every_s, service.forget)
        if instance.options.bounds.retention_s < inf:
            self._sweep()

    def _sweep(self) -> None:
        """What is older than the retention goes, now and then."""
        retention, world = self.probe_instance.options.bounds.retention_s, self.probe_instance.world
        for lane in self.client.service.lanes.values():
            lane.expire(world.now - retention)
        if not world.draining:
            world.after(world.between(0, 2 * retention / SWEEPS_PER_RETENTION), self._sweep)

    def seek(self) -> None:
        world = self.probe_instance.world
        settle = 4 * self.probe_instance.options.bounds.delay_max_s + 2
        world.note("seek")
        world.record(Sought(world.recorders.publisher.t, self.probe_instance.name, settle))
        world.after(world.between(0, settle / 2), self._sought)

    def _sought(self) -> None:
        for lane in self.client.service.lanes.values():
            lane.seek()
        self.client.service.wake_all()

    @property
    def drained(self) -> bool:
        return all(lane.idle for lane in self.client.service.lanes.values())


class _System:
    """Wires the parts together and runs them."""

    def __init__(self, seed: int, options: Options, fault: Fault | None) -> None:
        self.seed, self.options = seed, options
        self.world = World(Random(f"run {options.mode} {seed}"), options.record, fault)
        keys = [f"k{number}" for number in range(1, options.keys + 1)]
        instances = {SUBSCRIPTION: options} | ({SECOND: options.second} if options.second else {})
        self.subscriptions = [self._subscription(name, own, keys) for name, own in instances.items()]
        topic = Topic(self.world, options.topic, [subscription.append for subscription in self.subscriptions])
        longest_delay_s = max(own.bounds.delay_max_s for own in instances.values())
        self.publishers = [Publisher(self.world, topic, key, longest_delay_s) for key in keys]

    def _subscription(self, name: str, options: Options, keys: list[str]) -> _Subscription:
        instance = ProbeInstance(self.world, name, options)
        client = CLIENTS[options.mode](instance)
        for key in keys:
            client.service.add(key)
        return _Subscription(instance, client)

    def run(self) -> Run:
        world = self.world
        rules = {
            each.probe_instance.name: rules_for(self.seed, each.probe_instance.options, each.probe_instance.name)
            for each in self.subscriptions
        }
        for subscription in self.subscriptions:
            self._start(subscription)
        for publisher in self.publishers:
            publisher.start()
        self._trouble()
        self._drain()
        quiet_s = 2 * max(rule.delivery_deadline_s + rule.retry_backoff_max_s for rule in rules.values()) + 100
        for subscription in self.subscriptions:
            subscription.client.rest(quiet_s)
        world.run(world.now + quiet_s)
        world.record(Ended(world.now, drained=True))
        return Run(rules[SUBSCRIPTION], self._record(), world.fired, world.seen, rules)

    def _start(self, subscription: _Subscription) -> None:
        world, options = self.world, subscription.probe_instance.options
        duration = options.topic.bursts * options.topic.burst_gap_s + options.topic.pause_s + 5
        world.after(options.late_s, subscription.start)
        if world.fault is not None:
            world.every(options.topic.burst_gap_s, subscription.client.service.misbehave)
        if options.service.seek:
            world.after(options.late_s + world.between(1, duration), subscription.seek)
        if options.client.away_s:
            world.after(options.late_s + world.between(0, duration), subscription.client.go_away)

    def _record(self) -> list[Event]:
        """What is left of what the recorders wrote."""
        events, record = self.world.merged(), self.options.record
        random = Random(f"record {self.options.mode} {self.seed}")
        if record.excerpt:
            return cut(events, random)
        if record.hole:
            return with_hole(events, random)
        return events

    def _trouble(self) -> None:
        world = self.world
        while world.now < LONGEST_TROUBLE_S and not all(publisher.done for publisher in self.publishers):
            world.run(world.now + 5)
        world.run(world.now + world.between(0, 2 * max(each.probe_instance.options.bounds.lease_s for each in self.subscriptions)))

    def _drain(self) -> None:
        world = self.world
        world.draining = True
        begin = world.now
        end = begin + (LONGEST_DRAIN_S if world.fault is None else LONGEST_DRAIN_OF_A_BROKEN_SERVICE_S)
        world.run(begin + 60)
        while not self._drained and world.now < end:
            world.run(world.now + 10)
        if world.fault is None and not self._drained:
            raise AssertionError("the legal service did not drain")

    @property
    def _drained(self) -> bool:
        return all(publisher.done for publisher in self.publishers) and all(each.drained for each in self.subscriptions)
