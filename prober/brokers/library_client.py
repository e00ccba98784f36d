"""Google's client library as used here: a few of its classes, with types that the library lacks, and its exceptions.

Its exceptions are translated here into errors of the prober; no other module of the library adapter distinguishes them.

The event loop calls the library through a `Worker`, and receives its events through a `Mailbox`. The library may block, and may call back
while it holds its own locks. So it is only called from a separate thread, which may hang without harm to the event loop or to the end of
the process, and its callbacks only put items into a mailbox.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

import grpc
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.publisher import exceptions as publisher_exceptions  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeStatus  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.types import FlowControl as LibraryFlowControl  # type: ignore[import-untyped]
from google.cloud.pubsub_v1.types import PublisherOptions
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from grpc import RpcError, StatusCode

from prober.brokers.base import FlowControlSettings, Rejected, Unknown
from prober.brokers.grpc_errors import DEFINITELY_NOT_STORED, error_of
from prober.errors import BrokerError

NEVER_SENT_ERRORS: Final[tuple[type[Exception], ...]] = (
    publisher_exceptions.FlowControlLimitError,
    publisher_exceptions.MessageTooLargeError,
)
"""Errors of a publish that the library did not attempt, apart from stops of its key."""

_CANCELLED_WITH_ITS_KEY: Final = "Batch cancelled because prior ordered message"

is_retried = if_exception_type(
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
"""Whether the library retries a publish after this error: the library's own list, which a test compares."""
Item = TypeVar("Item")
Result = TypeVar("Result")
_Job: TypeAlias = Callable[[], None]


class PublishingClient(Protocol):
    """PublisherClient."""

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **attributes: str) -> Future[str]:
        """Put a message into a batch. The future contains its id or the reason of the failure."""

    def resume_publish(self, topic: str, ordering_key: str) -> None:
        """Resume a paused key. Raises RuntimeError if it is not paused."""

    def stop(self) -> None:
        """Send the pending batch of each key, and cancel the messages waiting behind it."""


class LibraryMessage(Protocol):
    """Argument of the library's callback. Its methods only queue a request, and may be called from any thread."""

    @property
    def message_id(self) -> str:
        """Id assigned by the service."""

    @property
    def ack_id(self) -> str:
        """Id of this delivery."""

    @property
    def ordering_key(self) -> str:
        """Ordering key; empty for none."""

    @property
    def data(self) -> bytes:
        """Attributes as published."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes as published."""

    @property
    def delivery_attempt(self) -> int | None:
        """Delivery attempt; None without a dead-letter policy."""

    @property
    def exactly_once_enabled(self) -> bool:
        """Whether exactly-once delivery is on, by the newest properties of the subscription."""

    def ack(self) -> None:
        """Acknowledge; success is not guaranteed."""

    def ack_with_response(self) -> Future[object]:
        """Acknowledge; with exactly-once delivery the future contains the service's response."""

    def nack(self) -> None:
        """Nack the message."""

    def modify_ack_deadline(self, seconds: int) -> None:
        """Set the lease."""

    def drop(self) -> None:
        """Forget the message."""


class StreamingPull(Protocol):
    """StreamingPullFuture: done when the library has given up or was cancelled, and all its threads have ended."""

    def cancel(self) -> bool:
        """Start the cancellation; do not wait for its end."""

    def cancelled(self) -> bool:
        """Return whether it was cancelled."""

    def exception(self) -> BaseException | None:
        """Return the reason why the library gave up."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back in a thread of the library, or at once if it is done already."""


def publishing_client(channel: grpc.Channel, retry: Retry) -> PublishingClient:
    """Return a client with message ordering on.

    Its transport is created here, since the library would prefer PUBSUB_EMULATOR_HOST to the endpoint.
    """
    options = PublisherOptions(enable_message_ordering=True, retry=retry)
    client = PublisherClient(publisher_options=options, transport=PublisherGrpcTransport(channel=channel))
    _hear_warnings()
    return cast(PublishingClient, client)


def subscribe(
    channel: grpc.Channel,
    subscription: str,
    callback: Callable[[LibraryMessage], None],
    flow: FlowControlSettings,
    ack_deadline_s: int,
) -> StreamingPull:
    """Subscribe with a client of its own.

    Leases have the same length from receipt to the last extension. Callbacks run in one thread: they only pass messages on, and with more
    threads two messages of a key could overtake each other after a nack.
    """
    client = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
    _hear_warnings()
    flow_control = LibraryFlowControl(
        max_messages=flow.messages_max,
        max_bytes=flow.bytes_max,
        min_duration_per_lease_extension=ack_deadline_s,
        max_duration_per_lease_extension=ack_deadline_s,
    )
    scheduler = ThreadScheduler(ThreadPoolExecutor(max_workers=1, thread_name_prefix="callback"))
    return cast(StreamingPull, client.subscribe(subscription, callback, flow_control=flow_control, scheduler=scheduler))


def _hear_warnings() -> None:
    """Take back the log handler of the first client in a process.

    Otherwise the records of all of Google's libraries would not reach other handlers.
    """
    logging.getLogger("google").propagate = True


def is_confirmation(future: Future[object]) -> bool:
    """Return whether the response to an acknowledgement confirms it."""
    return future.exception() is None and future.result() is AcknowledgeStatus.SUCCESS


# --- exceptions --------------------------------------------------------------------------------------------------------------


def refusal_to_publish(error: Exception) -> Rejected:
    """Return the outcome of a message that the library did not accept: it was never sent."""
    return Rejected(f"refused by the client library: {_line(error)}")


def future_outcome(error: BaseException, attempts: int) -> Rejected | Unknown:
    """Return the outcome of a message whose future failed.

    `attempts` is the number of requests in which its batch was provably sent, 0 if unknown.

    A message that waited behind a failed one, or was published while its key was paused, was never sent. The failed message itself is
    rejected only if its single attempt was refused for its content; an earlier attempt may have been stored without a visible confirmation.
    """
    if isinstance(error, NEVER_SENT_ERRORS) or is_stop(error):
        return Rejected(f"never sent: {_line(error)}")
    if isinstance(error, exceptions.GoogleAPICallError) and attempts == 1 and _status_of(error) in DEFINITELY_NOT_STORED:
        return Rejected(_line(error))
    return Unknown(_line(error))


def is_stop(error: BaseException) -> bool:
    """Return whether a publish failed only because its key is paused, or was cancelled with its key."""
    paused = isinstance(error, publisher_exceptions.PublishToPausedOrderingKeyException)
    return paused or (isinstance(error, RuntimeError) and str(error).startswith(_CANCELLED_WITH_ITS_KEY))


def library_error(error: BaseException, doing: str) -> BrokerError:
    """Return the error that a caller can handle; `doing` names the request."""
    if isinstance(error, exceptions.GoogleAPICallError):
        return error_of(_status_of(error), str(error.message), doing)
    if isinstance(error, RpcError):
        return error_of(error.code(), error.details(), doing)
    return BrokerError(f"{doing}: {_line(error)}")


def _status_of(error: exceptions.GoogleAPICallError) -> StatusCode:
    code = error.grpc_status_code
    return code if isinstance(code, StatusCode) else StatusCode.UNKNOWN


def _line(error: BaseException) -> str:
    return " ".join([type(error).__name__, *str(error).split()])


class Worker:
    """A thread that makes calls one after the other, in the order of `call`. It does not keep a process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def call(self, function: Callable[[], Result]) -> asyncio.Future[Result]:
        """Call a function in the worker. The future receives its result or its exception.

        If the caller no longer waits, only the result is lost.
        """
        future: asyncio.Future[Result] = self._loop.create_future()

        def job() -> None:
            try:
                result = function()
            except Exception as error:  # every exception goes to the caller
                in_loop(self._loop, _fail, future, error)
            else:
                in_loop(self._loop, _succeed, future, result)

        self._jobs.put(job)
        return future

    def stop(self) -> None:
        """End the thread after the pending calls; do not wait for its end."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Mailbox(Generic[Item]):
    """Takes items from any thread, in order, and delivers them in the event loop, all pending ones together.

    It holds at most `items_max` items; further ones are rejected.
    """

    def __init__(self, deliver: Callable[[Item], None], items_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._items: deque[Item] = deque()
        self._items_max = items_max
        self._collection_due = False

    def post(self, item: Item) -> bool:
        """Put an item in, from any thread; never block or raise. Return False if the mailbox is full."""
        if len(self._items) >= self._items_max:
            return False
        self._items.append(item)
        # A due collection will see this item: it resets the flag before it looks.
        if not self._collection_due:
            self._collection_due = True
            in_loop(self._loop, self._collect)
        return True

    def _collect(self) -> None:
        self._collection_due = False
        while self._items:
            self._deliver(self._items.popleft())


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Call a function in the loop, from any thread; do nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


def _succeed(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
