"""Unary pull with google-cloud-pubsub: batches of a key, waiting, filters, dead letters, large messages."""

from __future__ import annotations

import threading

import pytest
from google.api_core import exceptions

from tests.integration.embedded import WAIT_S, Clients


def test_unary_pull_gives_one_batch_of_a_key_at_a_time(clients: Clients) -> None:
    clients.create()
    clients.publish("1", "2", "3")
    first = clients.pull(2)
    assert [one.message.data for one in first] == [b"1", b"2"]
    assert clients.pull_now() == []
    clients.ack(*first)
    (third,) = clients.pull()
    assert third.message.data == b"3"
    assert third.message.ordering_key == "k"
    assert third.delivery_attempt == 0
    clients.nack(third)
    assert clients.texts() == ["3"]


def test_a_pull_waits_for_a_message(clients: Clients) -> None:
    clients.create()
    timer = threading.Timer(0.2, lambda: clients.publish("late"))
    timer.start()
    assert clients.texts() == ["late"]
    timer.join()


def test_a_pull_that_gets_nothing_is_empty_and_not_an_error(clients: Clients) -> None:
    clients.create()
    response = clients.subscriber.pull(request={"subscription": clients.subscription, "max_messages": 1}, timeout=1, retry=None)
    assert list(response.received_messages) == []


def test_a_filter(clients: Clients) -> None:
    clients.create(filter='attributes.color = "red" AND NOT attributes:old')
    clients.publish("1", color="red")
    clients.publish("2", color="blue")
    clients.publish("3", color="red", old="")
    clients.publish("4", color="red")
    assert clients.texts() == ["1", "4"]


def test_a_dead_letter(clients: Clients) -> None:
    morgue = f"{clients.topic}-dead"
    clients.publisher.create_topic(request={"name": morgue})
    clients.create(dead_letter_policy={"dead_letter_topic": morgue, "max_delivery_attempts": 5})
    dead = f"{clients.subscription}-dead"
    clients.subscriber.create_subscription(request={"name": dead, "topic": morgue})
    clients.publish("poison", "next")
    for attempt in range(1, 6):
        first, *_ = clients.pull()
        assert (first.message.data, first.delivery_attempt) == (b"poison", attempt)
        clients.nack(first)
    response = clients.subscriber.pull(request={"subscription": dead, "max_messages": 10}, timeout=WAIT_S)
    (copy,) = response.received_messages
    assert copy.message.data == b"poison"
    assert copy.message.ordering_key == "k"
    assert copy.message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"] == "5"


def test_a_big_message_passes_and_a_bigger_one_does_not(clients: Clients) -> None:
    clients.create()
    clients.publish("x" * 9_999_000)
    (received,) = clients.pull()
    assert len(received.message.data) == 9_999_000
    with pytest.raises(exceptions.InvalidArgument, match="The value for message_size is too large"):
        clients.publish_request({"data": b"x" * 10_000_001})
