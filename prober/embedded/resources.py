"""The settings of topics, subscriptions and snapshots: frozen values, replaced as a whole by an update.

Field names and defaults are those of `google.pubsub.v1.Topic`, `Subscription` and `Snapshot`; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

DELETED_TOPIC: Final = "_deleted-topic_"

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
class Topic:
    """A topic's settings. `message_retention_s` None: the topic itself retains nothing."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    message_retention_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait before a message is delivered again: exponential between the two bounds (proto, RetryPolicy)."""

    minimum_backoff_s: float = MINIMUM_BACKOFF_DEFAULT_S
    maximum_backoff_s: float = MAXIMUM_BACKOFF_DEFAULT_S

    def backoff_s(self, failures: int) -> float:
        """The wait after this many refusals and missed deadlines of a message, at least 1."""
        doublings = min(failures - 1, 40)  # beyond that the bound holds anyway, and floats stay finite
        return min(self.minimum_backoff_s * 2.0**doublings, self.maximum_backoff_s)


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Where a message goes that nobody could process, and after how many attempts."""

    dead_letter_topic: str
    max_delivery_attempts: int = MAX_DELIVERY_ATTEMPTS_DEFAULT


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Where and how messages are pushed; an empty endpoint means that they are pulled.

    oidc_email and oidc_audience are kept and shown; this server signs no tokens.
    """

    push_endpoint: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    oidc_email: str = ""
    oidc_audience: str = ""
    unwrapped: bool = False
    write_metadata: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription's settings. `expiration_s` None: it never expires. `enable_message_ordering` and `filter` never change."""

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot's description; what it retains is kept beside it."""

    name: str
    topic: str
    expire_time: float
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
