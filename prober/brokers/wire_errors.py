"""Where the errors of grpc.aio become ours. Nothing else of the wire adapter reads a gRPC status."""

from __future__ import annotations

import asyncio

import grpc.aio

from prober.brokers.base import Rejected, Unknown
from prober.brokers.statuses import error_of, outcome_of
from prober.errors import BrokerError, BrokerUnavailable

LET_GO = "the connection was closed on our side"


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
    return BrokerUnavailable(f"{doing}: {LET_GO}")
