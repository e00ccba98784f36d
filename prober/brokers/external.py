"""The external vantage: a program in any language publishes and subscribes, to see the view of a customer of its client library.

The control plane and unary pull are the wire's, as at the library vantage. The protocol is in docs/external-clients.md. Unreported details
of the program are unknown: the number of attempts of a publish, and the time that a message spent inside its client.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from itertools import count

import grpc

from prober.brokers.base import (
    Broker,
    Confirmed,
    FlowControlSettings,
    Outcome,
    Outgoing,
    Publisher,
    Rejected,
    Subscriber,
    Tap,
    Unknown,
)
from prober.brokers.call_errors import CallFailed, nobody_asks
from prober.brokers.connection import Connection
from prober.brokers.endpoint import Endpoint
from prober.brokers.external_process import Event, ExternalProcess, text_of
from prober.brokers.external_pull import ExternalPull
from prober.brokers.grpc_errors import let_go
from prober.brokers.subscriber import ReopeningSubscriber
from prober.brokers.wire import WireBroker
from prober.clock import next_number
from prober.errors import BrokerError, BrokerUnavailable


class ExternalPublisher:
    """Publishes to one topic through the program, which publishes the messages of a key in the order of the commands."""

    keeps_order = True
    unexplained_stops = 0
    """Unknown for the program's client."""

    def __init__(self, connection: Connection, process: ExternalProcess, topic: str) -> None:
        self._connection, self._process, self._topic = connection, process, topic
        self._name = f"publisher-{next_number()}"
        self._numbers = count(1)
        self._waiters: dict[int, asyncio.Future[Outcome]] = {}
        self._opened = self._closed = False
        connection.opened(self)

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Send one command per message, in order; see the port. The client behind the program batches them at will."""
        if self._closed:
            return [Rejected("the publisher was closed before")] * len(messages)
        if not messages:
            return []
        try:
            await self._open()
        except BrokerError as error:
            return [Rejected(f"never sent: {error}")] * len(messages)
        numbers = [self._send(message) for message in messages]
        waiters = [self._waiters[number] for number in numbers]
        try:
            await asyncio.wait(waiters, timeout=timeout_s)
        finally:
            for number in numbers:
                self._waiters.pop(number).cancel()
        return [Unknown(f"no answer within {timeout_s:g} s") if waiter.cancelled() else waiter.result() for waiter in waiters]

    async def resume(self, ordering_key: str) -> None:
        """Resume a key in the program. Commands are executed in order, so the next publish of the key follows it."""
        self._process.send({"command": "resume", "publisher": self._name, "ordering_key": ordering_key})

    async def close(self) -> None:
        """Close the publisher in the program; unanswered publishes are unknown. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._process.send({"command": "close_publisher", "publisher": self._name})
        self._process.forget(self._name)
        self._give_up("the publisher was closed")
        self._connection.closed(self)

    async def _open(self) -> None:
        await self._process.ready()
        if self._closed:
            raise let_go(f"publishing to {self._topic}")
        if not self._opened:
            self._opened = True
            self._process.listen(self._name, self._on_event)
            self._process.send({"command": "open_publisher", "publisher": self._name, "topic": self._topic})

    def _send(self, message: Outgoing) -> int:
        number = next(self._numbers)
        self._waiters[number] = waiter = asyncio.get_running_loop().create_future()
        command = {
            "command": "publish",
            "publisher": self._name,
            "id": number,
            "ordering_key": message.ordering_key,
            "data": b64encode(message.data).decode(),
            "attributes": dict(message.attributes),
        }
        if not self._process.send(command) and not waiter.done():
            waiter.set_result(Rejected("never sent: the external client takes no commands"))
        return number

    def _on_event(self, event: Event | None) -> None:
        if event is None:
            self._give_up(self._process.failure)
            return
        match event["event"]:
            case "published":
                outcome: Outcome = Confirmed(text_of(event, "message_id"))
            case "publish_failed":
                outcome = Rejected(text_of(event, "reason"))
            case "publish_unknown":
                outcome = Unknown(text_of(event, "reason"))
            case other:
                raise ValueError(f"no event of a publisher: {other}")
        waiter = self._waiters.get(event["id"])
        if waiter is not None and not waiter.done():
            waiter.set_result(outcome)

    def _give_up(self, reason: str) -> None:
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_result(Unknown(reason))


class ExternalBroker(WireBroker):
    """The external vantage on one target: one program for all publishers and subscribers. Pushes do not go through it."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: grpc.ChannelCredentials | None,
        command: Sequence[str],
        failed: CallFailed = nobody_asks,
        peer: Broker | None = None,
    ) -> None:
        """Create the broker. `failed` is called for the prober's own calls only; the program's calls are not seen."""
        super().__init__(endpoint, credentials, failed, peer)
        self.failed: asyncio.Event = peer.failed if isinstance(peer, ExternalBroker) else asyncio.Event()
        """Set when the program of this or the other endpoint has failed."""
        self._process = ExternalProcess(command, endpoint.address, self.failed, secure=endpoint.secure)

    @property
    def failure(self) -> str:
        """Failure of the program of this or the other endpoint; empty if there is none."""
        other = self.peer.failure if isinstance(self.peer, ExternalBroker) else ""
        return self._process.failure or other

    def publisher(self, topic: str) -> Publisher:
        """Return a publisher to a topic."""
        return ExternalPublisher(self._connection, self._process, topic)

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> Subscriber:
        """Return a subscriber; `client_id` is the prober's name for it, the client creates its own."""

        def new_pull(tap: Tap) -> ExternalPull:
            return ExternalPull(self._process, subscription, client_id, flow, ack_deadline_s, tap)

        return ReopeningSubscriber(self._connection, subscription, client_id, new_pull)

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Check over the prober's own connection. Raises BrokerUnavailable, also if the program failed."""
        if self._process.failure:
            raise BrokerUnavailable(self._process.failure)
        await super().check_liveness(topic, subscription)

    async def close(self) -> None:
        """Close all publishers and subscribers, the connection and the program. Further calls do nothing."""
        try:
            await super().close()
        finally:
            await self._process.close()
