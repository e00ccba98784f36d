"""What a target, or the way to it, answers with an error is reported by the wire and the library, with what was asked and the gRPC code.

The calls of the program at the external vantage are not seen.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import grpc
import pytest

from prober.brokers.base import FlowControlSettings, Outgoing, TopicSettings, Vantage
from prober.brokers.call_errors import operation_of
from prober.brokers.calls import ErrorCode, Operation
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerError
from tests.contract.context import WAIT_S, Notebook, connect
from tests.contract.places import refusing_server, silent_server

TOPIC, SUBSCRIPTION = "projects/p/topics/t", "projects/p/subscriptions/s"
DENIED, EXHAUSTED = ErrorCode.PERMISSION_DENIED, ErrorCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("code", [DENIED, EXHAUSTED])
@pytest.mark.parametrize("vantage", [Vantage.WIRE, Vantage.LIBRARY], ids=str)
async def test_every_kind_of_call_is_reported(code: ErrorCode, vantage: Vantage) -> None:
    seen: Counter[tuple[Operation, ErrorCode]] = Counter()
    async with refusing_server(grpc.StatusCode[code.name]) as address:
        broker = await connect(Endpoint(address, secure=False), vantage, lambda *what: seen.update([what]))
        await broker.publisher(TOPIC).publish([Outgoing("k", b"1")], 1.0)
        assert seen.keys() == {(Operation.PUBLISH, code)}
        with pytest.raises(BrokerError):
            await broker.admin.create_topic(TOPIC, TopicSettings(labels={"a": "b"}))
        assert seen[Operation.ADMINISTER, code] == 1
        with pytest.raises(BrokerError):
            await broker.puller(SUBSCRIPTION).pull(Notebook(), 1, WAIT_S)
        assert seen[Operation.PULL, code] == 1
        with suppress(BrokerError):  # the client library may go on trying
            await broker.subscriber(SUBSCRIPTION, "A", FlowControlSettings(), 10).start(Notebook())
        assert seen[Operation.PULL, code] > 1
        await broker.close()
    assert {operation for operation, _ in seen} == {Operation.PUBLISH, Operation.ADMINISTER, Operation.PULL}


async def test_what_the_prober_ends_itself_is_no_error(vantage: Vantage) -> None:
    seen: Counter[tuple[Operation, ErrorCode]] = Counter()
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage, lambda *what: seen.update([what]))
        publishing = asyncio.create_task(broker.publisher(TOPIC).publish([Outgoing("k", b"1")], 30))
        await asyncio.sleep(0.1)
        await broker.close()
        await publishing
    assert not seen


@pytest.mark.parametrize(
    ("method", "operation"),
    [
        ("/google.pubsub.v1.Publisher/Publish", Operation.PUBLISH),
        ("/google.pubsub.v1.Subscriber/StreamingPull", Operation.PULL),
        ("/google.pubsub.v1.Subscriber/ModifyAckDeadline", Operation.ACKNOWLEDGE),
        ("/google.pubsub.v1.Publisher/CreateTopic", Operation.ADMINISTER),
    ],
)
def test_what_a_method_is_for(method: str, operation: Operation) -> None:
    assert operation_of(method) is operation
