"""Google's client library as we use it: a few of its classes, with the types that it does not have itself, and its exceptions.

Here its exceptions become errors of ours; nothing else of the library adapter looks at what kind they are.

Between the event loop and its threads calls go out through a `Worker`, and news comes in by a `Mailbox`. The library may block, and may
call back while it holds its own locks. So it is only ever called from a thread of ours, which may hang without harm to the event loop or
to the end of the process, and what it calls back only puts something into a mailbox.
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
"""What a publish fails with when the library did not even try, beside stops of its key."""

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
"""Whether the library tries a publish again after this error: its own list, which a test compares."""
Item = TypeVar("Item")
Result = TypeVar("Result")
_Job: TypeAlias = Callable[[], None]


class PublishingClient(Protocol):
    """PublisherClient."""

    def publish(self, topic: str, data: bytes, ordering_key: str = "", **attributes: str) -> Future[str]:
        """Puts a message into a batch; the future has its id or why there is none."""

    def resume_publish(self, topic: str, ordering_key: str) -> None:
        """Lets a paused key go on; RuntimeError if it is not paused."""

    def stop(self) -> None:
        """Sends what waits to be sent first, and cancels what waits behind it."""


class LibraryMessage(Protocol):
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
        """As in the newest properties of the subscription."""

    def ack(self) -> None:
        """Acknowledges; success is not guaranteed."""

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
    channel: grpc.Channel,
    subscription: str,
    callback: Callable[[LibraryMessage], None],
    flow: FlowControlSettings,
    ack_deadline_s: int,
) -> StreamingPull:
    """Subscribes with a client of its own.

    Leases are the same from receipt to the last extension. Callbacks run in one thread: ours only hand over, and with more threads two
    messages of a key could overtake each other after a refusal.
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
    """Whether the response to an acknowledgement says that it was taken."""
    return future.exception() is None and future.result() is AcknowledgeStatus.SUCCESS


# --- exceptions --------------------------------------------------------------------------------------------------------------


def refusal_to_publish(error: Exception) -> Rejected:
    """The outcome of a message that the library did not take: it was never sent."""
    return Rejected(f"refused by the client library: {_line(error)}")


def future_outcome(error: BaseException, attempts: int) -> Rejected | Unknown:
    """The outcome of a message whose future failed.

    `attempts` is the number of requests in which its batch was provably sent, 0 if not known.

    A message that waited behind one that failed, or came when its key was paused, was never sent. The one that failed is rejected
    only if its single attempt was refused for what it is; an earlier attempt may have been stored without our knowing.
    """
    if isinstance(error, NEVER_SENT_ERRORS) or is_stop(error):
        return Rejected(f"never sent: {_line(error)}")
    if isinstance(error, exceptions.GoogleAPICallError) and attempts == 1 and _status_of(error) in DEFINITELY_NOT_STORED:
        return Rejected(_line(error))
    return Unknown(_line(error))


def is_stop(error: BaseException) -> bool:
    """Whether a publish failed only since its key is paused, or was cancelled with its key."""
    paused = isinstance(error, publisher_exceptions.PublishToPausedOrderingKeyException)
    return paused or (isinstance(error, RuntimeError) and str(error).startswith(_CANCELLED_WITH_ITS_KEY))


def library_error(error: BaseException, doing: str) -> BrokerError:
    """The error that a caller can do something about; `doing` says what was asked."""
    if isinstance(error, exceptions.GoogleAPICallError):
        return error_of(_status_of(error), str(error.message), doing)
    if isinstance(error, RpcError):
        return error_of(error.code(), error.details(), doing)
    return BrokerError(f"{doing}: {_line(error)}")


def _status_of(error: exceptions.GoogleAPICallError) -> StatusCode:
    """The gRPC status behind an exception of the library."""
    code = error.grpc_status_code
    return code if isinstance(code, StatusCode) else StatusCode.UNKNOWN


def _line(error: BaseException) -> str:
    return " ".join([type(error).__name__, *str(error).split()])


class Worker:
    """One thread that makes calls one after the other, in the order in which they were asked for. It does not keep a process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def call(self, function: Callable[[], Result]) -> asyncio.Future[Result]:
        """Calls a function in the worker; the future gets its result or its exception.

        If no caller waits any more, only the result is lost.
        """
        future: asyncio.Future[Result] = self._loop.create_future()

        def job() -> None:
            try:
                result = function()
            except Exception as error:  # everything goes to who asked
                in_loop(self._loop, _fail, future, error)
            else:
                in_loop(self._loop, _succeed, future, result)

        self._jobs.put(job)
        return future

    def stop(self) -> None:
        """Ends the thread after the calls that were asked for; does not wait for it."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Mailbox(Generic[Item]):
    """Takes items from any thread, in order, and hands them over in the event loop, as many at a time as there are.

    It holds at most `items_max`; what comes when it is full is not taken.
    """

    def __init__(self, deliver: Callable[[Item], None], items_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._items: deque[Item] = deque()
        self._items_max = items_max
        self._collection_due = False

    def post(self, item: Item) -> bool:
        """Puts an item in, from any thread; never blocks and never raises. False if the mailbox is full."""
        if len(self._items) >= self._items_max:
            return False
        self._items.append(item)
        # If a collection is due it will see this item: it says that it is no longer due before it looks.
        if not self._collection_due:
            self._collection_due = True
            in_loop(self._loop, self._collect)
        return True

    def _collect(self) -> None:
        self._collection_due = False
        while self._items:
            self._deliver(self._items.popleft())


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Has the loop call a function, from any thread. A loop that was closed wants to know nothing more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


def _succeed(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
