"""Google's client library as we use it: a few of its classes, with the types that it does not have itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol, cast

import grpc
from google.api_core.retry import Retry
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.publisher import exceptions as publisher_exceptions  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeStatus  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.types import FlowControl, PublisherOptions  # type: ignore[import-untyped]
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from prober.brokers.base import Flow

NEVER_SENT_ERRORS: Final[tuple[type[Exception], ...]] = (
    publisher_exceptions.PublishToPausedOrderingKeyException,
    publisher_exceptions.FlowControlLimitError,
    publisher_exceptions.MessageTooLargeError,
)
"""What a publish fails with when the library did not even try."""


class PublishingClient(Protocol):
    """PublisherClient."""

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **attributes: str) -> Future[str]:
        """Puts a message into a batch; the future has its id or why there is none."""

    def resume_publish(self, topic: str, ordering_key: str) -> None:
        """Lets a paused key go on; RuntimeError if it is not paused."""

    def stop(self) -> None:
        """Sends what waits to be sent first, and cancels what waits behind it."""


class Message(Protocol):
    """What the library gives to the callback. Its methods only queue something, and may be called from any thread."""

    @property
    def message_id(self) -> str:
        """As the service named it."""

    @property
    def ack_id(self) -> str:
        """Names this delivery."""

    @property
    def ordering_key(self) -> str:
        """Empty for none."""

    @property
    def data(self) -> bytes:
        """As published."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """As published."""

    @property
    def delivery_attempt(self) -> int | None:
        """None without a dead-letter policy."""

    @property
    def exactly_once_enabled(self) -> bool:
        """As the subscription said last."""

    def ack(self) -> None:
        """Acknowledges, as far as anybody knows."""

    def ack_with_response(self) -> Future[object]:
        """Acknowledges; with exactly-once delivery the future says whether it was taken."""

    def nack(self) -> None:
        """Refuses."""

    def modify_ack_deadline(self, seconds: int) -> None:
        """Sets the lease."""

    def drop(self) -> None:
        """Forgets the message."""


class StreamingPull(Protocol):
    """StreamingPullFuture: done when the library has given up or was cancelled, and all its threads have ended."""

    def cancel(self) -> bool:
        """Begins the end; does not wait for it."""

    def cancelled(self) -> bool:
        """Whether that was asked for."""

    def exception(self) -> BaseException | None:
        """Why the library gave up."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Called in a thread of the library, or at once if it is done already."""


def publishing_client(channel: grpc.Channel, retry: Retry) -> PublishingClient:
    """A client with message ordering on. It gets a transport of ours, because it would prefer PUBSUB_EMULATOR_HOST to an endpoint."""
    options = PublisherOptions(enable_message_ordering=True, retry=retry)
    client = PublisherClient(publisher_options=options, transport=PublisherGrpcTransport(channel=channel))
    _hear_warnings()
    return cast(PublishingClient, client)


def subscribe(
    channel: grpc.Channel, subscription: str, callback: Callable[[Message], None], flow: Flow, ack_deadline_s: int
) -> StreamingPull:
    """Subscribes with a client of its own.

    Leases are the same from receipt to the last extension. Callbacks run in one thread: ours only hand over, and with more threads two
    messages of a key could overtake each other after a refusal.
    """
    client = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
    _hear_warnings()
    flow_control = FlowControl(
        max_messages=flow.messages_max,
        max_bytes=flow.bytes_max,
        min_duration_per_lease_extension=ack_deadline_s,
        max_duration_per_lease_extension=ack_deadline_s,
    )
    scheduler = ThreadScheduler(ThreadPoolExecutor(max_workers=1, thread_name_prefix="callback"))
    return cast(StreamingPull, client.subscribe(subscription, callback, flow_control=flow_control, scheduler=scheduler))


def _hear_warnings() -> None:
    """The first client in a process keeps what all of Google's libraries log from everybody else's handlers; this takes that back."""
    logging.getLogger("google").propagate = True


def is_confirmation(future: Future[object]) -> bool:
    """Whether the response to an acknowledgement says that it was taken."""
    return future.exception() is None and future.result() is AcknowledgeStatus.SUCCESS
