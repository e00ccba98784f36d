"""Access policies over gRPC with Google's client: set, shown, protected by their etag, and not enforced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.iam.v1 import iam_policy_pb2, policy_pb2  # type: ignore[import-untyped]
from google.pubsub_v1 import SchemaServiceClient
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport
from google.pubsub_v1.types import Schema
from google.type.expr_pb2 import Expr  # type: ignore[import-untyped]

from tests.integration.embedded import Clients, running

SNAPSHOT = "projects/test/snapshots/snap"
SCHEMA = "projects/test/schemas/state"
VIEWER = policy_pb2.Binding(role="roles/pubsub.viewer", members=["domain:google.com"])


@pytest.fixture
def clients() -> Iterator[Clients]:
    with running() as server:
        opened = Clients(server.address)
        opened.create()
        yield opened
        opened.close()


def changed(client: Any, resource: str, *bindings: policy_pb2.Binding, version: int = 0) -> Any:
    """Read a policy, add bindings, and write it, as Google's samples do."""
    policy = client.get_iam_policy(request={"resource": resource})
    policy.bindings.extend(bindings)
    policy.version = version
    return client.set_iam_policy(request={"resource": resource, "policy": policy})


def check_policies(client: Any, resource: str, permission: str) -> None:
    assert not client.get_iam_policy(request={"resource": resource}).bindings
    written = changed(client, resource, VIEWER)
    assert list(written.bindings) == [VIEWER]
    assert client.get_iam_policy(request={"resource": resource}) == written
    asked = client.test_iam_permissions(request={"resource": resource, "permissions": [permission]})
    assert list(asked.permissions) == [permission]


def test_policies_of_topics_subscriptions_and_snapshots(clients: Clients) -> None:
    clients.subscriber.create_snapshot(request={"name": SNAPSHOT, "subscription": clients.subscription})
    check_policies(clients.publisher, clients.topic, "pubsub.topics.publish")
    check_policies(clients.subscriber, clients.subscription, "pubsub.subscriptions.consume")
    check_policies(clients.subscriber, SNAPSHOT, "pubsub.snapshots.seek")


def test_policies_of_schemas() -> None:
    with running() as server, grpc.insecure_channel(server.address) as channel:
        client = SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=channel))
        schema = Schema(type_=Schema.Type.AVRO, definition='{"type": "record", "name": "R", "fields": []}')
        client.create_schema(parent="projects/test", schema=schema, schema_id="state")
        check_policies(client, SCHEMA, "pubsub.schemas.attach")


def test_a_policy_that_was_changed_meanwhile_is_not_overwritten(clients: Clients) -> None:
    read = clients.publisher.get_iam_policy(request={"resource": clients.topic})
    changed(clients.publisher, clients.topic, VIEWER)
    with pytest.raises(exceptions.Aborted, match="concurrent policy changes"):
        clients.publisher.set_iam_policy(request={"resource": clients.topic, "policy": read})
    read.etag = b""
    written = clients.publisher.set_iam_policy(request={"resource": clients.topic, "policy": read})
    assert not written.bindings


def test_nothing_is_enforced(clients: Clients) -> None:
    changed(clients.publisher, clients.topic, VIEWER)
    clients.publish("1")
    assert clients.texts() == ["1"]


def test_a_resource_that_is_created_again_has_no_policy(clients: Clients) -> None:
    changed(clients.publisher, clients.topic, VIEWER)
    clients.publisher.delete_topic(topic=clients.topic)
    with pytest.raises(exceptions.NotFound):
        clients.publisher.get_iam_policy(request={"resource": clients.topic})
    asked = {"resource": clients.topic, "permissions": ["pubsub.topics.publish"]}
    assert not clients.publisher.test_iam_permissions(request=asked).permissions
    clients.publisher.create_topic(name=clients.topic)
    assert not clients.publisher.get_iam_policy(request={"resource": clients.topic}).bindings


def test_conditions_take_version_3(clients: Clients) -> None:
    conditional = policy_pb2.Binding(role="roles/pubsub.viewer", members=["allUsers"], condition=Expr(expression="true"))
    with pytest.raises(exceptions.InvalidArgument):
        changed(clients.publisher, clients.topic, conditional, version=1)
    assert changed(clients.publisher, clients.topic, conditional, version=3).version == 3


@pytest.mark.parametrize(("role", "member"), [("viewer", "allUsers"), ("roles/viewer", "somebody")])
def test_a_binding_that_is_refused(clients: Clients, role: str, member: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        changed(clients.publisher, clients.topic, policy_pb2.Binding(role=role, members=[member]))


def test_permissions_that_a_kind_of_resource_does_not_have_are_left_out(clients: Clients) -> None:
    asked = ["pubsub.topics.nope", "pubsub.subscriptions.consume", "storage.objects.get", "pubsub.topics.publish"]
    request = iam_policy_pb2.TestIamPermissionsRequest(resource=clients.topic, permissions=asked)
    assert list(clients.publisher.test_iam_permissions(request=request).permissions) == ["pubsub.topics.publish"]


def test_a_permission_with_a_wildcard_is_refused(clients: Clients) -> None:
    request = iam_policy_pb2.TestIamPermissionsRequest(resource=clients.topic, permissions=["pubsub.topics.*"])
    with pytest.raises(exceptions.InvalidArgument, match=r"pubsub\.topics\.\*"):
        clients.publisher.test_iam_permissions(request=request)


def test_a_name_that_has_no_policy(clients: Clients) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        clients.publisher.get_iam_policy(request={"resource": "projects/test"})
    with pytest.raises(exceptions.NotFound):
        clients.publisher.get_iam_policy(request={"resource": "projects/test/topics/other"})
