"""Settings of topics and subscriptions over gRPC: what is changed by a mask, what is kept without an effect, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from google.api_core import exceptions
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.pubsub_v1.types import DeadLetterPolicy, RetryPolicy, Subscription, Topic

from tests.integration.embedded import Clients, running

TOPIC = "projects/p/topics/orders"
DEAD = "projects/p/topics/dead"
NAME = "projects/p/subscriptions/orders"


@pytest.fixture
def clients() -> Iterator[Clients]:
    with running() as server:
        opened = Clients(server.address)
        for topic in (TOPIC, DEAD):
            opened.publisher.create_topic(request={"name": topic})
        yield opened
        opened.close()


def test_a_field_inside_a_policy_changes_nothing_else(clients: Clients) -> None:
    policy, retry = (
        DeadLetterPolicy(dead_letter_topic=DEAD, max_delivery_attempts=7),
        RetryPolicy(minimum_backoff=Duration(seconds=3)),
    )
    clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, dead_letter_policy=policy, retry_policy=retry))
    wanted = Subscription(name=NAME, dead_letter_policy=DeadLetterPolicy(max_delivery_attempts=9), labels={"team": "x"})
    changed = clients.subscriber.update_subscription(
        subscription=wanted, update_mask=FieldMask(paths=["dead_letter_policy.max_delivery_attempts"])
    )
    assert changed.dead_letter_policy == DeadLetterPolicy(dead_letter_topic=DEAD, max_delivery_attempts=9)
    assert changed.retry_policy.minimum_backoff.total_seconds() == 3
    assert not changed.labels
    emptied = clients.subscriber.update_subscription(
        subscription=Subscription(name=NAME), update_mask=FieldMask(paths=["dead_letter_policy"])
    )
    assert not emptied.dead_letter_policy.dead_letter_topic


@pytest.mark.parametrize("path", ["dead_letter_policy.nothing", "nothing", "topic"])
def test_a_path_that_cannot_be_changed_is_refused(clients: Clients, path: str) -> None:
    clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC))
    with pytest.raises(exceptions.InvalidArgument, match=path):
        clients.subscriber.update_subscription(subscription=Subscription(name=NAME), update_mask=FieldMask(paths=["labels", path]))


def test_the_part_of_a_name_that_is_not_valid_is_named(clients: Clients) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="The project id 'My_Project' is not valid"):
        clients.publisher.create_topic(name="projects/My_Project/topics/orders")
    with pytest.raises(exceptions.InvalidArgument, match="The id 'a' is not valid"):
        clients.publisher.create_topic(name="projects/p/topics/a")


def test_a_label_that_is_refused_is_named(clients: Clients) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="argument=labels: Team=x"):
        clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, labels={"a": "b", "Team": "x"}))


def test_a_subscription_changes_after_its_dead_letter_topic_is_deleted(clients: Clients) -> None:
    policy = DeadLetterPolicy(dead_letter_topic=DEAD, max_delivery_attempts=7)
    clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, dead_letter_policy=policy))
    clients.publisher.delete_topic(topic=DEAD)
    changed = clients.subscriber.update_subscription(
        subscription=Subscription(name=NAME, labels={"a": "b"}), update_mask=FieldMask(paths=["labels"])
    )
    assert (changed.labels, changed.dead_letter_policy) == ({"a": "b"}, policy)
    path = "dead_letter_policy.max_delivery_attempts"
    wanted = Subscription(name=NAME, dead_letter_policy=DeadLetterPolicy(max_delivery_attempts=9))
    with pytest.raises(exceptions.NotFound, match="dead"):
        clients.subscriber.update_subscription(subscription=wanted, update_mask=FieldMask(paths=[path]))


INCOMPLETE: Final = [
    ("dead_letter_policy", {"dead_letter_policy": {"max_delivery_attempts": 7}}, "dead_letter_policy.dead_letter_topic"),
    (
        "dead_letter_policy.max_delivery_attempts",
        {"dead_letter_policy": {"max_delivery_attempts": 700}},
        "dead_letter_policy.dead_letter_topic",
    ),
    ("push_config", {"push_config": {"oidc_token": {"audience": "x"}}}, "oidc_token.service_account_email"),
    ("push_config.oidc_token.audience", {"push_config": {"oidc_token": {"audience": "x"}}}, "oidc_token.service_account_email"),
]


@pytest.mark.parametrize(("path", "settings", "missing"), INCOMPLETE)
def test_a_setting_without_the_part_that_it_needs_is_refused(
    clients: Clients, path: str, settings: dict[str, Any], missing: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=missing):
        clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, **settings))
    clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC))
    with pytest.raises(exceptions.InvalidArgument, match=missing):
        clients.subscriber.update_subscription(
            subscription=Subscription(name=NAME, **settings), update_mask=FieldMask(paths=[path])
        )


def test_clearing_what_the_server_cannot_do_changes_nothing(clients: Clients) -> None:
    topic = clients.publisher.get_topic(topic=TOPIC)
    mask = FieldMask(paths=["ingestion_data_source_settings", "message_transforms", "tags"])
    assert clients.publisher.update_topic(topic=Topic(name=TOPIC), update_mask=mask) == topic
    made = clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC))
    mask = FieldMask(paths=["bigquery_config", "cloud_storage_config", "bigtable_config", "message_transforms", "tags"])
    assert clients.subscriber.update_subscription(subscription=Subscription(name=NAME), update_mask=mask) == made


def test_what_has_no_effect_here_is_kept_and_shown(clients: Clients) -> None:
    name, key = "projects/p/topics/kept", "projects/p/locations/europe/keyRings/r/cryptoKeys/k"
    policy = {"allowed_persistence_regions": ["europe-west1"]}
    clients.publisher.create_topic(Topic(name=name, kms_key_name=key, message_storage_policy=policy))
    found = clients.publisher.get_topic(topic=name)
    assert (found.kms_key_name, list(found.message_storage_policy.allowed_persistence_regions)) == (key, ["europe-west1"])
    changed = clients.publisher.update_topic(topic=Topic(name=name, labels={"a": "b"}), update_mask=FieldMask(paths=["labels"]))
    assert (changed.kms_key_name, changed.labels) == (key, {"a": "b"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bigquery_config", {"table": "p.d.t"}),
        ("cloud_storage_config", {"bucket": "b"}),
        ("message_transforms", [{"disabled": True}]),
    ],
)
def test_what_the_server_cannot_do_is_refused(clients: Clients, field: str, value: object) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match=f"does not support {field}"):
        clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, **{field: value}))


def test_a_retention_of_nothing_and_a_seek_to_nowhere_are_refused(clients: Clients) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC, message_retention_duration=Duration(seconds=0)))
    clients.subscriber.create_subscription(Subscription(name=NAME, topic=TOPIC))
    with pytest.raises(exceptions.InvalidArgument, match="target"):
        clients.subscriber.seek(request={"subscription": NAME})
