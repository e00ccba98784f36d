"""Topics, subscriptions and snapshots by name, and the operations on them (proto: services Publisher and Subscriber).

Operations are create, get, list, update, delete, detach and seek. A topic refers to its subscriptions, and keeps a history while a request
may need it: for the topic's own retention, for subscriptions that retain acknowledged messages, and for snapshots, which also stand for all
messages published after them (documentation, "Replay and purge messages"). Otherwise there is no history.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from prober.embedded import delivery, errors, resources
from prober.embedded.engine import Engine
from prober.embedded.filters import compile_filter
from prober.embedded.messages import Message
from prober.embedded.subscription_queue import SubscriptionQueue

_PAGE_DEFAULT: Final = 100
_PAGE_MAX: Final = 1_000
_PAGE_TOKEN: Final = "after:"
DETACHED_MESSAGE: Final = "Subscription is detached from its topic."
UNSUPPORTED_MESSAGE: Final = "This method is not supported for this subscription type."

# Fields that an update may change, by their names in the proto.
_EVERY_RESOURCE: Final = ("labels", "message_retention_duration", "message_transforms", "tags")
_TOPIC_FIELDS: Final = frozenset(
    {*_EVERY_RESOURCE, "kms_key_name", "message_storage_policy", "schema_settings", "ingestion_data_source_settings"}
)
_SUBSCRIPTION_FIELDS: Final = frozenset(
    {
        *_EVERY_RESOURCE,
        *("push_config", "ack_deadline_seconds", "retain_acked_messages", "expiration_policy", "dead_letter_policy"),
        *("retry_policy", "enable_exactly_once_delivery", "bigquery_config", "cloud_storage_config", "bigtable_config"),
    }
)
_SNAPSHOT_FIELDS: Final = frozenset({"labels", "expire_time"})
_IMMUTABLE: Final = frozenset({"name", "topic", "enable_message_ordering", "filter", "detached", "state"})


@dataclass(slots=True, eq=False)
class SnapshotState:
    """Content of a snapshot: these unacknowledged messages, and all messages after number `frontier`."""

    description: resources.Snapshot
    unacked: list[Message]
    frontier: int


@dataclass(slots=True, eq=False)
class TopicState:
    """A topic, its subscriptions and snapshots by name, and its history, oldest first."""

    settings: resources.Topic
    subscriptions: dict[str, SubscriptionQueue] = field(default_factory=dict)
    snapshots: dict[str, SnapshotState] = field(default_factory=dict)
    history: deque[Message] = field(default_factory=deque)

    def keep_s(self) -> float:
        """Return the minimum time that messages are kept, in seconds."""
        wanted = [self.settings.message_retention_s or 0.0]
        wanted += [
            queue.settings.message_retention_s for queue in self.subscriptions.values() if queue.settings.retain_acked_messages
        ]
        if self.snapshots:
            wanted.append(resources.SNAPSHOT_LIFETIME_S)
        return max(wanted)

    def remember(self, messages: list[Message], now: float) -> None:
        """Add stored messages to the history."""
        keep_s = self.keep_s()
        if keep_s:
            self.history.extend(messages)
        self.forget(now, keep_s)

    def forget(self, now: float, keep_s: float | None = None) -> None:
        """Drop the messages that no request may need any more."""
        horizon = now - (self.keep_s() if keep_s is None else keep_s)
        if horizon == now:
            horizon = math.inf
        while self.history and self.history[0].publish_time < horizon:
            self.history.popleft()


def replayable(topic: TopicState | None, queue: SubscriptionQueue, now: float) -> Iterator[Message]:
    """Yield the messages that a seek of this subscription can bring back, in the order of storage.

    They are its backlog, its retained acknowledged messages and, with retention on the topic, messages published before the subscription
    existed.
    """
    known = {entry.message.sequence: entry.message for entry in queue.entries()}
    if topic is not None:
        retained_s = queue.settings.message_retention_s if queue.settings.retain_acked_messages else -1.0
        topic_s = topic.settings.message_retention_s or -1.0
        for message in topic.history:
            age = now - message.publish_time
            if age <= topic_s or (age <= retained_s and message.sequence > queue.born):
                _accept(queue, message, known)
    yield from (known[sequence] for sequence in sorted(known))


def since_snapshot(topic: TopicState | None, queue: SubscriptionQueue, snapshot: SnapshotState) -> Iterator[Message]:
    """Yield the messages that a seek to a snapshot brings back: those unacknowledged then, and all published since."""
    known: dict[int, Message] = {}
    for message in snapshot.unacked:
        _accept(queue, message, known)
    for message in topic.history if topic is not None else ():
        if message.sequence > snapshot.frontier:
            _accept(queue, message, known)
    yield from (known[sequence] for sequence in sorted(known))


def _accept(queue: SubscriptionQueue, message: Message, known: dict[int, Message]) -> None:
    if queue.accepts is None or queue.accepts(message.attributes):
        known[message.sequence] = message


class Registry:
    """All resources of the service by name, and the operations on them. Times are seconds since the epoch.

    A failed operation raises `ServiceError` and changes nothing: NOT_FOUND for an unknown name, INVALID_ARGUMENT for an invalid name or
    value, ALREADY_EXISTS and FAILED_PRECONDITION as documented.
    """

    def __init__(self, engine: Engine[SubscriptionQueue]) -> None:
        self._engine = engine
        self.topics: dict[str, TopicState] = {}
        self.subscriptions: dict[str, SubscriptionQueue] = {}
        self.snapshots: dict[str, SnapshotState] = {}

    # --- topics -----------------------------------------------------------------------------------------------------------------

    def create_topic(self, topic: resources.Topic) -> resources.Topic:
        """Create a topic; return its settings. Raises ALREADY_EXISTS, or INVALID_ARGUMENT for an invalid setting."""
        resources.check_topic(topic)
        if topic.name in self.topics:
            raise errors.already_exists(topic.name)
        self.topics[topic.name] = TopicState(topic)
        return topic

    def topic(self, name: str) -> TopicState:
        """Return a topic. Raises NOT_FOUND."""
        return resources.find(self.topics, name, "topics")

    def update_topic(self, wanted: resources.Topic, mask: Sequence[str]) -> resources.Topic:
        """Replace the settings of a topic, of which the masked fields changed. INVALID_ARGUMENT for a field that cannot change."""
        topic = self.topic(wanted.name)
        _check_mask(mask, _TOPIC_FIELDS, "Topic")
        resources.check_topic(wanted)
        topic.settings = wanted
        return wanted

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Its subscriptions stay with their messages, and show `_deleted-topic_` (proto, DeleteTopic)."""
        topic = self.topic(name)
        del self.topics[name]
        for queue in topic.subscriptions.values():
            queue.settings = dataclasses.replace(queue.settings, topic=resources.DELETED_TOPIC)
        for snapshot in topic.snapshots.values():
            snapshot.description = dataclasses.replace(snapshot.description, topic=resources.DELETED_TOPIC)

    def forget_schema(self, name: str) -> None:
        """Mark a schema as deleted: its topics show `_deleted-schema_` instead (proto, SchemaSettings)."""
        for topic in self.topics.values():
            schema = topic.settings.schema
            if schema is not None and schema.schema == name:
                gone = dataclasses.replace(schema, schema=resources.DELETED_SCHEMA)
                topic.settings = dataclasses.replace(topic.settings, schema=gone)

    # --- subscriptions ----------------------------------------------------------------------------------------------------------

    def create_subscription(self, subscription: resources.Subscription, now: float) -> resources.Subscription:
        """Create a subscription for all messages published from now on; return its settings.

        Errors as for topics; NOT_FOUND if the topic is missing.
        """
        resources.check_subscription(subscription)
        if subscription.name in self.subscriptions:
            raise errors.already_exists(subscription.name)
        topic = self.topic(subscription.topic)
        self._check_dead_letter_topic(subscription)
        queue = SubscriptionQueue(subscription, compile_filter(subscription.filter), self._engine, self._engine.serial, now)
        self.subscriptions[subscription.name] = topic.subscriptions[subscription.name] = queue
        return subscription

    def subscription(self, name: str) -> SubscriptionQueue:
        """Return a subscription. Raises NOT_FOUND."""
        return resources.find(self.subscriptions, name, "subscriptions")

    def update_subscription(self, wanted: resources.Subscription, mask: Sequence[str], now: float) -> resources.Subscription:
        """Replace the settings of a subscription, of which the masked fields changed. Ordering and filter cannot change.

        A change between push and pull ends all streams and pulls with FAILED_PRECONDITION.
        """
        queue = self.subscription(wanted.name)
        _check_mask(mask, _SUBSCRIPTION_FIELDS, "Subscription")
        updated = dataclasses.replace(wanted, detached=queue.settings.detached)
        resources.check_subscription(updated)
        if any(path.startswith("dead_letter_policy") for path in mask):
            self._check_dead_letter_topic(updated)
        becomes_push = bool(updated.push_config.push_endpoint) != bool(queue.settings.push_config.push_endpoint)
        queue.settings = updated
        if becomes_push:
            delivery.end_all(queue, errors.precondition(UNSUPPORTED_MESSAGE), now)
        self._engine.dirty[queue] = None
        return updated

    def delete_subscription(self, name: str, now: float) -> None:
        """Delete a subscription and its messages; end its streams and waiting pulls with NOT_FOUND."""
        queue = self.subscription(name)
        del self.subscriptions[name]
        topic = self.topics.get(queue.settings.topic)
        if topic is not None:
            topic.subscriptions.pop(name, None)
        delivery.end_all(queue, errors.not_found(name), now)
        queue.reset((), now)
        self._engine.dirty.pop(queue, None)

    def detach_subscription(self, name: str, now: float) -> None:
        """Detach a subscription: it loses its messages and gets no more; pulls fail with FAILED_PRECONDITION.

        Source: proto, Subscription.detached.
        """
        queue = self.subscription(name)
        queue.settings = dataclasses.replace(queue.settings, detached=True)
        topic = self.topics.get(queue.settings.topic)
        if topic is not None:
            topic.subscriptions.pop(name, None)
        delivery.end_all(queue, errors.precondition(DETACHED_MESSAGE), now)
        queue.reset((), now)

    def _check_dead_letter_topic(self, subscription: resources.Subscription) -> None:
        policy = subscription.dead_letter_policy
        if policy is not None and policy.dead_letter_topic not in self.topics:
            raise errors.not_found(policy.dead_letter_topic)

    # --- snapshots and seek -----------------------------------------------------------------------------------------------------

    def create_snapshot(self, name: str, subscription: str, labels: Mapping[str, str], now: float) -> resources.Snapshot:
        """Create a snapshot. FAILED_PRECONDITION if its lifetime is below 1 hour.

        It lives 7 days less the age of the oldest unacknowledged message (proto, Snapshot).
        """
        resources.check_name(name, "snapshots")
        resources.check_labels(labels)
        if name in self.snapshots:
            raise errors.already_exists(name)
        queue = self.subscription(subscription)
        unacked = sorted((entry.message for entry in queue.entries()), key=lambda message: message.sequence)
        age = now - unacked[0].publish_time if unacked else 0.0
        lifetime = resources.SNAPSHOT_LIFETIME_S - age
        if lifetime < resources.SNAPSHOT_LIFETIME_MIN_S:
            raise errors.precondition(
                "The snapshot would expire in less than 1 hour: its oldest unacknowledged message is too old."
            )
        description = resources.Snapshot(name, queue.settings.topic, now + lifetime, labels)
        snapshot = SnapshotState(description, unacked, self._engine.serial)
        self.snapshots[name] = snapshot
        if queue.settings.topic in self.topics:
            self.topics[queue.settings.topic].snapshots[name] = snapshot
        return description

    def snapshot(self, name: str) -> SnapshotState:
        """Return a snapshot. Raises NOT_FOUND."""
        return resources.find(self.snapshots, name, "snapshots")

    def update_snapshot(self, wanted: resources.Snapshot, mask: Sequence[str]) -> resources.Snapshot:
        """Set the masked fields from `wanted`; return the complete description."""
        snapshot = self.snapshot(wanted.name)
        _check_mask(mask, _SNAPSHOT_FIELDS, "Snapshot")
        changes: dict[str, Any] = {field: getattr(wanted, field) for field in (path.partition(".")[0] for path in mask)}
        updated = dataclasses.replace(snapshot.description, **changes)
        resources.check_labels(updated.labels)
        snapshot.description = updated
        return updated

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot and the messages that only it retained."""
        snapshot = self.snapshot(name)
        del self.snapshots[name]
        topic = self.topics.get(snapshot.description.topic)
        if topic is not None:
            topic.snapshots.pop(name, None)

    def seek_to_time(self, subscription: str, at: float, now: float) -> None:
        """Mark messages published before `at` acknowledged, the others unacknowledged, as far as retained (proto, Seek)."""
        queue = self.subscription(subscription)
        messages = replayable(self.topics.get(queue.settings.topic), queue, now)
        queue.reset([message for message in messages if message.publish_time >= at], now)

    def seek_to_snapshot(self, subscription: str, name: str, now: float) -> None:
        """Set the backlog to that of the snapshot, plus all messages published since; same topic only."""
        queue, snapshot = self.subscription(subscription), self.snapshot(name)
        if snapshot.description.topic != queue.settings.topic:
            raise errors.invalid("snapshot")
        messages: list[Message] = list(since_snapshot(self.topics.get(queue.settings.topic), queue, snapshot))
        queue.reset(messages, now)

    # --- lists ------------------------------------------------------------------------------------------------------------------

    def page(self, names: Iterable[str], page_size: int, page_token: str) -> tuple[list[str], str]:
        """Return a page of names in alphabetical order, and the token of the next page, empty after the last.

        A page size of 0 means 100, above 1000 it means 1000. INVALID_ARGUMENT for a token that no page ended with.
        """
        if page_size < 0:
            raise errors.invalid("page_size")
        size = min(page_size or _PAGE_DEFAULT, _PAGE_MAX)
        if page_token and not page_token.startswith(_PAGE_TOKEN):
            raise errors.invalid("page_token", page_token)
        last = page_token.removeprefix(_PAGE_TOKEN)
        ordered = sorted(name for name in names if name > last)
        return ordered[:size], _PAGE_TOKEN + ordered[size - 1] if len(ordered) > size else ""

    def in_project(self, names: Iterable[str], project: str) -> list[str]:
        """Return the names in `projects/P`."""
        resources.check_project(project)
        return [name for name in names if name.startswith(f"{project}/")]


def _check_mask(mask: Sequence[str], fields: Collection[str], kind: str) -> None:
    """Raise INVALID_ARGUMENT unless all paths may change. A path inside a message field stands for the whole field."""
    if not mask:
        raise errors.ServiceError(
            errors.Code.INVALID_ARGUMENT,
            f"The update_mask in the Update{kind}Request must be set, and must contain a non-empty paths list.",
        )
    for path in mask:
        field = path.partition(".")[0]
        if field not in fields:
            problem = f"the '{path}' field in the {kind} is immutable." if field in _IMMUTABLE else _unknown(path, kind)
            raise errors.ServiceError(
                errors.Code.INVALID_ARGUMENT, f"Invalid update_mask provided in the Update{kind}Request: {problem}"
            )


def _unknown(path: str, kind: str) -> str:
    return (
        f"'{path}' is not a known {kind} field. Note that field paths must be of the form 'push_config' rather than 'pushConfig'."
    )
