"""Topics, subscriptions and snapshots with google-cloud-pubsub; errors of the service; methods that do not exist; health."""

from __future__ import annotations

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.protobuf import duration_pb2, field_mask_pb2, timestamp_pb2

from tests.integration.embedded import WAIT_S, Clients


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
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x1bgoogle.pubsub.v1.Subscriber", timeout=WAIT_S) == serving
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x04none", timeout=WAIT_S)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    for service, status in ((b"", serving), (b"\x0a\x04none", b"\x08\x03")):
        watched = channel.unary_stream("/grpc.health.v1.Health/Watch")(service, timeout=WAIT_S)
        assert next(watched) == status
        watched.cancel()


@pytest.mark.parametrize("method", ["google.pubsub.v1.Publisher/GetTopic", "google.pubsub.v1.Subscriber/StreamingPull"])
def test_bytes_that_are_no_request_are_refused(clients: Clients, method: str) -> None:
    call = clients.publisher.transport.grpc_channel.stream_stream(f"/{method}")
    with pytest.raises(grpc.RpcError) as caught:
        list(call(iter([b"\xff"]), timeout=WAIT_S))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_page_token_that_no_page_ended_with_is_refused(clients: Clients) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="page_token"):
        clients.publisher.list_topics(request={"project": "projects/test", "page_token": "junk"})
