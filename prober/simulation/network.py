"""The network between a prober and a service: gRPC in one event loop, without sockets.

Both sides run unchanged: the client sees the interface of `grpc.aio`, and the service is given as the handlers that it would register with
a server. A connection consists of one pipe in each direction. A pipe keeps the order of its data, as HTTP/2 over TCP does; the delay
depends on the network conditions and the seed. A cut loses the data in transit, ends every call with UNAVAILABLE, and blocks new
connections for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NoReturn, TypeAlias, cast

import grpc
import grpc.aio

from prober.brokers.endpoint import Endpoint
from prober.simulation.network_conditions import NetworkConditions, Pipe

Metadata: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Details(grpc.HandlerCallDetails):
    """Details of a call that a server gets before its request."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


class Network:
    """All connections to one service."""

    def __init__(self, conditions: NetworkConditions, rng: Random) -> None:
        self._handlers: tuple[grpc.GenericRpcHandler, ...] = ()
        self._handler_of: dict[str, Any] = {}
        self.conditions, self._rng = conditions, rng
        self._channels: list[SimulatedChannel] = []
        self.faults: list[Exception] = []
        """Exceptions in handlers of the service."""
        self.down_until_t = 0.0

    @property
    def is_down(self) -> bool:
        """Whether new connections fail."""
        return asyncio.get_running_loop().time() < self.down_until_t

    def serve(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Set the handlers of calls, as registered with a server."""
        self._handlers = tuple(handlers)
        self._handler_of.clear()

    def open_channel(self, _endpoint: Endpoint, _credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
        """Open a new connection, for any endpoint."""
        channel = SimulatedChannel(self)
        self._channels.append(channel)
        return cast(grpc.aio.Channel, channel)

    def cut(self, down_s: float) -> None:
        """Break every connection; new ones fail for `down_s` seconds."""
        self.down_until_t = asyncio.get_running_loop().time() + down_s
        for channel in self._channels:
            channel.broken()

    def delay_s(self) -> float:
        """Return the delay of the next transfer, in seconds."""
        return self.conditions.delay_s(self._rng)

    def handled_after_s(self) -> float:
        """Return the time that a request waits at the service for its handler, in seconds."""
        return self._rng.uniform(0.0, self.conditions.disorder_s) if self.conditions.disorder_s else 0.0

    def handler(self, method: str) -> Any:
        """Return the handler of a method; its types are private to gRPC."""
        if method not in self._handler_of:
            details = _Details(method)
            self._handler_of[method] = next(found for one in self._handlers if (found := one.service(details)) is not None)
        return self._handler_of[method]


class SimulatedChannel:
    """The client side of a connection: the part of `grpc.aio.Channel` that our adapter uses."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.there, self.back = Pipe(network.delay_s), Pipe(network.delay_s)
        self.calls: dict[_Call, None] = {}
        self._closed = False

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return the state of the connection; it connects by itself."""
        del try_to_connect
        if self._closed:
            return grpc.ChannelConnectivity.SHUTDOWN
        return grpc.ChannelConnectivity.TRANSIENT_FAILURE if self._network.is_down else grpc.ChannelConnectivity.READY

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
    ) -> Callable[..., UnaryCall]:
        """Return a function that calls a unary method."""

        def call(request: Any, *, timeout: float, metadata: Metadata) -> UnaryCall:
            content = request if request_serializer is None else request_serializer(request)
            return UnaryCall(self._opened(method, timeout, metadata), content, response_deserializer)

        return call

    def stream_stream(self, method: str) -> Callable[..., StreamCall]:
        """Return a function that opens a stream."""

        def call(*, metadata: Metadata) -> StreamCall:
            return StreamCall(self._opened(method, None, metadata))

        return call

    async def close(self) -> None:
        """End all calls."""
        self._closed = True
        for call in list(self.calls):
            call.cancel()

    def broken(self) -> None:
        """Break the connection on both sides."""
        self.there.lose()
        self.back.lose()
        for call in list(self.calls):
            call.broken()

    def _opened(self, method: str, timeout_s: float | None, metadata: Metadata) -> _Call:
        if self._closed:
            raise grpc.aio.UsageError("Channel is closed.")
        call = _Call(self, self._network, method, timeout_s, metadata)
        if self._network.is_down:
            call.end(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses")
        return call


class _Call:
    """Shared state of both sides of a call: its end for the client, and the task that handles it at the service."""

    def __init__(
        self, channel: SimulatedChannel, network: Network, method: str, timeout_s: float | None, metadata: Metadata
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.channel, self.network, self.metadata = channel, network, metadata
        self.handler = network.handler(method)
        self.deadline_t = None if timeout_s is None else self.loop.time() + timeout_s
        self.status: grpc.aio.AioRpcError | None = None
        self.is_cancelled = False
        self.is_over = False
        """Whether the client has received the end."""
        self.ended: asyncio.Future[None] = self.loop.create_future()
        """Future that is done when the call is over, or when its client no longer waits for it."""
        self.woken: tuple[asyncio.Event, ...] = ()
        """Events that are set at its end."""
        self._task: asyncio.Task[None] | None = None
        self._timer = None if timeout_s is None else self.loop.call_later(timeout_s, self._late)
        channel.calls[self] = None

    def end(self, code: grpc.StatusCode = grpc.StatusCode.OK, details: str = "", trailing: Metadata = ()) -> None:
        """End the call for the client; only the first end counts."""
        if self.is_over:
            return
        self.is_over = True
        if code is not grpc.StatusCode.OK:
            self.status = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)
        for event in self.woken:
            event.set()
        self.channel.calls.pop(self, None)

    def cancel(self) -> None:
        """Cancel the call on the client's side, and its handler at the service if it still runs."""
        if not self.is_over:
            self.is_cancelled = True
            self.end(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
            self.channel.there.put(self._stop)

    def broken(self) -> None:
        """End both sides of the call: the connection is broken."""
        self.end(grpc.StatusCode.UNAVAILABLE, "Connection reset by peer")
        self._stop()

    def begin(self, handling: Callable[[], Any]) -> None:
        """Start the handler: the request has arrived at the service."""
        self._task = self.loop.create_task(self._handle(handling))

    def received(self, content: bytes) -> Any:
        """Return a request as the handler takes it: as bytes if it has no deserializer."""
        read = self.handler.request_deserializer
        return content if read is None else read(content)

    def sent(self, response: Any) -> bytes:
        """Return a response of the handler as it goes over the network."""
        serialize = self.handler.response_serializer
        return bytes(response if serialize is None else serialize(response))

    def raise_end(self) -> NoReturn:
        """Raise the error or cancellation that ended the call, as `grpc.aio` does."""
        if self.is_cancelled:
            raise asyncio.CancelledError
        assert self.status is not None
        raise self.status

    async def _handle(self, handling: Callable[[], Any]) -> None:
        try:
            await handling()
        except _Aborted as refusal:
            code, details, trailing = refusal.args
            self.channel.back.put(lambda: self.end(code, details, trailing))
        except Exception as fault:
            self.network.faults.append(fault)
            words = f"Unexpected {type(fault).__name__}: {fault}"
            self.channel.back.put(lambda: self.end(grpc.StatusCode.UNKNOWN, words))

    def _late(self) -> None:
        self.end(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


class UnaryCall:
    """One request and its response, to be awaited once."""

    def __init__(self, call: _Call, content: bytes, read: Callable[[bytes], Any] | None) -> None:
        self._call, self._content, self._read = call, content, read
        self._response = b""
        if not call.is_over:
            call.channel.there.put(self._arrived)

    def cancel(self) -> None:
        """Cancel the call."""
        self._call.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        call = self._call
        try:
            await call.ended
        except asyncio.CancelledError:
            call.cancel()
            raise
        if call.status is not None:
            call.raise_end()
        return self._response if self._read is None else self._read(self._response)

    def _arrived(self) -> None:
        self._call.begin(self._handle)

    async def _handle(self) -> None:
        call = self._call
        if after_s := call.network.handled_after_s():
            await asyncio.sleep(after_s)
        response = await call.handler.unary_unary(call.received(self._content), _Context(call))
        content = call.sent(response)
        call.channel.back.put(lambda: self._answered(content))

    def _answered(self, response: bytes) -> None:
        self._response = response
        self._call.end()


class StreamCall:
    """A stream of requests and one of responses."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._is_greeted, self._greeted = False, asyncio.Event()
        self._requests: deque[bytes | None] = deque()
        self._requested = asyncio.Event()
        self._responses: deque[bytes] = deque()
        self._responded = asyncio.Event()
        call.woken = (self._greeted, self._responded)
        if not call.is_over:
            call.channel.there.put(lambda: call.begin(self._handle))

    def cancel(self) -> None:
        """Cancel the call."""
        self._call.cancel()

    async def initial_metadata(self) -> None:
        """Wait until the service has sent metadata or a response."""
        await self._greeted.wait()
        if not self._is_greeted and self._call.status is not None:
            self._call.raise_end()

    async def write(self, request: bytes) -> None:
        """Send a request."""
        if self._call.status is not None:
            self._call.raise_end()
        if self._call.is_over:
            raise asyncio.InvalidStateError("RPC already finished.")
        self._call.channel.there.put(lambda: self._take(request))

    async def done_writing(self) -> None:
        """Close the stream of requests."""
        if not self._call.is_over:
            self._call.channel.there.put(lambda: self._take(None))

    async def read(self) -> Any:
        """Return the next response; EOF at the end."""
        while not self._responses:
            if self._call.is_over:
                if self._call.status is not None:
                    self._call.raise_end()
                return grpc.aio.EOF
            self._responded.clear()
            try:
                await self._responded.wait()
            except asyncio.CancelledError:
                self._call.cancel()
                raise
        return self._responses.popleft()

    def greeted(self) -> None:
        """Record that the service has sent metadata or a response."""
        self._is_greeted = True
        self._greeted.set()

    def respond(self, response: bytes) -> None:
        """Receive a response."""
        if not self._call.is_over:
            self._responses.append(response)
            self._responded.set()

    def _take(self, request: bytes | None) -> None:
        self._requests.append(request)
        self._requested.set()

    async def _handle(self) -> None:
        call = self._call
        await call.handler.stream_stream(self, _Context(call, self))
        call.channel.back.put(call.end)

    def __aiter__(self) -> StreamCall:
        """Return the stream as the iterator of requests for the service."""
        return self

    async def __anext__(self) -> Any:
        while not self._requests:
            self._requested.clear()
            await self._requested.wait()
        request = self._requests.popleft()
        if request is None:
            raise StopAsyncIteration
        return self._call.received(request)


class _Aborted(Exception):
    """Error of a call that the service aborted."""


class _Context:
    """The service side of a call: the part of `grpc.aio.ServicerContext` that our servicer uses."""

    def __init__(self, call: _Call, stream: StreamCall | None = None) -> None:
        self._call, self._stream = call, stream

    def time_remaining(self) -> float | None:
        """Return the seconds until the client's deadline; None without a deadline."""
        deadline_t = self._call.deadline_t
        return None if deadline_t is None else max(0.0, deadline_t - self._call.loop.time())

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Metadata = ()) -> NoReturn:
        """End the call with an error."""
        raise _Aborted(code, details, trailing)

    async def send_initial_metadata(self, _metadata: Metadata) -> None:
        """Report to the client that the call was accepted."""
        if self._stream is not None:
            self._call.channel.back.put(self._stream.greeted)

    async def write(self, response: Any) -> None:
        """Send a response on a stream."""
        stream = self._stream
        assert stream is not None
        content = self._call.sent(response)
        self._call.channel.back.put(lambda: stream.respond(content))
