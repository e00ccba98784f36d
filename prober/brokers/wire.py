"""The wire vantage: gRPC without a client library.

This adapter does not retry, reorder or buffer: one publish is one request and one attempt, and a message reaches the tap when its bytes are
received. A reopened stream is reported as a new session. Unary pull has the fewest layers: acknowledgements are unary requests, sent one
after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import grpc
import grpc.aio

from prober.brokers import wire_messages
from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import (
    Admin,
    Broker,
    Confirmed,
    FlowControlSettings,
    Outcome,
    Outgoing,
    Publisher,
    Puller,
    PushReceiver,
    Received,
    Rejected,
    Subscriber,
    Tap,
    Unknown,
)
from prober.brokers.call_errors import CallFailed, nobody_asks
from prober.brokers.connection import Connection, OpenChannel, check_liveness, open_async_channel, session_name
from prober.brokers.endpoint import Endpoint
from prober.brokers.grpc_errors import LET_GO, let_go, outcome_of, translated, was_cancelled_by_caller
from prober.brokers.push.nowhere import NOWHERE
from prober.brokers.subscriber import ReopeningSubscriber
from prober.brokers.wire_messages import ACKNOWLEDGE, MODIFY, NACK_S, PUBLISH, PULL, Sending, routing
from prober.brokers.wire_stream import WireStream
from prober.errors import BrokerError

SEND_TIMEOUT_S: Final = 10.0
GOODBYE_S: Final = 1.0


class WirePublisher:
    """Publishes to one topic: each publish is one request and one attempt, and is sent at once. No client stops a key here."""

    keeps_order = False
    unexplained_stops = 0

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._publish: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = connection.channel.unary_unary(PUBLISH)
        self._metadata = routing("topic", topic)
        self._calls: set[grpc.aio.UnaryUnaryCall[bytes, bytes]] = set()
        self._closed = False
        connection.opened(self)

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Send one request; see the port. Raises no error of the service: a missing topic is an outcome, too."""
        if not messages:
            return []
        if self._closed:
            return [Rejected("the publisher was closed before")] * len(messages)
        request = wire_messages.publish_request(self._topic, messages)
        call = self._publish(request, timeout=timeout_s, metadata=self._metadata)
        self._calls.add(call)
        try:
            return _outcomes(wire_messages.published_ids(await call), len(messages))
        except grpc.aio.AioRpcError as error:
            self._connection.watch.ended(PUBLISH, error.code())
            return [outcome_of(error.code(), error.details())] * len(messages)
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            return [Unknown(LET_GO)] * len(messages)
        finally:
            self._calls.discard(call)

    async def resume(self, ordering_key: str) -> None:
        """Do nothing: on the wire no key is ever paused."""

    async def close(self) -> None:
        """Cancel the unanswered publishes: their outcome is unknown."""
        self._closed = True
        for call in list(self._calls):
            call.cancel()
        self._connection.closed(self)


def _outcomes(ids: Sequence[str], count: int) -> Sequence[Outcome]:
    """Return the outcomes; unknown unless there is one id per message, since ids could not be matched otherwise."""
    if len(ids) != count or not all(ids):
        return [Unknown(f"{count} messages were published, and {len(ids)} ids came back")] * count
    return [Confirmed(message_id) for message_id in ids]


class PulledSession:
    """One pull, from its request to its answer, and the later answers to its messages. Each pull is a subscriber of its own."""

    flow = None
    """A pull requests a number of messages and has no other limits."""

    def __init__(self, puller: WirePuller) -> None:
        self._puller = puller
        self.name = self.subscriber = session_name("pull")

    @property
    def is_over(self) -> bool:
        """Whether its puller was closed: until then its messages can be answered."""
        return self._puller.is_closed

    def ack(self, received: Received) -> None:
        """Send an acknowledgement."""
        self._puller.send(Sending(received.ack_id, None))

    def nack(self, received: Received) -> None:
        """Send a lease of zero seconds."""
        self._puller.send(Sending(received.ack_id, NACK_S))

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Send a lease modification."""
        self._puller.send(Sending(received.ack_id, seconds))

    def let_expire(self, received: Received) -> None:
        """Do nothing: on the wire leases are not extended."""


class WirePuller:
    """Pulls from one subscription.

    Acknowledgements are sent in the order of calls, over all responses; failed ones are lost.
    """

    def __init__(self, connection: Connection, subscription: str) -> None:
        channel = connection.channel
        self._connection = connection
        self._subscription = subscription
        self._metadata = routing("subscription", subscription)
        self._pull: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(PULL)
        self._acknowledge: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(ACKNOWLEDGE)
        self._modify: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(MODIFY)
        self._waiting: set[grpc.aio.UnaryUnaryCall[bytes, bytes]] = set()
        self._unsent: list[Sending] = []
        self._sender: asyncio.Task[None] | None = None
        self._closed = False
        connection.opened(self)

    @property
    def is_closed(self) -> bool:
        """Whether no more answers are sent."""
        return self._closed

    async def pull(self, tap: Tap, messages_max: int, timeout_s: float) -> bool:
        """Send one pull; see the port."""
        doing = f"pulling from {self._subscription}"
        if self._closed:
            raise let_go(doing)
        session = PulledSession(self)
        lost, reason = True, "cancelled"
        tap.opened(session, None)
        try:
            received = await self._answer(messages_max, timeout_s, doing)
            for one in received or ():
                tap.received(session, one)
            lost, reason = received is None, "no answer in time" if received is None else "answered"
        except BrokerError as error:
            reason = str(error)
            raise
        finally:
            tap.closed(session, reason, lost=lost)
        return bool(received)

    async def _answer(self, messages_max: int, timeout_s: float, doing: str) -> Sequence[Received] | None:
        """Return the messages of one pull; None without an answer in time. Raises BrokerError."""
        request = wire_messages.pull_request(self._subscription, messages_max)
        call = self._pull(request, timeout=timeout_s, metadata=self._metadata)
        self._waiting.add(call)
        try:
            return wire_messages.pulled(await call)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return None
            self._connection.watch.ended(PULL, error.code())
            raise translated(error, doing) from error
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            raise let_go(doing) from None
        finally:
            self._waiting.discard(call)

    def send(self, sending: Sending) -> None:
        """Queue an answer; never block."""
        if self._closed:
            return
        self._unsent.append(sending)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all(), name="pull sender")

    async def close(self) -> None:
        """Cancel waiting pulls, and allow pending answers a moment to be sent. Further calls do nothing."""
        self._closed = True
        for call in list(self._waiting):
            call.cancel()
        try:
            if (sender := self._sender) is not None:
                await asyncio.wait((sender,), timeout=GOODBYE_S)
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
        finally:
            self._connection.closed(self)

    async def _send_all(self) -> None:
        """Send batch after batch until the queue is empty. One request at a time, so that acknowledgements arrive in their order."""
        try:
            while self._unsent:
                unsent, self._unsent = self._unsent, []
                for is_ack, request in wire_messages.unary_requests(self._subscription, unsent):
                    await self._send_one(self._acknowledge if is_ack else self._modify, request)
        finally:
            self._sender = None

    async def _send_one(self, method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes], request: bytes) -> None:
        try:
            await method(request, timeout=SEND_TIMEOUT_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:  # best effort: the messages are redelivered
            self._connection.watch.ended(ACKNOWLEDGE, error.code())


class WireBroker:
    """The wire vantage on one target, over one connection. A connection carries about a hundred streams at once."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: grpc.ChannelCredentials | None,
        failed: CallFailed = nobody_asks,
        peer: Broker | None = None,
        pushes: PushReceiver = NOWHERE,
        open_channel: OpenChannel = open_async_channel,
    ) -> None:
        self.peer = peer
        """The same vantage on the other endpoint, or None; closed with this broker."""
        self.pushes = pushes
        """Receiver of the messages that the target pushes."""
        self._connection = Connection(endpoint, credentials, failed, open_channel)
        self.admin: Admin = ServiceAdmin(self._connection.channel, self._connection.watch)
        """Control plane of the target."""

    def publisher(self, topic: str) -> Publisher:
        """Return a publisher to a topic."""
        return WirePublisher(self._connection, topic)

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> Subscriber:
        """Return a subscriber by streaming pull.

        `client_id` is sent to the service on each of its streams.
        """

        def new_stream(tap: Tap) -> WireStream:
            return WireStream(self._connection, subscription, client_id, flow, ack_deadline_s, tap)

        return ReopeningSubscriber(self._connection, subscription, client_id, new_stream)

    def puller(self, subscription: str) -> Puller:
        """Return a subscriber by unary pull."""
        return WirePuller(self._connection, subscription)

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Check over the connection that delivers messages; see the port."""
        await check_liveness(self._connection, topic, subscription)

    async def close(self) -> None:
        """Close all publishers and subscribers, then the connection. Further calls do nothing."""
        if self.peer is not None:
            await self.peer.close()
        await self._connection.close()
