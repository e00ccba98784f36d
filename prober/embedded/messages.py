"""What is published, what is stored, and what is handed to a subscriber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Draft:
    """A message as a publisher sends it: no id and no time yet."""

    data: bytes = b""
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordering_key: str = ""

    @property
    def size(self) -> int:
        """Bytes of content: data, attributes and ordering key."""
        return len(self.data) + len(self.ordering_key) + sum(len(name) + len(value) for name, value in self.attributes.items())


@dataclass(slots=True, eq=False)
class Message:
    """A stored message, shared by all subscriptions of its topic.

    sequence      its place in the order in which this service received messages: unique, ascending.
    id            what clients see; unique in its topic (unless a fault makes it otherwise).
    publish_time  seconds since the epoch.
    encoded       room in which the network side keeps the encoded form, so that it is computed once; the state never looks at it.
    """

    sequence: int
    id: str
    publish_time: float
    ordering_key: str
    data: bytes
    attributes: Mapping[str, str]
    size: int
    encoded: bytes | None = None


@dataclass(slots=True)
class Delivery:
    """One message on its way to one subscriber.

    ack_id            answers exactly this delivery.
    delivery_attempt  1 + how often it was refused or its deadline passed; 0 without a dead-letter policy (proto, ReceivedMessage).
    """

    message: Message
    ack_id: str
    delivery_attempt: int
