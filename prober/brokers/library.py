"""The library vantage: Google's own client library, to see what a customer sees.

The control plane and unary pull have no logic in the library that could change what is seen; they are the wire's.
"""

from __future__ import annotations

import asyncio

import grpc

from prober.brokers.admin import ServiceAdmin
from prober.brokers.base import Admin, Flow, Publisher, Puller, Subscriber
from prober.brokers.channels import open_async_channel
from prober.brokers.endpoint import Endpoint
from prober.brokers.library_publisher import LibraryPublisher
from prober.brokers.library_subscriber import LibrarySubscriber
from prober.brokers.wire_pull import WirePuller


class LibraryBroker:
    """The library vantage on one target. Each publisher and each subscriber has a client of its own."""

    def __init__(self, endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> None:
        self._endpoint, self._credentials = endpoint, credentials
        self._channel = open_async_channel(endpoint, credentials)
        self._admin = ServiceAdmin(self._channel)
        self._open: list[Publisher | Subscriber | Puller] = []

    @property
    def admin(self) -> Admin:
        """Control plane of the target."""
        return self._admin

    def publisher(self, topic: str) -> Publisher:
        """A publisher to a topic."""
        publisher = LibraryPublisher(self._endpoint, self._credentials, topic)
        self._open.append(publisher)
        return publisher

    def subscriber(self, subscription: str, client_id: str, flow: Flow, ack_deadline_s: int) -> Subscriber:
        """A subscriber; `client_id` is our name for it, the client makes its own."""
        subscriber = LibrarySubscriber(self._endpoint, self._credentials, subscription, client_id, flow, ack_deadline_s)
        self._open.append(subscriber)
        return subscriber

    def puller(self, subscription: str) -> Puller:
        """A subscriber by unary pull."""
        puller = WirePuller(self._channel, subscription)
        self._open.append(puller)
        return puller

    async def close(self) -> None:
        """Closes everything that was made here, then the connection. Calling it again does nothing."""
        opened, self._open = self._open, []
        await asyncio.gather(*(one.close() for one in opened))
        await self._channel.close()
