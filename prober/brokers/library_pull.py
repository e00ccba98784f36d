"""Consuming through Google's SubscriberClient, by one `subscribe` call.

The messages are those of the client's callback, in its order, from the first stream of the call to its last.

Properties of that client, and their handling:

* It delivers one message of a key at a time: the next follows when the last is acknowledged (with its response), nacked or left to
  expire. A tap that does none of these receives no further message of that key.
* It extends the lease of an unanswered message for an hour. `let_expire` stops that. All leases have the deadline with which the
  subscriber was created, from the first on.
* It reopens broken streams by itself. Each is a session here, under one subscriber as long as the client keeps its client id, which it
  creates itself. A session is reported as closed when its stream has ended and the client has delivered its last message.
* An exception in the callback would resolve the client's future while its stream continues to deliver. The callback here raises nothing
  and only puts the message into a mailbox. Before a new subscription of the client, the old one is cancelled.
* A stream that fails while the client still starts its threads leaves a thread running for ever. So no stream is opened before
  `subscribe` has returned.
* If the mailbox overflows, later messages would look like a gap. So the subscription is ended instead, which closes its sessions with
  that reason, and a new one starts: sessions of a new subscriber.
* Its delivery of one message of a key at a time is verified: a message delivered while an earlier one is unanswered is marked
  (`GivenOut`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Final

import grpc

from prober.brokers.base import FlowControlSettings, Received, Tap
from prober.brokers.connection import Connection, session_name
from prober.brokers.grpc_errors import let_go
from prober.brokers.library_calls import Streams, WatchedCall
from prober.brokers.library_client import (
    LibraryMessage,
    Mailbox,
    StreamingPull,
    Worker,
    in_loop,
    is_confirmation,
    library_error,
    subscribe,
)
from prober.errors import BrokerError

# The client delivers at most as many messages as its flow control allows, and a few more when keys are released; events of streams are
# added.
MAILBOX_SLACK: Final = 10_000

CLOSE_TIMEOUT_S: Final = 3.0
"""Longest wait for the client's threads at closing, in seconds; a sleeping thread ends later, by itself."""

OVERFLOWED: Final = "given up: messages came faster than they were taken"


def subscriber_names(client_id: str) -> Iterator[str]:
    """Yield the prober's names for the successive clients of a subscriber: its own name, then with a number."""
    yield client_id
    for number in count(2):
        yield f"{client_id}/{number}"


class GivenOut:
    """Number of delivered and unanswered messages of each key of the client. For use in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def give(self, key: str) -> bool:
        """Count a delivery. Return whether another message of its key is unanswered; False without a key."""
        with self._lock:
            others = self._counts.get(key, 0)
            self._counts[key] = others + 1
        return others > 0 and bool(key)

    def answer(self, key: str) -> None:
        """Count an answer that is about to be sent, after which the client may deliver the next message."""
        with self._lock:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


class LibrarySession:
    """Messages of one stream of the client.

    subscriber    the prober's name for the client id that the client created.
    flow          flow control settings of the client, which it sends to the service with each stream.
    undelivered   ids of its messages that are still inside the client.
    """

    is_over = False
    """Never over: the client sends an answer by another stream if this one has ended."""

    def __init__(self, pull: LibraryPull, subscriber: str, asked_t: float) -> None:
        self._pull = pull
        self.name, self.subscriber, self.flow = session_name(subscriber), subscriber, pull.flow
        self.asked_t = asked_t
        self.undelivered: set[str] = set()
        self.end_reason: str | None = None
        self.reported_closed = False

    def ack(self, received: Received) -> None:
        """Acknowledge through the client, with a response if exactly-once delivery is on."""
        self._pull.ack(self, received)

    def nack(self, received: Received) -> None:
        """Nack through the client."""
        if (message := self._pull.finish(received)) is not None:
            message.nack()

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Modify the lease through the client, which continues to extend it unless the message is also left to expire."""
        if (message := self._pull.held(received)) is not None:
            message.modify_ack_deadline(seconds)

    def let_expire(self, received: Received) -> None:
        """Make the client forget the message: no more extensions, and the next message of the key follows."""
        if (message := self._pull.finish(received)) is not None:
            message.drop()


class LibraryPull:
    """One client with one `subscribe` call. All reports of its threads use one mailbox, so their order is kept."""

    def __init__(
        self, connection: Connection, subscription: str, subscriber: str, flow: FlowControlSettings, ack_deadline_s: int, tap: Tap
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._subscription, self._subscriber, self._tap = subscription, subscriber, tap
        self.flow, self._ack_deadline_s = flow, ack_deadline_s
        self._news: Mailbox[Callable[[], None]] = Mailbox(_run, 2 * flow.messages_max + MAILBOX_SLACK)
        self._streams = Streams(self)
        self._channel = connection.open_threaded_channel()
        self._worker = Worker(f"{subscriber} subscriber")
        self._future: StreamingPull | None = None
        self._error: BaseException | None = None
        self._stream_error: grpc.RpcError | None = None
        self._open: dict[str, LibrarySession] = {}
        self._origin: dict[str, tuple[LibrarySession, int | None]] = {}
        self._held: dict[str, LibraryMessage] = {}
        self._given_out = GivenOut()
        self._current: tuple[WatchedCall[LibrarySession], LibrarySession] | None = None
        self._closed = False
        self._ended_for_good = asyncio.Event()
        self._overflowed = False
        self.answered = asyncio.Event()
        """Set at the first answer of the other side."""
        self.delivered = False
        """Whether a message was delivered."""
        self.ended = asyncio.Event()
        """Set when the client has given up, or was given up."""

    # ------------------------------------------------------------------------------------------ asked by the subscriber

    async def open(self) -> None:
        """Make the client open its first stream."""
        await self._worker.call(self._subscribe)

    async def cut(self) -> None:
        """Cut the open stream, if any; the client opens another."""
        if self._current is not None:
            self._current[0].cut()

    def failure(self, doing: str) -> BrokerError:
        """Return the reason why the client gave up."""
        # The library's own reason may be empty: it reports the end before its cause.
        error = self._stream_error or self._error
        return library_error(error, doing) if error is not None else let_go(doing)

    async def close(self) -> None:
        """Cancel the subscription and report all sessions as closed. Client threads that do not end in time end later by themselves."""
        if self._closed:
            return
        self._closed = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    if await self._worker.call(self._cancel):
                        await self._ended_for_good.wait()
        finally:
            self._worker.call(self._let_go)
            self._worker.stop()
            for session in self._open.values():
                self._tap.closed(session, session.end_reason or (OVERFLOWED if self._overflowed else "cancelled"))
            self._open.clear()
            self._origin.clear()
            self._held.clear()

    # ------------------------------------------------------------------------------------------ asked by sessions

    def held(self, received: Received) -> LibraryMessage | None:
        """Return the client's own message while it is unanswered."""
        return self._held.get(received.ack_id)

    def finish(self, received: Received) -> LibraryMessage | None:
        """Return the client's own message, to be answered now."""
        message = self._held.pop(received.ack_id, None)
        if message is not None:
            self._given_out.answer(received.ordering_key)
        return message

    def ack(self, session: LibrarySession, received: Received) -> None:
        """Acknowledge. Only with exactly-once delivery is the client's response meaningful; else it is an immediate success."""
        message = self.finish(received)
        if message is None:
            return
        if not message.exactly_once_enabled:
            message.ack()
            return
        message.ack_with_response().add_done_callback(lambda done: self._post(partial(self._acknowledged, session, received, done)))

    # ------------------------------------------------------------------------------------------ called in the client's threads

    def stream_began(self, call: WatchedCall[LibrarySession]) -> LibrarySession:
        """Create and report the session of a stream that is about to be requested."""
        session = LibrarySession(self, self._subscriber, self._loop.time())
        self._post(partial(self._opened, call, session))
        return session

    def stream_answered(self) -> None:
        """Report the first response."""
        in_loop(self._loop, self.answered.set)

    def stream_delivered(self, session: LibrarySession, publish_times: Mapping[str, int | None]) -> None:
        """Record stream and publish time of messages before the client can deliver them."""
        self.delivered = True
        session.undelivered.update(publish_times)
        self._origin.update({ack_id: (session, publish_time) for ack_id, publish_time in publish_times.items()})

    def stream_failed(self, error: grpc.RpcError) -> None:
        """Record the error of a failed stream; the library's own error follows later."""
        self._stream_error = error

    def stream_ended(self, session: LibrarySession, reason: str) -> None:
        """Report the end of a stream; its messages may still be in the client."""
        self._post(partial(self._stream_ended, session, reason))

    def _callback(self, message: LibraryMessage) -> None:
        """Process a message; called by the client. Must not raise, whatever happens."""
        self._post(partial(self._deliver, message, overlaps=self._given_out.give(message.ordering_key)))

    def _post(self, news: Callable[[], None]) -> None:
        """Post a report to the event loop; after a lost report post no more."""
        if not self._overflowed and not self._news.post(news):
            self._overflowed = True
            in_loop(self._loop, self.ended.set)

    def _subscribe(self) -> None:
        if self._closed:
            return
        channel = grpc.intercept_channel(self._channel, self._streams)
        try:
            self._future = subscribe(channel, self._subscription, self._callback, self.flow, self._ack_deadline_s)
        finally:
            self._streams.begin()
        self._future.add_done_callback(lambda future: in_loop(self._loop, self._given_up, future))

    def _cancel(self) -> bool:
        """Cancel the subscription. Return whether there was one.

        The client cannot be ended before `subscribe` has returned.
        """
        self._streams.stop()
        if self._future is None:
            return False
        self._future.add_done_callback(lambda _: in_loop(self._loop, self._ended_for_good.set))
        return self._future.cancel()

    def _let_go(self) -> None:
        """Close the connection after the client has ended: its threads would fail on a closed connection."""
        if self._future is None:
            self._channel.close()
        else:
            self._future.add_done_callback(lambda _: self._channel.close())

    # ------------------------------------------------------------------------------------------ delivered by the mailbox

    def _opened(self, call: WatchedCall[LibrarySession], session: LibrarySession) -> None:
        if not self._closed:
            self._current = (call, session)
            self._tell_opened(session)

    def _deliver(self, message: LibraryMessage, *, overlaps: bool) -> None:
        ack_id = message.ack_id
        origin = self._origin.pop(ack_id, None)
        if origin is None or self._closed:
            return  # closed during its delivery: it was never delivered to the tap
        session, publish_time = origin
        if session.reported_closed:
            session = self._opened_late(session, ack_id)
        self._held[ack_id] = message
        received = Received(
            message.message_id,
            ack_id,
            message.ordering_key,
            message.data,
            dict(message.attributes),
            message.delivery_attempt or 0,
            publish_time,
            overlaps,
        )
        self._tap.received(session, received)
        session.undelivered.discard(ack_id)
        self._close_if_empty(session)

    def _opened_late(self, ended: LibrarySession, ack_id: str) -> LibrarySession:
        """Report a session for a message that gRPC delivered after its stream; rare, but possible."""
        session = LibrarySession(self, self._subscriber, ended.asked_t)
        session.end_reason = ended.end_reason
        session.undelivered.add(ack_id)
        self._tell_opened(session)
        return session

    def _stream_ended(self, session: LibrarySession, reason: str) -> None:
        if self._current is not None and self._current[1] is session:
            self._current = None
        session.end_reason = reason
        self._close_if_empty(session)

    def _tell_opened(self, session: LibrarySession) -> None:
        self._open[session.name] = session
        self._tap.opened(session, session.asked_t)

    def _close_if_empty(self, session: LibrarySession) -> None:
        if session.end_reason is not None and not session.undelivered and self._open.pop(session.name, None) is not None:
            session.reported_closed = True
            self._tap.closed(session, session.end_reason)

    def _given_up(self, future: StreamingPull) -> None:
        self._error = None if future.cancelled() else future.exception()
        self.ended.set()

    def _acknowledged(self, session: LibrarySession, received: Received, response: Future[object]) -> None:
        if is_confirmation(response) and not self._closed:
            self._tap.ack_confirmed(session, received.message_id)


def _run(news: Callable[[], None]) -> None:
    news()
