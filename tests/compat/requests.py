"""A request to each method of Publisher, Subscriber, SchemaService and IAMPolicy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Requests = Mapping[str, Mapping[str, Any]]
"""Method: its request."""

DEFINITION: Final = '{"type": "record", "name": "R", "fields": []}'
SCHEMA: Final = {"type_": "AVRO", "definition": DEFINITION}
MESSAGE: Final = {"data": b"\x00\xffx", "attributes": {"a": "b"}, "ordering_key": "k"}
ENDPOINT: Final = "http://127.0.0.1:9/push"


@dataclass(frozen=True)
class Names:
    """The resources of one project, and what their server returned: the id of a delivery, the revision of a schema."""

    project: str
    ack_id: str = "unknown"
    revision: str = "00000000"

    @property
    def topic(self) -> str:
        return f"{self.project}/topics/orders"

    @property
    def subscription(self) -> str:
        return f"{self.project}/subscriptions/orders"

    @property
    def snapshot(self) -> str:
        return f"{self.project}/snapshots/before"

    @property
    def schema(self) -> str:
        return f"{self.project}/schemas/record"


def requests(names: Names) -> Requests:
    """Requests that succeed where the resources exist."""
    return {**_publisher(names), **_subscriber(names), **_snapshots(names), **_schemas(names), **_policies(names)}


def _publisher(names: Names) -> Requests:
    topic = names.topic
    new = {"name": f"{names.project}/topics/new", "labels": {"team": "x"}, "message_retention_duration": {"seconds": 600}}
    return {
        "Publish": {"topic": topic, "messages": [MESSAGE, MESSAGE]},
        "CreateTopic": new,
        "GetTopic": {"topic": topic},
        "UpdateTopic": {"topic": {"name": topic, "labels": {"team": "y"}}, "update_mask": {"paths": ["labels", "kms_key_name"]}},
        "DeleteTopic": {"topic": topic},
        "ListTopics": {"project": names.project, "page_size": 1},
        "ListTopicSubscriptions": {"topic": topic, "page_size": 7},
        "ListTopicSnapshots": {"topic": topic},
        "DetachSubscription": {"subscription": names.subscription},
    }


def _subscriber(names: Names) -> Requests:
    subscription = names.subscription
    changed = {"name": subscription, "ack_deadline_seconds": 77}
    return {
        "CreateSubscription": {
            "name": f"{names.project}/subscriptions/new",
            "topic": names.topic,
            "push_config": {"push_endpoint": ENDPOINT, "oidc_token": {"service_account_email": "a@b.c"}},
            "retry_policy": {"minimum_backoff": {"seconds": 3, "nanos": 500_000_000}},
            "filter": 'attributes.a = "b"',
            "enable_message_ordering": True,
        },
        "GetSubscription": {"subscription": subscription},
        "UpdateSubscription": {"subscription": changed, "update_mask": {"paths": ["ack_deadline_seconds"]}},
        "ModifyPushConfig": {"subscription": subscription, "push_config": {"push_endpoint": ENDPOINT}},
        "DeleteSubscription": {"subscription": subscription},
        "ListSubscriptions": {"project": names.project},
        "Acknowledge": {"subscription": subscription, "ack_ids": [names.ack_id]},
        "ModifyAckDeadline": {"subscription": subscription, "ack_ids": [names.ack_id], "ack_deadline_seconds": 30},
        "StreamingPull": {"subscription": subscription, "stream_ack_deadline_seconds": 10},
        "Pull": {"subscription": subscription, "max_messages": 5},
        "Seek": {"subscription": subscription, "time": {"seconds": 1_700_000_000}},
    }


def _snapshots(names: Names) -> Requests:
    snapshot = names.snapshot
    new = {"name": f"{names.project}/snapshots/new", "subscription": names.subscription, "labels": {"team": "x"}}
    return {
        "CreateSnapshot": new,
        "GetSnapshot": {"snapshot": snapshot},
        "UpdateSnapshot": {"snapshot": {"name": snapshot, "labels": {"team": "y"}}, "update_mask": {"paths": ["labels"]}},
        "DeleteSnapshot": {"snapshot": snapshot},
        "ListSnapshots": {"project": names.project},
    }


def _schemas(names: Names) -> Requests:
    project, schema = names.project, names.schema
    return {
        "CreateSchema": {"parent": project, "schema_id": "new", "schema": SCHEMA},
        "GetSchema": {"name": f"{schema}@{names.revision}"},
        "ListSchemas": {"parent": project},
        "ListSchemaRevisions": {"name": schema, "page_size": 1},
        "CommitSchema": {"name": schema, "schema": SCHEMA},
        "RollbackSchema": {"name": schema, "revision_id": names.revision},
        "DeleteSchemaRevision": {"name": f"{schema}@{names.revision}"},
        "DeleteSchema": {"name": schema},
        "ValidateSchema": {"parent": project, "schema": SCHEMA},
        "ValidateMessage": {"parent": project, "name": schema, "message": b"{}", "encoding": "JSON"},
    }


def _policies(names: Names) -> Requests:
    policy = {"bindings": [{"role": "roles/viewer", "members": ["allUsers"]}]}
    return {
        "SetIamPolicy": {"resource": names.topic, "policy": policy},
        "GetIamPolicy": {"resource": names.subscription},
        "TestIamPermissions": {"resource": names.topic, "permissions": ["pubsub.topics.publish"]},
    }
