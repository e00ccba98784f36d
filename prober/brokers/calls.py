"""Operations of calls to a service, and their error codes."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """Operation of a call. PULL includes streaming pull; ACKNOWLEDGE includes nacks and lease modifications as separate calls."""

    PUBLISH = "publish"
    PULL = "pull"
    ACKNOWLEDGE = "acknowledge"
    ADMINISTER = "administer"


class ErrorCode(StrEnum):
    """gRPC codes with which a call can end, except success (OK) and cancellation by the prober (CANCELLED)."""

    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
