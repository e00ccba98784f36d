"""Calls that a target, or the network to it, ended with an error.

They are counted by the first code that sees the status, whatever its later handling.

Both adapters count every attempt, including the library's retries, which a customer never sees. Calls ended by the prober (CANCELLED), and
a unary pull that times out because there was no message, are no errors.
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
    """Ignore the error, for brokers whose errors are not counted."""


def operation_of(method: str) -> Operation:
    """Return the operation of a remote procedure, by its path."""
    return _OPERATIONS.get(method.rpartition("/")[2], Operation.ADMINISTER)


class CallWatch:
    """Reports the error codes of ended calls. May be called in any thread."""

    def __init__(self, failed: CallFailed) -> None:
        self._failed = failed

    def ended(self, method: str, code: grpc.StatusCode) -> None:
        """Report the end of a call of a method, if it is an error."""
        if code.name in ErrorCode.__members__:
            self._failed(operation_of(method), ErrorCode[code.name])


class ThreadedCallWatch(grpc.UnaryUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Call watch for a channel of Google's client library, between library and connection."""

    def __init__(self, watch: CallWatch) -> None:
        self._watch = watch

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        """Watch a request; called by gRPC. The outcome is complete when `continuation` returns."""
        outcome = continuation(client_call_details, request)
        error = outcome.exception()
        if isinstance(error, grpc.RpcError):  # any other error comes from a channel that the prober has closed
            self._watch.ended(_path(client_call_details), error.code())
        return outcome

    def intercept_stream_stream(self, continuation: Callable[..., Any], client_call_details: Any, request_iterator: Any) -> Any:
        """Watch a stream; called by gRPC."""
        call = continuation(client_call_details, request_iterator)
        call.add_done_callback(lambda ended: self._watch.ended(_path(client_call_details), ended.code()))
        return call


def _path(client_call_details: Any) -> str:
    method = client_call_details.method
    return method.decode() if isinstance(method, bytes) else str(method)
