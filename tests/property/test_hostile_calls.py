"""Whatever is asked of the embedded service, it answers: no call breaks it, and what it does afterwards is as before.

Requests of every method, with every field filled from names that exist, names that do not, and numbers at and beyond their limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

import grpc.aio
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.pubsub_v1 import types
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.brokers.endpoint import local_endpoint
from prober.brokers.push.endpoint import PushEndpoint
from prober.embedded import iam, schema_calls
from prober.embedded.calls import PUBLISHER_METHODS, SUBSCRIBER_METHODS
from prober.simulation.network import StreamCall
from prober.simulation.network_conditions import CALM
from prober.simulation.prober import ADDRESS
from prober.simulation.service import SimulatedService
from tests.nightly import AT_NIGHT
from tests.virtual_time import in_virtual_time

TOPIC, SUBSCRIPTION, SNAPSHOT = "projects/p/topics/topic", "projects/p/subscriptions/sub", "projects/p/snapshots/snap"
PUBLISHER, SUBSCRIBER = "/google.pubsub.v1.Publisher", "/google.pubsub.v1.Subscriber"
STREAMING: Final = f"{SUBSCRIBER}/StreamingPull"
REQUESTS: Final[Mapping[str, Any]] = {
    **{f"{PUBLISHER}/{method}": getattr(types, request).pb() for method, request in PUBLISHER_METHODS.items()},
    **{f"{SUBSCRIBER}/{method}": getattr(types, request).pb() for method, request in SUBSCRIBER_METHODS.items()},
    **{f"/google.pubsub.v1.SchemaService/{method}": kind for method, kind in schema_calls.METHODS.items()},
    **{f"/google.iam.v1.IAMPolicy/{method}": kind for method, kind in iam.METHODS.items()},
    STREAMING: types.StreamingPullRequest.pb(),
}
PATIENCE_S: Final = 5.0

KNOWN: Final = {
    "topic": TOPIC,
    "subscription": SUBSCRIPTION,
    "snapshot": SNAPSHOT,
    "project": "projects/p",
    "parent": "projects/p",
    "schema_id": "schema",
    "schema": "projects/p/schemas/schema",
    "definition": '{"type": "record", "name": "R", "fields": []}',
    "resource": TOPIC,
}
"""What stands in a field of this name, or in the name of a message of this type, so that most requests get beyond it."""

TEXTS = st.sampled_from((TOPIC, SUBSCRIPTION, SNAPSHOT, "projects/p", "k", "")) | st.text(max_size=8)
PATHS = st.sampled_from(
    (
        "labels",
        "ack_deadline_seconds",
        "filter",
        "push_config",
        "schema_settings",
        "enable_message_ordering",
        "nothing",
        "",
        "name.x",
    )
)
WHOLE: Final = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}

Call: TypeAlias = tuple[str, Any]


@st.composite
def requests(draw: st.DrawFn, kind: Any, depth: int = 3) -> Any:
    """A message of this class with some of its fields."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if _known(field) and draw(st.integers(0, 7)):
            setattr(message, field.name, draw(st.sampled_from((_known(field), f"{_known(field)}-new"))))
        elif draw(st.booleans()) and (depth or field.message_type is None):
            _fill(draw, message, field, depth)
    return message


def _known(field: Any) -> str:
    if field.type != FieldDescriptor.TYPE_STRING or field.is_repeated:
        return ""
    return KNOWN.get(field.containing_type.name.lower() if field.name == "name" else field.name, "")


def _fill(draw: st.DrawFn, message: Any, field: Any, depth: int) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _fill_map(draw, message, field)
    elif field.message_type is not None:
        inner = draw(requests(GetMessageClass(field.message_type), depth - 1))
        if field.is_repeated:
            getattr(message, field.name).append(inner)
        else:
            getattr(message, field.name).CopyFrom(inner)
    elif field.is_repeated:
        getattr(message, field.name).extend(draw(st.lists(_values(field), max_size=3)))
    else:
        setattr(message, field.name, draw(_values(field)))


def _fill_map(draw: st.DrawFn, message: Any, field: Any) -> None:
    if field.message_type.fields_by_name["value"].message_type is None:
        getattr(message, field.name).update(draw(st.dictionaries(TEXTS, TEXTS, max_size=2)))


def _values(field: Any) -> st.SearchStrategy[Any]:
    if field.type in WHOLE:
        least, most = WHOLE[field.type]
        return st.sampled_from((0, 1, 10, 600, least, most)) | st.integers(least, most)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=20)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return st.floats(width=32)
    return PATHS if field.name == "paths" else TEXTS


CALLS = st.sampled_from(sorted(REQUESTS)).flatmap(lambda name: st.tuples(st.just(name), requests(REQUESTS[name])))


@dataclass(frozen=True, slots=True)
class Asked:
    """The service, and how to call it."""

    service: SimulatedService
    channel: Any

    async def call(self, name: str, request: Any) -> bytes | None:
        """The answer; None if the call was refused, or nobody answered in time."""
        try:
            if name == STREAMING:
                return await self._stream(request.SerializeToString())
            ask: Callable[..., Any] = self.channel.unary_unary(name, type(request).SerializeToString)
            answer: bytes = await ask(request, timeout=PATIENCE_S, metadata=())
        except grpc.aio.AioRpcError:
            return None
        return answer

    async def _stream(self, request: bytes) -> bytes | None:
        stream: StreamCall = self.channel.stream_stream(STREAMING)(metadata=())
        await stream.write(request)
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await stream.read()
        except TimeoutError:
            return None
        return answer if isinstance(answer, bytes) else None


@asynccontextmanager
async def asked() -> AsyncIterator[Asked]:
    """A service that has a topic and an ordered subscription."""
    service = SimulatedService((), CALM, Random(1), PushEndpoint("", 0, "hostile").app())
    there = Asked(service, service.network.open_channel(local_endpoint(ADDRESS), None))
    assert await there.call(f"{PUBLISHER}/CreateTopic", types.Topic.pb()(name=TOPIC))
    assert await there.call(f"{SUBSCRIBER}/CreateSubscription", subscription(SUBSCRIPTION, TOPIC))
    try:
        yield there
    finally:
        await there.channel.close()
        await service.stop()


def subscription(name: str, topic: str) -> Any:
    return types.Subscription.pb()(name=name, topic=topic, ack_deadline_seconds=10, enable_message_ordering=True)


async def received_in_order(there: Asked) -> list[bytes]:
    """What comes of three messages of a key on a new topic."""
    topic, name = "projects/p/topics/after", "projects/p/subscriptions/after"
    await there.call(f"{PUBLISHER}/CreateTopic", types.Topic.pb()(name=topic))
    await there.call(f"{SUBSCRIBER}/CreateSubscription", subscription(name, topic))
    messages = [types.PubsubMessage.pb()(data=data, ordering_key="k") for data in (b"1", b"2", b"3")]
    await there.call(f"{PUBLISHER}/Publish", types.PublishRequest.pb()(topic=topic, messages=messages))
    pull = types.PullRequest.pb()(subscription=name, max_messages=10)
    answer = await there.call(f"{SUBSCRIBER}/Pull", pull)
    assert answer is not None
    return [one.message.data for one in types.PullResponse.pb().FromString(answer).received_messages]


@settings(max_examples=200 if AT_NIGHT else 50)
@given(calls=st.lists(CALLS, min_size=1, max_size=6))
def test_no_call_breaks_the_service(calls: Sequence[Call]) -> None:
    async def scenario() -> None:
        async with asked() as there:
            for name, request in calls:
                await there.call(name, request)
            assert there.service.network.faults == []
            assert await received_in_order(there) == [b"1", b"2", b"3"]

    in_virtual_time(scenario, 1)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_every_method_answers_an_empty_request(name: str) -> None:
    async def scenario() -> None:
        async with asked() as there:
            await there.call(name, REQUESTS[name]())
            assert there.service.network.faults == []

    in_virtual_time(scenario, 1)
