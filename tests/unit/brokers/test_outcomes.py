"""When a publish is rejected and when it is unknown."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.api_core import exceptions as library_exceptions
from google.cloud.pubsub_v1.publisher.exceptions import (  # type: ignore[import-untyped]
    FlowControlLimitError,
    PublishError,
    PublishToPausedOrderingKeyException,
)
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from prober.brokers import library_client
from prober.brokers.base import Rejected, Unknown
from prober.brokers.grpc_errors import DEFINITELY_NOT_STORED, error_of, outcome_of
from prober.errors import (
    BrokerError,
    BrokerUnavailable,
    NotOurs,
    NotSupported,
    NotThere,
    PermissionRefused,
    RequestRefused,
    TargetFailed,
)

exceptions: Any = library_exceptions  # its constructors have no types
REFUSED = {"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "FAILED_PRECONDITION"}


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_a_single_attempt(code: grpc.StatusCode) -> None:
    assert type(outcome_of(code, "why")) is (Rejected if code.name in REFUSED else Unknown)
    assert outcome_of(code, " why\nnot ").reason == f"why not ({code.name})"


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_every_status_is_one_line_and_one_of_our_errors(code: grpc.StatusCode) -> None:
    error = error_of(code, "a\nb" * 200, "doing this")
    assert isinstance(error, BrokerError)
    assert str(error).startswith("doing this: a b")
    assert "\n" not in str(error)
    assert len(str(error)) < 320


def test_statuses_that_a_caller_can_do_something_about() -> None:
    kinds = {code.name: type(error_of(code, "", "x")) for code in grpc.StatusCode}
    assert kinds["UNAVAILABLE"] is kinds["DEADLINE_EXCEEDED"] is BrokerUnavailable
    assert kinds["PERMISSION_DENIED"] is kinds["UNAUTHENTICATED"] is PermissionRefused
    assert kinds["NOT_FOUND"] is NotThere
    assert kinds["ALREADY_EXISTS"] is NotOurs
    assert kinds["INTERNAL"] is kinds["UNKNOWN"] is TargetFailed
    assert kinds["INVALID_ARGUMENT"] is kinds["FAILED_PRECONDITION"] is RequestRefused
    assert kinds["UNIMPLEMENTED"] is NotSupported
    assert kinds["RESOURCE_EXHAUSTED"] is BrokerError


def test_credentials_that_cannot_be_had_are_no_outage() -> None:
    """UNAVAILABLE is what gRPC says of a call that it has not even sent."""
    error = error_of(
        grpc.StatusCode.UNAVAILABLE, "Getting metadata from plugin failed with error: no metadata server", "creating topic t"
    )
    assert isinstance(error, PermissionRefused)
    assert "credentials" in str(error)


@pytest.mark.parametrize(
    ("error", "attempts", "kind"),
    [
        (PublishToPausedOrderingKeyException("k"), 0, Rejected),
        (FlowControlLimitError("full"), 0, Rejected),
        (RuntimeError("Batch cancelled because prior ordered message for the same key has failed. ..."), 0, Rejected),
        (RuntimeError("something else"), 0, Unknown),
        (exceptions.NotFound("no topic"), 1, Rejected),
        (exceptions.NotFound("no topic, but an earlier attempt may have been stored"), 2, Unknown),
        (exceptions.NotFound("no topic, and nobody knows how often it was tried"), 0, Unknown),
        (exceptions.ResourceExhausted("quota"), 1, Unknown),
        (exceptions.ServiceUnavailable("gone"), 1, Unknown),
        (exceptions.RetryError("too long", None), 1, Unknown),
        (PublishError("too few ids"), 1, Unknown),
    ],
    ids=repr,
)
def test_a_future_of_the_library_that_failed(error: Exception, attempts: int, kind: type) -> None:
    assert type(library_client.future_outcome(error, attempts)) is kind


def test_the_text_of_a_cancelled_batch_is_still_the_librarys() -> None:
    from google.cloud.pubsub_v1.publisher._batch.base import BatchCancellationReason  # type: ignore[import-untyped]

    reason = BatchCancellationReason.PRIOR_ORDERED_MESSAGE_FAILED.value
    assert isinstance(library_client.future_outcome(RuntimeError(reason), 0), Rejected)


def test_what_is_retried_is_still_what_the_library_retries() -> None:
    channel = grpc.insecure_channel("127.0.0.1:1")
    transport: Any = PublisherGrpcTransport(channel=channel)
    library = transport._wrapped_methods[transport.publish]._retry
    every = [
        kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, exceptions.GoogleAPICallError)
    ]
    assert len(every) > 20
    for kind in every:
        assert library_client.is_retried(kind("x")) == library._predicate(kind("x")), kind
    from prober.brokers import library as ours

    pauses = (ours.PAUSE_INITIAL_S, ours.PAUSE_MAX_S, ours.PAUSE_FACTOR)
    assert pauses == (library._initial, library._maximum, library._multiplier)
    channel.close()


def test_library_errors_become_ours() -> None:
    assert isinstance(library_client.library_error(exceptions.NotFound("x"), "y"), NotThere)
    assert isinstance(library_client.library_error(exceptions.Forbidden("x"), "y"), BrokerError)
    assert str(library_client.library_error(ValueError("x\ny"), "doing")) == "doing: ValueError x y"
    assert {code.name for code in DEFINITELY_NOT_STORED} == REFUSED


def test_a_connection_that_nobody_takes_is_reported_with_its_address_and_without_the_words_of_grpc() -> None:
    last = "UNKNOWN: ipv6:%5B::1%5D:1: Failed to connect to remote host: Connection refused"
    details = f"failed to connect to all addresses; last error: {last}"
    reported = str(error_of(grpc.StatusCode.UNAVAILABLE, details, "creating t"))
    assert reported.startswith("creating t: no connection to [::1]:1: Connection refused (UNAVAILABLE); ")
