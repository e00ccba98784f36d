"""Clients that nobody here wrote work on the embedded server unchanged: google-cloud-pubsub for Python."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber.exceptions import (  # type: ignore[import-untyped]
    AcknowledgeError,
    AcknowledgeStatus,
)
from google.protobuf import duration_pb2, field_mask_pb2, timestamp_pb2

from tests.integration.embedded import WAIT_S, Clients, Collected, Running, endpoint, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as server:
        yield server


@pytest.fixture
def clients(server: Running) -> Iterator[Clients]:
    clients = Clients(server.address)
    yield clients
    clients.close()


def test_ordered_publish_and_streaming_pull(clients: Clients) -> None:
    clients.create()
    got = Collected()

    def receive(message: Any) -> None:
        got.add((message.ordering_key, int(message.data)))
        message.ack()

    futures = [clients.publisher.publish(clients.topic, b"%d" % n, ordering_key=f"k{n % 5}") for n in range(200)]
    ids = [future.result(WAIT_S) for future in futures]
    assert len(set(ids)) == 200
    future = clients.subscriber.subscribe(clients.subscription, receive)
    items = got.wait(200)
    future.cancel()
    future.result(WAIT_S)
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

    future = clients.subscriber.subscribe(clients.subscription, receive)
    clients.publish("1", "2", "3", "4", "5")
    items = got.wait(8)
    future.cancel()
    future.result(WAIT_S)
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


def test_exactly_once_confirms_acknowledgements(clients: Clients) -> None:
    clients.create(enable_exactly_once_delivery=True, ack_deadline_seconds=60)
    answers = Collected()

    def receive(message: Any) -> None:
        message.ack_with_response().add_done_callback(lambda future: answers.add((message.data, future.result())))

    future = clients.subscriber.subscribe(clients.subscription, receive)
    clients.publish("1", "2", "3")
    items = answers.wait(3)
    future.cancel()
    future.result(WAIT_S)
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

    def receive(message: Any) -> None:
        if not outcome.items:
            message.nack_with_response().result(WAIT_S)
            late = message.ack_with_response()
            with pytest.raises(AcknowledgeError) as caught:
                late.result(WAIT_S)
            outcome.add(caught.value.error_code)
        else:
            message.ack()

    future = clients.subscriber.subscribe(clients.subscription, receive)
    clients.publish("1")
    assert outcome.wait(1) == [AcknowledgeStatus.INVALID_ACK_ID]
    future.cancel()
    future.result(WAIT_S)


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


def test_seek_and_snapshots(clients: Clients) -> None:
    clients.create(retain_acked_messages=True)
    clients.publish("1", "2", "3")
    first, *_ = batch = clients.pull()
    clients.ack(first)
    snapshot = clients.subscription.replace("/subscriptions/", "/snapshots/")
    made = clients.subscriber.create_snapshot(request={"name": snapshot, "subscription": clients.subscription})
    assert made.topic == clients.topic
    clients.ack(*batch[1:])
    clients.publish("4")
    clients.ack(*clients.pull())
    clients.subscriber.seek(request={"subscription": clients.subscription, "snapshot": snapshot})
    assert clients.texts() == ["2", "3", "4"]
    clients.subscriber.seek(request={"subscription": clients.subscription, "time": timestamp_pb2.Timestamp(seconds=1)})
    assert clients.texts() == ["1", "2", "3", "4"]
    listed = clients.subscriber.list_snapshots(request={"project": "projects/test"})
    assert snapshot in [one.name for one in listed]
    clients.subscriber.delete_snapshot(request={"snapshot": snapshot})


def test_push_is_one_message_of_a_key_at_a_time_and_never_passes_a_failed_one(clients: Clients) -> None:
    got = Collected()
    open_now = threading.Semaphore(1)

    def answer(_: dict[str, str], body: bytes) -> int:
        document = json.loads(body)
        assert open_now.acquire(blocking=False), "two requests of one key at a time"
        try:
            text = base64.b64decode(document["message"]["data"]).decode()
            count = got.add((text, document["message"]["orderingKey"], document["subscription"]))
            return 500 if count == 2 else 204
        finally:
            open_now.release()

    with endpoint(answer) as url:
        clients.create(push_config={"push_endpoint": url})
        clients.publish("1", "2", "3", "4")
        items = got.wait(5)
    assert [text for text, _, _ in items] == ["1", "2", "2", "3", "4"]
    assert {(key, name) for _, key, name in items} == {("k", clients.subscription)}
    with pytest.raises(exceptions.FailedPrecondition):
        clients.pull()


def test_push_to_nobody_is_tried_again(clients: Clients) -> None:
    got = Collected()
    with endpoint(lambda _, body: 102 if got.add(body) else 500) as url:
        dead = url.replace("/push", "").rpartition(":")[0] + ":1/"
        clients.create(push_config={"push_endpoint": dead})
        clients.publish("1")
        request = {
            "subscription": clients.subscription,
            "push_config": {"push_endpoint": url, "no_wrapper": {"write_metadata": True}},
        }
        clients.subscriber.modify_push_config(request=request)
        assert got.wait(1) == [b"1"]


def test_topics_and_subscriptions_are_listed_updated_and_deleted(clients: Clients) -> None:
    clients.create(labels={"owner": "test"})
    shown = clients.subscriber.get_subscription(request={"subscription": clients.subscription})
    assert (dict(shown.labels), shown.enable_message_ordering, shown.ack_deadline_seconds) == ({"owner": "test"}, True, 10)
    changed = pubsub_v1.types.Subscription(
        name=clients.subscription, ack_deadline_seconds=42, retry_policy={"minimum_backoff": duration_pb2.Duration(seconds=1)}
    )
    mask = field_mask_pb2.FieldMask(paths=["ack_deadline_seconds", "retry_policy"])
    updated = clients.subscriber.update_subscription(request={"subscription": changed, "update_mask": mask})
    assert updated.ack_deadline_seconds == 42
    assert updated.retry_policy.minimum_backoff.total_seconds() == 1
    assert updated.enable_message_ordering
    assert list(clients.publisher.list_topic_subscriptions(request={"topic": clients.topic})) == [clients.subscription]
    assert clients.topic in [
        one.name for one in clients.publisher.list_topics(request={"project": "projects/test", "page_size": 1})
    ]
    listed = clients.subscriber.list_subscriptions(request={"project": "projects/test", "page_size": 2})
    assert clients.subscription in [one.name for one in listed]
    clients.publisher.delete_topic(request={"topic": clients.topic})
    assert clients.subscriber.get_subscription(request={"subscription": clients.subscription}).topic == "_deleted-topic_"
    clients.subscriber.delete_subscription(request={"subscription": clients.subscription})
    with pytest.raises(exceptions.NotFound):
        clients.subscriber.get_subscription(request={"subscription": clients.subscription})


def test_what_else_can_be_administered(clients: Clients) -> None:
    clients.create()
    snapshot = clients.subscription.replace("/subscriptions/", "/snapshots/")
    clients.subscriber.create_snapshot(request={"name": snapshot, "subscription": clients.subscription, "labels": {"a": "b"}})
    assert dict(clients.subscriber.get_snapshot(request={"snapshot": snapshot}).labels) == {"a": "b"}
    mask = field_mask_pb2.FieldMask(paths=["labels"])
    clients.subscriber.update_snapshot(request={"snapshot": {"name": snapshot, "labels": {"c": "d"}}, "update_mask": mask})
    assert dict(clients.subscriber.get_snapshot(request={"snapshot": snapshot}).labels) == {"c": "d"}
    assert list(clients.publisher.list_topic_snapshots(request={"topic": clients.topic})) == [snapshot]
    mask = field_mask_pb2.FieldMask(paths=["message_retention_duration"])
    topic = {"name": clients.topic, "message_retention_duration": duration_pb2.Duration(seconds=600)}
    assert clients.publisher.update_topic(request={"topic": topic, "update_mask": mask}).message_retention_duration.seconds == 600
    shown = clients.subscriber.get_subscription(request={"subscription": clients.subscription})
    assert shown.topic_message_retention_duration.seconds == 600
    assert clients.publisher.get_topic(request={"topic": clients.topic}).name == clients.topic
    clients.publisher.detach_subscription(request={"subscription": clients.subscription})
    assert clients.subscriber.get_subscription(request={"subscription": clients.subscription}).detached
    with pytest.raises(exceptions.FailedPrecondition, match="detached"):
        clients.pull()


def test_errors_are_those_of_the_service(clients: Clients) -> None:
    with pytest.raises(exceptions.NotFound, match=r"Resource not found \(resource=topic-.*\)\."):
        clients.create_subscription()
    clients.create()
    with pytest.raises(exceptions.AlreadyExists, match="Resource already exists in the project"):
        clients.publisher.create_topic(request={"name": clients.topic})
    with pytest.raises(exceptions.FailedPrecondition, match="all messages must have no ordering key"):
        clients.publish_request({"data": b"x", "ordering_key": "a"}, {"data": b"x", "ordering_key": "b"})
    with pytest.raises(exceptions.InvalidArgument, match="ordering_key_size"):
        clients.publish("x", key="k" * 1025)
    assert clients.publish("x", key="k" * 1024)
    with pytest.raises(exceptions.InvalidArgument, match="You have passed an invalid ack ID"):
        clients.subscriber.acknowledge(request={"subscription": clients.subscription, "ack_ids": ["nonsense"]})


def test_a_big_message_passes_and_a_bigger_one_does_not(clients: Clients) -> None:
    clients.create()
    clients.publish("x" * 9_999_000)
    (received,) = clients.pull()
    assert len(received.message.data) == 9_999_000
    with pytest.raises(exceptions.InvalidArgument, match="The value for message_size is too large"):
        clients.publish_request({"data": b"x" * 10_000_001})


def test_a_deleted_subscription_ends_the_subscriber(clients: Clients) -> None:
    clients.create()
    future = clients.subscriber.subscribe(clients.subscription, lambda message: message.ack())
    clients.publish("1")
    clients.subscriber.delete_subscription(request={"subscription": clients.subscription})
    with pytest.raises(exceptions.NotFound):
        future.result(WAIT_S)


def test_what_is_not_there_says_so(clients: Clients) -> None:
    call = clients.publisher.transport.grpc_channel.unary_unary("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"", timeout=WAIT_S)
    assert "The embedded server does not implement /grpc.reflection.v1.ServerReflection/ServerReflectionInfo" in str(caught.value)
    assert "UNIMPLEMENTED" in str(caught.value)


def test_the_server_says_that_it_is_healthy(clients: Clients) -> None:
    channel = clients.publisher.transport.grpc_channel
    serving = b"\x08\x01"
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=WAIT_S) == serving
    watched = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=WAIT_S)
    assert next(watched) == serving
    watched.cancel()
