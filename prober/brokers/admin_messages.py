"""The messages of the control plane: settings to protobuf and back, on the classes behind google-cloud-pubsub's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1 import types

from prober.brokers.base import SubscriptionSettings, TopicSettings

# The classes behind the wrappers are made at run time and have no types.
_Topic: Final[Any] = types.Topic.pb()
_Subscription: Final[Any] = types.Subscription.pb()
_SeekRequest: Final[Any] = types.SeekRequest.pb()

_NANOSECONDS: Final = 1_000_000_000

# What the service fills in for what is left out (API reference, Subscription).
_MAX_ATTEMPTS_DEFAULT: Final = 5
_MINIMUM_BACKOFF_DEFAULT_S: Final = 10.0
_MAXIMUM_BACKOFF_DEFAULT_S: Final = 600.0
_RETENTION_DEFAULT_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Method:
    """One remote procedure.

    field   of the request that names what it is about, which is also where it is routed to.
    items   of the response that hold what was listed, for a method that lists.
    """

    path: str
    field: str
    request: Any
    response: Any
    items: str = ""


_PUBLISHER: Final = "/google.pubsub.v1.Publisher/"
_SUBSCRIBER: Final = "/google.pubsub.v1.Subscriber/"

CREATE_TOPIC: Final = Method(f"{_PUBLISHER}CreateTopic", "name", _Topic, _Topic)
GET_TOPIC: Final = Method(f"{_PUBLISHER}GetTopic", "topic", types.GetTopicRequest.pb(), _Topic)
DELETE_TOPIC: Final = Method(f"{_PUBLISHER}DeleteTopic", "topic", types.DeleteTopicRequest.pb(), Empty)
LIST_TOPICS: Final = Method(
    f"{_PUBLISHER}ListTopics", "project", types.ListTopicsRequest.pb(), types.ListTopicsResponse.pb(), "topics"
)
CREATE_SUBSCRIPTION: Final = Method(f"{_SUBSCRIBER}CreateSubscription", "name", _Subscription, _Subscription)
GET_SUBSCRIPTION: Final = Method(f"{_SUBSCRIBER}GetSubscription", "subscription", types.GetSubscriptionRequest.pb(), _Subscription)
DELETE_SUBSCRIPTION: Final = Method(f"{_SUBSCRIBER}DeleteSubscription", "subscription", types.DeleteSubscriptionRequest.pb(), Empty)
LIST_SUBSCRIPTIONS: Final = Method(
    f"{_SUBSCRIBER}ListSubscriptions",
    "project",
    types.ListSubscriptionsRequest.pb(),
    types.ListSubscriptionsResponse.pb(),
    "subscriptions",
)
SEEK: Final = Method(f"{_SUBSCRIBER}Seek", "subscription", _SeekRequest, types.SeekResponse.pb())


def encode(request: Any) -> bytes:
    """A request as bytes."""
    return bytes(request.SerializeToString())


def is_topic(name: str) -> bool:
    """Whether a full name is that of a topic, not of a subscription; anything else is a ValueError."""
    match name.split("/"):
        case ["projects", project, "topics" | "subscriptions" as kind, last] if project and last:
            return kind == "topics"
    raise ValueError(f"{name!r} is not the full name of a topic or subscription")


def named(method: Method, name: str) -> Any:
    """A request that says nothing but what it is about."""
    return method.request(**{method.field: name})


def list_request(method: Method, project: str, page_size: int, token: str) -> Any:
    """A request for one page."""
    return method.request(project=project, page_size=page_size, page_token=token)


def listed(method: Method, page: Any) -> tuple[Sequence[Any], str]:
    """What is on a page, and the token of the next one, empty if it is the last."""
    return getattr(page, method.items), page.next_page_token


def seek_request(subscription: str, to_time: float) -> Any:
    """A request to seek to a wall-clock time."""
    request = _SeekRequest(subscription=subscription)
    seconds, nanoseconds = divmod(round(to_time * _NANOSECONDS), _NANOSECONDS)
    request.time.seconds, request.time.nanos = seconds, nanoseconds
    return request


def carries(found: Any, labels: Mapping[str, str]) -> bool:
    """Whether a topic or subscription has all these labels."""
    return all(found.labels.get(key) == value for key, value in labels.items())


def topic_message(name: str, settings: TopicSettings) -> Any:
    """A topic to create."""
    return _Topic(name=name, labels=settings.labels)


def topic_differences(found: Any, settings: TopicSettings) -> Sequence[str]:
    """What keeps an existing topic from being the one that was asked for, in words."""
    return _label_differences(found, settings.labels)


def subscription_message(name: str, settings: SubscriptionSettings) -> Any:
    """A subscription to create."""
    message = _Subscription(
        name=name,
        topic=settings.topic,
        enable_message_ordering=settings.ordering,
        ack_deadline_seconds=settings.ack_deadline_s,
        enable_exactly_once_delivery=settings.exactly_once,
        filter=settings.filter,
        labels=settings.labels,
    )
    if settings.dead_letter_topic:
        message.dead_letter_policy.dead_letter_topic = settings.dead_letter_topic
        message.dead_letter_policy.max_delivery_attempts = settings.dead_letter_max_attempts
    if settings.retry_minimum_backoff_s is not None:
        _set_seconds(message.retry_policy.minimum_backoff, settings.retry_minimum_backoff_s)
    if settings.retry_maximum_backoff_s is not None:
        _set_seconds(message.retry_policy.maximum_backoff, settings.retry_maximum_backoff_s)
    if settings.message_retention_s < inf:
        _set_seconds(message.message_retention_duration, settings.message_retention_s)
    return message


def subscription_differences(found: Any, settings: SubscriptionSettings) -> Sequence[str]:
    """What keeps an existing subscription from being the one that was asked for, in words."""
    asked = _comparable(subscription_message("", settings))
    there = _comparable(found)
    different = [f"{what} is {there[what]!r}, asked for was {value!r}" for what, value in asked.items() if there[what] != value]
    return [*different, *_label_differences(found, settings.labels)]


def _label_differences(found: Any, labels: Mapping[str, str]) -> list[str]:
    return [
        f"label {key} is {found.labels.get(key, '')!r}, asked for was {value!r}"
        for key, value in labels.items()
        if found.labels.get(key) != value
    ]


def _comparable(message: Any) -> dict[str, object]:
    """What two subscriptions must agree on, with the service's defaults for what is left out of a policy."""
    dead_letter, retry = message.dead_letter_policy, message.retry_policy
    has_retry = message.HasField("retry_policy")
    return {
        "topic": message.topic,
        "ordering": message.enable_message_ordering,
        "ack deadline": message.ack_deadline_seconds,
        "exactly-once": message.enable_exactly_once_delivery,
        "filter": message.filter,
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
    duration = getattr(message, field)
    return float(duration.seconds + duration.nanos / _NANOSECONDS)


def _set_seconds(duration: Any, seconds: float) -> None:
    duration.seconds, duration.nanos = divmod(round(seconds * _NANOSECONDS), _NANOSECONDS)
