"""The liveness check: an answer from either half of the data plane is one, whatever it says, and the check has no effect."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from prober.brokers.base import Vantage
from prober.brokers.calls import ErrorCode, Operation
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerUnavailable, ConnectionGivenUp
from tests.contract.conftest import Service
from tests.contract.context import WAIT_S, Notebook, connect
from tests.contract.places import dead_server, refusing_server, silent_server

TOPIC, SUBSCRIPTION = "projects/contract/topics/none", "projects/contract/subscriptions/none"


async def test_the_check_is_answered_and_has_no_effect(service: Service, vantage: Vantage) -> None:
    seen: Counter[tuple[Operation, ErrorCode]] = Counter()
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook)
        broker = await connect(Endpoint(service.address, secure=False), vantage, lambda *what: seen.update([what]))
        for topic in (context.topic, ""):
            await broker.check_liveness(topic, context.subscription)
        await broker.close()
        await context.publish("k", ["1"])
        await notebook.until(lambda: notebook.texts("k") == ["1"])
        assert not seen


async def test_a_topic_that_does_not_exist_is_an_answer(service: Service) -> None:
    broker = await connect(Endpoint(service.address, secure=False), Vantage.WIRE)
    await broker.check_liveness(TOPIC, SUBSCRIPTION)
    await broker.close()


@pytest.mark.parametrize(("code", "alive"), [("PERMISSION_DENIED", True), ("UNAVAILABLE", False), ("INTERNAL", False)])
async def test_a_refusal_is_an_answer_and_an_error_of_the_target_is_none(code: str, *, alive: bool) -> None:
    seen: Counter[tuple[Operation, ErrorCode]] = Counter()
    async with refusing_server(grpc.StatusCode[code]) as address:
        broker = await connect(Endpoint(address, secure=False), Vantage.WIRE, lambda *what: seen.update([what]))
        assert await is_alive(broker.check_liveness(TOPIC, SUBSCRIPTION)) is alive
        await broker.close()
    asked = {operation for operation, what in seen if what is ErrorCode[code]}
    assert asked <= {Operation.ACKNOWLEDGE, Operation.PUBLISH}
    assert seen.total() == len(asked) >= (1 if alive else 2)  # the first answer ends the check


@pytest.mark.parametrize("half", ["Publish", "Acknowledge"])
async def test_one_half_of_the_data_plane_suffices(half: str) -> None:
    async with half_silent_server(answering=half) as address:
        broker = await connect(Endpoint(address, secure=False), Vantage.WIRE)
        await asyncio.wait_for(broker.check_liveness(TOPIC, SUBSCRIPTION), WAIT_S)
        await broker.close()


async def test_nobody_answers(vantage: Vantage) -> None:
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        assert not await is_alive(broker.check_liveness(TOPIC, SUBSCRIPTION))
        await broker.close()


async def test_a_check_that_waits_when_the_connection_is_closed_ends(vantage: Vantage) -> None:
    async with silent_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        waiting = asyncio.create_task(broker.check_liveness(TOPIC, SUBSCRIPTION))
        await asyncio.sleep(0)
        await broker.close()
        with pytest.raises(ConnectionGivenUp):
            await asyncio.wait_for(waiting, WAIT_S)


async def is_alive(check: Awaitable[None]) -> bool:
    try:
        await check
    except BrokerUnavailable:
        return False
    return True


class _HalfSilent(grpc.GenericRpcHandler):
    """Refuses the calls of one method; others have no answer."""

    def __init__(self, answering: str) -> None:
        self._answering = answering

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        async def handle(_: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            if handler_call_details.method.endswith(f"/{self._answering}"):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "empty")
            await asyncio.Event().wait()
            raise AssertionError("the caller ends the call")

        return grpc.unary_unary_rpc_method_handler(handle)


@asynccontextmanager
async def half_silent_server(answering: str) -> AsyncIterator[str]:
    server = grpc.aio.server(handlers=(_HalfSilent(answering),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
