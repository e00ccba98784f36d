"""What a push request says, wrapped or not; what is no message of the subscription is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.brokers.base import Received
from prober.brokers.push.endpoint import read_request
from prober.probes import payload

SUBSCRIPTION = "projects/p/subscriptions/s"
MESSAGE = {
    "data": "aGVsbG8=",
    "attributes": {"a": "1"},
    "messageId": "17",
    "message_id": "17",
    "orderingKey": "k",
    "publishTime": "2026-11-23T02:07:32.000000001Z",
}
PUBLISHED = 1_795_399_652_000_000_001


def wrapped(**different: Any) -> bytes:
    document = {"message": {**MESSAGE, **different.pop("message", {})}, "subscription": SUBSCRIPTION, **different}
    return json.dumps(document).encode()


def test_a_wrapped_message() -> None:
    assert read_request({}, wrapped(), SUBSCRIPTION) == Received("17", "", "k", b"hello", {"a": "1"}, 0, PUBLISHED)
    assert read_request({}, wrapped(deliveryAttempt=3), SUBSCRIPTION) == Received("17", "", "k", b"hello", {"a": "1"}, 3, PUBLISHED)


def test_an_unwrapped_message_is_its_body_and_headers() -> None:
    headers = {
        "x-goog-pubsub-subscription-name": SUBSCRIPTION,
        "x-goog-pubsub-message-id": "17",
        "x-goog-pubsub-publish-time": "2026-11-23T02:07:32Z",
        "x-goog-pubsub-ordering-key": "k",
        "okp_seq": "3",
    }
    received = read_request(headers, b"hello", SUBSCRIPTION)
    assert received is not None
    assert (received.message_id, received.ordering_key, received.data, received.publish_time) == (
        "17",
        "k",
        b"hello",
        PUBLISHED - 1,
    )
    assert received.attributes["okp_seq"] == "3"
    assert read_request({**headers, "x-goog-pubsub-subscription-name": "other"}, b"", SUBSCRIPTION) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        wrapped(subscription="projects/p/subscriptions/other"),
        wrapped(message={"data": "!"}),
        wrapped(message={"data": 1}),
        wrapped(message={"messageId": 17}),
        wrapped(message={"attributes": {"a": 1}}),
        wrapped(message={"attributes": []}).replace(b"[]", b"[1]"),
        wrapped(message={"orderingKey": None}),
        wrapped(message={"publishTime": "today"}),
        wrapped(message={"publishTime": "2026-13-40T99:00:00Z"}),
        wrapped(deliveryAttempt="1"),
        wrapped(message={"orderingKey": "\ud800"}),
        wrapped(message={"attributes": {"okp_epoch": "\ud800"}}),
        json.dumps({"subscription": SUBSCRIPTION, "message": "hello"}).encode(),
        json.dumps({"subscription": SUBSCRIPTION, "message": None}).encode(),
    ],
)
def test_what_is_no_message_is_none(body: bytes) -> None:
    assert read_request({}, body, SUBSCRIPTION) is None


SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
ANYTHING = st.recursive(SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
PLACES = st.sampled_from(("subscription", "message", "deliveryAttempt")), st.sampled_from((*MESSAGE, "x"))


@given(st.dictionaries(PLACES[0], ANYTHING, max_size=1), st.dictionaries(PLACES[1], ANYTHING, max_size=3))
def test_whatever_is_posted_is_a_message_or_none(document: dict[str, Any], message: dict[str, Any]) -> None:
    """And what it says of itself can be read."""
    whole = {"subscription": SUBSCRIPTION, "message": {**MESSAGE, **message}, **document}
    received = read_request({}, json.dumps(whole).encode(), SUBSCRIPTION)
    if received is not None:
        payload.read(received.ordering_key, received.data, received.attributes)
