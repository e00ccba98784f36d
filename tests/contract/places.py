"""Addresses at which no service is, or one that refuses everything."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio


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


class _Refusing(grpc.GenericRpcHandler):
    """Ends every call with one code."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def refuse(_: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            await context.abort(self._code, "refused")
            raise AssertionError("abort raises")

        if handler_call_details.method.endswith("/StreamingPull"):
            return grpc.stream_stream_rpc_method_handler(refuse)
        return grpc.unary_unary_rpc_method_handler(refuse)


@asynccontextmanager
async def refusing_server(code: grpc.StatusCode) -> AsyncIterator[str]:
    """An address at which every call ends with a code."""
    server = grpc.aio.server(handlers=(_Refusing(code),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
