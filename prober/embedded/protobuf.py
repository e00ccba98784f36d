"""Conversion between the message classes of google-cloud-pubsub and the values of this service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from google.protobuf import wrappers_pb2
from google.protobuf.message import DecodeError
from google.pubsub_v1 import types
from google.rpc import code_pb2, error_details_pb2, status_pb2  # type: ignore[import-untyped]

from prober.embedded import errors, resources
from prober.embedded.messages import Confirm, Delivery, Message, PublishDraft, Send

StringValue: Final[Any] = wrappers_pb2.StringValue
StreamingPullRequest: Final[Any] = types.StreamingPullRequest.pb()
StreamingPullResponse: Final[Any] = types.StreamingPullResponse.pb()
PublishResponse: Final[Any] = types.PublishResponse.pb()
PullResponse: Final[Any] = types.PullResponse.pb()
ReceivedMessage: Final[Any] = types.ReceivedMessage.pb()
PubsubMessage: Final[Any] = types.PubsubMessage.pb()
Topic: Final[Any] = types.Topic.pb()
Subscription: Final[Any] = types.Subscription.pb()
Snapshot: Final[Any] = types.Snapshot.pb()

_ACTIVE: Final = 1
_ENCODINGS: Final[Mapping[int, str]] = {int(types.Encoding.JSON): "JSON", int(types.Encoding.BINARY): "BINARY"}
_TOPIC_OTHERS: Final = ("kms_key_name", "message_storage_policy", "tags")
_ACK_DEADLINE_EXACTLY_ONCE_S: Final = 60  # documentation, "Exactly-once delivery": the default deadline there
_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}


def decoded(kind: Any, data: bytes) -> Any:
    """Return a request message of class `kind`. Raises INVALID_ARGUMENT if the bytes cannot be decoded."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise errors.ServiceError(errors.Code.INVALID_ARGUMENT, "The bytes of the request are not a message of its type.") from None


def drafts(request: Any) -> list[PublishDraft]:
    """Return the messages of a PublishRequest."""
    return [PublishDraft(message.data, _attributes(message.attributes), message.ordering_key) for message in request.messages]


def _attributes(given: Any) -> Mapping[str, str]:
    """Return a copy of an attribute map, in half the time of `dict`."""
    return {name: given[name] for name in given} if given else _NO_ATTRIBUTES


def received(deliveries: Iterable[Delivery]) -> list[Any]:
    """Return deliveries as `ReceivedMessage`s."""
    return [
        ReceivedMessage(ack_id=one.ack_id, message=_message_to(one.message), delivery_attempt=one.delivery_attempt)
        for one in deliveries
    ]


def _message_to(message: Message) -> Any:
    built = PubsubMessage(
        data=message.data, attributes=message.attributes, ordering_key=message.ordering_key, message_id=message.id
    )
    built.publish_time.seconds = int(message.publish_time)
    built.publish_time.nanos = int(message.publish_time % 1 * 1_000_000) * 1_000
    return built


def stream_response(effect: Send | Confirm | None, settings: resources.Subscription) -> Any:
    """Return the response on a stream: deliveries, confirmations or, without an effect, a keep-alive.

    Every response contains the properties of the subscription; clients read their absence as "no".
    """
    response = StreamingPullResponse()
    if isinstance(effect, Send):
        response.received_messages.extend(received(effect.deliveries))
    elif effect is not None:
        _confirm(response, effect)
    response.subscription_properties.exactly_once_delivery_enabled = settings.enable_exactly_once_delivery
    response.subscription_properties.message_ordering_enabled = settings.enable_message_ordering
    return response


def _confirm(response: Any, effect: Confirm) -> None:
    if effect.acked or effect.failed:
        acks = response.acknowledge_confirmation
        acks.ack_ids.extend(effect.acked)
        acks.invalid_ack_ids.extend(_ids_for(effect.failed, errors.INVALID_ACK_ID))
        acks.unordered_ack_ids.extend(_ids_for(effect.failed, errors.UNORDERED_ACK_ID))
        acks.temporary_failed_ack_ids.extend(_ids_for(effect.failed, errors.TEMPORARY_FAILURE))
    if effect.modified or effect.modify_failed:
        modified = response.modify_ack_deadline_confirmation
        modified.ack_ids.extend(effect.modified)
        modified.invalid_ack_ids.extend(_ids_for(effect.modify_failed, errors.INVALID_ACK_ID))


def _ids_for(reasons: Mapping[str, str], reason: str) -> Sequence[str]:
    return [ack_id for ack_id, own in reasons.items() if own == reason]


def status(error: errors.ServiceError) -> Any:
    """Return an error as google.rpc.Status, with the reasons for acknowledgement ids, if any, as google.rpc.ErrorInfo."""
    built = status_pb2.Status(code=code_pb2.Code.Value(error.code), message=error.message)
    if error.reasons:
        info = error_details_pb2.ErrorInfo(
            reason="EXACTLY_ONCE_ACKID_FAILURE", domain="pubsub.googleapis.com", metadata=dict(error.reasons)
        )
        built.details.add().Pack(info)
    return built


# --- settings ---------------------------------------------------------------------------------------------------------------------


def merged(known: Any, wanted: Any, mask: Any) -> Any:
    """Return `known` with the fields of `wanted` that a FieldMask lists. Raises INVALID_ARGUMENT for an unknown path."""
    for path in mask.paths:
        if not type(mask)(paths=[path]).IsValidForDescriptor(known.DESCRIPTOR):
            raise errors.invalid("update_mask", f"there is no field {path}")
    mask.MergeMessage(wanted, known, replace_message_field=True, replace_repeated_field=True)
    return known


def topic_from(message: Any) -> resources.Topic:
    """Return the settings in a Topic message."""
    refuse(message, ("ingestion_data_source_settings", "message_transforms"))
    retention = _seconds(message, "message_retention_duration")
    others = _others(message, Topic(), _TOPIC_OTHERS)
    return resources.Topic(message.name, dict(message.labels), retention, others, _schema_settings_from(message))


def topic_to(topic: resources.Topic) -> Any:
    """Return settings as a Topic message."""
    message = Topic(name=topic.name, labels=topic.labels, state=_ACTIVE)
    message.MergeFromString(topic.others)
    if topic.message_retention_s is not None:
        _set_seconds(message.message_retention_duration, topic.message_retention_s)
    if topic.schema is not None:
        message.schema_settings.schema = topic.schema.schema
        message.schema_settings.encoding = topic.schema.encoding
        message.schema_settings.first_revision_id = topic.schema.first_revision_id
        message.schema_settings.last_revision_id = topic.schema.last_revision_id
    return message


def _schema_settings_from(message: Any) -> resources.SchemaSettings | None:
    if not message.HasField("schema_settings"):
        return None
    given = message.schema_settings
    return resources.SchemaSettings(given.schema, encoding_from(given.encoding), given.first_revision_id, given.last_revision_id)


def encoding_from(number: int) -> str:
    """Return `JSON` or `BINARY`; empty for no encoding or an unknown encoding."""
    return _ENCODINGS.get(number, "")


def subscription_from(message: Any) -> resources.Subscription:
    """Return the settings in a Subscription message, with the documented defaults for fields that are not set."""
    refuse(message, ("bigquery_config", "cloud_storage_config", "bigtable_config", "message_transforms"))
    default_deadline = _ACK_DEADLINE_EXACTLY_ONCE_S if message.enable_exactly_once_delivery else resources.ACK_DEADLINE_DEFAULT_S
    retention = _seconds(message, "message_retention_duration")
    expiration: float | None = resources.EXPIRATION_DEFAULT_S
    if message.HasField("expiration_policy"):
        expiration = _seconds(message.expiration_policy, "ttl")
    return resources.Subscription(
        name=message.name,
        topic=message.topic,
        push_config=push_config_from(message.push_config),
        ack_deadline_s=message.ack_deadline_seconds or default_deadline,
        retain_acked_messages=message.retain_acked_messages,
        message_retention_s=resources.RETENTION_DEFAULT_S if retention is None else retention,
        labels=dict(message.labels),
        enable_message_ordering=message.enable_message_ordering,
        expiration_s=expiration,
        filter=message.filter,
        dead_letter_policy=_dead_letter_from(message),
        retry_policy=_retry_from(message),
        enable_exactly_once_delivery=message.enable_exactly_once_delivery,
        others=_others(message, Subscription(), ("tags",)),
    )


def refuse(message: Any, fields: Iterable[str]) -> None:
    """Raise UNIMPLEMENTED if one of these fields is set: this server does not implement its effect."""
    given = {field.name for field, _ in message.ListFields()}
    for field in fields:
        if field in given:
            raise errors.ServiceError(errors.Code.UNIMPLEMENTED, f"The embedded server does not support {field}.")


def _others(message: Any, empty: Any, fields: Iterable[str]) -> bytes:
    """Return the fields that are stored and shown without an effect here, serialized."""
    empty.CopyFrom(message)
    for field, _ in message.ListFields():
        if field.name not in fields:
            empty.ClearField(field.name)
    kept: bytes = empty.SerializeToString(deterministic=True)
    return kept


def _dead_letter_from(message: Any) -> resources.DeadLetterPolicy | None:
    policy = message.dead_letter_policy
    if not policy.ListFields():
        return None
    attempts = policy.max_delivery_attempts or resources.MAX_DELIVERY_ATTEMPTS_DEFAULT
    return resources.DeadLetterPolicy(policy.dead_letter_topic, attempts)


def _retry_from(message: Any) -> resources.RetryPolicy | None:
    if not message.HasField("retry_policy"):
        return None
    low = _seconds(message.retry_policy, "minimum_backoff")
    high = _seconds(message.retry_policy, "maximum_backoff")
    return resources.RetryPolicy(
        resources.MINIMUM_BACKOFF_DEFAULT_S if low is None else low, resources.MAXIMUM_BACKOFF_DEFAULT_S if high is None else high
    )


def push_config_from(message: Any) -> resources.PushConfig:
    """Return the settings in a PushConfig message."""
    attributes = dict(message.attributes)
    if message.push_endpoint:
        attributes.setdefault("x-goog-version", "v1")
    return resources.PushConfig(
        push_endpoint=message.push_endpoint,
        attributes=attributes,
        oidc_email=message.oidc_token.service_account_email,
        oidc_audience=message.oidc_token.audience,
        unwrapped=message.HasField("no_wrapper"),
        write_metadata=message.no_wrapper.write_metadata,
    )


def subscription_to(subscription: resources.Subscription, topic: resources.Topic | None) -> Any:
    """Return settings as a Subscription message, with the retention of the topic."""
    message = Subscription(
        name=subscription.name,
        topic=subscription.topic,
        ack_deadline_seconds=subscription.ack_deadline_s,
        retain_acked_messages=subscription.retain_acked_messages,
        labels=subscription.labels,
        enable_message_ordering=subscription.enable_message_ordering,
        filter=subscription.filter,
        detached=subscription.detached,
        enable_exactly_once_delivery=subscription.enable_exactly_once_delivery,
        state=_ACTIVE,
    )
    message.MergeFromString(subscription.others)
    _set_seconds(message.message_retention_duration, subscription.message_retention_s)
    message.expiration_policy.SetInParent()
    if subscription.expiration_s is not None:
        _set_seconds(message.expiration_policy.ttl, subscription.expiration_s)
    if topic is not None and topic.message_retention_s is not None:
        _set_seconds(message.topic_message_retention_duration, topic.message_retention_s)
    _set_policies(message, subscription)
    _set_push(message.push_config, subscription.push_config)
    return message


def _set_policies(message: Any, subscription: resources.Subscription) -> None:
    if subscription.dead_letter_policy is not None:
        message.dead_letter_policy.dead_letter_topic = subscription.dead_letter_policy.dead_letter_topic
        message.dead_letter_policy.max_delivery_attempts = subscription.dead_letter_policy.max_delivery_attempts
    if subscription.retry_policy is not None:
        _set_seconds(message.retry_policy.minimum_backoff, subscription.retry_policy.minimum_backoff_s)
        _set_seconds(message.retry_policy.maximum_backoff, subscription.retry_policy.maximum_backoff_s)


def _set_push(message: Any, config: resources.PushConfig) -> None:
    message.SetInParent()
    message.push_endpoint = config.push_endpoint
    message.attributes.update(config.attributes)
    if config.oidc_email:
        message.oidc_token.service_account_email = config.oidc_email
        message.oidc_token.audience = config.oidc_audience
    if config.unwrapped:
        message.no_wrapper.write_metadata = config.write_metadata


def snapshot_to(snapshot: resources.Snapshot) -> Any:
    """Return the description of a snapshot as a Snapshot message."""
    message = Snapshot(name=snapshot.name, topic=snapshot.topic, labels=snapshot.labels)
    message.expire_time.seconds = int(snapshot.expire_time)
    return message


def snapshot_from(message: Any) -> resources.Snapshot:
    """Return the description in the Snapshot message of an update."""
    return resources.Snapshot(message.name, message.topic, timestamp(message.expire_time), dict(message.labels))


def timestamp(message: Any) -> float:
    """Return a Timestamp message in seconds since the epoch."""
    return float(message.seconds) + float(message.nanos) / 1e9


def _seconds(message: Any, field: str) -> float | None:
    if not message.HasField(field):
        return None
    duration = getattr(message, field)
    return float(duration.seconds) + float(duration.nanos) / 1e9


def _set_seconds(duration: Any, seconds: float) -> None:
    duration.seconds = int(seconds)
    duration.nanos = int(seconds % 1 * 1e9)
