"""Exactly-once delivery with google-cloud-pubsub: acknowledgements that are confirmed or refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.pubsub_v1.subscriber.exceptions import (  # type: ignore[import-untyped]
    AcknowledgeError,
    AcknowledgeStatus,
)

from tests.integration.embedded import WAIT_S, Clients, Collected


def test_exactly_once_confirms_acknowledgements(clients: Clients) -> None:
    clients.create(enable_exactly_once_delivery=True, ack_deadline_seconds=60)
    answers = Collected()

    def receive(message: Any) -> None:
        message.ack_with_response().add_done_callback(lambda future: answers.add((message.data, future.result())))

    with clients.subscribed(receive):
        clients.publish("1", "2", "3")
        items = answers.wait(3)
    assert items == [(b"1", AcknowledgeStatus.SUCCESS), (b"2", AcknowledgeStatus.SUCCESS), (b"3", AcknowledgeStatus.SUCCESS)]


def test_exactly_once_refuses_an_id_that_is_over(clients: Clients) -> None:
    clients.create(enable_exactly_once_delivery=True)
    clients.publish("1", "2")
    first, second = clients.pull()
    with pytest.raises(exceptions.FailedPrecondition, match="out of order"):
        clients.ack(second)
    clients.nack(first)
    with pytest.raises(exceptions.InvalidArgument, match="Some acknowledgement ids in the request were invalid") as caught:
        clients.ack(first)
    (info,) = caught.value.details
    assert info.metadata[first.ack_id] == "PERMANENT_FAILURE_INVALID_ACK_ID"


def test_exactly_once_tells_a_callback_that_its_id_is_over(clients: Clients) -> None:
    clients.create(enable_exactly_once_delivery=True)
    outcome = Collected()
    refused = threading.Event()

    def receive(message: Any) -> None:
        if not refused.is_set():
            refused.set()
            message.nack_with_response().result(WAIT_S)
            late = message.ack_with_response()
            with pytest.raises(AcknowledgeError) as caught:
                late.result(WAIT_S)
            outcome.add(caught.value.error_code)
        else:
            message.ack()

    with clients.subscribed(receive):
        clients.publish("1")
        assert outcome.wait(1) == [AcknowledgeStatus.INVALID_ACK_ID]
