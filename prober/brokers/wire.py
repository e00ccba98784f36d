"""The wire vantage: gRPC spoken by ourselves, to see what the service does and nothing else.

Nothing is repeated, reordered or held back here: one publish is one request and one attempt, and a message reaches the tap when its
bytes come off the connection. What is opened again, a stream that broke, is told as a new session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
import grpc.aio

from prober.brokers import wire_messages
from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import Admin, Confirmed, Flow, Outcome, Outgoing, Publisher, Puller, Rejected, Subscriber, Tap, Unknown
from prober.brokers.connection import Connection
from prober.brokers.endpoint import Endpoint
from prober.brokers.routing import routing
from prober.brokers.subscriber import ReopeningSubscriber
from prober.brokers.wire_errors import LET_GO, publish_outcome, was_cancelled_by_caller
from prober.brokers.wire_pull import WirePuller
from prober.brokers.wire_stream import WireStream

PUBLISH = "/google.pubsub.v1.Publisher/Publish"


class WirePublisher:
    """Publishes to one topic: one request and one attempt each time."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._publish: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = connection.channel.unary_unary(PUBLISH)
        self._metadata = routing("topic", topic)
        self._calls: set[grpc.aio.UnaryUnaryCall[bytes, bytes]] = set()
        self._closed = False
        connection.opened(self)

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Sends one request; see the port. Never raises an error of the service: a topic that is not there is an outcome too."""
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
            return [publish_outcome(error)] * len(messages)
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            return [Unknown(LET_GO)] * len(messages)
        finally:
            self._calls.discard(call)

    async def resume(self, ordering_key: str) -> None:
        """Does nothing: on the wire no key is ever paused."""

    async def close(self) -> None:
        """Ends the publishes that wait for an answer: they are unknown."""
        self._closed = True
        for call in list(self._calls):
            call.cancel()
        self._connection.closed(self)


def _outcomes(ids: Sequence[str], count: int) -> Sequence[Outcome]:
    """One id per message, or nobody knows which message became which."""
    if len(ids) != count or not all(ids):
        return [Unknown(f"{count} messages were published, and {len(ids)} ids came back")] * count
    return [Confirmed(message_id) for message_id in ids]


class WireBroker:
    """The wire vantage on one target, over one connection. A connection carries about a hundred streams at once."""

    def __init__(self, endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> None:
        self._connection = Connection(endpoint, credentials)
        self._admin = ServiceAdmin(self._connection.channel)

    @property
    def admin(self) -> Admin:
        """Control plane of the target."""
        return self._admin

    def publisher(self, topic: str) -> Publisher:
        """A publisher to a topic."""
        return WirePublisher(self._connection, topic)

    def subscriber(self, subscription: str, client_id: str, flow: Flow, ack_deadline_s: int) -> Subscriber:
        """A subscriber by streaming pull; `client_id` is what the service is told, on every stream of it."""

        def new_stream(tap: Tap) -> WireStream:
            return WireStream(self._connection.channel, subscription, client_id, flow, ack_deadline_s, tap)

        return ReopeningSubscriber(self._connection, subscription, client_id, new_stream)

    def puller(self, subscription: str) -> Puller:
        """A subscriber by unary pull."""
        return WirePuller(self._connection, subscription)

    async def close(self) -> None:
        """Closes everything that was made here, then the connection. Calling it again does nothing."""
        await self._connection.close()
