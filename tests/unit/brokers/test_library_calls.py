"""Between Google's client library and its connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
import pytest
from google.pubsub_v1 import types

from prober.brokers.library_calls import AttemptCounter, CallEnded, WatchedCall


class ClosesMeanwhile(grpc.UnaryUnaryClientInterceptor):
    """Closes the channel when a request has been let through, and before it is sent."""

    def __init__(self, attempts: AttemptCounter, channel: grpc.Channel) -> None:
        self._attempts, self._channel = attempts, channel

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        self._attempts.stop()
        self._channel.close()
        return continuation(client_call_details, request)


class PassesOn(grpc.UnaryUnaryClientInterceptor):
    """As the library's own interceptor, which comes before ours."""

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        return continuation(client_call_details, request)


def call_through(channel: grpc.Channel, *interceptors: grpc.UnaryUnaryClientInterceptor) -> None:
    call: Any = grpc.intercept_channel(channel, *interceptors).unary_unary("/service/Method")
    call(b"", timeout=10)


def test_a_request_of_a_closed_publisher_is_not_sent_and_fails_as_the_library_expects() -> None:
    with grpc.insecure_channel("127.0.0.1:1") as channel:
        attempts = AttemptCounter()
        attempts.stop()
        with pytest.raises(CallEnded) as caught:
            call_through(channel, PassesOn(), attempts)
        assert caught.value.code() is grpc.StatusCode.CANCELLED
        assert attempts.in_this_thread() == 0


def test_a_connection_that_is_closed_under_a_request_fails_as_the_library_expects() -> None:
    channel = grpc.insecure_channel("127.0.0.1:1")
    attempts = AttemptCounter()
    with pytest.raises(CallEnded) as caught:
        call_through(channel, PassesOn(), attempts, ClosesMeanwhile(attempts, channel))
    assert caught.value.code() is grpc.StatusCode.CANCELLED


def test_other_errors_pass() -> None:
    with grpc.insecure_channel("127.0.0.1:1") as channel, pytest.raises(grpc.RpcError) as caught:
        call_through(channel, PassesOn(), AttemptCounter())
    assert "UNAVAILABLE" in str(caught.value)


class Reported:
    """Keeps what it learns of the messages of a stream."""

    def __init__(self) -> None:
        self.delivered: list[dict[str, int | None]] = []

    def stream_began(self, call: WatchedCall[str]) -> str:
        return "tag"

    def stream_answered(self) -> None:
        """Not looked at."""

    def stream_delivered(self, tag: str, publish_times: Mapping[str, int | None]) -> None:
        self.delivered.append(dict(publish_times))

    def stream_failed(self, error: grpc.RpcError) -> None:
        """Not looked at."""

    def stream_ended(self, tag: str, reason: str) -> None:
        """Not looked at."""


def test_when_messages_were_stored_is_seen_before_the_library_rounds_it() -> None:
    response = types.StreamingPullResponse()
    for ack_id, nanos in (("a", 123_456_789), ("b", 123_456_788)):
        delivery = types.StreamingPullResponse.pb(response).received_messages.add(ack_id=ack_id)
        delivery.message.publish_time.seconds, delivery.message.publish_time.nanos = 1_767_323_045, nanos
    reported = Reported()
    call: Any = Responses([response])
    assert list(WatchedCall(reported).attach(call)) == [response]
    assert reported.delivered == [{"a": 1_767_323_045_123_456_789, "b": 1_767_323_045_123_456_788}]


class Responses:
    """A stream that has these responses, and ends."""

    def __init__(self, responses: list[types.StreamingPullResponse]) -> None:
        self._responses = iter(responses)

    def __next__(self) -> types.StreamingPullResponse:
        return next(self._responses)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """It never fails."""
