"""Consuming a stream of NATS JetStream, for `observe`, not for probes.

The port is the same as for Pub/Sub.

*Order.* A stream has one order, that of its sequence numbers, over all its subjects; a subject corresponds to an ordering key. The server
sends new messages to a consumer in that order. A message that is nacked, or not acknowledged in time, is redelivered *alone*. The server
does not guarantee that later messages of its subject are redelivered behind it, nor that a subject stays at one consumer. So only the order
of first deliveries can be verified (guarantee 1), not guarantees 2 and 3.

    Pub/Sub          here
    subscription     an ephemeral consumer of the stream, which the server deletes after a while without a listener
    ordering key     the subject
    message id       the sequence number in the stream
    publish time     the time at which the stream stored it
    attributes       the headers
    session          one connection to a server: after a reconnect it is another one, and unacknowledged messages are redelivered

`nats-py` is an optional extra: without it `NatsSubscriber.start` raises an error with the command to install it.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import UTC
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from prober.brokers.base import FlowControlSettings, Received, Tap
from prober.errors import BrokerError, BrokerUnavailable, NotSupported, NotThere, PermissionRefused

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

MISSING: Final = "nats-py is not installed, which reads streams of NATS: pip install nats-py"
OPEN_TIMEOUT_S: Final = 10.0
RECONNECT_S: Final = 1
CLOSE_TIMEOUT_S: Final = 2.0
ANSWER_TIMEOUT_S: Final = 5.0
FORGOTTEN_AFTER_S: Final = 60.0
"""Time for which the server keeps a consumer without a listener, in seconds."""
_LOOK_S: Final = 0.01
_NANOSECONDS: Final = 10**9
_UNITS_OF_A_MOMENT: Final = 1000  # microseconds become nanoseconds
_SESSIONS = count(1)


class NatsSession:
    """One connection, as long as it lasts. Answers are sent through it in order. Of `flow`, the server has no bound for bytes."""

    def __init__(self, client: Client, client_id: str, flow: FlowControlSettings) -> None:
        self._client, self.subscriber, self.flow = client, client_id, flow
        self.name = f"{client_id}#nats-{next(_SESSIONS)}"
        self._unsent: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._sender = asyncio.create_task(self._send(), name=f"acknowledgements of {self.name}")

    @property
    def is_over(self) -> bool:
        """Whether the sender has ended."""
        return self._sender.done()

    def ack(self, received: Received) -> None:
        """Send an acknowledgement."""
        self._unsent.put_nowait((received.ack_id, b"+ACK"))

    def nack(self, received: Received) -> None:
        """Send a nack: this message, and no other, is redelivered at once."""
        self._unsent.put_nowait((received.ack_id, b"-NAK"))

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Extend the lease by the consumer's acknowledgement deadline; the server supports no other time."""
        self._unsent.put_nowait((received.ack_id, b"+WPI"))

    def let_expire(self, received: Received) -> None:
        """Send no answer."""

    async def sent(self) -> None:
        """Wait until all pending answers are sent."""
        await self._unsent.join()
        await self._client.flush(int(CLOSE_TIMEOUT_S))

    def end(self) -> None:
        """End the sender; pending answers are lost."""
        self._sender.cancel()

    async def _send(self) -> None:
        while True:
            reply, answer = await self._unsent.get()
            try:
                await self._client.publish(reply, answer)
            finally:
                self._unsent.task_done()


class NatsSubscriber:
    """Consumes new messages of a stream with a consumer of its own (the port `Subscriber`). For one event loop."""

    def __init__(
        self,
        address: str,
        stream: str,
        subjects: str,
        client_id: str,
        flow: FlowControlSettings,
        ack_deadline_s: int,
    ) -> None:
        """Create the subscriber, without a connection.

        `address`: `nats://HOST:PORT` or `tls://HOST:PORT`. `subjects`: the subjects of the stream to consume, such as `orders.>`.
        """
        self._address, self._stream, self._subjects = address, stream, subjects
        self._client_id, self._flow, self._ack_deadline_s = client_id, flow, ack_deadline_s
        self._client: Client | None = None
        self._subscription: Any = None
        self._session: NatsSession | None = None
        self._tap: Tap
        self._error = ""

    async def start(self, tap: Tap) -> None:
        """Connect and create the consumer. Raises BrokerUnavailable, NotThere, PermissionRefused or NotSupported."""
        try:
            from nats.aio.client import Client
        except ImportError:
            raise NotSupported(MISSING) from None
        self._tap, self._client = tap, Client()
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await self._connect(self._client)
                self._open()
                await self._consume(self._client)
        except BaseException as error:
            await self._let_go("it could not be opened")
            if isinstance(error, Exception):
                raise self._translated(error) from error
            raise

    async def break_stream(self) -> None:
        """Raise NotSupported: the client cannot cut its connection as a network would."""
        raise NotSupported("the client of NATS cannot cut its own connection")

    async def check_liveness(self) -> None:
        """Wait until the server has answered on the connection that delivers messages. Raises BrokerUnavailable."""
        if self._client is None or self._client.is_closed:
            return
        try:
            await self._client.flush(int(ANSWER_TIMEOUT_S))
        except Exception as error:
            raise self._translated(error) from error

    async def close(self) -> None:
        """Send the pending acknowledgements, and end. The server deletes the consumer at once."""
        if self._client is None or self._client.is_closed:
            return
        session = self._session
        with suppress(Exception):  # what cannot be sent is lost, as with any connection that breaks
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._subscription.unsubscribe()
                if session is not None:
                    await session.sent()
        await self._let_go("closed")

    # --- the connection ------------------------------------------------------------------------------------------------------

    async def _connect(self, client: Client) -> None:
        async def failed(error: Exception) -> None:
            errno = error.errno if isinstance(error, OSError) else None
            self._error = os.strerror(errno) if errno else str(error) or repr(error)

        await client.connect(
            [self._address],
            name=self._client_id,
            error_cb=failed,
            disconnected_cb=self._disconnected,
            reconnected_cb=self._reconnected,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_S,
        )

    async def _consume(self, client: Client) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self._ack_deadline_s,
            deliver_policy=DeliverPolicy.NEW,
            max_ack_pending=self._flow.messages_max,
            inactive_threshold=FORGOTTEN_AFTER_S,
        )
        self._subscription = await client.jetstream().subscribe(
            self._subjects, stream=self._stream, cb=self._received, manual_ack=True, config=config
        )

    def _open(self) -> None:
        assert self._client is not None
        self._session = NatsSession(self._client, self._client_id, self._flow)
        self._tap.opened(self._session, None)

    async def _received(self, message: Msg) -> None:
        if self._session is not None:
            self._tap.received(self._session, received_from(message))

    async def _disconnected(self) -> None:
        while self._subscription is not None and self._subscription.pending_msgs:  # earlier messages are reported before the end
            await asyncio.sleep(_LOOK_S)
        self._end(self._error or "the connection broke")

    async def _reconnected(self) -> None:
        self._open()

    def _end(self, reason: str) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.end()
            self._tap.closed(session, reason)

    async def _let_go(self, reason: str) -> None:
        self._end(reason)
        if self._client is not None:
            await self._client.close()

    def _translated(self, error: Exception) -> BrokerError:
        from nats.js.errors import NotFoundError

        if isinstance(error, NotFoundError):
            return NotThere(f"{self._address} has no stream {self._stream} with the subjects {self._subjects}")
        text = f"{error} {self._error}"
        if "authorization" in text.lower() or "permission" in text.lower():
            return PermissionRefused(f"{self._address} refuses: {self._error or error}")
        return BrokerUnavailable(f"{self._address} cannot be reached, or does not answer: {self._error or repr(error)}")


def received_from(message: Msg) -> Received:
    """Convert a NATS message to the port's form."""
    about = message.metadata
    moment = about.timestamp if about.timestamp.tzinfo is not None else about.timestamp.replace(tzinfo=UTC)
    return Received(
        message_id=str(about.sequence.stream),
        ack_id=message.reply,
        ordering_key=message.subject,
        data=message.data,
        attributes=dict(message.headers or {}),
        delivery_attempt=about.num_delivered or 0,
        publish_time=int(moment.timestamp()) * _NANOSECONDS + moment.microsecond * _UNITS_OF_A_MOMENT,
    )
