"""The control plane for both vantages, limited to the prober's own topics and subscriptions.

Probes label the resources they create, and check the labels before they use or delete one. Between check and deletion another client could
replace a topic by one of the same name. The service has no conditional delete, so no other client may use these names.

The messages are the protobuf classes behind google-cloud-pubsub's own. They are created from settings, and compared with them, below the
calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1 import types

from prober.brokers.base import SubscriptionSettings, TopicSettings
from prober.brokers.call_errors import CallWatch
from prober.brokers.grpc_errors import let_go, translated, was_cancelled_by_caller
from prober.brokers.wire_messages import routing
from prober.errors import AdminUnavailable, BrokerError, BrokerUnavailable, NotOurs, NotThere

TIMEOUT_S: Final = 30.0
"""Timeout of a call, in seconds. Creating and deleting can take seconds (documentation: up to five)."""

PAGE_SIZE: Final = 100

# The classes behind the wrappers are created at run time and have no types.
_Topic: Final[Any] = types.Topic.pb()
_Subscription: Final[Any] = types.Subscription.pb()
_SeekRequest: Final[Any] = types.SeekRequest.pb()

_NANOSECONDS: Final = 1_000_000_000

# Defaults of the service for omitted settings (API reference, Subscription).
_MAX_ATTEMPTS_DEFAULT: Final = 5
_MINIMUM_BACKOFF_DEFAULT_S: Final = 10.0
_MAXIMUM_BACKOFF_DEFAULT_S: Final = 600.0
_RETENTION_DEFAULT_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class _Method:
    """One remote procedure.

    field   field of the request that names its resource, by which the request is routed.
    items   field of the response that contains the list, for a method that lists.
    about   path of that name if it is nested in `field`.
    """

    path: str
    field: str
    request: Any
    response: Any
    items: str = ""
    about: str = ""

    def metadata(self, request: Any) -> tuple[tuple[str, str], ...]:
        """Return the metadata that routes a request."""
        path = self.about or self.field
        return routing(path, attrgetter(path)(request))


_PUBLISHER: Final = "/google.pubsub.v1.Publisher/"
_SUBSCRIBER: Final = "/google.pubsub.v1.Subscriber/"

_CREATE_TOPIC: Final = _Method(f"{_PUBLISHER}CreateTopic", "name", _Topic, _Topic)
_GET_TOPIC: Final = _Method(f"{_PUBLISHER}GetTopic", "topic", types.GetTopicRequest.pb(), _Topic)
_DELETE_TOPIC: Final = _Method(f"{_PUBLISHER}DeleteTopic", "topic", types.DeleteTopicRequest.pb(), Empty)
_LIST_TOPICS: Final = _Method(
    f"{_PUBLISHER}ListTopics", "project", types.ListTopicsRequest.pb(), types.ListTopicsResponse.pb(), "topics"
)
_CREATE_SUBSCRIPTION: Final = _Method(f"{_SUBSCRIBER}CreateSubscription", "name", _Subscription, _Subscription)
_GET_SUBSCRIPTION: Final = _Method(
    f"{_SUBSCRIBER}GetSubscription", "subscription", types.GetSubscriptionRequest.pb(), _Subscription
)
_UPDATE_SUBSCRIPTION: Final = _Method(
    f"{_SUBSCRIBER}UpdateSubscription",
    "subscription",
    types.UpdateSubscriptionRequest.pb(),
    _Subscription,
    about="subscription.name",
)
_DELETE_SUBSCRIPTION: Final = _Method(
    f"{_SUBSCRIBER}DeleteSubscription", "subscription", types.DeleteSubscriptionRequest.pb(), Empty
)
_LIST_SUBSCRIPTIONS: Final = _Method(
    f"{_SUBSCRIBER}ListSubscriptions",
    "project",
    types.ListSubscriptionsRequest.pb(),
    types.ListSubscriptionsResponse.pb(),
    "subscriptions",
)
_LISTS: Final = (_LIST_TOPICS, _LIST_SUBSCRIPTIONS)
_SEEK: Final = _Method(f"{_SUBSCRIBER}Seek", "subscription", _SeekRequest, types.SeekResponse.pb())

_CREATE_SNAPSHOT: Final = _Method(f"{_SUBSCRIBER}CreateSnapshot", "name", types.CreateSnapshotRequest.pb(), types.Snapshot.pb())
_DELETE_SNAPSHOT: Final = _Method(f"{_SUBSCRIBER}DeleteSnapshot", "snapshot", types.DeleteSnapshotRequest.pb(), Empty)


class ServiceAdmin:
    """The administration of one target over a channel that its caller owns.

    It reports the end of each call to the owner (`watch`).
    """

    def __init__(
        self, channel: grpc.aio.Channel, watch: CallWatch, timeout_s: float = TIMEOUT_S, page_size: int = PAGE_SIZE
    ) -> None:
        self._channel, self._watch = channel, watch
        self._timeout_s = timeout_s
        self._page_size = page_size

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        """Create a topic, or accept an existing one with these labels. Raises NotOurs if its labels differ."""
        try:
            await self._ask(_CREATE_TOPIC, _Topic(name=topic, labels=settings.labels), f"creating {topic}")
        except NotOurs:
            if differences := _label_differences(await self._topic(topic), settings.labels):
                raise NotOurs(_differs(topic, differences)) from None

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Create a subscription, or accept an existing one with these settings. Raises NotOurs if they differ."""
        message = _subscription_message(subscription, settings)
        try:
            await self._ask(_CREATE_SUBSCRIPTION, message, f"creating {subscription}")
        except NotOurs:
            if differences := _subscription_differences(await self._subscription(subscription), settings):
                raise NotOurs(_differs(subscription, differences)) from None

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        """Delete the resource if it has these labels; see the port."""
        _check_labels(labels)
        is_topic = _is_topic(name)
        try:
            found = await (self._topic(name) if is_topic else self._subscription(name))
            if not _carries(found, labels):
                return False
            deletion = _DELETE_TOPIC if is_topic else _DELETE_SUBSCRIPTION
            await self._ask(deletion, _named(deletion, name), f"deleting {name}")
        except NotThere:
            return False
        return True

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        """Return the resources with these labels, topics first; see the port."""
        _check_labels(labels)
        return [one.name for method in _LISTS for one in await self._all(method, project) if _carries(one, labels)]

    async def subscriptions(self, project: str) -> Mapping[str, Mapping[str, str]]:
        """Return all subscriptions of a project with their labels; see the port."""
        return {one.name: dict(one.labels) for one in await self._all(_LIST_SUBSCRIPTIONS, project)}

    async def _all(self, method: _Method, project: str) -> Sequence[Any]:
        found: list[Any] = []
        token = ""
        while True:
            page = await self._page(method, project, token)
            found += getattr(page, method.items)
            token = page.next_page_token
            if not token:
                return found

    async def _page(self, method: _Method, project: str, token: str = "") -> Any:
        request = method.request(project=project, page_size=self._page_size, page_token=token)
        return await self._ask(method, request, f"listing what is in {project}")

    async def look(self, name: str) -> None:
        """Query a topic or subscription; see the port."""
        await (self._topic(name) if _is_topic(name) else self._subscription(name))

    async def list_some(self, project: str) -> None:
        """Query one page of subscriptions; see the port."""
        await self._page(_LIST_SUBSCRIPTIONS, project)

    async def update_subscription(
        self, subscription: str, *, ordering: bool | None = None, message_retention_s: float | None = None
    ) -> None:
        """Change the given settings; see the port."""
        request = _update_request(subscription, ordering, message_retention_s)
        await self._ask(_UPDATE_SUBSCRIPTION, request, f"changing {subscription}")

    async def seek(self, subscription: str, to_time: float) -> None:
        """Seek to a wall-clock time."""
        request = _SeekRequest(subscription=subscription)
        request.time.FromNanoseconds(round(to_time * _NANOSECONDS))
        await self._ask(_SEEK, request, f"seeking {subscription}")

    async def seek_to_snapshot(self, subscription: str, snapshot: str) -> None:
        """Seek to a snapshot."""
        await self._ask(_SEEK, _SeekRequest(subscription=subscription, snapshot=snapshot), f"seeking {subscription}")

    async def create_snapshot(self, snapshot: str, subscription: str, labels: Mapping[str, str]) -> None:
        """Create a snapshot."""
        request = _CREATE_SNAPSHOT.request(name=snapshot, subscription=subscription, labels=labels)
        await self._ask(_CREATE_SNAPSHOT, request, f"creating {snapshot}")

    async def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot."""
        await self._ask(_DELETE_SNAPSHOT, _named(_DELETE_SNAPSHOT, snapshot), f"deleting {snapshot}")

    async def _topic(self, topic: str) -> Any:
        return await self._ask(_GET_TOPIC, _named(_GET_TOPIC, topic), f"looking at {topic}")

    async def _subscription(self, subscription: str) -> Any:
        request = _named(_GET_SUBSCRIPTION, subscription)
        return await self._ask(_GET_SUBSCRIPTION, request, f"looking at {subscription}")

    async def _ask(self, method: _Method, request: Any, doing: str) -> Any:
        call = self._channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
        try:
            return await call(request, timeout=self._timeout_s, metadata=method.metadata(request))
        except grpc.aio.AioRpcError as error:
            self._watch.ended(method.path, error.code())
            raise self._failure(error, doing) from error
        except grpc.aio.UsageError:  # the channel was closed before
            raise let_go(doing) from None
        except asyncio.CancelledError:
            if was_cancelled_by_caller():
                raise
            raise let_go(doing) from None

    def _failure(self, error: grpc.aio.AioRpcError, doing: str) -> BrokerError:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return AdminUnavailable(f"{doing} took longer than {self._timeout_s:g} s")
        failure = translated(error, doing)
        return AdminUnavailable(str(failure)) if isinstance(failure, BrokerUnavailable) else failure


def _check_labels(labels: Mapping[str, str]) -> None:
    if not labels:
        raise ValueError("at least one label is needed: without one everything would match")


def _differs(name: str, differences: Sequence[str]) -> str:
    return f"{name} exists with other settings: {', '.join(differences)}; delete it or choose another name"


# --- messages ----------------------------------------------------------------------------------------------------------------


def _is_topic(name: str) -> bool:
    """Return whether a full name is that of a topic, not of a subscription. Raises ValueError for anything else."""
    match name.split("/"):
        case ["projects", project, "topics" | "subscriptions" as kind, last] if project and last:
            return kind == "topics"
    raise ValueError(f"{name!r} is not the full name of a topic or subscription")


def _named(method: _Method, name: str) -> Any:
    return method.request(**{method.field: name})


def _update_request(subscription: str, ordering: bool | None, message_retention_s: float | None) -> Any:
    request = _UPDATE_SUBSCRIPTION.request()
    request.subscription.name = subscription
    if ordering is not None:
        request.subscription.enable_message_ordering = ordering
        request.update_mask.paths.append("enable_message_ordering")
    if message_retention_s is not None:
        _set_seconds(request.subscription.message_retention_duration, message_retention_s)
        request.update_mask.paths.append("message_retention_duration")
    return request


def _carries(found: Any, labels: Mapping[str, str]) -> bool:
    return all(found.labels.get(key) == value for key, value in labels.items())


def _subscription_message(name: str, settings: SubscriptionSettings) -> Any:
    message = _Subscription(
        name=name,
        topic=settings.topic,
        enable_message_ordering=settings.ordering,
        ack_deadline_seconds=settings.ack_deadline_s,
        enable_exactly_once_delivery=settings.exactly_once,
        filter=settings.filter,
        retain_acked_messages=settings.retain_acked,
        labels=settings.labels,
    )
    if settings.dead_letter_topic:
        message.dead_letter_policy.dead_letter_topic = settings.dead_letter_topic
        message.dead_letter_policy.max_delivery_attempts = settings.dead_letter_max_attempts
    if settings.retry_minimum_backoff_s is not None:
        _set_seconds(message.retry_policy.minimum_backoff, settings.retry_minimum_backoff_s)
    if settings.retry_maximum_backoff_s is not None:
        _set_seconds(message.retry_policy.maximum_backoff, settings.retry_maximum_backoff_s)
    if settings.push is not None:
        message.push_config.push_endpoint = settings.push.endpoint
        if settings.push.service_account:
            message.push_config.oidc_token.service_account_email = settings.push.service_account
            message.push_config.oidc_token.audience = settings.push.audience
    if settings.message_retention_s < inf:
        _set_seconds(message.message_retention_duration, settings.message_retention_s)
    return message


def _subscription_differences(found: Any, settings: SubscriptionSettings) -> Sequence[str]:
    """Return the differences between an existing subscription and the settings, in words."""
    asked = _comparable(_subscription_message("", settings))
    there = _comparable(found)
    different = [f"{what} is {there[what]!r}, wanted is {value!r}" for what, value in asked.items() if there[what] != value]
    return [*different, *_label_differences(found, settings.labels)]


def _label_differences(found: Any, labels: Mapping[str, str]) -> list[str]:
    return [
        f"label {key} is {found.labels.get(key, '')!r}, wanted is {value!r}"
        for key, value in labels.items()
        if found.labels.get(key) != value
    ]


def _comparable(message: Any) -> dict[str, object]:
    """Return the settings to compare, with the service's defaults for omitted settings of a policy."""
    dead_letter, retry = message.dead_letter_policy, message.retry_policy
    has_retry = message.HasField("retry_policy")
    return {
        "topic": message.topic,
        "ordering": message.enable_message_ordering,
        "ack deadline": message.ack_deadline_seconds,
        "exactly-once": message.enable_exactly_once_delivery,
        "filter": message.filter,
        "retaining acknowledged messages": message.retain_acked_messages,
        "push endpoint": message.push_config.push_endpoint,
        "push account": message.push_config.oidc_token.service_account_email,
        "push audience": message.push_config.oidc_token.audience,
        "dead-letter topic": dead_letter.dead_letter_topic,
        "dead-letter attempts": (dead_letter.max_delivery_attempts or _MAX_ATTEMPTS_DEFAULT)
        if dead_letter.dead_letter_topic
        else 0,
        "minimum backoff": _seconds(retry, "minimum_backoff", _MINIMUM_BACKOFF_DEFAULT_S) if has_retry else None,
        "maximum backoff": _seconds(retry, "maximum_backoff", _MAXIMUM_BACKOFF_DEFAULT_S) if has_retry else None,
        "message retention": _seconds(message, "message_retention_duration", _RETENTION_DEFAULT_S),
    }


def _seconds(message: Any, field: str, default: float) -> float:
    if not message.HasField(field):
        return default
    return float(getattr(message, field).ToNanoseconds() / _NANOSECONDS)


def _set_seconds(duration: Any, seconds: float) -> None:
    duration.FromNanoseconds(round(seconds * _NANOSECONDS))
