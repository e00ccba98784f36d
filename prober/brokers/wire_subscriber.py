"""A subscriber by streaming pull: keeps one stream open, and opens the next one, under the same client id, when it breaks."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import grpc
import grpc.aio

from prober.brokers.base import Flow, Tap
from prober.brokers.channels import wait_until_connected
from prober.brokers.routing import routing
from prober.brokers.wire_errors import let_go
from prober.brokers.wire_messages import open_request
from prober.brokers.wire_stream import STREAMING_PULL, WireStream
from prober.errors import BrokerUnavailable

OPEN_TIMEOUT_S: Final = 10.0
"""How long `start` waits for a connection."""

OPEN_GRACE_S: Final = 0.5
"""How long `start` waits for an error of a stream that has not answered: Google's emulator says nothing before the first message."""

_REFUSAL_GRACE_S: Final = 0.05
"""How long a refusal may be behind the headers that it ends."""

_BACKOFF_MIN_S: Final = 0.1
_BACKOFF_MAX_S: Final = 5.0
_HEALTHY_S: Final = 10.0
"""A stream that lasted this long ended for a reason that has nothing to do with how often we try."""


class WireSubscriber:
    """Consumes one subscription under one client id."""

    def __init__(self, channel: grpc.aio.Channel, subscription: str, client_id: str, flow: Flow, ack_deadline_s: int) -> None:
        self._channel = channel
        self._subscription = subscription
        self._client_id = client_id
        self._first_request = open_request(subscription, client_id, ack_deadline_s, flow)
        self._metadata = routing("subscription", subscription)
        self._streaming_pull: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAMING_PULL)
        # Different subscribers come back at different times; the same one always at the same.
        self._dice = Random(client_id)
        self._stream: WireStream | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, tap: Tap) -> None:
        """Opens the first stream; see the port. Raises BrokerUnavailable, NotThere or PermissionRefused."""
        if self._task is not None:
            raise RuntimeError("a subscriber is started once")
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await wait_until_connected(self._channel)
        except TimeoutError:
            raise BrokerUnavailable(
                f"subscribing to {self._subscription}: no connection within {OPEN_TIMEOUT_S:g} s; is the target running, and is the "
                "endpoint right?"
            ) from None
        stream = WireStream(self._client_id, tap)
        first = asyncio.create_task(self._run(stream), name=f"{stream.name} reader")
        try:
            await _settled(stream)
        except asyncio.CancelledError:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            raise
        if stream.ended.is_set():
            await first
            raise stream.error or let_go(f"subscribing to {self._subscription}")
        self._task = asyncio.create_task(self._keep_open(tap, first), name=f"{self._client_id} subscriber")

    async def break_stream(self) -> None:
        """Cuts the stream and returns when its end was told; does nothing while none is open."""
        if (stream := self._stream) is not None:
            stream.cut()
            await stream.ended.wait()

    async def close(self) -> None:
        """Ends the stream, with a goodbye if the other side listens, and opens no other. Calling it again does nothing."""
        task, self._task = self._task, None
        if task is None:
            return
        stream = self._stream
        try:
            if stream is not None:
                await stream.say_goodbye()
        finally:
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result  # the tap raised, which it must not: a bug of ours, and not to be lost

    async def _run(self, stream: WireStream) -> None:
        self._stream = stream
        try:
            await stream.run(lambda: self._streaming_pull(metadata=self._metadata), self._first_request)
        finally:
            self._stream = None

    async def _keep_open(self, tap: Tap, running: asyncio.Task[None]) -> None:
        """Follows the first stream, then opens one after the other, with pauses that grow while streams end soon."""
        loop = asyncio.get_running_loop()
        pause_s, opened_t = _BACKOFF_MIN_S, loop.time()
        try:
            await running
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            raise
        while True:
            pause_s = _BACKOFF_MIN_S if loop.time() - opened_t > _HEALTHY_S else min(2 * pause_s, _BACKOFF_MAX_S)
            await asyncio.sleep(pause_s * self._dice.uniform(0.5, 1.0))
            await wait_until_connected(self._channel)
            opened_t = loop.time()
            await self._run(WireStream(self._client_id, tap))


async def _settled(stream: WireStream) -> None:
    """Waits until a stream has been answered, has ended, or has been silent for long enough to count as open."""
    established = asyncio.ensure_future(stream.established.wait())
    ended = asyncio.ensure_future(stream.ended.wait())
    try:
        done, _ = await asyncio.wait((established, ended), timeout=OPEN_GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        if established in done and ended not in done:
            await asyncio.wait((ended,), timeout=_REFUSAL_GRACE_S)
    finally:
        established.cancel()
        ended.cancel()
