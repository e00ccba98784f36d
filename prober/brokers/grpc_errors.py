"""Translation of gRPC errors into the prober's, and whether a publish that ends with an error may have stored its messages.

No other module of the wire adapter reads a gRPC status.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final
from urllib.parse import unquote

import grpc.aio
from grpc import StatusCode

from prober.brokers.base import Rejected, Unknown
from prober.errors import (
    BrokerError,
    BrokerUnavailable,
    ConnectionGivenUp,
    NotOurs,
    NotSupported,
    NotThere,
    PermissionRefused,
    RequestRefused,
    TargetFailed,
)

_ERRORS: Final = {
    StatusCode.UNAVAILABLE: BrokerUnavailable,
    StatusCode.DEADLINE_EXCEEDED: BrokerUnavailable,
    StatusCode.CANCELLED: BrokerUnavailable,
    StatusCode.INTERNAL: TargetFailed,
    StatusCode.UNKNOWN: TargetFailed,
    StatusCode.PERMISSION_DENIED: PermissionRefused,
    StatusCode.UNAUTHENTICATED: PermissionRefused,
    StatusCode.NOT_FOUND: NotThere,
    StatusCode.ALREADY_EXISTS: NotOurs,
    StatusCode.INVALID_ARGUMENT: RequestRefused,
    StatusCode.FAILED_PRECONDITION: RequestRefused,
    StatusCode.UNIMPLEMENTED: NotSupported,
}

_ADVICE: Final = {
    BrokerUnavailable: "is the target running, and is the endpoint right?",
    TargetFailed: "that is an error of its own; look at its log or its status page",
    PermissionRefused: "check the credentials and the roles of the account",
    NotThere: "create it, or correct the name",
    NotOurs: "choose another name",
    NotSupported: "the target cannot do that",
}

DEFINITELY_NOT_STORED: Final = frozenset(
    {
        StatusCode.INVALID_ARGUMENT,
        StatusCode.NOT_FOUND,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNAUTHENTICATED,
        StatusCode.FAILED_PRECONDITION,
    }
)
"""Codes with which a single attempt stored nothing: the request was refused for its content, before it was processed.

All others are possible after the message was stored. The documentation states that for DEADLINE_EXCEEDED and CANCELLED ("may have been
executed"); UNAVAILABLE, INTERNAL, UNKNOWN and ABORTED can be a lost reply. The service reports RESOURCE_EXHAUSTED for a quota, but gRPC
also reports it for a reply that is too large, and for a stream that the other side reset because of too many requests; both are possible
after the service has stored the message.
"""

_NO_CREDENTIALS: Final = "Getting metadata from plugin failed"
"""Start of gRPC's message if the credentials of a call cannot be created. The code is UNAVAILABLE, but no request was sent."""

_CONNECTING: Final = re.compile(
    r"^failed to connect to all addresses; last error: \w+: (?:ipv[46]:)?(\S+): (?:Failed to connect to remote host: )?"
)
"""Start of gRPC's message for a refused connection, with the address."""
_DETAILS_MAX: Final = 200

LET_GO: Final = "the prober closed the connection"


def error_of(code: StatusCode, details: str | None, doing: str) -> BrokerError:
    """Return the error for a call that ended with a status; `doing` names the request, as in "creating topic t"."""
    kind = _ERRORS.get(code, BrokerError)
    if code is StatusCode.UNAVAILABLE and (details or "").startswith(_NO_CREDENTIALS):
        kind = PermissionRefused
    advice = _ADVICE.get(kind, "")
    return kind(f"{doing}: {_line(code, details)}" + (f"; {advice}" if advice else ""))


def outcome_of(code: StatusCode, details: str | None) -> Rejected | Unknown:
    """Return the outcome of a publish whose only attempt ended with a status."""
    kind = Rejected if code in DEFINITELY_NOT_STORED else Unknown
    return kind(_line(code, details))


def translated(error: grpc.aio.AioRpcError, doing: str) -> BrokerError:
    """Return the error that a caller can handle; `doing` names the request."""
    return error_of(error.code(), error.details(), doing)


def was_cancelled_by_caller() -> bool:
    """Return whether the running task was cancelled.

    grpc.aio raises CancelledError in two cases. If the waiting task was cancelled, the cancellation must continue. If only the call was
    cancelled (by the prober, by closing its channel), it is just the end of the call.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def let_go(doing: str) -> BrokerError:
    """Return the error for a call that the prober ended itself."""
    return ConnectionGivenUp(f"{doing}: {LET_GO}")


def _line(code: StatusCode, details: str | None) -> str:
    text = _CONNECTING.sub(lambda found: f"no connection to {unquote(found[1])}: ", " ".join((details or "").split()))
    if len(text) > _DETAILS_MAX:
        text = text[:_DETAILS_MAX] + "..."
    return f"{text} ({code.name})" if text else code.name
