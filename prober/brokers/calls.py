"""What a call to a service is for, and what it can end with."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """What a call to a service is for. PULL is streaming pull too; ACKNOWLEDGE also nacks messages and modifies leases, in a call."""

    PUBLISH = "publish"
    PULL = "pull"
    ACKNOWLEDGE = "acknowledge"
    ADMINISTER = "administer"


class ErrorCode(StrEnum):
    """What a call to a service can end with, beside success (OK) and our own end of it (CANCELLED): the codes of gRPC."""

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
