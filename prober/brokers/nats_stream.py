"""A stream of NATS JetStream as a broker whose one topic it is, for `observe`. There is nothing to make or delete.

The consumer of `nats.NatsSubscriber` takes the place of the subscription: it is ephemeral, and the server forgets it by itself.
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
    """Whether an address is that of a NATS server."""
    return address.startswith(SCHEMES)


class NatsStream:
    """One stream of a server, by name. Only for observing: it publishes nothing."""

    peer = None

    def __init__(self, address: str, stream: str) -> None:
        self._address, self._stream = address, stream
        self._subscribers: list[NatsSubscriber] = []
        self.admin = _Administration()

    def publisher(self, topic: str) -> Publisher:
        """One that publishes nothing."""
        return _NoPublisher(topic)

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> NatsSubscriber:
        """A consumer of its own of all subjects of the stream."""
        del subscription
        subscriber = NatsSubscriber(self._address, self._stream, EVERY_SUBJECT, client_id, flow, ack_deadline_s)
        self._subscribers.append(subscriber)
        return subscriber

    def puller(self, subscription: str) -> Puller:
        """Raises NotSupported."""
        raise NotSupported(f"{subscription}: streams of NATS are not pulled")

    @property
    def pushes(self) -> PushReceiver:
        """Nothing is pushed."""
        return NOWHERE

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Each consumer's server answers a PING on the connection that messages come on. Raises BrokerUnavailable."""
        for subscriber in self._subscribers:
            await subscriber.check_liveness()

    async def close(self) -> None:
        """Does nothing: the owners of subscribers close them."""


class _NoPublisher:
    """Stands where others publish."""

    keeps_order = True
    unexplained_stops = 0

    def __init__(self, topic: str) -> None:
        self._topic = topic

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        return [Rejected(f"{self._topic}: streams of NATS are only observed")] * len(messages)

    async def resume(self, ordering_key: str) -> None:
        """No key is paused."""

    async def close(self) -> None:
        """Does nothing: there is nothing to close."""


class _Administration:
    """What a run asks before and after: there is nothing to make, nor to delete."""

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        raise NotSupported(f"{topic}: nobody makes a stream here")

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Does nothing: the subscriber makes the consumer."""

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
