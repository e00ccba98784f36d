"""One connection to a target, and what is open through it, which is closed with it.

A broker lives for months, what it makes for minutes. So publishers, subscribers and pullers are noted here from when they have
something to close until they are closed, and then forgotten.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import grpc

from prober.brokers.channels import open_async_channel, open_threaded_channel
from prober.brokers.endpoint import Endpoint


class Closable(Protocol):
    """A publisher, subscriber or puller."""

    async def close(self) -> None:
        """Lets go of everything; calling it again does nothing."""


class Connection:
    """One connection to a target for the event loop that runs. `channel` connects when it is first used."""

    def __init__(self, endpoint: Endpoint, credentials: grpc.ChannelCredentials | None) -> None:
        self._endpoint, self._credentials = endpoint, credentials
        self.channel = open_async_channel(endpoint, credentials)
        self._open: set[Closable] = set()

    def open_threaded_channel(self) -> grpc.Channel:
        """A connection to the same target for Google's client library; the caller closes it."""
        return open_threaded_channel(self._endpoint, self._credentials)

    def opened(self, one: Closable) -> None:
        """Notes what has to be closed with the connection."""
        self._open.add(one)

    def closed(self, one: Closable) -> None:
        """Forgets what has nothing left to close."""
        self._open.discard(one)

    async def close(self) -> None:
        """Closes everything that is open, then the connection. Calling it again does nothing."""
        closings = await asyncio.gather(*(one.close() for one in self._open), return_exceptions=True)
        await self.channel.close()
        for result in closings:
            if isinstance(result, BaseException):
                raise result
