"""Addresses at which no service is."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def dead_server() -> AsyncIterator[str]:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"127.0.0.1:{port}"


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """An address at which connections are taken and nothing is ever said."""
    taken: list[asyncio.Transport] = []

    class Silent(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            taken.append(transport)

    server = await asyncio.get_running_loop().create_server(Silent, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for transport in taken:
            transport.abort()
        await asyncio.sleep(0)  # the loop closes the sockets in its next round
