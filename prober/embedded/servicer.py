"""google.pubsub.v1.Publisher and Subscriber over gRPC, around the state.

Handlers translate and nothing else: a request becomes a call on the state, its result a response, a `ServiceError` a status. They are
registered by name, without generated service classes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio
from google.protobuf import any_pb2, empty_pb2
from google.pubsub_v1 import types
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from prober.embedded import errors, protobuf, resources
from prober.embedded.pump import Outlet, Pump
from prober.embedded.state import PULL_WAIT_S, StreamAnswers, StreamRequest

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Method: TypeAlias = Callable[[Any], Any]

_EMPTY: Final = empty_pb2.Empty()
_KEEPALIVE_S: Final = 30.0
_STREAM_MESSAGES_MAX: Final = 100_000  # for clients that set no limit of their own
_STREAM_BYTES_MAX: Final = 1_000_000_000
_PULL_MARGIN_S: Final = 0.5
_HEALTHY: Final = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse: SERVING
_DETAILS: Final = "grpc-status-details-bin"


class Servicer:
    """The methods of both services."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._state = pump.state
        self._registry = pump.state.registry
        self._numbers = count(1)

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        """What to register with a server."""
        publisher = self._unary(PUBLISHER_METHODS)
        subscriber = self._unary(SUBSCRIBER_METHODS)
        subscriber["Pull"] = _handler(self._pull, types.PullRequest.pb())
        subscriber["StreamingPull"] = grpc.stream_stream_rpc_method_handler(
            self._streaming_pull,
            request_deserializer=protobuf.StreamingPullRequest.FromString,
            response_serializer=protobuf.StreamingPullResponse.SerializeToString,
        )
        health: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {"Check": grpc.unary_unary_rpc_method_handler(_healthy)}
        return (
            grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", publisher),
            grpc.method_handlers_generic_handler("google.pubsub.v1.Subscriber", subscriber),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
            UnimplementedMethods(),
        )

    def _unary(self, names: dict[str, str]) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        methods = {}
        for name, request in names.items():
            own = getattr(self, "_" + "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_"))
            methods[name] = _handler(self._answering(name, own), getattr(types, request).pb())
        return methods

    def _answering(self, name: str, method: Method) -> Callable[[Any, Context], Awaitable[Any]]:
        """A method of the state as a handler: it cannot wait, so everything it asks for happens at once. A fault may delay the answer."""

        async def handle(request: Any, context: Context) -> Any:
            try:
                self._refuse(name)
                response = method(request)
            except errors.ServiceError as error:
                self._pump.ask()
                await _abort(context, error)
            self._pump.ask()
            late_s = self._answered_after(name, request)
            if late_s:
                await asyncio.sleep(late_s)
            return response

        return handle

    def _refuse(self, name: str) -> None:
        """A fault may make an administrative call fail."""
        error = self._state.behaviour.refuse(name, self._pump.now()) if name not in _DATA_METHODS else None
        if error is not None:
            raise error

    def _answered_after(self, name: str, request: Any) -> float:
        """By how many seconds a fault delays an answer."""
        if name == "Publish":
            return self._state.behaviour.answer_after(name, request.topic, request.messages[0].ordering_key, self._pump.now())
        return 0.0 if name in _DATA_METHODS else self._state.behaviour.answer_after(name, name, "", self._pump.now())

    # --- Publisher --------------------------------------------------------------------------------------------------------------

    def _publish(self, request: Any) -> Any:
        ids = self._state.publish(request.topic, protobuf.drafts(request), self._pump.now())
        return protobuf.PublishResponse(message_ids=ids)

    def _create_topic(self, request: Any) -> Any:
        return protobuf.topic_to(self._registry.create_topic(protobuf.topic_from(request)))

    def _get_topic(self, request: Any) -> Any:
        return protobuf.topic_to(self._registry.topic(request.topic).settings)

    def _update_topic(self, request: Any) -> Any:
        known = protobuf.topic_to(self._registry.topic(request.topic.name).settings)
        wanted = protobuf.topic_from(protobuf.merged(known, request.topic, request.update_mask))
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
        config = protobuf.push_config_from(request.push_config)
        wanted = resources.Subscription(queue.name, queue.settings.topic, push_config=config)
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

    async def _pull(self, request: Any, context: Context) -> Any:
        pull = f"pull {next(self._numbers)}"
        wait_s = 0.0 if request.return_immediately else _patience_s(context)
        answer = self._pump.await_pull(pull)
        try:
            self._state.pull(pull, request.subscription, request.max_messages, self._pump.now(), wait_s=wait_s)
            self._pump.ask()
            return protobuf.PullResponse(received_messages=protobuf.received(await answer))
        except errors.ServiceError as error:
            await _abort(context, error)
        finally:
            answer.cancel()
            self._state.cancel_pull(pull)

    async def _streaming_pull(self, requests: AsyncIterator[Any], context: Context) -> None:
        stream = f"stream {next(self._numbers)}"
        reader: asyncio.Task[None] | None = None
        outlet = self._pump.open_outlet(stream)
        try:
            first = await anext(requests)
            self._open(stream, first)
            await context.send_initial_metadata(())
            reader = asyncio.create_task(self._read(stream, requests, outlet))
            await self._write(context, first, outlet)
            if outlet.error is not None:
                await _abort(context, outlet.error)
        except StopAsyncIteration:
            return
        except errors.ServiceError as error:
            await _abort(context, error)
        finally:
            if reader is not None:
                reader.cancel()
            self._pump.close_outlet(stream)
            self._state.close_stream(stream, self._pump.now())
            self._pump.ask()

    def _open(self, stream: str, first: Any) -> None:
        opening = StreamRequest(
            first.subscription,
            first.stream_ack_deadline_seconds,
            first.client_id,
            first.max_outstanding_messages if first.max_outstanding_messages > 0 else _STREAM_MESSAGES_MAX,
            first.max_outstanding_bytes if first.max_outstanding_bytes > 0 else _STREAM_BYTES_MAX,
        )
        self._state.open_stream(stream, opening, self._pump.now())
        self._said(stream, first)
        self._pump.ask()

    async def _read(self, stream: str, requests: AsyncIterator[Any], outlet: Outlet) -> None:
        """Take what the client says until it has no more to say, which ends the stream."""
        try:
            async for request in requests:
                if request.subscription or request.client_id or request.max_outstanding_messages or request.max_outstanding_bytes:
                    raise errors.invalid("StreamingPullRequest: set on a subsequent request")
                self._said(stream, request)
                self._pump.ask()
            outlet.end()
        except errors.ServiceError as error:
            outlet.end(error)

    def _said(self, stream: str, request: Any) -> None:
        if (
            request.ack_ids
            or request.modify_deadline_ack_ids
            or request.modify_deadline_seconds
            or request.stream_ack_deadline_seconds
        ):
            said = StreamAnswers(
                request.ack_ids,
                request.modify_deadline_ack_ids,
                request.modify_deadline_seconds,
                request.stream_ack_deadline_seconds,
            )
            self._state.answer_stream(stream, said, self._pump.now())

    async def _write(self, context: Context, first: Any, outlet: Outlet) -> None:
        """Write what comes until the stream ends; a client that knows of keep-alives gets one when nothing else came."""
        queue = self._registry.subscription(first.subscription)
        idle_s = _KEEPALIVE_S if first.protocol_version > 0 else None
        async for effect in outlet.take(idle_s):
            await context.write(protobuf.stream_response(effect, queue.settings))


_DATA_METHODS: Final = frozenset({"Publish", "Acknowledge", "ModifyAckDeadline"})

# Method: name of its request message. The handler is the method of that name above.
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
}


class UnimplementedMethods(grpc.GenericRpcHandler):
    """Whatever else is called, schemas for instance, is UNIMPLEMENTED and says so."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler that refuses."""
        method = handler_call_details.method

        async def refuse(request: bytes, context: Context) -> bytes:
            await _abort(
                context, errors.ServiceError(errors.Code.UNIMPLEMENTED, f"The embedded server does not implement {method}.")
            )

        return grpc.unary_unary_rpc_method_handler(refuse)


def _handler(method: Callable[[Any, Context], Awaitable[Any]], request: Any) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(
        method, request_deserializer=request.FromString, response_serializer=lambda response: response.SerializeToString()
    )


async def _healthy(request: bytes, context: Context) -> bytes:
    return _HEALTHY


def _patience_s(context: Context) -> float:
    """How long a pull may wait: an empty answer before the client gives up is better than none."""
    remaining: float | None = context.time_remaining()  # None without a deadline, whatever the stubs say
    return PULL_WAIT_S if remaining is None else min(PULL_WAIT_S, max(remaining - _PULL_MARGIN_S, remaining / 2))


async def _abort(context: Context, error: errors.ServiceError) -> NoReturn:
    """End a call with a status and, for acknowledgement ids, the reasons (google.rpc.ErrorInfo)."""
    code: grpc.StatusCode = grpc.StatusCode[error.code]
    if not error.reasons:
        await context.abort(code, error.message)
    info = error_details_pb2.ErrorInfo(
        reason="EXACTLY_ONCE_ACKID_FAILURE", domain="pubsub.googleapis.com", metadata=dict(error.reasons)
    )
    details = any_pb2.Any()
    details.Pack(info)
    status = status_pb2.Status(code=code.value[0], message=error.message, details=[details])
    await context.abort(code, error.message, ((_DETAILS, status.SerializeToString()),))
