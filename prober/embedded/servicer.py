"""google.pubsub.v1, google.iam.v1.IAMPolicy and grpc.health.v1 over gRPC: the unary methods of `calls`, and streaming pull.

Handlers only translate: a request becomes a call on the state, its result a response, a `ServiceError` a status. They are registered by
name, without generated service classes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio

from prober.embedded import errors, iam, protobuf, schema_calls
from prober.embedded.calls import METHODS, PUBLISHER_METHODS, SUBSCRIBER_METHODS, Calls
from prober.embedded.pump import Outlet, Pump
from prober.embedded.state import PULL_WAIT_S, StreamAnswers, StreamRequest

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_KEEPALIVE_S: Final = 30.0
_STREAM_MESSAGES_MAX: Final = 100_000  # for clients that set no limit of their own
_STREAM_BYTES_MAX: Final = 1_000_000_000
_PULL_MARGIN_S: Final = 0.5
_SERVING: Final = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse
_SERVICE_UNKNOWN: Final = b"\x08\x03"
_PUBLISHER: Final = "google.pubsub.v1.Publisher"
_SUBSCRIBER: Final = "google.pubsub.v1.Subscriber"
_SCHEMAS: Final = "google.pubsub.v1.SchemaService"
_POLICIES: Final = "google.iam.v1.IAMPolicy"
_HEALTH: Final = "grpc.health.v1.Health"
_SERVICES: Final = frozenset({"", _PUBLISHER, _SUBSCRIBER, _SCHEMAS, _POLICIES, _HEALTH})
"""Services that a health check may name; the empty name stands for the server."""
_DETAILS: Final = "grpc-status-details-bin"


class Servicer:
    """The methods of all services."""

    def __init__(self, pump: Pump, calls: Calls) -> None:
        """Create the handlers. `calls` answers the unary methods, and must belong to the same pump."""
        self._calls = calls
        self._pump = pump
        self._state = pump.state
        self._registry = pump.state.registry
        self._numbers = count(1)

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        """Return the handlers to register with a server."""
        publisher = self._unary(PUBLISHER_METHODS)
        subscriber = self._unary(SUBSCRIBER_METHODS)
        subscriber["StreamingPull"] = grpc.stream_stream_rpc_method_handler(
            self._streaming_pull,
            response_serializer=protobuf.StreamingPullResponse.SerializeToString,
        )
        health: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Check": grpc.unary_unary_rpc_method_handler(_check_health),
            "Watch": grpc.unary_stream_rpc_method_handler(_watch_health),
        }
        return (
            grpc.method_handlers_generic_handler(_PUBLISHER, publisher),
            grpc.method_handlers_generic_handler(_SUBSCRIBER, subscriber),
            grpc.method_handlers_generic_handler(_SCHEMAS, self._unary(schema_calls.METHODS)),
            grpc.method_handlers_generic_handler(_POLICIES, self._unary(iam.METHODS)),
            grpc.method_handlers_generic_handler(_HEALTH, health),
            UnimplementedMethods(),
        )

    def _unary(self, names: Iterable[str]) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {name: _handler(self._answering(name)) for name in names}

    def _answering(self, name: str) -> Callable[[Any, Context], Awaitable[Any]]:
        async def handle(request: bytes, context: Context) -> Any:
            try:
                return await self._calls.call(name, protobuf.decoded(METHODS[name], request), _patience_s(context))
            except errors.ServiceError as error:
                await _abort(context, error)

        return handle

    async def _streaming_pull(self, encoded: AsyncIterator[bytes], context: Context) -> None:
        requests = (protobuf.decoded(protobuf.StreamingPullRequest, request) async for request in encoded)
        stream = f"stream {next(self._numbers)}"
        reader: asyncio.Task[None] | None = None
        outlet = self._pump.open_outlet(stream)
        try:
            first = await anext(requests)
            self._open(stream, first)
            await context.send_initial_metadata(())
            reader = asyncio.create_task(self._read(stream, requests, outlet))
            await self._write(context, first, outlet)
            if outlet.error is not None:
                await _abort(context, outlet.error)
        except StopAsyncIteration:
            return
        except errors.ServiceError as error:
            await _abort(context, error)
        finally:
            if reader is not None:
                reader.cancel()
            self._pump.close_outlet(stream)
            self._state.close_stream(stream, self._pump.now())
            self._pump.ask()

    def _open(self, stream: str, first: Any) -> None:
        opening = StreamRequest(
            first.subscription,
            first.stream_ack_deadline_seconds,
            first.client_id,
            first.max_outstanding_messages if first.max_outstanding_messages > 0 else _STREAM_MESSAGES_MAX,
            first.max_outstanding_bytes if first.max_outstanding_bytes > 0 else _STREAM_BYTES_MAX,
        )
        self._state.open_stream(stream, opening, self._pump.now())
        self._said(stream, first)
        self._pump.ask()

    async def _read(self, stream: str, requests: AsyncIterator[Any], outlet: Outlet) -> None:
        try:
            async for request in requests:
                if request.subscription or request.client_id or request.max_outstanding_messages or request.max_outstanding_bytes:
                    raise errors.invalid("StreamingPullRequest: set on a subsequent request")
                self._said(stream, request)
                self._pump.ask()
            outlet.end()
        except errors.ServiceError as error:
            outlet.end(error)

    def _said(self, stream: str, request: Any) -> None:
        if (
            request.ack_ids
            or request.modify_deadline_ack_ids
            or request.modify_deadline_seconds
            or request.stream_ack_deadline_seconds
        ):
            said = StreamAnswers(
                request.ack_ids,
                request.modify_deadline_ack_ids,
                request.modify_deadline_seconds,
                request.stream_ack_deadline_seconds,
            )
            self._state.answer_stream(stream, said, self._pump.now())

    async def _write(self, context: Context, first: Any, outlet: Outlet) -> None:
        """Write responses until the stream ends, and keep-alives in between if the client supports them."""
        queue = self._registry.subscription(first.subscription)
        idle_s = _KEEPALIVE_S if first.protocol_version > 0 else None
        async for effect in outlet.take(idle_s):
            await context.write(protobuf.stream_response(effect, queue.settings))


class UnimplementedMethods(grpc.GenericRpcHandler):
    """Handler of all other methods, such as reflection: UNIMPLEMENTED with a message."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """Return a handler that fails with UNIMPLEMENTED."""
        method = handler_call_details.method

        async def refuse(request: bytes, context: Context) -> bytes:
            await _abort(context, errors.unimplemented(method))

        return grpc.unary_unary_rpc_method_handler(refuse)


def _handler(method: Callable[[bytes, Context], Awaitable[Any]]) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(method, response_serializer=lambda response: response.SerializeToString())


async def _check_health(request: bytes, context: Context) -> bytes:
    try:
        service = _service_of(request)
        if service not in _SERVICES:
            raise errors.ServiceError(errors.Code.NOT_FOUND, f"The embedded server has no service {service}.")
    except errors.ServiceError as error:
        await _abort(context, error)
    return _SERVING


async def _watch_health(request: bytes, context: Context) -> AsyncIterator[bytes]:
    """Yield SERVING once; the client or the end of the server ends the stream."""
    try:
        yield _SERVING if _service_of(request) in _SERVICES else _SERVICE_UNKNOWN
    except errors.ServiceError as error:
        await _abort(context, error)
    await asyncio.Event().wait()


def _service_of(request: bytes) -> str:
    """Return the service that a HealthCheckRequest names; its only field has the form of a StringValue."""
    service: str = protobuf.decoded(protobuf.StringValue, request).value
    return service


def _patience_s(context: Context) -> float:
    """Return the maximum wait of a pull, in seconds: it answers empty before the client's deadline."""
    remaining: float | None = context.time_remaining()  # None without a deadline, contrary to the stubs
    return PULL_WAIT_S if remaining is None else min(PULL_WAIT_S, max(remaining - _PULL_MARGIN_S, remaining / 2))


async def _abort(context: Context, error: errors.ServiceError) -> NoReturn:
    """End a call with a status and, for acknowledgement ids, the reasons (google.rpc.ErrorInfo)."""
    code: grpc.StatusCode = grpc.StatusCode[error.code]
    if not error.reasons:
        await context.abort(code, error.message)
    await context.abort(code, error.message, ((_DETAILS, protobuf.status(error).SerializeToString()),))
