"""The errors of the service, worded as the real one words them.

A client sees a status code and a sentence. Programs match on the code, people search for the sentence; both are part of the imitation.
With exactly-once delivery an error also says for each acknowledgement id why it failed (`google.rpc.ErrorInfo.metadata`).
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
    """A request was refused, or a stream ended, with a status code, a sentence and, for acknowledgement ids, reasons."""

    def __init__(self, code: Code, message: str, reasons: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.reasons: Mapping[str, str] = reasons or {}


def not_found(name: str) -> ServiceError:
    """A topic, subscription or snapshot does not exist; the sentence names the last part of its name."""
    return ServiceError(Code.NOT_FOUND, f"Resource not found (resource={name.rpartition('/')[2]}).")


def already_exists(name: str) -> ServiceError:
    """The name is taken."""
    return ServiceError(Code.ALREADY_EXISTS, f"Resource already exists in the project (resource={name.rpartition('/')[2]}).")


def invalid(argument: str, problem: str = "") -> ServiceError:
    """An argument has a value that the service does not accept; `problem` says which part of it, or why."""
    named = f"{argument}: {problem}" if problem else argument
    return ServiceError(Code.INVALID_ARGUMENT, f"You have passed an invalid argument to the service (argument={named}).")


def invalid_name(name: str, part: str = "") -> ServiceError:
    """A resource name breaks the rules for resource names; `part` is the part that does."""
    wrong = f"The {part} is not valid. " if part else ""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"Invalid resource name given (name={name}). {wrong}"
        "Refer to https://cloud.google.com/pubsub/docs/admin#resource_names for more information.",
    )


def too_large(what: str, value: int, limit: int) -> ServiceError:
    """A number or a size is above its limit."""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"The value for {what} is too large. You passed {value} in the request, but the maximum value is {limit}.",
    )


def too_small(what: str, value: int, limit: int) -> ServiceError:
    """A number is below its limit."""
    return ServiceError(
        Code.INVALID_ARGUMENT,
        f"The value for {what} is too small. You passed {value} in the request, but the minimum value is {limit}.",
    )


def bad_ack_id(ack_id: str) -> ServiceError:
    """An acknowledgement id was never given out by the service."""
    return ServiceError(Code.INVALID_ARGUMENT, f"You have passed an invalid ack ID to the service (ack_id={ack_id}).")


def no_ack_ids() -> ServiceError:
    """A request that is about acknowledgement ids has none."""
    return ServiceError(Code.INVALID_ARGUMENT, "You have not specified an ack ID in the request.")


def precondition(message: str) -> ServiceError:
    """The resource is in a state in which the request makes no sense."""
    return ServiceError(Code.FAILED_PRECONDITION, message)


def unimplemented(method: str) -> ServiceError:
    """A method of the service that this server does not have."""
    return ServiceError(Code.UNIMPLEMENTED, f"The embedded server does not implement {method}.")


def unavailable() -> ServiceError:
    """The service could not answer; the client may try again."""
    return ServiceError(Code.UNAVAILABLE, "The service was unable to fulfill your request. Please try again.")


def key_too_fast() -> ServiceError:
    """More is published on one ordering key than the service takes."""
    return ServiceError(Code.RESOURCE_EXHAUSTED, "The publish throughput of the ordering key is exceeded. Please try again.")


def failed_ack_ids(reasons: Mapping[str, str]) -> ServiceError:
    """Some acknowledgements of a subscription with exactly-once delivery failed; `reasons` says which and why.

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
