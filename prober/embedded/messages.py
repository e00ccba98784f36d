"""Messages in the service, and the effects: actions that the state requests.

A publisher sends drafts, within the documented limits ("Pub/Sub quotas and limits"); the service stores them as messages; a subscriber gets
deliveries. Effects are values that the network side, or a simulator, executes in the order given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeAlias

from prober.embedded import errors
from prober.embedded.resources import PushConfig

ORDERING_KEY_BYTES_MAX: Final = 1_024
MESSAGE_BYTES_MAX: Final = 10_000_000
REQUEST_BYTES_MAX: Final = 10_000_000
REQUEST_MESSAGES_MAX: Final = 1_000
CLIENT_ATTRIBUTES: Final = "googclient_"
"""Prefix of attributes that client libraries add for tracing and schemas; all others that start with `goog` are rejected."""
ATTRIBUTES_MAX: Final = 100
ATTRIBUTE_KEY_BYTES_MAX: Final = 256
ATTRIBUTE_VALUE_BYTES_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class PublishDraft:
    """A message from a publisher, without id and time."""

    data: bytes = b""
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordering_key: str = ""

    @property
    def size(self) -> int:
        """Bytes of content: data, attributes and ordering key."""
        size = len(self.data) + len(self.ordering_key)
        for name, value in self.attributes.items():
            size += len(name) + len(value)
        return size


@dataclass(slots=True, eq=False)
class Message:
    """A stored message, shared by all subscriptions of its topic.

    sequence      unique ascending number, in the order in which this service received messages.
    id            message id of clients; unique in its topic, except for a fault.
    publish_time  seconds since the epoch.
    """

    sequence: int
    id: str
    publish_time: float
    ordering_key: str
    data: bytes
    attributes: Mapping[str, str]
    size: int


@dataclass(slots=True)
class Delivery:
    """One message on its way to one subscriber.

    ack_id            acknowledgement id of exactly this delivery.
    delivery_attempt  1 + number of nacks and missed deadlines; 0 without a dead-letter policy (proto, ReceivedMessage).
    """

    message: Message
    ack_id: str
    delivery_attempt: int


def check_drafts(drafts: Sequence[PublishDraft]) -> None:
    """Check the messages of a publish request. Raises INVALID_ARGUMENT or, for mixed keys, FAILED_PRECONDITION."""
    if not drafts:
        raise errors.too_small("message_count", 0, 1)
    if len(drafts) > REQUEST_MESSAGES_MAX:
        raise errors.too_large("message_count", len(drafts), REQUEST_MESSAGES_MAX)
    key = drafts[0].ordering_key
    total = 0
    for draft in drafts:
        total += _check_draft(draft)
        if draft.ordering_key != key:
            raise errors.precondition(
                "In a single publish request, all messages must have no ordering key or they must all have the same ordering key."
            )
    if total > REQUEST_BYTES_MAX:
        raise errors.too_large("request_size", total, REQUEST_BYTES_MAX)


def _check_draft(draft: PublishDraft) -> int:
    """Check one message; return its size in bytes. Raises INVALID_ARGUMENT."""
    if not draft.data and not draft.attributes:
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            "One or more messages in the publish request is empty. "
            "Each message must contain either non-empty data, or at least one attribute.",
        )
    size = draft.size
    if size > MESSAGE_BYTES_MAX:
        raise errors.too_large("message_size", size, MESSAGE_BYTES_MAX)
    # A string of n characters has at most 4 n bytes: short ones need not be encoded to be measured.
    if len(draft.ordering_key) > ORDERING_KEY_BYTES_MAX // 4:
        _check_bytes("ordering_key_size", draft.ordering_key, ORDERING_KEY_BYTES_MAX)
    if draft.attributes:
        _check_attributes(draft.attributes)
    return size


def _check_attributes(attributes: Mapping[str, str]) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise errors.too_large("num_attributes", len(attributes), ATTRIBUTES_MAX)
    for key, value in attributes.items():
        if not key or (key[:4].lower() == "goog" and not key.startswith(CLIENT_ATTRIBUTES)):
            raise errors.ServiceError(
                errors.Code.INVALID_ARGUMENT,
                f"The request contains an attribute key that is not valid (key={key}). "
                "Attribute keys must be non-empty and must not begin with 'goog' (case-insensitive).",
            )
        if len(key) > ATTRIBUTE_KEY_BYTES_MAX // 4:
            _check_bytes("attribute_key_size", key, ATTRIBUTE_KEY_BYTES_MAX)
        if len(value) > ATTRIBUTE_VALUE_BYTES_MAX // 4:
            _check_bytes("attribute_value_size", value, ATTRIBUTE_VALUE_BYTES_MAX)


def _check_bytes(what: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise errors.too_large(what, size, limit)


def rfc3339(seconds: float) -> str:
    """Return `2024-01-31T12:00:00.5Z`: as in the service's JSON, without superfluous zeros."""
    whole = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    milliseconds = int(seconds * 1000) % 1000
    return f"{whole}.{milliseconds:03}Z" if milliseconds else f"{whole}Z"


# --- effects ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Send messages on a stream, in this order, after all earlier ones."""

    stream: str
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True)
class Confirm:
    """Send the results of acknowledgements and moved deadlines on a stream (exactly-once delivery only).

    `failed` and `modify_failed` map acknowledgement ids to reasons (`errors.INVALID_ACK_ID` and others).
    """

    stream: str
    acked: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    modified: tuple[str, ...] = ()
    modify_failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndStream:
    """End a stream with an error; the state has already dropped it."""

    stream: str
    error: errors.ServiceError


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """Notice: a stream has ended for the service and is still open for its client, until `EndStream`. No action is required."""

    stream: str


@dataclass(frozen=True, slots=True)
class AnswerPull:
    """Answer a waiting pull: with messages, with none after its wait, or with an error."""

    pull: str
    deliveries: list[Delivery]
    error: errors.ServiceError | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """POST a message to an endpoint and report the outcome with `State.push_answered` under the same id."""

    push: str
    subscription: str
    config: PushConfig
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class CancelPush:
    """Cancel a push whose deadline has passed or whose subscription is deleted. A late response is ignored."""

    push: str


@dataclass(frozen=True, slots=True)
class LostDeliveries:
    """Notice: messages sent on a stream or in a pull response never arrive. No action is required."""

    holder: str
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class ForwardedToDeadLetter:
    """Notice: a message went to the dead-letter topic and is not delivered on the subscription again. No action is required."""

    subscription: str
    message: Message


Effect: TypeAlias = Send | Confirm | EndStream | HalfOpen | AnswerPull | Push | CancelPush | LostDeliveries | ForwardedToDeadLetter
