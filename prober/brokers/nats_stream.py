"""A stream of NATS JetStream as a broker with a single topic, for `observe`. No resource is created or deleted.

The consumer of `nats.NatsSubscriber` replaces the subscription: it is ephemeral, and the server deletes it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from prober.brokers.base import (
    FlowControlSettings,
    Outcome,
    Outgoing,
    Publisher,
    Puller,
    PushReceiver,
    Rejected,
    SubscriptionSettings,
    TopicSettings,
)
from prober.brokers.nats import NatsSubscriber
from prober.brokers.push.nowhere import NOWHERE
from prober.errors import NotSupported

NATS: Final = "NATS"
SCHEMES: Final = ("nats://", "tls://")
EVERY_SUBJECT: Final = ">"


def is_nats(address: str) -> bool:
    """Return whether an address is that of a NATS server."""
    return address.startswith(SCHEMES)


class NatsStream:
    """One stream of a server, by name. Only for observing: it publishes nothing."""

    peer = None
    pushes: PushReceiver = NOWHERE

    def __init__(self, address: str, stream: str) -> None:
        self._address, self._stream = address, stream
        self._subscribers: list[NatsSubscriber] = []
        self.admin = _Administration()

    def publisher(self, topic: str) -> Publisher:
        """Return a publisher that rejects every message."""
        return _NoPublisher(topic)

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> NatsSubscriber:
        """Return a subscriber of all subjects of the stream, with a consumer of its own."""
        del subscription
        subscriber = NatsSubscriber(self._address, self._stream, EVERY_SUBJECT, client_id, flow, ack_deadline_s)
        self._subscribers.append(subscriber)
        return subscriber

    def puller(self, subscription: str) -> Puller:
        """Raise NotSupported."""
        raise NotSupported(f"{subscription}: streams of NATS are not pulled")

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Wait until each consumer's server has answered a PING on the connection that delivers messages.

        Raises BrokerUnavailable.
        """
        for subscriber in self._subscribers:
            await subscriber.check_liveness()

    async def close(self) -> None:
        """Do nothing: the owners of subscribers close them."""


class _NoPublisher:
    """A publisher that rejects every message."""

    keeps_order = True
    unexplained_stops = 0

    def __init__(self, topic: str) -> None:
        self._topic = topic

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        return [Rejected(f"{self._topic}: streams of NATS are only observed")] * len(messages)

    async def resume(self, ordering_key: str) -> None:
        """Do nothing: no key is paused."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class _Administration:
    """Administration of a run: no resource is created or deleted."""

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        raise NotSupported(f"{topic}: nobody makes a stream here")

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Do nothing: the subscriber creates the consumer."""

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        return False

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        return ()

    async def subscriptions(self, project: str) -> Mapping[str, Mapping[str, str]]:
        return {}

    async def look(self, name: str) -> None:
        raise NotSupported(name)

    async def list_some(self, project: str) -> None:
        raise NotSupported(project)

    async def update_subscription(
        self, subscription: str, *, ordering: bool | None = None, message_retention_s: float | None = None
    ) -> None:
        raise NotSupported(subscription)

    async def seek(self, subscription: str, to_time: float) -> None:
        raise NotSupported(subscription)

    async def seek_to_snapshot(self, subscription: str, snapshot: str) -> None:
        raise NotSupported(subscription)

    async def create_snapshot(self, snapshot: str, subscription: str, labels: Mapping[str, str]) -> None:
        raise NotSupported(snapshot)

    async def delete_snapshot(self, snapshot: str) -> None:
        raise NotSupported(snapshot)
