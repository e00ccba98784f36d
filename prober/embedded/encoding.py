"""Messages as bytes and back, on the message classes that google-cloud-pubsub itself uses.

A message is encoded once, when it is sent for the first time; each delivery then only puts the acknowledgement id in front of it. That
is a valid encoding of `ReceivedMessage`, for protocol buffers are sequences of tagged fields, and ten times as fast as building objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from google.pubsub_v1 import types

from prober.embedded import errors
from prober.embedded.effects import Confirm
from prober.embedded.messages import Delivery, Draft, Message

PublishRequest: Final[Any] = types.PublishRequest.pb()
StreamingPullRequest: Final[Any] = types.StreamingPullRequest.pb()
StreamingPullResponse: Final[Any] = types.StreamingPullResponse.pb()
PubsubMessage: Final[Any] = types.PubsubMessage.pb()

_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}

# Tags of length-delimited fields: number << 3 | 2. Of a number: number << 3.
_FIRST: Final = b"\x0a"  # ReceivedMessage.ack_id; the list in StreamingPullResponse, PullResponse, PublishResponse
_RECEIVED_MESSAGE: Final = b"\x12"
_RECEIVED_ATTEMPT: Final = b"\x18"


def drafts(request: Any) -> list[Draft]:
    """The messages of a PublishRequest."""
    return [
        Draft(message.data, dict(message.attributes) if message.attributes else _NO_ATTRIBUTES, message.ordering_key)
        for message in request.messages
    ]


def publish_response(ids: Iterable[str]) -> bytes:
    """A PublishResponse."""
    return b"".join(field for message_id in ids for field in _field(_FIRST, message_id.encode()))


def received(deliveries: Iterable[Delivery]) -> bytes:
    """A PullResponse, or the messages of a StreamingPullResponse."""
    parts: list[bytes] = []
    for delivery in deliveries:
        message = delivery.message.encoded or encoded(delivery.message)
        ack_id = delivery.ack_id.encode()
        inner = b"".join((_FIRST, _varint(len(ack_id)), ack_id, _RECEIVED_MESSAGE, _varint(len(message)), message))
        if delivery.delivery_attempt:
            inner += _RECEIVED_ATTEMPT + _varint(delivery.delivery_attempt)
        parts += (_FIRST, _varint(len(inner)), inner)
    return b"".join(parts)


def encoded(message: Message) -> bytes:
    """The message as clients see it; kept with it."""
    built = PubsubMessage(
        data=message.data, attributes=message.attributes, ordering_key=message.ordering_key, message_id=message.id
    )
    built.publish_time.seconds = int(message.publish_time)
    built.publish_time.nanos = int(message.publish_time % 1 * 1_000_000) * 1_000
    message.encoded = built.SerializeToString()
    return message.encoded


@cache
def properties(*, exactly_once: bool, ordering: bool) -> bytes:
    """What every response on a stream says about its subscription; clients take its absence for a no."""
    response = StreamingPullResponse()
    response.subscription_properties.exactly_once_delivery_enabled = exactly_once
    response.subscription_properties.message_ordering_enabled = ordering
    return bytes(response.SerializeToString())


def confirmation(effect: Confirm) -> bytes:
    """What became of answers on a stream."""
    response = StreamingPullResponse()
    if effect.acked or effect.failed:
        acks = response.acknowledge_confirmation
        acks.ack_ids.extend(effect.acked)
        acks.invalid_ack_ids.extend(_ids_for(effect.failed, errors.INVALID_ACK_ID))
        acks.unordered_ack_ids.extend(_ids_for(effect.failed, errors.UNORDERED_ACK_ID))
        acks.temporary_failed_ack_ids.extend(_ids_for(effect.failed, errors.TEMPORARY_FAILURE))
    if effect.modified or effect.modify_failed:
        modified = response.modify_ack_deadline_confirmation
        modified.ack_ids.extend(effect.modified)
        modified.invalid_ack_ids.extend(_ids_for(effect.modify_failed, errors.INVALID_ACK_ID))
        modified.temporary_failed_ack_ids.extend(_ids_for(effect.modify_failed, errors.TEMPORARY_FAILURE))
    return bytes(response.SerializeToString())


def _ids_for(reasons: Mapping[str, str], reason: str) -> Sequence[str]:
    return [ack_id for ack_id, own in reasons.items() if own == reason]


def _field(tag: bytes, content: bytes) -> tuple[bytes, bytes, bytes]:
    return tag, _varint(len(content)), content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first (Protocol Buffers, "Encoding")."""
    if value < _SMALL:
        return _VARINTS[value]
    return _slow_varint(value)


def _slow_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL: Final = 4_096
_VARINTS: Final = [_slow_varint(value) for value in range(_SMALL)]
