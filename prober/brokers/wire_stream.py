"""One StreamingPull stream, from its first request to its end: a session.

Acknowledgements and leases are sent on the stream itself, not in requests of their own. The stream keeps them in the order of the calls,
and one write contains all that are pending. Answers sent on a stream that breaks are lost with it; the end of the session reports that. The
price: without exactly-once delivery no response confirms an acknowledgement; but a unary call does not either (documentation, "best
effort").
"""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
import grpc.aio

from prober.brokers import wire_messages
from prober.brokers.base import FlowControlSettings, Received, Tap
from prober.brokers.connection import Connection, session_name
from prober.brokers.grpc_errors import let_go, translated, was_cancelled_by_caller
from prober.brokers.wire_messages import NACK_S, Sending, routing
from prober.errors import BrokerError

STREAMING_PULL: Final = "/google.pubsub.v1.Subscriber/StreamingPull"

HEARTBEAT_S: Final = 30.0
"""Interval of messages on an idle stream, in seconds: like Google's clients, and to notice a dead connection by writing to it."""

GOODBYE_S: Final = 0.5
"""Time for a closing stream to send its last answers and to be closed from the other side, in seconds."""

_CONFIRMATIONS_MAX: Final = 100_000


class WireStream:
    """One stream, for one use, from `open` to `close`; `subscriber` and `flow` are sent in the first request."""

    def __init__(
        self, connection: Connection, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int, tap: Tap
    ) -> None:
        self._watch = connection.watch
        self._streaming_pull: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = connection.channel.stream_stream(STREAMING_PULL)
        self._metadata = routing("subscription", subscription)
        self._first_request = wire_messages.open_request(subscription, client_id, ack_deadline_s, flow)
        self.name, self.subscriber, self.flow = session_name(client_id), client_id, flow
        self._tap = tap
        self._unsent: list[Sending] = []
        self._something_unsent = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._unconfirmed: dict[str, str] = {}
        self._exactly_once = False
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._over = self._said_goodbye = False
        self._error: BrokerError | None = None
        self.answered = asyncio.Event()
        """Set at the first answer of the other side."""
        self.delivered = False
        """Whether a message was delivered."""
        self.ended = asyncio.Event()
        """Set when the tap has received the end of the session."""

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended, or accepts no further requests."""
        return self._over or self._said_goodbye

    def ack(self, received: Received) -> None:
        """Send an acknowledgement."""
        if self._exactly_once and not self.is_over:
            self._expect_confirmation(received)
        self._send(Sending(received.ack_id, None))

    def nack(self, received: Received) -> None:
        """Send a lease of zero seconds: the service may redeliver the message at once."""
        self._send(Sending(received.ack_id, NACK_S))

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Send a lease modification."""
        self._send(Sending(received.ack_id, seconds))

    def let_expire(self, received: Received) -> None:
        """Do nothing: on the wire leases are not extended."""

    def _send(self, sending: Sending) -> None:
        if not self.is_over:
            self._unsent.append(sending)
            self._something_unsent.set()
            self._all_sent.clear()

    def _expect_confirmation(self, received: Received) -> None:
        # A service may never confirm (like Google's emulator): then the oldest are dropped.
        if len(self._unconfirmed) >= _CONFIRMATIONS_MAX:
            del self._unconfirmed[next(iter(self._unconfirmed))]
        self._unconfirmed[received.ack_id] = received.message_id

    async def open(self) -> None:
        """Open the stream, which delivers to the tap from now on."""
        self._reader = asyncio.create_task(self._run(), name=f"{self.name} reader")
        self._reader.add_done_callback(lambda _: self.ended.set())

    def failure(self, doing: str) -> BrokerError:
        """Return the reason of the end of the stream."""
        return self._error or let_go(doing)

    async def cut(self) -> None:
        """End the stream at once, without the half-close.

        Wait until the tap has received its end.
        """
        if self._call is not None:
            self._call.cancel()
            await self.ended.wait()

    async def close(self) -> None:
        """End the stream, after its last answers if the other side still reads. Raises an exception of the tap, which must not raise."""
        reader = self._reader
        if reader is None:
            return
        try:
            await self._say_goodbye()
        finally:
            reader.cancel()
            (result,) = await asyncio.gather(reader, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def _run(self) -> None:
        """Deliver until the stream ends, then report the reason to the tap.

        Raises only CancelledError. The tap receives the session before the first request is sent: the service sent nothing on it before
        that.
        """
        self._call = call = self._streaming_pull(metadata=self._metadata)
        reason = "cancelled"
        self._tap.opened(self, None)
        writer = asyncio.create_task(self._write(call), name=f"{self.name} writer")
        greeter = asyncio.create_task(self._await_greeting(call), name=f"{self.name} greeter")
        try:
            reason = await self._read(call)
        except grpc.aio.AioRpcError as error:
            self._watch.ended(STREAMING_PULL, error.code())
            self._error = translated(error, "the stream ended")
            reason = str(self._error)
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            reason = "cut by the prober"
        finally:
            self._over = True
            call.cancel()
            writer.cancel()
            greeter.cancel()
            self._tap.closed(self, reason)
            await asyncio.gather(writer, greeter, return_exceptions=True)

    async def _say_goodbye(self) -> None:
        """Send pending answers, close the sending side, and wait a moment for the other side to end the stream."""
        call = self._call
        if call is None or self._over:
            return
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self._all_sent.wait()
                self._said_goodbye = True
                await call.done_writing()
                await self.ended.wait()
        except (TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the stream is being ended anyway

    async def _read(self, call: grpc.aio.StreamStreamCall[bytes, bytes]) -> str:
        while True:
            reply = await call.read()
            if not isinstance(reply, bytes):  # grpc.aio.EOF
                return "ended by the service"
            self.answered.set()
            self._take(wire_messages.stream_reply(reply))

    def _take(self, reply: wire_messages.StreamReply) -> None:
        self._exactly_once = reply.exactly_once
        self.delivered |= bool(reply.received)
        for received in reply.received:
            self._tap.received(self, received)
        for ack_id in reply.confirmed:
            if message_id := self._unconfirmed.pop(ack_id, None):
                self._tap.ack_confirmed(self, message_id)
        for ack_id in reply.failed:
            self._unconfirmed.pop(ack_id, None)

    async def _write(self, call: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        """Send in the order of calls. A failure here also fails `_read`, which reports it."""
        loop = asyncio.get_running_loop()
        await call.write(self._first_request)
        while True:
            if not self._unsent:
                self._all_sent.set()
            heartbeat = loop.call_later(HEARTBEAT_S, self._something_unsent.set)
            try:
                await self._something_unsent.wait()
            finally:
                heartbeat.cancel()
            self._something_unsent.clear()
            unsent = self._unsent[:]
            for request in wire_messages.stream_requests(unsent) if unsent else (wire_messages.HEARTBEAT,):
                await call.write(request)
            del self._unsent[: len(unsent)]

    async def _await_greeting(self, call: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
        await call.initial_metadata()
        self.answered.set()
