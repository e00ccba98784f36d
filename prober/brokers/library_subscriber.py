"""Consuming through Google's SubscriberClient: what its callback gets, in the order in which it gets it.

What has to be known about that client, and what is done about it:

* It gives out one message of a key at a time: the next comes when the last is acknowledged, refused or let go, an acknowledgement also
  having been answered. A tap that does none of these gets no more of that key.
* It extends the lease of a message that is not answered, for an hour. `let_expire` makes it stop. Leases are asked for with the
  deadline that the subscriber was made with, from the first one on.
* It opens broken streams again by itself. Each is a session here, under one subscriber as long as the client keeps its client id,
  which it makes itself. A session is told closed when its stream has ended and the last message of it has come out of the client.
* An exception in the callback would resolve the client's future while its stream goes on delivering. The callback here raises nothing
  and does nothing but put the message into a mailbox; and before the client is asked for a new subscription the old one is cancelled.
* If the mailbox overflows, the messages that follow would look as if some had been skipped. So the subscription is given up instead,
  and a new one begins: sessions of a new subscriber.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import grpc

from prober.brokers.base import Flow, Tap
from prober.brokers.endpoint import Endpoint
from prober.brokers.library_pull import LibraryPull
from prober.errors import BrokerUnavailable

OPEN_TIMEOUT_S: Final = 10.0
"""How long `start` waits for a connection."""

OPEN_GRACE_S: Final = 0.5
"""How long `start` waits for an error of a stream that has not answered."""

REFUSAL_GRACE_S: Final = 0.05
"""How long a refusal may be behind the first sign of life."""

CLOSE_TIMEOUT_S: Final = 3.0
"""How long closing waits for the client's threads; one that sleeps ends later, by itself."""

_BACKOFF_MIN_S: Final = 0.1
_BACKOFF_MAX_S: Final = 5.0
_HEALTHY_S: Final = 10.0


class LibrarySubscriber:
    """Consumes one subscription with a client of its own.

    `client_id` is our name for it. Each subscription that the client is asked for is a subscriber of its own, because the client then
    takes a new id: the first is called by the name, later ones get a number.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: grpc.ChannelCredentials | None,
        subscription: str,
        client_id: str,
        flow: Flow,
        ack_deadline_s: int,
    ) -> None:
        self._endpoint, self._credentials = endpoint, credentials
        self._subscription = subscription
        self._client_id = client_id
        self._flow = flow
        self._ack_deadline_s = ack_deadline_s
        self._dice = Random(client_id)
        self._pull: LibraryPull | None = None
        self._task: asyncio.Task[None] | None = None
        self._generation = 0
        self.overflows = 0
        """How often a subscription was given up because its messages were not taken fast enough."""

    async def start(self, tap: Tap) -> None:
        """Subscribes; see the port. Raises BrokerUnavailable, NotThere or PermissionRefused."""
        if self._task is not None:
            raise RuntimeError("a subscriber is started once")
        pull = self._new_pull(tap)
        try:
            await self._open(pull)
        except BaseException:
            await pull.close(CLOSE_TIMEOUT_S)
            raise
        self._task = asyncio.create_task(self._keep_open(tap, pull), name=f"{self._client_id} subscriber")

    async def break_stream(self) -> None:
        """Cuts the stream under the client, which opens another one; does nothing while none is open."""
        if self._pull is not None:
            self._pull.cut()

    async def close(self) -> None:
        """Ends consumption. The client refuses what it holds and has not given out yet. Calling it again does nothing."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(result, Exception):
                raise result  # a bug of ours, and not to be lost

    def _new_pull(self, tap: Tap) -> LibraryPull:
        self._generation += 1
        label = self._client_id if self._generation == 1 else f"{self._client_id}/{self._generation}"
        self._pull = LibraryPull(
            self._endpoint, self._credentials, self._subscription, label, self._flow, self._ack_deadline_s, tap
        )
        return self._pull

    async def _open(self, pull: LibraryPull) -> None:
        doing = f"subscribing to {self._subscription}"
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await pull.connect()
        except TimeoutError:
            raise BrokerUnavailable(
                f"{doing}: no connection within {OPEN_TIMEOUT_S:g} s; is the target running, and is the endpoint right?"
            ) from None
        await pull.subscribe()
        if await _first_of(pull.answered, pull.over, timeout_s=OPEN_GRACE_S):
            await _first_of(pull.over, timeout_s=REFUSAL_GRACE_S)
        if pull.over.is_set():
            raise pull.failure(doing)

    async def _keep_open(self, tap: Tap, pull: LibraryPull) -> None:
        """Waits for the end of a subscription, cancels it, which its end alone does not, and begins another one."""
        loop = asyncio.get_running_loop()
        pause_s, opened_t = _BACKOFF_MIN_S, loop.time()
        try:
            while True:
                await pull.over.wait()
                self.overflows += pull.overflowed
                await pull.close(CLOSE_TIMEOUT_S)
                pause_s = _BACKOFF_MIN_S if loop.time() - opened_t > _HEALTHY_S else min(2 * pause_s, _BACKOFF_MAX_S)
                await asyncio.sleep(pause_s * self._dice.uniform(0.5, 1.0))
                pull = self._new_pull(tap)
                opened_t = loop.time()
                await pull.connect()
                await pull.subscribe()
        finally:
            await pull.close(CLOSE_TIMEOUT_S)


async def _first_of(*events: asyncio.Event, timeout_s: float) -> bool:
    """Waits until one of the events is set; False if none is in time."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for one in waiting:
            one.cancel()
