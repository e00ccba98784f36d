"""What a broker costs: microseconds of this process's CPU per message published, received and acknowledged, from both vantages.

    python -m benchmarks.brokers [--messages N] [--repeat R] [--endpoint HOST:PORT]

The server is the same for both and runs in a process of its own: the embedded server, or what `--endpoint` names. The figure is the best
of R rounds after a round to warm up; nothing is judged or recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

from benchmarks.figures import CannotMeasureError, Figure, in_turn
from prober.brokers.base import (
    Broker,
    BrokerSession,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    Received,
    SubscriptionSettings,
    TopicSettings,
    Vantage,
)
from prober.brokers.connect import connect
from prober.brokers.endpoint import parse_endpoint
from tests.contract.emulator import find_emulator, running_emulator

SERVER = """
import asyncio
from prober.embedded.server import EmbeddedServer

async def serve():
    async with EmbeddedServer() as server:
        print(server.address, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""

KEYS = 100
TOGETHER = 20
TIMEOUT_S = 60.0
LABELS = {"made-by": "benchmark"}
PROJECT = "projects/benchmark"


class CountingTap:
    """Acknowledges everything and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.wanted = 0
        self.reached = asyncio.Event()

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """Nothing to do."""

    def received(self, session: BrokerSession, received: Received) -> None:
        """Acknowledges."""
        session.ack(received)
        self.count += 1
        if self.count >= self.wanted:
            self.reached.set()

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Nothing is pushed here."""

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Nothing to do."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """Nothing to do."""

    async def until(self, wanted: int) -> None:
        """Waits for so many messages in all."""
        self.wanted = wanted
        if self.count < wanted:
            self.reached.clear()
            await asyncio.wait_for(self.reached.wait(), TIMEOUT_S)


async def one_round(broker: Broker, tap: CountingTap, topic: str, messages: int) -> None:
    """Publishes on all keys at once, a few messages of a key together, and waits for all of them."""
    publisher = broker.publisher(topic)
    wanted = tap.count + messages

    async def publish(key: str) -> None:
        for _ in range(messages // KEYS // TOGETHER):
            outcomes = await publisher.publish([Outgoing(key, b"x" * 100, {"a": "b"})] * TOGETHER, TIMEOUT_S)
            assert all(isinstance(outcome, Confirmed) for outcome in outcomes)

    await asyncio.gather(*(publish(f"key-{number}") for number in range(KEYS)))
    await tap.until(wanted)
    await publisher.close()


async def measure(address: str, vantage: Vantage, messages: int, repeat: int) -> list[tuple[float, float]]:
    """CPU microseconds per message and messages per second, of each round after one to warm up."""
    broker = await connect(parse_endpoint(address), vantage)
    name = uuid.uuid4().hex
    topic, subscription = f"{PROJECT}/topics/bench-{name}", f"{PROJECT}/subscriptions/bench-{name}"
    await broker.admin.create_topic(topic, TopicSettings(LABELS))
    await broker.admin.create_subscription(subscription, SubscriptionSettings(topic, labels=LABELS))
    tap = CountingTap()
    await broker.subscriber(subscription, "bench", FlowControlSettings(messages_max=10_000), 60).start(tap)
    figures = []
    for _ in range(repeat + 1):
        cpu, wall = process_time(), perf_counter()
        await one_round(broker, tap, topic, messages)
        figures.append(((process_time() - cpu) / messages * 1e6, messages / (perf_counter() - wall)))
    await broker.admin.delete(subscription, LABELS)
    await broker.admin.delete(topic, LABELS)
    await broker.close()
    return figures[1:]


@contextmanager
def server(endpoint: str) -> Iterator[str]:
    """The address of what is measured against."""
    if endpoint:
        yield endpoint
        return
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def figures(repeat: int = 3, messages: int = 20_000) -> Iterator[Figure]:
    """What the report says of the servers: one load at the wire, on each in turn. Raises CannotMeasureError without Google's emulator."""
    command = find_emulator()
    if command is None:
        raise CannotMeasureError("Google's emulator is missing: install it with `gcloud components install pubsub-emulator`")

    def rate(address: str) -> float:
        return max(rate for _, rate in asyncio.run(measure(address, Vantage.WIRE, messages, 1)))

    with server("") as ours, running_emulator(command) as theirs:
        rounds = list(in_turn(repeat, lambda: rate(ours), lambda: rate(theirs)))
    unit = "times the messages a second of Google's emulator"
    yield Figure("embedded server", unit, tuple(mine / other for mine, other in rounds), more=True)


def main() -> None:
    """Prints one line per vantage and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--endpoint", default="")
    options = parser.parse_args()
    with server(options.endpoint) as address:
        costs = {}
        for vantage in Vantage:
            costs[vantage], rate = min(asyncio.run(measure(address, vantage, options.messages, options.repeat)))
            print(f"{vantage:8} {costs[vantage]:8.1f} us of CPU per message   {rate:8.0f} messages/s")
    print(f"library / wire: {costs[Vantage.LIBRARY] / costs[Vantage.WIRE]:.1f}")


if __name__ == "__main__":
    main()
