"""Calls that a target, or the network to it, ended with an error.

They are counted where the status is seen first, whatever its later handling.

Both adapters count every attempt, including the library's retries, which a customer never sees. Calls that we end ourselves (CANCELLED),
and a unary pull that comes back without an answer in time because there was nothing, are no errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import grpc

from prober.brokers.calls import ErrorCode, Operation

CallFailed: TypeAlias = Callable[[Operation, ErrorCode], None]
"""Callback for a call that ended with an error.

Called in any thread; must not block or raise.
"""

_OPERATIONS: Final = {
    "Publish": Operation.PUBLISH,
    "Pull": Operation.PULL,
    "StreamingPull": Operation.PULL,
    "Acknowledge": Operation.ACKNOWLEDGE,
    "ModifyAckDeadline": Operation.ACKNOWLEDGE,
}


def nobody_asks(_operation: Operation, _code: ErrorCode) -> None:
    """For brokers whose errors are not counted."""


def operation_of(method: str) -> Operation:
    """What a remote procedure is for, by its path."""
    return _OPERATIONS.get(method.rpartition("/")[2], Operation.ADMINISTER)


class CallWatch:
    """Tells what calls ended with, as far as it is an error. May be called in any thread."""

    def __init__(self, failed: CallFailed) -> None:
        self._failed = failed

    def ended(self, method: str, code: grpc.StatusCode) -> None:
        """A call of a method ended."""
        if code.name in ErrorCode.__members__:
            self._failed(operation_of(method), ErrorCode[code.name])


class ThreadedCallWatch(grpc.UnaryUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """The same for a channel of Google's client library, between the library and the connection."""

    def __init__(self, watch: CallWatch) -> None:
        self._watch = watch

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        """Called by gRPC for each request; the outcome is there when `continuation` returns."""
        outcome = continuation(client_call_details, request)
        error = outcome.exception()
        if isinstance(error, grpc.RpcError):  # anything else comes from a channel that we have closed
            self._watch.ended(_path(client_call_details), error.code())
        return outcome

    def intercept_stream_stream(self, continuation: Callable[..., Any], client_call_details: Any, request_iterator: Any) -> Any:
        """Called by gRPC for each stream."""
        call = continuation(client_call_details, request_iterator)
        call.add_done_callback(lambda ended: self._watch.ended(_path(client_call_details), ended.code()))
        return call


def _path(client_call_details: Any) -> str:
    method = client_call_details.method
    return method.decode() if isinstance(method, bytes) else str(method)
