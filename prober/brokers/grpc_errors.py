"""What a gRPC error means for us: which error of ours it is, and whether a publish that ends with it can have stored anything.

Nothing else of the wire adapter reads a gRPC status.
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
"""A single attempt that ends so stored nothing: the request was refused for what it is, before anything was done with it.

All others may come after the message was stored. DEADLINE_EXCEEDED and CANCELLED say so in the documentation ("may have been
executed"); UNAVAILABLE, INTERNAL, UNKNOWN and ABORTED can be a lost reply. RESOURCE_EXHAUSTED is a quota when the service says it,
but gRPC says it too, for a reply that is too large and for a stream that the other side reset to calm us down, and those can come
after the service has done its work.
"""

_NO_CREDENTIALS: Final = "Getting metadata from plugin failed"
"""How gRPC's text begins when the credentials of a call cannot be made. It says UNAVAILABLE then, but has asked the target nothing."""

_CONNECTING: Final = re.compile(
    r"^failed to connect to all addresses; last error: \w+: (?:ipv[46]:)?(\S+): (?:Failed to connect to remote host: )?"
)
"""The beginning of gRPC's text when a connection is refused, with the address."""
_DETAILS_MAX: Final = 200

LET_GO: Final = "the prober closed the connection"


def error_of(code: StatusCode, details: str | None, doing: str) -> BrokerError:
    """The error for a call that ended with a status; `doing` says what was asked, as in "creating topic t"."""
    kind = _ERRORS.get(code, BrokerError)
    if code is StatusCode.UNAVAILABLE and (details or "").startswith(_NO_CREDENTIALS):
        kind = PermissionRefused
    advice = _ADVICE.get(kind, "")
    return kind(f"{doing}: {_line(code, details)}" + (f"; {advice}" if advice else ""))


def outcome_of(code: StatusCode, details: str | None) -> Rejected | Unknown:
    """The outcome of a publish whose only attempt ended with a status."""
    kind = Rejected if code in DEFINITELY_NOT_STORED else Unknown
    return kind(_line(code, details))


def translated(error: grpc.aio.AioRpcError, doing: str) -> BrokerError:
    """The error that a caller can do something about; `doing` says what was asked."""
    return error_of(error.code(), error.details(), doing)


def publish_outcome(error: grpc.aio.AioRpcError) -> Rejected | Unknown:
    """What became of a publish whose only attempt failed."""
    return outcome_of(error.code(), error.details())


def was_cancelled_by_caller() -> bool:
    """Whether the running task was asked to end.

    grpc.aio raises CancelledError in two cases: the task that waits was cancelled, which must go on, or the call was (by us, by
    closing its channel), which is only the end of the call.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def let_go(doing: str) -> BrokerError:
    """The error for a call that we ended ourselves."""
    return ConnectionGivenUp(f"{doing}: {LET_GO}")


def _line(code: StatusCode, details: str | None) -> str:
    text = _CONNECTING.sub(lambda found: f"no connection to {unquote(found[1])}: ", " ".join((details or "").split()))
    if len(text) > _DETAILS_MAX:
        text = text[:_DETAILS_MAX] + "..."
    return f"{text} ({code.name})" if text else code.name
