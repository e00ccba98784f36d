"""A subscriber that keeps one source of messages open and opens the next when it ends.

The pauses grow while sources end soon. A source is specific to the vantage: one stream at the wire, one `subscribe` call of the library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from prober.brokers.base import Tap
from prober.brokers.connection import Connection, wait_until_connected
from prober.brokers.grpc_errors import let_go
from prober.errors import BrokerError, BrokerUnavailable

OPEN_TIMEOUT_S: Final = 10.0
"""Timeout of `start` for a connection, in seconds."""

OPEN_GRACE_S: Final = 0.5
"""Wait of `start` for an error of a source without an answer, in seconds: Google's emulator sends no answer before the first message."""

REFUSAL_GRACE_S: Final = 0.05
"""Longest delay of a refusal after the first answer, in seconds."""

_BACKOFF_MIN_S: Final = 0.1
_BACKOFF_MAX_S: Final = 5.0
_HEALTHY_S: Final = 10.0
"""Duration after which the end of a source is unrelated to the rate of attempts, in seconds. The same holds after a delivery."""

_OPENED_AGAIN: Final = 3
"""Number of further sources that `start` opens after a transient error of the target."""


class Source(Protocol):
    """A source of messages, which delivers to a tap until it ends; for one use."""

    @property
    def answered(self) -> asyncio.Event:
        """Set at the first answer of the other side.

        Some servers do not answer before they have a message to deliver.
        """

    @property
    def delivered(self) -> bool:
        """Whether a message was delivered."""

    @property
    def ended(self) -> asyncio.Event:
        """Set when no more messages can follow."""

    async def open(self) -> None:
        """Request messages."""

    def failure(self, doing: str) -> BrokerError:
        """Return the reason of the end."""

    async def cut(self) -> None:
        """Cut the open stream, if any, as a network would."""

    async def close(self) -> None:
        """End the source, whether it was opened or not.

        Afterwards the tap has received the end of every session.
        """


class ReopeningSubscriber:
    """Consumes one subscription under one client id, from one source after the other."""

    def __init__(self, connection: Connection, subscription: str, client_id: str, new_source: Callable[[Tap], Source]) -> None:
        self._connection = connection
        self._doing = f"subscribing to {subscription}"
        self._name = f"{client_id} subscriber"
        self._new_source = new_source
        # Different subscribers reconnect at different times, and each of them always with the same pauses.
        self._dice = Random(client_id)
        self._source: Source | None = None
        self._started = False
        self._task: asyncio.Task[None] | None = None
        self._open = asyncio.Event()

    async def start(self, tap: Tap) -> None:
        """Open the first source; see the port. Raises BrokerUnavailable, NotThere or PermissionRefused."""
        if self._started:
            raise RuntimeError("a subscriber is started once")
        self._started = True
        self._task = task = asyncio.create_task(self._consume(tap), name=self._name)
        self._connection.opened(self)
        task.add_done_callback(lambda _: self._connection.closed(self))
        opening = asyncio.ensure_future(self._open.wait())
        try:
            await asyncio.wait((task, opening), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            opening.cancel()
        if task.cancelled():
            raise let_go(self._doing)
        if task.done():
            task.result()

    async def break_stream(self) -> None:
        """Cut the stream; do nothing while none is open."""
        if self._source is not None:
            await self._source.cut()

    async def close(self) -> None:
        """End the source, and open no other. Further calls do nothing."""
        task = self._task
        if task is None:
            return
        if not task.cancelling():
            task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        # A cancelled task still holds its frame, and so this subscriber and the tap: a cycle that would keep a whole run in memory.
        self._task = None
        if isinstance(result, Exception) and not isinstance(result, BrokerError):
            raise result  # a bug, as in a tap that raises: do not lose it

    async def _consume(self, tap: Tap) -> None:
        loop = asyncio.get_running_loop()
        await self._first_connection()
        pause_s = _BACKOFF_MIN_S
        again = _OPENED_AGAIN
        while True:
            opened_t = loop.time()
            self._source = source = self._new_source(tap)
            try:
                await source.open()
                if not self._open.is_set():
                    await _settled(source)
                    self._tell_open(source, may_try_again=again > 0)
                    again -= 1
                await source.ended.wait()
            finally:
                self._source = None
                await source.close()
            well = source.delivered or loop.time() - opened_t > _HEALTHY_S
            pause_s = _BACKOFF_MIN_S if well else min(2 * pause_s, _BACKOFF_MAX_S)
            await asyncio.sleep(pause_s * self._dice.uniform(0.5, 1.0))
            await wait_until_connected(self._connection.channel)

    def _tell_open(self, source: Source, *, may_try_again: bool) -> None:
        """Report a source as open. Raises its failure if it ended without a delivery, unless a retry may help."""
        if not source.ended.is_set() or source.delivered:
            self._open.set()
            return
        failure = source.failure(self._doing)
        if not (may_try_again and isinstance(failure, BrokerUnavailable)):
            raise failure

    async def _first_connection(self) -> None:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await wait_until_connected(self._connection.channel)
        except TimeoutError:
            raise BrokerUnavailable(
                f"{self._doing}: no connection within {OPEN_TIMEOUT_S:g} s; is the target running, and is the endpoint right?"
            ) from None


async def _settled(source: Source) -> None:
    """Wait until a source has answered, has ended, or has been silent for long enough to count as open."""
    if await _first_of(source.answered, source.ended, timeout_s=OPEN_GRACE_S):
        await _first_of(source.ended, timeout_s=REFUSAL_GRACE_S)


async def _first_of(*events: asyncio.Event, timeout_s: float) -> bool:
    """Wait until one of the events is set. Return False if none is in time."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for one in waiting:
            one.cancel()
