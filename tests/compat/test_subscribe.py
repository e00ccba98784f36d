"""Streaming pull with google-cloud-pubsub: order, nacks, flow control, leases, shutdown, errors of the callback."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler  # type: ignore[import-untyped]

from tests.integration.embedded import WAIT_S, Clients, Collected


def test_ordered_publish_and_streaming_pull(clients: Clients) -> None:
    clients.create()
    got = Collected()

    def receive(message: Any) -> None:
        got.add((message.ordering_key, int(message.data)))
        message.ack()

    futures = [clients.publisher.publish(clients.topic, b"%d" % n, ordering_key=f"k{n % 5}") for n in range(200)]
    ids = [future.result(WAIT_S) for future in futures]
    assert len(set(ids)) == 200
    with clients.subscribed(receive):
        items = got.wait(200)
    assert len(items) == 200
    for key in range(5):
        assert [n for name, n in items if name == f"k{key}"] == list(range(key, 200, 5))


def test_a_nack_brings_all_later_messages_again(clients: Clients) -> None:
    clients.create()
    got = Collected()
    refused = threading.Event()

    def receive(message: Any) -> None:
        got.add(int(message.data))
        if message.data == b"3" and not refused.is_set():
            refused.set()
            message.nack()
        else:
            message.ack()

    with clients.subscribed(receive):
        clients.publish("1", "2", "3", "4", "5")
        items = got.wait(8)
    assert items == [1, 2, 3, 4, 5, 3, 4, 5]


def test_two_subscribers_share_keys_and_neither_gets_part_of_one(clients: Clients) -> None:
    clients.create()
    got = Collected()
    futures = []
    for name in "AB":

        def receive(message: Any, name: str = name) -> None:
            got.add((message.ordering_key, name))
            message.ack()

        futures.append(clients.new_subscriber().subscribe(clients.subscription, receive))
    published = [clients.publisher.publish(clients.topic, b"x", ordering_key=f"k{n % 20}") for n in range(200)]
    for future in published:
        future.result(WAIT_S)
    items = got.wait(200)
    for future in futures:
        future.cancel()
        future.result(WAIT_S)
    assert len(set(items)) >= 20
    assert {name for _, name in items} <= {"A", "B"}


def test_a_subscriber_holds_no_more_messages_than_its_flow_control_allows(clients: Clients) -> None:
    clients.create(enable_message_ordering=False)
    clients.publish(*map(str, range(30)), key="")
    held = Collected()
    with clients.subscribed(held.add, flow_control=pubsub_v1.types.FlowControl(max_messages=5)):
        for acknowledged in range(0, 30, 5):
            received = held.wait(acknowledged + 5)
            assert len(received) == acknowledged + 5
            for message in received[acknowledged:]:
                message.ack()
    assert {int(message.data) for message in held.items} == set(range(30))


@pytest.mark.nightly
def test_a_subscriber_extends_the_lease_of_a_message_that_it_holds(clients: Clients) -> None:
    """A message that was pulled later expires first."""
    clients.create(enable_message_ordering=False, ack_deadline_seconds=10)
    held = Collected()
    with clients.subscribed(
        held.add, flow_control=pubsub_v1.types.FlowControl(max_messages=1, max_duration_per_lease_extension=10)
    ):
        clients.publish("held", key="")
        held.wait(1)
        clients.publish("expires", key="")
        assert clients.texts() == ["expires"]
        assert clients.texts() == ["expires"]
    assert len(held.items) == 1


class _Executor(ThreadPoolExecutor):
    """One thread. `dropped` is set when the client has removed the callbacks that did not start."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.dropped = threading.Event()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.dropped.set()
        super().shutdown(wait, cancel_futures=cancel_futures)


def test_a_shutdown_waits_for_callbacks_and_returns_the_other_messages(clients: Clients) -> None:
    clients.create(enable_message_ordering=False)
    clients.publish_request({"data": b"1"}, {"data": b"2"}, {"data": b"3"})
    processed, returned, executor = Collected(), Collected(), _Executor()

    def receive(message: Any) -> None:
        processed.add(message.data)
        assert executor.dropped.wait(WAIT_S)
        message.ack()

    with clients.subscribed(receive, scheduler=ThreadScheduler(executor), await_callbacks_on_shutdown=True):
        processed.wait(1)
    with clients.subscribed(lambda message: (returned.add(message.data), message.ack())):
        returned.wait(2)
    assert processed.items == [b"1"]
    assert sorted(returned.items) == [b"2", b"3"]


def test_an_error_of_the_callback_ends_the_subscriber_and_the_message_is_redelivered(clients: Clients) -> None:
    clients.create()
    clients.publish("1")

    def fail(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        clients.new_subscriber().subscribe(clients.subscription, fail).result(WAIT_S)
    assert clients.texts() == ["1"]


def test_a_deleted_subscription_ends_the_subscriber(clients: Clients) -> None:
    clients.create()
    future = clients.subscriber.subscribe(clients.subscription, lambda message: message.ack())
    clients.publish("1")
    clients.subscriber.delete_subscription(request={"subscription": clients.subscription})
    with pytest.raises(exceptions.NotFound):
        future.result(WAIT_S)


def test_a_detached_subscription_ends_the_subscriber(clients: Clients) -> None:
    clients.create()
    future = clients.subscriber.subscribe(clients.subscription, lambda message: message.ack())
    clients.publisher.detach_subscription(request={"subscription": clients.subscription})
    with pytest.raises(exceptions.FailedPrecondition, match="detached"):
        future.result(WAIT_S)
