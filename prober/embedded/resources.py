"""The settings of topics, subscriptions and snapshots, and the documented limits on them.

Settings are frozen values, replaced as a whole by an update. Field names and defaults are those of `google.pubsub.v1.Topic`,
`Subscription` and `Snapshot`; durations are seconds. The limits are those of the documentation ("Pub/Sub quotas and limits", "Resource
names") and of the proto comments of each field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from prober.embedded import errors

Kept = TypeVar("Kept")
"""Type of a resource in a registry."""

DELETED_TOPIC: Final = "_deleted-topic_"
DELETED_SCHEMA: Final = "_deleted-schema_"

DAY_S: Final = 86_400.0
ACK_DEADLINE_DEFAULT_S: Final = 10
RETENTION_DEFAULT_S: Final = 7 * DAY_S
EXPIRATION_DEFAULT_S: Final = 31 * DAY_S
SNAPSHOT_LIFETIME_S: Final = 7 * DAY_S
SNAPSHOT_LIFETIME_MIN_S: Final = 3_600.0
MAX_DELIVERY_ATTEMPTS_DEFAULT: Final = 5
MINIMUM_BACKOFF_DEFAULT_S: Final = 10.0
MAXIMUM_BACKOFF_DEFAULT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class SchemaSettings:
    """Schema and range of revisions that messages of a topic must match (proto, SchemaSettings).

    encoding            `JSON` or `BINARY`.
    first_revision_id   oldest valid revision, `last_revision_id` the newest; empty: no bound.
    """

    schema: str
    encoding: str
    first_revision_id: str = ""
    last_revision_id: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """Settings of a topic. `message_retention_s` None: the topic itself retains nothing.

    others  fields that are stored and shown without an effect here, as a serialized message.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    message_retention_s: float | None = None
    others: bytes = b""
    schema: SchemaSettings | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Back-off before the redelivery of a message: exponential between the two bounds (proto, RetryPolicy)."""

    minimum_backoff_s: float = MINIMUM_BACKOFF_DEFAULT_S
    maximum_backoff_s: float = MAXIMUM_BACKOFF_DEFAULT_S

    def backoff_s(self, failures: int) -> float:
        """Return the back-off after this number of nacks and missed deadlines of a message, at least 1."""
        doublings = min(failures - 1, 40)  # beyond that the bound holds anyway, and floats stay finite
        return min(self.minimum_backoff_s * 2.0**doublings, self.maximum_backoff_s)


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Dead-letter topic of a subscription.

    A message goes there after `max_delivery_attempts`.
    """

    dead_letter_topic: str
    max_delivery_attempts: int = MAX_DELIVERY_ATTEMPTS_DEFAULT


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Endpoint and form of pushed messages; an empty endpoint means that messages are pulled.

    oidc_email  service account of the token, which the key of this server signs; empty: no token. `oidc_audience`: audience of the token,
                by default the endpoint.
    """

    push_endpoint: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    oidc_email: str = ""
    oidc_audience: str = ""
    unwrapped: bool = False
    write_metadata: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    """Settings of a subscription. `expiration_s` None: it never expires. `enable_message_ordering` and `filter` never change.

    others  as for a topic.
    """

    name: str
    topic: str
    push_config: PushConfig = field(default_factory=PushConfig)
    ack_deadline_s: int = ACK_DEADLINE_DEFAULT_S
    retain_acked_messages: bool = False
    message_retention_s: float = RETENTION_DEFAULT_S
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    enable_message_ordering: bool = False
    expiration_s: float | None = EXPIRATION_DEFAULT_S
    filter: str = ""
    dead_letter_policy: DeadLetterPolicy | None = None
    retry_policy: RetryPolicy | None = None
    detached: bool = False
    enable_exactly_once_delivery: bool = False
    others: bytes = b""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Description of a snapshot; `registry.SnapshotState` contains its messages."""

    name: str
    topic: str
    expire_time: float
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


LABELS_MAX: Final = 64
ACK_DEADLINE_MIN_S: Final = 10
ACK_DEADLINE_MAX_S: Final = 600
RETENTION_MIN_S: Final = 600.0
RETENTION_MAX_S: Final = 31 * DAY_S
EXPIRATION_MIN_S: Final = DAY_S
BACKOFF_MAX_S: Final = 600.0
DELIVERY_ATTEMPTS_MIN: Final = 5
DELIVERY_ATTEMPTS_MAX: Final = 100
PULL_MESSAGES_MAX: Final = 1_000

# "It must start with a letter, and contain only letters, numbers, dashes, underscores, periods, tildes, plus or percent signs. It must
# be between 3 and 255 characters in length, and it must not start with goog" (proto, Topic.name).
_IDENTIFIER: Final = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9\-_.~+%]{2,254}")
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9\-.:]*")
_LABEL_LENGTH_MAX: Final = 63


def check_name(name: str, collection: str) -> None:
    """Check that a resource name is `projects/P/<collection>/ID`. Raises INVALID_ARGUMENT."""
    parts = name.split("/")
    if len(parts) != 4 or parts[0] != "projects" or parts[2] != collection:
        raise errors.invalid_name(name)
    if not _PROJECT.fullmatch(parts[1]):
        raise errors.invalid_name(name, f"project id {parts[1]!r}")
    if not _IDENTIFIER.fullmatch(parts[3]):
        raise errors.invalid_name(name, f"id {parts[3]!r}")


def find(kept: Mapping[str, Kept], name: str, collection: str) -> Kept:
    """Return a resource by name. Raises NOT_FOUND, or INVALID_ARGUMENT for an invalid name."""
    found = kept.get(name)
    if found is None:
        check_name(name, collection)
        raise errors.not_found(name)
    return found


def check_project(name: str) -> None:
    """Check that the name of a project is `projects/P`. Raises INVALID_ARGUMENT."""
    head, _, project = name.partition("/")
    if head != "projects":
        raise errors.invalid_name(name)
    if not _PROJECT.fullmatch(project):
        raise errors.invalid_name(name, f"project id {project!r}")


def check_labels(labels: Mapping[str, str]) -> None:
    """Check labels: at most 64, in lower case, in any script (documentation, "Create and manage labels")."""
    if len(labels) > LABELS_MAX:
        raise errors.too_large("labels", len(labels), LABELS_MAX)
    for key, value in labels.items():
        if not key[:1].isalpha() or not _is_label(key) or not _is_label(value):
            raise errors.invalid("labels", f"{key}={value}")


def _is_label(text: str) -> bool:
    return len(text) <= _LABEL_LENGTH_MAX and text == text.lower() and all(char.isalnum() or char in "_-" for char in text)


def check_range(what: str, value: float, low: float, high: float) -> None:
    """Check that a number is within its bounds. Raises INVALID_ARGUMENT."""
    if value < low:
        raise errors.too_small(what, int(value), int(low))
    if value > high:
        raise errors.too_large(what, int(value), int(high))


def check_ack_deadline(seconds: int, low: int = 0) -> None:
    """Check that a deadline is within its bounds, by default those of one message. Raises INVALID_ARGUMENT."""
    if not low <= seconds <= ACK_DEADLINE_MAX_S:
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            f"Invalid ack deadline given (ack_deadline={seconds}). "
            f"The ack deadline must be between {low} and {ACK_DEADLINE_MAX_S} seconds.",
        )


def check_topic(topic: Topic) -> None:
    """Check the settings of a topic. Raises INVALID_ARGUMENT."""
    check_name(topic.name, "topics")
    check_labels(topic.labels)
    if topic.message_retention_s is not None:
        check_range("message_retention_duration", topic.message_retention_s, RETENTION_MIN_S, RETENTION_MAX_S)


def check_subscription(subscription: Subscription) -> None:
    """Check the settings of a subscription, except its filter and the resources it refers to. Raises INVALID_ARGUMENT."""
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
    if subscription.push_config.oidc_audience and not subscription.push_config.oidc_email:
        raise errors.invalid("push_config.oidc_token.service_account_email", "an audience needs one")
    if subscription.push_config.push_endpoint:
        _check_push(subscription)


def _check_dead_letter(policy: DeadLetterPolicy) -> None:
    if not policy.dead_letter_topic:
        raise errors.invalid("dead_letter_policy.dead_letter_topic", "the policy has no topic")
    check_name(policy.dead_letter_topic, "topics")
    check_range(
        "dead_letter_policy.max_delivery_attempts", policy.max_delivery_attempts, DELIVERY_ATTEMPTS_MIN, DELIVERY_ATTEMPTS_MAX
    )


def _check_retry(policy: RetryPolicy) -> None:
    check_range("retry_policy.minimum_backoff", policy.minimum_backoff_s, 0, BACKOFF_MAX_S)
    check_range("retry_policy.maximum_backoff", policy.maximum_backoff_s, 0, BACKOFF_MAX_S)
    if policy.minimum_backoff_s > policy.maximum_backoff_s:
        raise errors.invalid("retry_policy.minimum_backoff")


def _check_push(subscription: Subscription) -> None:
    # The real service asks for https; this one is for loopback, where a certificate proves nothing.
    if not re.match(r"https?://[^/]", subscription.push_config.push_endpoint):
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            f"Invalid push endpoint given (endpoint={subscription.push_config.push_endpoint}). "
            "Refer to https://cloud.google.com/pubsub/docs/subscriber#create for more information.",
        )
    if subscription.enable_exactly_once_delivery:
        raise errors.invalid("enable_exactly_once_delivery")
