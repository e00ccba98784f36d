"""The errors of the service, with the wording of the real service.

A client sees a status code and a sentence. Programs match on the code, engineers search for the sentence; both are part of the imitation.
With exactly-once delivery an error also contains the reason of each failed acknowledgement id (`google.rpc.ErrorInfo.metadata`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Code(StrEnum):
    """The gRPC status codes that the service uses, by their names."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"
    UNIMPLEMENTED = "UNIMPLEMENTED"


# Reasons per acknowledgement id; the client libraries match on the prefixes PERMANENT_FAILURE_ and TRANSIENT_FAILURE_.
INVALID_ACK_ID: Final = "PERMANENT_FAILURE_INVALID_ACK_ID"
UNORDERED_ACK_ID: Final = "TRANSIENT_FAILURE_UNORDERED_ACK_ID"
TEMPORARY_FAILURE: Final = "TRANSIENT_FAILURE_UNKNOWN"


class ServiceError(Exception):
    """End of a request or stream with a status code, a sentence and, for acknowledgement ids, reasons."""

    def __init__(self, code: Code, message: str, reasons: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.reasons: Mapping[str, str] = reasons or {}


def not_found(name: str) -> ServiceError:
    """Return the error for a missing topic, subscription or snapshot; the sentence contains the last part of its name."""
    return ServiceError(Code.NOT_FOUND, f"Resource not found (resource={name.rpartition('/')[2]}).")


def already_exists(name: str) -> ServiceError:
    """Return the error for a name in use."""
    return ServiceError(Code.ALREADY_EXISTS, f"Resource already exists in the project (resource={name.rpartition('/')[2]}).")


def invalid(argument: str, problem: str = "") -> ServiceError:
    """Return the error for an invalid value of an argument; `problem`: the invalid part of it, or the reason."""
    named = f"{argument}: {problem}" if problem else argument
    return ServiceError(Code.INVALID_ARGUMENT, f"You have passed an invalid argument to the service (argument={named}).")


def invalid_name(name: str, part: str = "") -> ServiceError:
    """Return the error for a name that breaks the rules for resource names; `part`: the part that breaks them."""
    wrong = f"The {part} is not valid. " if part else ""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"Invalid resource name given (name={name}). {wrong}"
        "Refer to https://cloud.google.com/pubsub/docs/admin#resource_names for more information.",
    )


def too_large(what: str, value: int, limit: int) -> ServiceError:
    """Return the error for a number or a size above its limit."""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"The value for {what} is too large. You passed {value} in the request, but the maximum value is {limit}.",
    )


def too_small(what: str, value: int, limit: int) -> ServiceError:
    """Return the error for a number below its limit."""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"The value for {what} is too small. You passed {value} in the request, but the minimum value is {limit}.",
    )


def bad_ack_id(ack_id: str) -> ServiceError:
    """Return the error for an acknowledgement id that the service never issued."""
    return ServiceError(Code.INVALID_ARGUMENT, f"You have passed an invalid ack ID to the service (ack_id={ack_id}).")


def no_ack_ids() -> ServiceError:
    """Return the error for a request without acknowledgement ids that needs them."""
    return ServiceError(Code.INVALID_ARGUMENT, "You have not specified an ack ID in the request.")


def precondition(message: str) -> ServiceError:
    """Return the error for a request that the state of the resource does not allow."""
    return ServiceError(Code.FAILED_PRECONDITION, message)


def unimplemented(method: str) -> ServiceError:
    """Return the error for a method of the service that this server does not have."""
    return ServiceError(Code.UNIMPLEMENTED, f"The embedded server does not implement {method}.")


def unavailable() -> ServiceError:
    """Return the error of an unavailable service; the client may retry."""
    return ServiceError(Code.UNAVAILABLE, "The service was unable to fulfill your request. Please try again.")


def key_too_fast() -> ServiceError:
    """Return the error for a publish rate above the limit of one ordering key."""
    return ServiceError(Code.RESOURCE_EXHAUSTED, "The publish throughput of the ordering key is exceeded. Please try again.")


def failed_ack_ids(reasons: Mapping[str, str]) -> ServiceError:
    """Return the error for failed acknowledgements (exactly-once delivery); `reasons` by acknowledgement id.

    Ids that are not in `reasons` succeeded (documentation, "Exactly-once delivery").
    """
    if INVALID_ACK_ID in reasons.values():
        sentence = (
            "Some acknowledgement ids in the request were invalid. "
            "This could be because the acknowledgement ids have expired or the acknowledgement ids were malformed."
        )
        return ServiceError(Code.INVALID_ARGUMENT, sentence, reasons)
    if UNORDERED_ACK_ID in reasons.values():
        return ServiceError(Code.FAILED_PRECONDITION, "Some acknowledgement ids in the request were out of order.", reasons)
    return ServiceError(
        Code.UNAVAILABLE, "Some acknowledgement ids in the request failed with a temporary error. Please try again.", reasons
    )
