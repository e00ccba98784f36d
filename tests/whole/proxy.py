"""A gRPC proxy between a prober and its target that refuses chosen calls, as a network, a firewall or a permission would.

It forwards every method as a stream of bytes in both directions, which is also how gRPC transports unary calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

CHANNEL_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

Refusal = Callable[[str, Mapping[str, Any]], grpc.StatusCode | None]
"""From the name of a method and the metadata of a call to the status that refuses it; None lets the call pass."""


@dataclass
class Proxy(grpc.GenericRpcHandler):
    """The proxy to one target. `refuses` may be replaced at any time and applies to calls that begin from then on."""

    target: grpc.aio.Channel
    address: str = ""
    refuses: Refusal = lambda _method, _metadata: None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """Handle every method of every service alike."""
        return grpc.stream_stream_rpc_method_handler(partial(self._relay, handler_call_details.method))

    async def _relay(
        self, method: str, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        metadata = tuple(context.invocation_metadata() or ())
        status = self.refuses(method.rpartition("/")[2], dict(metadata))
        if status is not None:
            await context.abort(status, "refused by the proxy")
        relayed: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self.target.stream_stream(method)
        call = relayed(requests, metadata=metadata, timeout=context.time_remaining())
        try:
            async for response in call:
                yield response
            context.set_trailing_metadata(tuple(await call.trailing_metadata()))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata() or ()))
        finally:
            call.cancel()


async def _serve(target: str, started: Callable[[Proxy], None], stop: asyncio.Event) -> None:
    async with grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel:
        proxy = Proxy(channel)
        server = grpc.aio.server(options=CHANNEL_OPTIONS)
        server.add_generic_rpc_handlers((proxy,))
        proxy.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        started(proxy)
        await stop.wait()
        await server.stop(None)


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    """Serve a proxy to an address in a thread of its own until the end of the `with` statement."""
    ready = threading.Event()
    proxies: list[Proxy] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def started(proxy: Proxy) -> None:
        proxies.append(proxy)
        ready.set()

    thread = threading.Thread(target=lambda: loop.run_until_complete(_serve(target, started, stop)))
    thread.start()
    try:
        assert ready.wait(30.0), "the proxy did not start"
        yield proxies[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
