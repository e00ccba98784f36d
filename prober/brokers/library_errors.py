"""Where the exceptions of Google's client library become ours. Nothing else of the library adapter looks at what kind they are."""

from __future__ import annotations

from typing import Final

from google.api_core import exceptions
from google.api_core.retry import if_exception_type
from grpc import RpcError, StatusCode

from prober.brokers.base import Rejected, Unknown
from prober.brokers.library_client import NEVER_SENT_ERRORS
from prober.brokers.statuses import CERTAINLY_NOT_STORED, error_of
from prober.errors import BrokerError

_CANCELLED_WITH_ITS_KEY: Final = "Batch cancelled because prior ordered message"

is_retried = if_exception_type(
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
"""Whether the library tries a publish again after this error: its own list, which a test compares."""


def refusal_to_publish(error: Exception) -> Rejected:
    """The outcome of a message that the library did not take: it was never sent."""
    return Rejected(f"refused by the client library: {_line(error)}")


def publish_outcome(error: BaseException, attempts: int) -> Rejected | Unknown:
    """The outcome of a message whose future failed; `attempts` is how many requests its batch was certainly sent in, 0 if not known.

    A message that waited behind one that failed, or came when its key was paused, was never sent. The one that failed is rejected
    only if its single attempt was refused for what it is; an earlier attempt may have been stored without our knowing.
    """
    if isinstance(error, NEVER_SENT_ERRORS) or (isinstance(error, RuntimeError) and str(error).startswith(_CANCELLED_WITH_ITS_KEY)):
        return Rejected(f"never sent: {_line(error)}")
    if isinstance(error, exceptions.GoogleAPICallError) and attempts == 1 and status_of(error) in CERTAINLY_NOT_STORED:
        return Rejected(_line(error))
    return Unknown(_line(error))


def translated(error: BaseException, doing: str) -> BrokerError:
    """The error that a caller can do something about; `doing` says what was asked."""
    if isinstance(error, exceptions.GoogleAPICallError):
        return error_of(status_of(error), str(error.message), doing)
    if isinstance(error, RpcError):
        return error_of(error.code(), error.details(), doing)
    return BrokerError(f"{doing}: {_line(error)}")


def status_of(error: exceptions.GoogleAPICallError) -> StatusCode:
    """The gRPC status behind an exception of the library."""
    code = error.grpc_status_code
    return code if isinstance(code, StatusCode) else StatusCode.UNKNOWN


def _line(error: BaseException) -> str:
    return " ".join([type(error).__name__, *str(error).split()])
