"""What contract tests act on: a broker, a topic with a subscription, and a tap that writes down what it is reported."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from prober.brokers.base import (
    Broker,
    BrokerSession,
    Confirmed,
    FlowControlSettings,
    Outgoing,
    Received,
    Subscriber,
    SubscriptionSettings,
    TopicSettings,
    Vantage,
)
from prober.brokers.call_errors import CallFailed, nobody_asks
from prober.brokers.connect import connect as connect_vantage
from prober.brokers.endpoint import Endpoint, parse_endpoint

PROJECT = "projects/contract"
LABELS = {"made-by": "contract-test"}
WAIT_S = 60.0

EXTERNAL_CLIENT = (sys.executable, "-m", "tests.contract.external_client")

_NUMBERS = count(1)


async def connect(
    endpoint: Endpoint, vantage: Vantage, failed: CallFailed = nobody_asks, client: Sequence[str] = EXTERNAL_CLIENT
) -> Broker:
    """A broker; at the external vantage with a program of this package."""
    return await connect_vantage(endpoint, vantage, failed, client=client)


@dataclass(frozen=True)
class Opened:
    session: BrokerSession
    invoked_t: float | None


@dataclass(frozen=True)
class Got:
    session: BrokerSession
    received: Received


@dataclass(frozen=True)
class AckConfirmed:
    session: BrokerSession
    message_id: str


@dataclass(frozen=True)
class Closed:
    session: BrokerSession
    reason: str
    lost: bool


class Notebook:
    """A tap that writes down what it is reported, does with each message what the test wants, and lets the test wait."""

    def __init__(self, on_message: Callable[[BrokerSession, Received], None] | None = None) -> None:
        self.reported: list[Opened | Got | AckConfirmed | Closed] = []
        self._on_message = on_message or (lambda session, received: session.ack(received))
        self._news = asyncio.Event()
        self._loop_thread = threading.get_ident()

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        self._write(Opened(session, invoked_t))

    def received(self, session: BrokerSession, received: Received) -> None:
        self._write(Got(session, received))
        self._on_message(session, received)

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        raise AssertionError("nothing is pushed here")

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        self._write(AckConfirmed(session, message_id))

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        self._write(Closed(session, reason, lost))

    def _write(self, what: Opened | Got | AckConfirmed | Closed) -> None:
        assert threading.get_ident() == self._loop_thread, "the tap is called on the event loop"
        self.reported.append(what)
        self._news.set()

    async def until(self, condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Waits until something is true, looking again whenever the tap receives something."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"waited {timeout_s} s in vain; reported: {self.summary()}") from None

    @staticmethod
    async def all_until(notebooks: Sequence[Notebook], condition: Callable[[], bool]) -> None:
        """The same for several: each of them may be the one that brings the news."""
        waiting = [asyncio.ensure_future(notebook.until(condition)) for notebook in notebooks]
        try:
            await next(asyncio.as_completed(waiting))
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def summary(self) -> list[str]:
        """What was reported, for a reader."""
        return [
            f"{what.session.name} " + (what.received.data.decode() if isinstance(what, Got) else type(what).__name__)
            for what in self.reported
        ]

    @property
    def messages(self) -> list[Received]:
        return [what.received for what in self.reported if isinstance(what, Got)]

    @property
    def sessions(self) -> list[BrokerSession]:
        return [what.session for what in self.reported if isinstance(what, Opened)]

    @property
    def closings(self) -> list[Closed]:
        return [what for what in self.reported if isinstance(what, Closed)]

    @property
    def confirmations(self) -> list[str]:
        return [what.message_id for what in self.reported if isinstance(what, AckConfirmed)]

    def texts(self, key: str) -> list[str]:
        """The data of the messages of a key, in order of receipt."""
        return [message.data.decode() for message in self.messages if message.ordering_key == key]


@dataclass
class OwnBroker:
    """A broker on a running service, with a topic and a subscription of this test alone."""

    broker: Broker
    address: str
    topic: str
    subscription: str
    settings: SubscriptionSettings
    subscribers: list[Subscriber] = field(default_factory=list)

    async def subscribe(
        self, tap: Notebook, client_id: str = "one", ack_deadline_s: int = 10, flow: FlowControlSettings | None = None
    ) -> Subscriber:
        """A started subscriber."""
        subscriber = self.broker.subscriber(self.subscription, client_id, flow or FlowControlSettings(), ack_deadline_s)
        await subscriber.start(tap)
        return subscriber

    async def publish(self, key: str, texts: Sequence[str]) -> list[str]:
        """Publishes together and gives the message ids; every publish has to be confirmed."""
        publisher = self.broker.publisher(self.topic)
        outcomes = await publisher.publish([Outgoing(key, text.encode()) for text in texts], WAIT_S)
        await publisher.close()
        ids = [outcome.message_id for outcome in outcomes if isinstance(outcome, Confirmed)]
        assert len(ids) == len(texts), outcomes
        return ids

    async def with_subscription(self, **changes: object) -> None:
        """Takes another subscription of the topic, with other settings."""
        self.subscription = f"{PROJECT}/subscriptions/subscription-{next(_NUMBERS)}"
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]  # the names are checked at run time
        await self.broker.admin.create_subscription(self.subscription, self.settings)


@asynccontextmanager
async def own_broker(address: str, vantage: Vantage) -> AsyncIterator[OwnBroker]:
    """Connects, makes what it needs, and looks afterwards: no task and no thread of a closed broker goes on."""
    number = next(_NUMBERS)
    tasks_before, threads_before = asyncio.all_tasks(), set(threading.enumerate())
    broker = await connect(parse_endpoint(address), vantage)
    try:
        topic = f"{PROJECT}/topics/topic-{number}"
        settings = SubscriptionSettings(topic, ack_deadline_s=10, labels=LABELS)
        await broker.admin.create_topic(topic, TopicSettings(LABELS))
        subscription = f"{PROJECT}/subscriptions/subscription-{number}"
        await broker.admin.create_subscription(subscription, settings)
        yield OwnBroker(broker, address, topic, subscription, settings)
        await broker.admin.delete(subscription, LABELS)
        await broker.admin.delete(topic, LABELS)
    finally:
        await broker.close()
    await nothing_left(tasks_before, threads_before)


async def nothing_left(tasks_before: set[asyncio.Task[object]], threads_before: set[threading.Thread]) -> None:
    """Waits until no new task and no new thread is there; fails if they do not go.

    Two threads are not ours to end: the one by which gRPC wakes event loops, and those in which an event loop looks up names.
    """

    def left() -> list[str]:
        tasks = [str(task) for task in asyncio.all_tasks() - tasks_before]
        threads = [thread.name for thread in set(threading.enumerate()) - threads_before]
        return tasks + [name for name in threads if "_poll_wrapper" not in name and not name.startswith("asyncio_")]

    try:
        async with asyncio.timeout(WAIT_S):
            while left():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"still running: {left()}") from None
