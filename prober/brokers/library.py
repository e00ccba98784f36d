"""The library vantage: Google's own client library, to see what a customer sees.

The control plane and unary pull have no logic in the library that could change what is seen; they are the wire's.
"""

from __future__ import annotations

import grpc

from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import Admin, Flow, Publisher, Puller, Subscriber, Tap
from prober.brokers.connection import Connection
from prober.brokers.endpoint import Endpoint
from prober.brokers.library_publisher import LibraryPublisher
from prober.brokers.library_pull import LibraryPull, subscriber_names
from prober.brokers.subscriber import ReopeningSubscriber
from prober.brokers.wire_pull import WirePuller


class LibraryBroker:
    """The library vantage on one target. Each publisher and each subscriber has a client of its own."""

    def __init__(self, endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> None:
        self._connection = Connection(endpoint, credentials)
        self._admin = ServiceAdmin(self._connection.channel)

    @property
    def admin(self) -> Admin:
        """Control plane of the target."""
        return self._admin

    def publisher(self, topic: str) -> Publisher:
        """A publisher to a topic."""
        return LibraryPublisher(self._connection, topic)

    def subscriber(self, subscription: str, client_id: str, flow: Flow, ack_deadline_s: int) -> Subscriber:
        """A subscriber; `client_id` is our name for it, the client makes its own."""
        names = subscriber_names(client_id)

        def new_pull(tap: Tap) -> LibraryPull:
            return LibraryPull(self._connection, subscription, next(names), flow, ack_deadline_s, tap)

        return ReopeningSubscriber(self._connection, subscription, client_id, new_pull)

    def puller(self, subscription: str) -> Puller:
        """A subscriber by unary pull."""
        return WirePuller(self._connection, subscription)

    async def close(self) -> None:
        """Closes everything that was made here, then the connection. Calling it again does nothing."""
        await self._connection.close()
