"""What the documents allow and few expect: the embedded server does it, from both vantages, and nobody is accused.

The server's own ledger says that it was really done. What can happen to pulls is tried with an experiment that stands here. At the wire
this is tried in virtual time (`tests.virtual_time`), and what concerns the ends of calls over real gRPC too; through Google's client
library, which has threads of its own, over real gRPC only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from prober.brokers.base import Broker, Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import parse_endpoint
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.events import Closed, Delivered, Event, Opened
from prober.core.findings import Status
from prober.core.rules import Mode
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import parse_fault
from prober.embedded.server import EmbeddedServer
from prober.errors import BrokerError
from prober.probes.catalogue import ProbeName
from prober.probes.context import PULL_TIMEOUT_S, Delivery, ProbeContext
from prober.probes.experiment import Experiment, Workload
from prober.runs.classification import Observation
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance
from tests.nightly import nightly_but
from tests.virtual_time import in_virtual_time

Result = TypeVar("Result")
TRIALS = {
    "reply_lost": (ProbeName.PUBLISH, "p=0.1"),
    "partial_batch": (ProbeName.PUBLISH, "p=0.2"),
    "zombie_publish": (ProbeName.PUBLISH, "p=0.1"),
    "duplicate_publish_same_id": (ProbeName.PUBLISH, "p=0.2"),
    "early_redelivery": (ProbeName.AFFINITY, "p=0.5"),
    "lost_tail": (ProbeName.REDELIVERY, "p=1"),
    "slow_ack_extension": (ProbeName.ORDERING, "p=0.3"),
    "throttle_key": (ProbeName.HOT_KEY, "p=1"),
    "backoff_ignored": (ProbeName.REDELIVERY, "p=1"),
    "dead_letter_late": (ProbeName.DEAD_LETTER, "p=1"),
}
MORE_TRIALS = (
    (ProbeName.DEAD_LETTER, "reply_lost", "p=0.1"),
    (ProbeName.EXACTLY_ONCE, "ack_lost", "p=0.1"),
    (ProbeName.EXACTLY_ONCE, "stream_break", "p=0.05"),
    (ProbeName.EXACTLY_ONCE, "half_open_stream", "count=2"),
    (ProbeName.EXACTLY_ONCE, "duplicate_publish_same_id", "p=0.2"),
    (ProbeName.SEEK, "duplicate_publish_same_id", "p=0.2"),
    (ProbeName.ISOLATION, "slow_ack_extension", "p=0.3"),
    (ProbeName.ISOLATION, "lease_short", "p=0.5"),
    (ProbeName.ISOLATION, "ack_lost", "p=0.2"),
    (ProbeName.ISOLATION, "half_open_stream", "count=2"),
    (ProbeName.PUSH, "reply_lost", "p=0.3"),
    (ProbeName.PUSH, "duplicate_publish_same_id", "p=0.2"),
    (ProbeName.PUSH, "ack_lost", "p=0.1"),
    (ProbeName.PUSH, "forget_holds", "p=0.1"),
    (ProbeName.PUSH, "lease_short", "p=1"),
    (ProbeName.PUSH, "slow_ack_extension", "p=0.3"),
)
PULL_TRIALS = {"lost_pull_answer": "p=0.2", "duplicate_publish_same_id": "p=0.3", "slow_ack_extension": "p=0.3"}
OVER_GRPC = ("reply_lost", "zombie_publish", "slow_ack_extension")
PULLERS = 3
ALL_ACKED_WITHIN_S = 90.0


def accusations(result: RunResult) -> list[tuple[str, str]]:
    return [sort for sort in result.counts if sort[1] in (Status.VIOLATION, Status.LIVENESS)]


THROUGH_LIBRARY = ("reply_lost", "partial_batch")
"""Faults that are met by day through the library too, which cannot take part in virtual time: no lease has to end for them."""


def from_each_vantage(faults: Iterable[str]) -> list[Any]:
    """A fault and a vantage, as parameters."""
    cases = [(fault, vantage) for fault in faults for vantage in (Vantage.WIRE, Vantage.LIBRARY)]
    return nightly_but([(fault, vantage) for fault, vantage in cases if vantage is Vantage.WIRE or fault in THROUGH_LIBRARY], cases)


@pytest.mark.parametrize(("fault", "vantage"), from_each_vantage(TRIALS))
def test_nobody_is_accused_of_what_is_allowed(fault: str, vantage: Vantage) -> None:
    probe, options = TRIALS[fault]
    assert_allowed(probe, fault, options, vantage)


@pytest.mark.parametrize("fault", OVER_GRPC)
def test_nor_over_grpc(fault: str) -> None:
    probe, options = TRIALS[fault]
    assert_allowed(probe, fault, options, Vantage.WIRE, asyncio.run)


@pytest.mark.parametrize(("probe", "fault", "options"), MORE_TRIALS)
def test_nor_by_another_probe(probe: ProbeName, fault: str, options: str) -> None:
    assert_allowed(probe, fault, options, Vantage.WIRE)


def run_from(vantage: Vantage) -> Callable[[Coroutine[Any, Any, Result]], Result]:
    """How to run what is done from there: the library cannot take part in virtual time."""
    return asyncio.run if vantage is Vantage.LIBRARY else lambda scenario: in_virtual_time(lambda: scenario)


def assert_allowed(
    probe: ProbeName, fault: str, options: str, vantage: Vantage, runs: Callable[[Coroutine[Any, Any, Any]], Any] | None = None
) -> None:
    """The probe meets the fault, and accuses nobody."""

    async def scenario() -> tuple[RunResult, Counter[str]]:
        async with EmbeddedServer(faults=[parse_fault(f"{fault}:{options}")]) as server:
            request = CheckRequest(probes=(probe,), endpoint=server.address, vantage=vantage)
            (result,) = await run_checks(load(None, {}), request, {}, lambda _: None)
            return result, server.faults.ledger.counts

    result, injected = (runs or run_from(vantage))(scenario())
    assert injected[fault], "it never happened"
    assert accusations(result) == [], result.reason
    assert result.verdict in CATALOGUE[fault].verdicts, result.reason


class Pulled:
    """Publishes bursts and pulls until everything was acknowledged. Some messages are held, some refused, some left alone."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._acked: set[tuple[str, int]] = set()
        self._all_acked = asyncio.Event()
        self._wanted = 0

    def record(self, seen: Observation) -> None:
        self.events.append(seen.event)

    async def act(self, broker: Broker, context: ProbeContext, workload: Workload) -> None:
        self._wanted = workload.keys * workload.bursts * workload.burst_messages
        pulling = [asyncio.create_task(self._pull(broker, context)) for _ in range(PULLERS)]
        try:
            await asyncio.gather(*(self._bursts(context, f"pulled-{number}", workload) for number in workload.numbers))
            async with asyncio.timeout(ALL_ACKED_WITHIN_S):
                await self._all_acked.wait()
        finally:
            for task in pulling:
                task.cancel()
            await asyncio.gather(*pulling, return_exceptions=True)

    async def _bursts(self, context: ProbeContext, key: str, workload: Workload) -> None:
        for _ in range(workload.bursts):
            await context.publish(key, workload.burst_messages, workload.sizes)
            await asyncio.sleep(0.05)

    async def _pull(self, broker: Broker, context: ProbeContext) -> None:
        puller = broker.puller(context.resources.subscription)
        tap = context.tap(partial(self._decide, context))
        try:
            while True:
                with suppress(BrokerError):
                    await puller.pull(tap, 7, PULL_TIMEOUT_S)
        finally:
            await puller.close()

    def _decide(self, context: ProbeContext, delivery: Delivery) -> None:
        if not delivery.again and context.random.random() < 0.03:
            context.later(0.1, delivery.nack)
        else:
            context.later(0.05, partial(self._ack, delivery))

    def _ack(self, delivery: Delivery) -> None:
        delivery.ack()
        self._acked.add((delivery.key, delivery.seq))
        if len(self._acked) >= self._wanted:
            self._all_acked.set()


async def pulled(vantage: Vantage, *faults: str) -> tuple[RunResult, list[Event], Counter[str]]:
    """One run of the pulling experiment on a server with these faults."""
    experiment = Pulled()
    settings = load(None, {}).targets[0]
    async with EmbeddedServer(faults=map(parse_fault, faults)) as server:
        endpoint = parse_endpoint(server.address)
        instance = PlannedInstance(settings, ProbeName.ORDERING, settings.probes[ProbeName.ORDERING], vantage)
        target = instance.at(endpoint)
        target = replace(target, rules=replace(target.rules, mode=Mode.PULL))
        broker = await connect(endpoint, vantage)
        try:
            probe = Experiment("pulling", "One batch of a key is outstanding at a time.", partial(experiment.act, broker))
            run = Run(
                probe, broker, target, Provisioner(target, "pulling", lasting=False), Workload(keys=6, bursts=4, burst_messages=10)
            )
            run.recording.listen(experiment.record)
            result = await run.carry_out()
        finally:
            await broker.close()
        return result, experiment.events, server.faults.ledger.counts


@pytest.mark.parametrize("vantage", [Vantage.WIRE, Vantage.LIBRARY])
def test_pulls_of_a_right_service_pass_and_each_is_recorded_to_its_end(vantage: Vantage) -> None:
    result, events, _ = run_from(vantage)(pulled(vantage))
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    opened = [event.session for event in events if isinstance(event, Opened)]
    closed = [event for event in events if isinstance(event, Closed)]
    assert len(opened) - PULLERS <= len(closed) <= len(opened)
    answered = {event.session for event in closed if not event.lost}
    assert answered >= {event.session for event in events if isinstance(event, Delivered)}
    waiting_at_the_end = {event.session for event in closed[-PULLERS:]}
    assert {event.session for event in closed if event.lost} <= waiting_at_the_end


@pytest.mark.parametrize(("fault", "vantage"), from_each_vantage(PULL_TRIALS))
def test_nobody_is_accused_of_what_is_allowed_by_pull(fault: str, vantage: Vantage) -> None:
    result, events, injected = run_from(vantage)(pulled(vantage, f"{fault}:{PULL_TRIALS[fault]}"))
    assert injected[fault], "it never happened"
    if fault == "lost_pull_answer":
        assert sum(isinstance(event, Closed) and event.lost for event in events) >= injected[fault]
    assert accusations(result) == [], result.reason
    assert result.verdict in CATALOGUE[fault].verdicts, result.reason
