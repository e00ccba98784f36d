"""The documented limits (documentation: "Pub/Sub quotas and limits", "Resource names", and the proto comments of each field)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from prober.embedded import errors, resources
from prober.embedded.messages import Draft

ORDERING_KEY_BYTES_MAX: Final = 1_024
MESSAGE_BYTES_MAX: Final = 10_000_000
REQUEST_BYTES_MAX: Final = 10_000_000
REQUEST_MESSAGES_MAX: Final = 1_000
ATTRIBUTES_MAX: Final = 100
ATTRIBUTE_KEY_BYTES_MAX: Final = 256
ATTRIBUTE_VALUE_BYTES_MAX: Final = 1_024
FILTER_BYTES_MAX: Final = 256
LABELS_MAX: Final = 64
ACK_DEADLINE_MIN_S: Final = 10
ACK_DEADLINE_MAX_S: Final = 600
RETENTION_MIN_S: Final = 600.0
RETENTION_MAX_S: Final = 31 * resources.DAY_S
EXPIRATION_MIN_S: Final = resources.DAY_S
BACKOFF_MAX_S: Final = 600.0
DELIVERY_ATTEMPTS_MIN: Final = 5
DELIVERY_ATTEMPTS_MAX: Final = 100
PULL_MESSAGES_MAX: Final = 1_000

# "It must start with a letter, and contain only letters, numbers, dashes, underscores, periods, tildes, plus or percent signs. It must
# be between 3 and 255 characters in length, and it must not start with goog" (proto, Topic.name).
_IDENTIFIER: Final = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9\-_.~+%]{2,254}")
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9\-.:]*")
_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")


def check_name(name: str, collection: str) -> None:
    """A resource name is `projects/P/<collection>/ID`; raises INVALID_ARGUMENT."""
    parts = name.split("/")
    if len(parts) != 4 or parts[0] != "projects" or parts[2] != collection:
        raise errors.invalid_name(name)
    if not _PROJECT.fullmatch(parts[1]) or not _IDENTIFIER.fullmatch(parts[3]):
        raise errors.invalid_name(name)


def check_project(name: str) -> None:
    """A project's name is `projects/P`; raises INVALID_ARGUMENT."""
    head, _, project = name.partition("/")
    if head != "projects" or not _PROJECT.fullmatch(project):
        raise errors.invalid_name(name)


def check_labels(labels: Mapping[str, str]) -> None:
    """At most 64 labels in lower case (documentation, "Create and manage labels")."""
    if len(labels) > LABELS_MAX:
        raise errors.too_large("labels", len(labels), LABELS_MAX)
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise errors.invalid("labels")


def check_drafts(drafts: Sequence[Draft]) -> None:
    """What one publish request may hold; raises INVALID_ARGUMENT or, for mixed keys, FAILED_PRECONDITION."""
    if not drafts:
        raise errors.too_small("message_count", 0, 1)
    if len(drafts) > REQUEST_MESSAGES_MAX:
        raise errors.too_large("message_count", len(drafts), REQUEST_MESSAGES_MAX)
    key = drafts[0].ordering_key
    total = 0
    for draft in drafts:
        total += check_draft(draft)
        if draft.ordering_key != key:
            raise errors.precondition(
                "In a single publish request, all messages must have no ordering key or they must all have the same ordering key."
            )
    if total > REQUEST_BYTES_MAX:
        raise errors.too_large("request_size", total, REQUEST_BYTES_MAX)


def check_draft(draft: Draft) -> int:
    """Check one message; its size in bytes. Raises INVALID_ARGUMENT."""
    if not draft.data and not draft.attributes:
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            "One or more messages in the publish request is empty. "
            "Each message must contain either non-empty data, or at least one attribute.",
        )
    size = draft.size
    if size > MESSAGE_BYTES_MAX:
        raise errors.too_large("message_size", size, MESSAGE_BYTES_MAX)
    # A string of n characters has at most 4 n bytes: short ones need not be encoded to be measured.
    if len(draft.ordering_key) > ORDERING_KEY_BYTES_MAX // 4:
        _check_bytes("ordering_key_size", draft.ordering_key, ORDERING_KEY_BYTES_MAX)
    if draft.attributes:
        _check_attributes(draft.attributes)
    return size


def _check_attributes(attributes: Mapping[str, str]) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise errors.too_large("num_attributes", len(attributes), ATTRIBUTES_MAX)
    for key, value in attributes.items():
        if not key or key[:4].lower() == "goog":
            raise errors.ServiceError(
                errors.Code.INVALID_ARGUMENT,
                f"The request contains an attribute key that is not valid (key={key}). "
                "Attribute keys must be non-empty and must not begin with 'goog' (case-insensitive).",
            )
        if len(key) > ATTRIBUTE_KEY_BYTES_MAX // 4:
            _check_bytes("attribute_key_size", key, ATTRIBUTE_KEY_BYTES_MAX)
        if len(value) > ATTRIBUTE_VALUE_BYTES_MAX // 4:
            _check_bytes("attribute_value_size", value, ATTRIBUTE_VALUE_BYTES_MAX)


def _check_bytes(what: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise errors.too_large(what, size, limit)


def check_range(what: str, value: float, low: float, high: float) -> None:
    """A number is within its bounds; raises INVALID_ARGUMENT."""
    if value < low:
        raise errors.too_small(what, int(value), int(low))
    if value > high:
        raise errors.too_large(what, int(value), int(high))


def check_ack_deadline(seconds: int, low: int = 0) -> None:
    """A deadline is within its bounds, by default those of one message's; raises INVALID_ARGUMENT."""
    if not low <= seconds <= ACK_DEADLINE_MAX_S:
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            f"Invalid ack deadline given (ack_deadline={seconds}). "
            f"The ack deadline must be between {low} and {ACK_DEADLINE_MAX_S} seconds.",
        )


def check_topic(topic: resources.Topic) -> None:
    """The settings of a topic are acceptable; raises INVALID_ARGUMENT."""
    check_name(topic.name, "topics")
    check_labels(topic.labels)
    if topic.message_retention_s is not None:
        check_range("message_retention_duration", topic.message_retention_s, RETENTION_MIN_S, RETENTION_MAX_S)


def check_subscription(subscription: resources.Subscription) -> None:
    """The settings of a subscription are acceptable, apart from its filter and from what they refer to; raises INVALID_ARGUMENT."""
    check_name(subscription.name, "subscriptions")
    check_labels(subscription.labels)
    check_ack_deadline(subscription.ack_deadline_s, ACK_DEADLINE_MIN_S)
    check_range("message_retention_duration", subscription.message_retention_s, RETENTION_MIN_S, RETENTION_MAX_S)
    if subscription.expiration_s is not None and subscription.expiration_s < EXPIRATION_MIN_S:
        raise errors.too_small("expiration_policy.ttl", int(subscription.expiration_s), int(EXPIRATION_MIN_S))
    if subscription.dead_letter_policy is not None:
        _check_dead_letter(subscription.dead_letter_policy)
    if subscription.retry_policy is not None:
        _check_retry(subscription.retry_policy)
    if subscription.push_config.push_endpoint:
        _check_push(subscription)


def _check_dead_letter(policy: resources.DeadLetterPolicy) -> None:
    check_name(policy.dead_letter_topic, "topics")
    check_range(
        "dead_letter_policy.max_delivery_attempts", policy.max_delivery_attempts, DELIVERY_ATTEMPTS_MIN, DELIVERY_ATTEMPTS_MAX
    )


def _check_retry(policy: resources.RetryPolicy) -> None:
    check_range("retry_policy.minimum_backoff", policy.minimum_backoff_s, 0, BACKOFF_MAX_S)
    check_range("retry_policy.maximum_backoff", policy.maximum_backoff_s, 0, BACKOFF_MAX_S)
    if policy.minimum_backoff_s > policy.maximum_backoff_s:
        raise errors.invalid("retry_policy.minimum_backoff")


def _check_push(subscription: resources.Subscription) -> None:
    # The real service asks for https; this one is for loopback, where a certificate proves nothing.
    if not re.match(r"https?://[^/]", subscription.push_config.push_endpoint):
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            f"Invalid push endpoint given (endpoint={subscription.push_config.push_endpoint}). "
            "Refer to https://cloud.google.com/pubsub/docs/subscriber#create for more information.",
        )
    if subscription.enable_exactly_once_delivery:
        raise errors.invalid("enable_exactly_once_delivery")
