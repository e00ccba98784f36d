"""The unary methods of google.pubsub.v1 and google.iam.v1.IAMPolicy, for all protocols.

They only translate: a request message becomes a call on the state, its result a response message. `servicer` offers them over gRPC, `rest`
over HTTP, so faults and limits are the same for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import isawaitable
from itertools import count
from typing import Any, Final

from google.protobuf import empty_pb2
from google.pubsub_v1 import types

from prober.embedded import errors, iam, protobuf, resources, schema_calls
from prober.embedded.pump import Pump
from prober.embedded.schemas import Schemas
from prober.embedded.state import PULL_WAIT_S

_EMPTY: Final = empty_pb2.Empty()


class Calls:
    """The methods by name, on the state of one pump."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._state = pump.state
        self._registry = pump.state.registry
        self._numbers = count(1)
        self._schemas = Schemas()
        self._methods: dict[str, Callable[[Any], Any]] = {
            **{name: getattr(self, _own(name)) for name in PUBLISHER_METHODS | SUBSCRIBER_METHODS if name != "Pull"},
            **schema_calls.SchemaCalls(self._schemas, self._registry, pump.now).methods,
            **iam.Iam(self._registry, self._schemas).methods,
        }

    async def call(self, name: str, request: Any, pull_wait_s: float = PULL_WAIT_S) -> Any:
        """Answer one request to a method of `METHODS` with a response message. Raises ServiceError if it is refused.

        A pull waits for messages for at most `pull_wait_s` seconds. A method that compiles a schema waits for the compiler. No other method
        waits: its changes are atomic. A fault may fail the request or delay the response.
        """
        if name == "Pull":
            return await self._pull(request, pull_wait_s)
        try:
            self._refuse(name)
            response = self._methods[name](request)
            if isawaitable(response):
                response = await response
        finally:
            self._pump.ask()
        late_s = self._answered_after(name, request)
        if late_s:
            await asyncio.sleep(late_s)
        return response

    def _refuse(self, name: str) -> None:
        """Raise the error of a fault that fails administrative calls, if it is injected."""
        error = self._state.behaviour.refuse(name, self._pump.now()) if name not in _DATA_METHODS else None
        if error is not None:
            raise error

    def _answered_after(self, name: str, request: Any) -> float:
        if name == "Publish":
            return self._state.behaviour.answer_after(name, request.topic, request.messages[0].ordering_key, self._pump.now())
        return 0.0 if name in _DATA_METHODS else self._state.behaviour.answer_after(name, name, "", self._pump.now())

    # --- Publisher --------------------------------------------------------------------------------------------------------------

    def _publish(self, request: Any) -> Any:
        settings = self._registry.topic(request.topic).settings
        drafts = self._schemas.stamped(settings.schema, protobuf.drafts(request))
        ids = self._state.publish(request.topic, drafts, self._pump.now())
        return protobuf.PublishResponse(message_ids=ids)

    def _create_topic(self, request: Any) -> Any:
        settings = protobuf.topic_from(request)
        self._schemas.check_settings(settings.schema)
        return protobuf.topic_to(self._registry.create_topic(settings))

    def _get_topic(self, request: Any) -> Any:
        return protobuf.topic_to(self._registry.topic(request.topic).settings)

    def _update_topic(self, request: Any) -> Any:
        known = self._registry.topic(request.topic.name).settings
        wanted = protobuf.topic_from(protobuf.merged(protobuf.topic_to(known), request.topic, request.update_mask))
        if wanted.schema != known.schema:  # the schema may be deleted by now
            self._schemas.check_settings(wanted.schema)
        return protobuf.topic_to(self._registry.update_topic(wanted, request.update_mask.paths))

    def _delete_topic(self, request: Any) -> Any:
        self._registry.delete_topic(request.topic)
        return _EMPTY

    def _list_topics(self, request: Any) -> Any:
        names = self._registry.in_project(self._registry.topics, request.project)
        page, token = self._registry.page(names, request.page_size, request.page_token)
        topics = [protobuf.topic_to(self._registry.topics[name].settings) for name in page]
        return types.ListTopicsResponse.pb()(topics=topics, next_page_token=token)

    def _list_topic_subscriptions(self, request: Any) -> Any:
        page, token = self._registry.page(self._registry.topic(request.topic).subscriptions, request.page_size, request.page_token)
        return types.ListTopicSubscriptionsResponse.pb()(subscriptions=page, next_page_token=token)

    def _list_topic_snapshots(self, request: Any) -> Any:
        page, token = self._registry.page(self._registry.topic(request.topic).snapshots, request.page_size, request.page_token)
        return types.ListTopicSnapshotsResponse.pb()(snapshots=page, next_page_token=token)

    def _detach_subscription(self, request: Any) -> Any:
        self._registry.detach_subscription(request.subscription, self._pump.now())
        return _EMPTY

    # --- Subscriber: resources --------------------------------------------------------------------------------------------------

    def _create_subscription(self, request: Any) -> Any:
        settings = protobuf.subscription_from(request)
        return self._shown(self._registry.create_subscription(settings, self._pump.now()))

    def _get_subscription(self, request: Any) -> Any:
        return self._shown(self._registry.subscription(request.subscription).settings)

    def _update_subscription(self, request: Any) -> Any:
        known = self._shown(self._registry.subscription(request.subscription.name).settings)
        wanted = protobuf.subscription_from(protobuf.merged(known, request.subscription, request.update_mask))
        return self._shown(self._registry.update_subscription(wanted, request.update_mask.paths, self._pump.now()))

    def _modify_push_config(self, request: Any) -> Any:
        queue = self._registry.subscription(request.subscription)
        wanted = replace(queue.settings, push_config=protobuf.push_config_from(request.push_config))
        self._registry.update_subscription(wanted, ["push_config"], self._pump.now())
        return _EMPTY

    def _delete_subscription(self, request: Any) -> Any:
        self._registry.delete_subscription(request.subscription, self._pump.now())
        return _EMPTY

    def _list_subscriptions(self, request: Any) -> Any:
        names = self._registry.in_project(self._registry.subscriptions, request.project)
        page, token = self._registry.page(names, request.page_size, request.page_token)
        found = [self._shown(self._registry.subscriptions[name].settings) for name in page]
        return types.ListSubscriptionsResponse.pb()(subscriptions=found, next_page_token=token)

    def _shown(self, settings: resources.Subscription) -> Any:
        topic = self._registry.topics.get(settings.topic)
        return protobuf.subscription_to(settings, topic.settings if topic is not None else None)

    # --- Subscriber: snapshots --------------------------------------------------------------------------------------------------

    def _create_snapshot(self, request: Any) -> Any:
        made = self._registry.create_snapshot(request.name, request.subscription, dict(request.labels), self._pump.now())
        return protobuf.snapshot_to(made)

    def _get_snapshot(self, request: Any) -> Any:
        return protobuf.snapshot_to(self._registry.snapshot(request.snapshot).description)

    def _update_snapshot(self, request: Any) -> Any:
        wanted = protobuf.snapshot_from(request.snapshot)
        return protobuf.snapshot_to(self._registry.update_snapshot(wanted, request.update_mask.paths))

    def _delete_snapshot(self, request: Any) -> Any:
        self._registry.delete_snapshot(request.snapshot)
        return _EMPTY

    def _list_snapshots(self, request: Any) -> Any:
        names = self._registry.in_project(self._registry.snapshots, request.project)
        page, token = self._registry.page(names, request.page_size, request.page_token)
        found = [protobuf.snapshot_to(self._registry.snapshots[name].description) for name in page]
        return types.ListSnapshotsResponse.pb()(snapshots=found, next_page_token=token)

    def _seek(self, request: Any) -> Any:
        if request.WhichOneof("target") == "snapshot":
            self._registry.seek_to_snapshot(request.subscription, request.snapshot, self._pump.now())
        elif request.WhichOneof("target") is None:
            raise errors.invalid("target")
        else:
            self._registry.seek_to_time(request.subscription, protobuf.timestamp(request.time), self._pump.now())
        return _EMPTY

    # --- Subscriber: messages ---------------------------------------------------------------------------------------------------

    def _acknowledge(self, request: Any) -> Any:
        self._state.acknowledge(request.subscription, request.ack_ids, self._pump.now())
        return _EMPTY

    def _modify_ack_deadline(self, request: Any) -> Any:
        self._state.modify_ack_deadline(request.subscription, request.ack_ids, request.ack_deadline_seconds, self._pump.now())
        return _EMPTY

    async def _pull(self, request: Any, wait_s: float) -> Any:
        pull = f"pull {next(self._numbers)}"
        answer = self._pump.await_pull(pull)
        try:
            patience_s = 0.0 if request.return_immediately else wait_s
            self._state.pull(pull, request.subscription, request.max_messages, self._pump.now(), wait_s=patience_s)
            self._pump.ask()
            return protobuf.PullResponse(received_messages=protobuf.received(await answer))
        finally:
            answer.cancel()
            self._state.cancel_pull(pull)


def _own(method: str) -> str:
    """Return `_get_topic` for `GetTopic`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method)


_DATA_METHODS: Final = frozenset({"Publish", "Acknowledge", "ModifyAckDeadline"})

# Method: name of its request message. The method of that name above answers it.
PUBLISHER_METHODS: Final = {
    "Publish": "PublishRequest",
    "CreateTopic": "Topic",
    "GetTopic": "GetTopicRequest",
    "UpdateTopic": "UpdateTopicRequest",
    "DeleteTopic": "DeleteTopicRequest",
    "ListTopics": "ListTopicsRequest",
    "ListTopicSubscriptions": "ListTopicSubscriptionsRequest",
    "ListTopicSnapshots": "ListTopicSnapshotsRequest",
    "DetachSubscription": "DetachSubscriptionRequest",
}
SUBSCRIBER_METHODS: Final = {
    "CreateSubscription": "Subscription",
    "GetSubscription": "GetSubscriptionRequest",
    "UpdateSubscription": "UpdateSubscriptionRequest",
    "ModifyPushConfig": "ModifyPushConfigRequest",
    "DeleteSubscription": "DeleteSubscriptionRequest",
    "ListSubscriptions": "ListSubscriptionsRequest",
    "CreateSnapshot": "CreateSnapshotRequest",
    "GetSnapshot": "GetSnapshotRequest",
    "UpdateSnapshot": "UpdateSnapshotRequest",
    "DeleteSnapshot": "DeleteSnapshotRequest",
    "ListSnapshots": "ListSnapshotsRequest",
    "Seek": "SeekRequest",
    "Acknowledge": "AcknowledgeRequest",
    "ModifyAckDeadline": "ModifyAckDeadlineRequest",
    "Pull": "PullRequest",
}
METHODS: Final[Mapping[str, Any]] = {
    **{name: getattr(types, request).pb() for name, request in (PUBLISHER_METHODS | SUBSCRIBER_METHODS).items()},
    **schema_calls.METHODS,
    **iam.METHODS,
}
"""Class of the request messages of each method."""
