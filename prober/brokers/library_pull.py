"""Consuming through Google's SubscriberClient, by one `subscribe` call.

The messages are those of the client's callback, in its order, from the first stream of the call to its last.

Properties of that client, and their handling:

* It gives out one message of a key at a time: the next comes when the last is acknowledged, nacked or left to expire, an acknowledgement
  also having been answered. A tap that does none of these gets no more of that key.
* It extends the lease of a message that is not answered, for an hour. `let_expire` makes it stop. Leases are asked for with the
  deadline that the subscriber was made with, from the first one on.
* It opens broken streams again by itself. Each is a session here, under one subscriber as long as the client keeps its client id, which it
  makes itself. A session is reported as closed when its stream has ended and the last message of it has come out of the client.
* An exception in the callback would resolve the client's future while its stream goes on delivering. The callback here raises nothing
  and does nothing but put the message into a mailbox; and before the client is asked for a new subscription the old one is cancelled.
* A stream that fails while the client still starts its threads leaves one of them running for ever. So no stream is opened before
  `subscribe` has returned.
* If the mailbox overflows, the messages that follow would look as if some had been skipped. So the subscription is given up instead,
  which ends its sessions with that reason, and a new one begins: sessions of a new subscriber.
* That it gives out one message of a key at a time is not taken for granted: one that it gives out while an earlier one is not answered is
  marked as such (`GivenOut`).
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

# The client gives out at most as many messages as its flow control allows, and a few more when keys are released; news of streams
# comes on top.
MAILBOX_SLACK: Final = 10_000

CLOSE_TIMEOUT_S: Final = 3.0
"""How long closing waits for the client's threads; one that sleeps ends later, by itself."""

OVERFLOWED: Final = "given up: messages came faster than they were taken"


def subscriber_names(client_id: str) -> Iterator[str]:
    """Our names for the client ids that one subscriber's clients make for themselves: its own, then with a number."""
    yield client_id
    for number in count(2):
        yield f"{client_id}/{number}"


class GivenOut:
    """How many messages of each key the client has given out and were not answered. For use in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def give(self, key: str) -> bool:
        """One more is given out; whether another one of its key is not answered yet. Messages without a key do not wait for each other."""
        with self._lock:
            others = self._counts.get(key, 0)
            self._counts[key] = others + 1
        return others > 0 and bool(key)

    def answer(self, key: str) -> None:
        """One of them is about to be answered, which lets the client go on."""
        with self._lock:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


class LibrarySession:
    """What came on one stream of the client. `undelivered` are its messages that are still inside the client."""

    def __init__(self, pull: LibraryPull, subscriber: str, asked_t: float) -> None:
        self._pull = pull
        self._name = session_name(subscriber)
        self._subscriber = subscriber
        self.asked_t = asked_t
        self.undelivered: set[str] = set()
        self.end_reason: str | None = None
        self.reported_closed = False

    @property
    def name(self) -> str:
        """Unique in this process."""
        return self._name

    @property
    def subscriber(self) -> str:
        """Our name for the client id that the client made for itself."""
        return self._subscriber

    @property
    def flow(self) -> FlowControlSettings:
        """What the client was given, and tells the service with each stream."""
        return self._pull.flow

    @property
    def is_over(self) -> bool:
        """Never: the client sends an answer by another stream if this one is over."""
        return False

    def ack(self, received: Received) -> None:
        """Acknowledges through the client, with a response where that means something."""
        self._pull.ack(self, received)

    def nack(self, received: Received) -> None:
        """Refuses through the client."""
        if (message := self._pull.finish(received)) is not None:
            message.nack()

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Modifies the lease through the client, which goes on extending it unless the message is also left to expire."""
        if (message := self._pull.held(received)) is not None:
            message.modify_ack_deadline(seconds)

    def let_expire(self, received: Received) -> None:
        """Makes the client forget the message: no more extensions, and the next message of the key comes."""
        if (message := self._pull.finish(received)) is not None:
            message.drop()


class LibraryPull:
    """One client, one `subscribe` call. What its threads report comes through one mailbox, so its order is kept."""

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
        """Set when the other side has answered for the first time."""
        self.delivered = False
        """Whether a message has come."""
        self.ended = asyncio.Event()
        """Set when the client has given up, or we have given up the client."""

    # ------------------------------------------------------------------------------------------ asked by the subscriber

    async def open(self) -> None:
        """Makes the client open its first stream."""
        await self._worker.call(self._subscribe)

    async def cut(self) -> None:
        """Cuts the stream that is open, if one is; the client opens another one."""
        if self._current is not None:
            self._current[0].cut()

    def failure(self, doing: str) -> BrokerError:
        """Why the client gave up."""
        # The library's own reason may be empty: it reports its giving up before it reports what it gave up for.
        error = self._stream_error or self._error
        return library_error(error, doing) if error is not None else let_go(doing)

    async def close(self) -> None:
        """Cancels the subscription and tells that all sessions are closed. What the client cannot end in time ends later by itself."""
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
        """The client's own message, until it is answered."""
        return self._held.get(received.ack_id)

    def finish(self, received: Received) -> LibraryMessage | None:
        """The client's own message, to be answered now."""
        message = self._held.pop(received.ack_id, None)
        if message is not None:
            self._given_out.answer(received.ordering_key)
        return message

    def ack(self, session: LibrarySession, received: Received) -> None:
        """Acknowledges. Only with exactly-once delivery does the client's response say anything: else it is a success at once."""
        message = self.finish(received)
        if message is None:
            return
        if not message.exactly_once_enabled:
            message.ack()
            return
        message.ack_with_response().add_done_callback(lambda done: self._post(partial(self._acknowledged, session, received, done)))

    # ------------------------------------------------------------------------------------------ called in the client's threads

    def stream_began(self, call: WatchedCall[LibrarySession]) -> LibrarySession:
        """A stream is about to be asked for."""
        session = LibrarySession(self, self._subscriber, self._loop.time())
        self._post(partial(self._opened, call, session))
        return session

    def stream_answered(self) -> None:
        """The first response has come."""
        in_loop(self._loop, self.answered.set)

    def stream_delivered(self, session: LibrarySession, publish_times: Mapping[str, int | None]) -> None:
        """Remembers which stream these came on and when they were stored, before the client can give them out."""
        self.delivered = True
        session.undelivered.update(publish_times)
        self._origin.update({ack_id: (session, publish_time) for ack_id, publish_time in publish_times.items()})

    def stream_failed(self, error: grpc.RpcError) -> None:
        """A stream failed; what the library makes of it comes later."""
        self._stream_error = error

    def stream_ended(self, session: LibrarySession, reason: str) -> None:
        """The stream is over; its messages may still be in the client."""
        self._post(partial(self._stream_ended, session, reason))

    def _callback(self, message: LibraryMessage) -> None:
        """What the client calls for each message. Must not raise, whatever happens."""
        self._post(partial(self._deliver, message, overlaps=self._given_out.give(message.ordering_key)))

    def _post(self, news: Callable[[], None]) -> None:
        """After one lost report no more are posted."""
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
        """Whether there was anything to cancel. Not before `subscribe` has returned: the client does not survive to be ended earlier."""
        self._streams.stop()
        if self._future is None:
            return False
        self._future.add_done_callback(lambda _: in_loop(self._loop, self._ended_for_good.set))
        return self._future.cancel()

    def _let_go(self) -> None:
        """Closes the connection when the client has ended: before that its threads would stumble over it."""
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
            return  # closed while this was on its way: it was never given out
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
        """A session for a message that gRPC gave out after its stream; rare, but possible."""
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
