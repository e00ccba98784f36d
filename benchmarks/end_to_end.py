"""Cost of a probed message: CPU microseconds of the prober to publish, receive, acknowledge, verify and count it.

Both vantages use one embedded server, which runs in a process of its own. Each round is a whole run of the probe `ordering` as in the
service: recorder, checker, backlog, metrics with exemplars, verdict. The figure is the best of R rounds after one to warm up; the ratio
compares figures of the same call, so it holds on any machine.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from time import perf_counter, process_time

from google.cloud import pubsub_v1

from benchmarks import end_to_end
from benchmarks.figures import CannotMeasureError, Figure, in_turn, yardstick_s
from benchmarks.processes import embedded_server
from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint, parse_endpoint
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.cycles import collect_rarely
from prober.probes.catalogue import ProbeName
from prober.runs.probe_instance import ProbeInstance
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.measurements import MetricsSink
from prober.slo.counts import SloCounters

KEYS = 100
ATTEMPTS_MAX = 5


class Undecided(Exception):  # no error: the machine stood still for too long
    """A run that was not verified to its end; the text is the reason."""


class Bench:
    """One probe instance, set up as in the service."""

    def __init__(self, vantage: Vantage, endpoint: Endpoint, messages: int, together: int) -> None:
        config = load(None, {})
        target = config.targets[0]
        self.probe_instance = PlannedInstance(target, ProbeName.ORDERING, target.probes[ProbeName.ORDERING], vantage)
        bursts = messages // KEYS // together
        self.workload = replace(
            self.probe_instance.workload, keys=KEYS, bursts=bursts, burst_messages=together, rate=0.0, sizes=(256,), subscribers=2
        )
        self.messages = KEYS * bursts * together
        self.target = replace(self.probe_instance.at(endpoint), publish_timeout_s=60.0)
        self.provisioner = Provisioner(
            self.target, self.probe_instance.resource_name("bench"), self.probe_instance.experiment.subscriptions, lasting=True
        )
        metrics = Metrics(config.objectives).watch(target)
        self.sink = MetricsSink(metrics, ["s"], SloCounters(config.objectives), Metrics().health, "ordering", "wire")

    async def measure(self, endpoint: Endpoint, repeat: int) -> list[tuple[float, float]]:
        """Return CPU microseconds per message and messages per second, of each round after one to warm up."""
        broker = await connect(endpoint, self.probe_instance.vantage)
        try:
            return [await self.decided_round(broker) for _ in range(repeat + 1)][1:]
        finally:
            await broker.close()

    async def decided_round(self, broker: object) -> tuple[float, float]:
        """Repeat a round until its run is decided. Raises CannotMeasureError after a few undecided ones on a slow machine."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self.one_round(broker)
            except Undecided as reason:
                why = str(reason)
        raise CannotMeasureError(f"the machine is too busy: {why}")

    async def one_round(self, broker: object) -> tuple[float, float]:
        """Execute a whole run. Raises Undecided."""
        cpu, wall = process_time(), perf_counter()
        run = Run(self.probe_instance.experiment, broker, self.target, self.provisioner, self.workload, 1)  # type: ignore[arg-type]
        run.begin(ProbeInstance(self.target.name, self.probe_instance.probe, self.probe_instance.vantage, 0.0), [self.sink])
        result = await run.carry_out()
        if result.verdict is Verdict.UNKNOWN:
            raise Undecided(result.reason)
        assert result.verdict is Verdict.PASS, result.reason
        assert result.counters["deliveries_first"] == self.messages
        return (process_time() - cpu) / self.messages * 1e6, self.messages / (perf_counter() - wall)


def probed_us(vantage: Vantage, address: str, messages: int) -> float:
    """Return the CPU microseconds per probed message."""
    collect_rarely()
    endpoint = parse_endpoint(address)
    ((microseconds, _),) = asyncio.run(Bench(vantage, endpoint, messages, 20).measure(endpoint, 1))
    return microseconds


def in_process(vantage: Vantage, address: str, messages: int) -> float:
    """Return the same from a separate process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(probed_us, vantage, address, messages).result()


def figures(repeat: int = 3, messages: int = 20_000) -> Iterator[Figure]:
    """Yield the figures of a probed message, measured alternately on one server."""
    collect_rarely()
    with embedded_server() as address:
        rounds = list(
            in_turn(
                repeat,
                lambda: yardstick_s() * 1e6,
                lambda: end_to_end.measure(address, messages, 1)[0],
                partial(in_process, Vantage.WIRE, address, messages),
                partial(in_process, Vantage.LIBRARY, address, messages),
            )
        )
    line, plain, wire, library = zip(*rounds, strict=True)
    cheaper = "times as much CPU as at the wire"
    yield Figure("a probed message, wire", "times orjson.loads of a line", _ratios(wire, line))
    yield Figure("a probed message, library", cheaper, _ratios(library, wire))
    yield Figure("google-cloud-pubsub alone", cheaper, _ratios(plain, wire))


def _ratios(each: Sequence[float], to: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / other for one, other in zip(each, to, strict=True))


# --- cost of google-cloud-pubsub alone, without a checker ---------------------------------------------------------------------


TIMEOUT_S = 60.0
PROJECT = "projects/benchmark"
PAYLOAD = b"x" * 256


class PlainClient:
    """A publisher and a subscriber with a topic of their own, on the server at an address.

    The measurement is microseconds of CPU per message published, received and acknowledged.

    Ordinary code of a user: a publisher with ordering keys and the client's own batches, a subscriber whose callback acknowledges. It is
    the reference for the cost of a probed message.
    """

    def __init__(self, address: str) -> None:
        os.environ["PUBSUB_EMULATOR_HOST"] = address
        name = uuid.uuid4().hex
        self._topic, self._subscription = f"{PROJECT}/topics/plain-{name}", f"{PROJECT}/subscriptions/plain-{name}"
        options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
        self._publisher = pubsub_v1.PublisherClient(publisher_options=options)
        self._subscriber = pubsub_v1.SubscriberClient()
        self._publisher.create_topic(request={"name": self._topic})
        self._subscriber.create_subscription(
            request={"name": self._subscription, "topic": self._topic, "enable_message_ordering": True}
        )
        self._wanted, self._received = 0, count(1)
        self._done = threading.Event()
        self._receiving = self._subscriber.subscribe(self._subscription, self._receive)

    def _receive(self, message: pubsub_v1.subscriber.message.Message) -> None:
        message.ack()
        if next(self._received) == self._wanted:  # a step that no other thread interrupts
            self._done.set()

    def one_round(self, messages: int) -> float:
        """Publish messages, wait for all of them, and return microseconds of CPU per message.

        Raises TimeoutError if they do not arrive.
        """
        self._wanted, self._received = messages, count(1)
        self._done.clear()
        began = process_time()
        wait([self._publisher.publish(self._topic, PAYLOAD, ordering_key=f"key-{number % KEYS}") for number in range(messages)])
        if not self._done.wait(TIMEOUT_S):
            raise TimeoutError(f"{messages:,} messages were published, and fewer came")
        return (process_time() - began) / messages * 1e6

    def close(self) -> None:
        """Close publisher and subscriber."""
        self._receiving.cancel()
        self._receiving.result()
        self._subscriber.close()
        self._publisher.stop()


def measure(address: str, messages: int, repeat: int) -> list[float]:
    """Return the microseconds of CPU per message, of each round after one to warm up."""
    client = PlainClient(address)
    try:
        return [client.one_round(messages) for _ in range(repeat + 1)][1:]
    finally:
        client.close()
