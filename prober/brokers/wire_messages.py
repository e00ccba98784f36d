"""Conversion between the prober's values and the bytes on the wire.

The messages are google-cloud-pubsub's own. Its Python classes are wrappers around protobuf classes; the wrapped ones are used here, because
a wrapper costs ten times as much per message received and five times as much per message published. gRPC receives and returns bytes, so
that no other module of the wire adapter handles a protobuf message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from google.pubsub_v1 import types

from prober.brokers.base import FlowControlSettings, Outgoing, Received
from prober.core.events import fact

# The classes behind the wrappers are created at run time and have no types.
_PublishRequest: Final[Any] = types.PublishRequest.pb()
_PublishResponse: Final[Any] = types.PublishResponse.pb()
_StreamingPullRequest: Final[Any] = types.StreamingPullRequest.pb()
_StreamingPullResponse: Final[Any] = types.StreamingPullResponse.pb()
_PullRequest: Final[Any] = types.PullRequest.pb()
_PullResponse: Final[Any] = types.PullResponse.pb()
_AcknowledgeRequest: Final[Any] = types.AcknowledgeRequest.pb()
_ModifyAckDeadlineRequest: Final[Any] = types.ModifyAckDeadlineRequest.pb()

PUBLISH: Final = "/google.pubsub.v1.Publisher/Publish"
PULL: Final = "/google.pubsub.v1.Subscriber/Pull"
ACKNOWLEDGE: Final = "/google.pubsub.v1.Subscriber/Acknowledge"
MODIFY: Final = "/google.pubsub.v1.Subscriber/ModifyAckDeadline"

HEARTBEAT: Final[bytes] = _StreamingPullRequest().SerializeToString()
"""Request that keeps a stream alive."""

NACK_S: Final = 0
"""Lease of a nack, in seconds."""

_NANOSECONDS: Final = 1_000_000_000

_IDS_PER_REQUEST: Final = 1000
"""Acknowledgement ids per request: a request may have 512 KiB (documentation, "Quotas"), and an id about 200 bytes."""


@fact(frozen=True, slots=True)
class Sending:
    """An answer to one delivery: an acknowledgement (`seconds` None) or a lease of that many seconds."""

    ack_id: str
    seconds: int | None


@fact(frozen=True, slots=True)
class StreamReply:
    """One response of a stream: messages, and acknowledgement ids with a confirmed or failed acknowledgement."""

    received: Sequence[Received]
    exactly_once: bool
    confirmed: Sequence[str]
    failed: Sequence[str]


def publish_request(topic: str, messages: Iterable[Outgoing]) -> bytes:
    """Return a request to publish messages together, in order."""
    request = _PublishRequest(topic=topic)
    add = request.messages.add
    for message in messages:
        attributes = add(data=message.data, ordering_key=message.ordering_key).attributes
        for name, value in message.attributes.items():  # takes a third less time than passing all of them
            attributes[name] = value
    return bytes(request.SerializeToString())


def published_ids(reply: bytes) -> Sequence[str]:
    """Return the message ids of a publish response, in the order of the request."""
    return tuple(_PublishResponse.FromString(reply).message_ids)


def open_request(subscription: str, client_id: str, ack_deadline_s: int, flow: FlowControlSettings) -> bytes:
    """Return the first request on a stream, with the settings of the stream."""
    request = _StreamingPullRequest(
        subscription=subscription,
        client_id=client_id,
        stream_ack_deadline_seconds=ack_deadline_s,
        max_outstanding_messages=flow.messages_max,
        max_outstanding_bytes=flow.bytes_max,
    )
    return bytes(request.SerializeToString())


def stream_requests(sendings: Sequence[Sending]) -> Iterator[bytes]:
    """Yield the requests that send these answers on a stream, in order.

    Within one request the service may process acknowledgements and leases in any order, so each request contains only one kind.
    """
    for run in _runs(sendings, lambda sending: sending.seconds is None):
        if run[0].seconds is None:
            request = _StreamingPullRequest(ack_ids=[sending.ack_id for sending in run])
        else:
            request = _StreamingPullRequest(
                modify_deadline_ack_ids=[sending.ack_id for sending in run],
                modify_deadline_seconds=[sending.seconds for sending in run],
            )
        yield bytes(request.SerializeToString())


def unary_requests(subscription: str, sendings: Sequence[Sending]) -> Iterator[tuple[bool, bytes]]:
    """Yield the unary requests that send these answers, in order: acknowledgements (True) and lease modifications (False)."""
    for run in _runs(sendings, lambda sending: sending.seconds):
        ack_ids = [sending.ack_id for sending in run]
        seconds = run[0].seconds
        if seconds is None:
            request = _AcknowledgeRequest(subscription=subscription, ack_ids=ack_ids)
        else:
            request = _ModifyAckDeadlineRequest(subscription=subscription, ack_ids=ack_ids, ack_deadline_seconds=seconds)
        yield seconds is None, bytes(request.SerializeToString())


def empty_acknowledgement(subscription: str) -> bytes:
    """Return a request that acknowledges nothing."""
    return bytes(_AcknowledgeRequest(subscription=subscription).SerializeToString())


def _runs(sendings: Sequence[Sending], kind: Callable[[Sending], object]) -> Iterator[Sequence[Sending]]:
    """Yield consecutive answers of one kind, at most as many as a request may contain."""
    start = 0
    for at in range(1, len(sendings) + 1):
        if at == len(sendings) or at - start == _IDS_PER_REQUEST or kind(sendings[at]) != kind(sendings[start]):
            yield sendings[start:at]
            start = at


def stream_reply(reply: bytes) -> StreamReply:
    """Return a response of a stream."""
    message = _StreamingPullResponse.FromString(reply)
    exactly_once = message.subscription_properties.exactly_once_delivery_enabled
    confirmed: Sequence[str] = ()
    failed: Sequence[str] = ()
    if message.HasField("acknowledge_confirmation"):
        acks = message.acknowledge_confirmation
        confirmed = tuple(acks.ack_ids)
        failed = (*acks.invalid_ack_ids, *acks.unordered_ack_ids, *acks.temporary_failed_ack_ids)
    return StreamReply(_received(message), exactly_once, confirmed, failed)


def pull_request(subscription: str, messages_max: int) -> bytes:
    """Return a unary pull request."""
    return bytes(_PullRequest(subscription=subscription, max_messages=messages_max).SerializeToString())


def pulled(reply: bytes) -> Sequence[Received]:
    """Return the messages of a pull response, in order."""
    return _received(_PullResponse.FromString(reply))


def _received(response: Any) -> Sequence[Received]:
    received = []
    for delivery in response.received_messages:
        message = delivery.message
        attributes = message.attributes
        received.append(
            Received(
                message.message_id,
                delivery.ack_id,
                message.ordering_key,
                message.data,
                {name: attributes[name] for name in attributes},  # takes half the time of `dict`
                delivery.delivery_attempt,
                publish_time_of(message),
            )
        )
    return received


def publish_time_of(message: Any) -> int | None:
    """Return the publish time that the service reports of a PubsubMessage, in nanoseconds since 1970; None without one."""
    if not message.HasField("publish_time"):
        return None
    time = message.publish_time
    return int(time.seconds * _NANOSECONDS + time.nanos)


def routing(field: str, name: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata of a request whose `field` names a resource, as sent by every Google client.

    Google's front ends route a request by this header to the servers of its topic or subscription.
    """
    return (("x-goog-request-params", f"{field}={quote(name, safe='/')}"),)
