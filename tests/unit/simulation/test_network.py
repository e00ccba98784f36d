"""The network: what comes out of a pipe, and how calls end; with a service that is not Pub/Sub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

import grpc
import grpc.aio
import pytest

from prober.brokers.endpoint import local_endpoint
from prober.simulation.network import Network
from prober.simulation.network_conditions import CALM, NetworkConditions
from prober.simulation.virtual_time import VirtualTime

ROUGH = NetworkConditions(latency_s=0.01, jitter_s=0.5, lull_share=0.1, lull_s=2.0, disorder_s=1.0)


class Service(grpc.GenericRpcHandler):
    """Answers with what it is asked; refuses, waits for ever or breaks if that is what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.given_up: list[bytes] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        if handler_call_details.method == "/stream":
            return grpc.stream_stream_rpc_method_handler(self.stream, request_deserializer=bytes)
        return grpc.unary_unary_rpc_method_handler(self.unary, request_deserializer=bytes)

    async def unary(self, request: bytes, context: Any) -> bytes:
        self.asked.append(request)
        if request == b"refuse":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing", (("why", "because"),))
        if request == b"break":
            raise ZeroDivisionError
        try:
            await asyncio.sleep(3600.0 if request == b"wait" else 0.0)
        except asyncio.CancelledError:
            self.given_up.append(request)
            raise
        return request

    async def stream(self, requests: AsyncIterator[bytes], context: Any) -> None:
        await context.send_initial_metadata(())
        async for request in requests:
            await context.write(request)


class Place:
    """A network with that service, and a connection to it."""

    def __init__(self, conditions: NetworkConditions) -> None:
        self.service = Service()
        self.network = Network(conditions, Random(1))
        self.network.serve([self.service])
        self.channel = self.network.open_channel(local_endpoint("nowhere:1"), None)

    async def ask(self, content: bytes, timeout_s: float = 60.0) -> Any:
        unary: Any = self.channel.unary_unary("/unary")
        return await unary(content, timeout=timeout_s, metadata=())


def at(conditions: NetworkConditions, scenario: Callable[[Place], Awaitable[None]]) -> None:
    async def run() -> None:
        await scenario(Place(conditions))

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(run())


def test_a_request_is_answered() -> None:
    async def scenario(place: Place) -> None:
        assert await place.ask(b"x") == b"x"
        assert place.channel.get_state() is grpc.ChannelConnectivity.READY

    at(CALM, scenario)


def test_a_stream_keeps_its_order_in_any_weather() -> None:
    async def scenario(place: Place) -> None:
        call: Any = place.channel.stream_stream("/stream")(metadata=())
        sent = [str(number).encode() for number in range(200)]
        for one in sent:
            await call.write(one)
        await call.initial_metadata()
        assert [await call.read() for _ in sent] == sent
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF

    at(ROUGH, scenario)


def test_requests_of_their_own_may_overtake_each_other() -> None:
    async def scenario(place: Place) -> None:
        await asyncio.gather(*(place.ask(str(number).encode()) for number in range(50)))
        assert place.service.asked != sorted(place.service.asked, key=int)

    at(ROUGH, scenario)


@pytest.mark.parametrize(
    ("content", "code", "details"),
    [
        (b"refuse", grpc.StatusCode.NOT_FOUND, "no such thing"),
        (b"break", grpc.StatusCode.UNKNOWN, "Unexpected ZeroDivisionError: "),
        (b"wait", grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"),
    ],
)
def test_an_error_is_reported_as_grpc_does(content: bytes, code: grpc.StatusCode, details: str) -> None:
    async def scenario(place: Place) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await place.ask(content)
        assert (raised.value.code(), raised.value.details()) == (code, details)
        await asyncio.sleep(1.0)
        assert len(place.network.faults) == (content == b"break")
        assert place.service.given_up == [content] * (content == b"wait")

    at(CALM, scenario)


def test_the_service_hears_of_a_call_that_was_given_up() -> None:
    async def scenario(place: Place) -> None:
        asking = asyncio.create_task(place.ask(b"wait"))
        await asyncio.sleep(1.0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(1.0)
        assert place.service.given_up == [b"wait"]

    at(CALM, scenario)


def test_a_cut_ends_everything_and_nobody_can_connect_for_a_while() -> None:
    async def scenario(place: Place) -> None:
        stream: Any = place.channel.stream_stream("/stream")(metadata=())
        await stream.initial_metadata()
        asking = asyncio.create_task(place.ask(b"wait"))
        await asyncio.sleep(1.0)
        place.network.cut(5.0)
        for waiting in (asking, stream.read(), place.ask(b"x")):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await waiting
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert place.channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE
        await asyncio.sleep(5.0)
        assert await place.ask(b"x") == b"x"
        assert place.service.given_up == [b"wait"]

    at(CALM, scenario)


def test_what_was_under_way_when_it_was_cut_never_arrives() -> None:
    async def scenario(place: Place) -> None:
        asking = asyncio.create_task(place.ask(b"x"))
        await asyncio.sleep(0)
        place.network.cut(0.0)
        with pytest.raises(grpc.aio.AioRpcError):
            await asking
        await asyncio.sleep(60.0)
        assert place.service.asked == []

    at(CALM, scenario)


def test_a_closed_connection_takes_no_calls() -> None:
    async def scenario(place: Place) -> None:
        asking = asyncio.create_task(place.ask(b"wait"))
        await asyncio.sleep(1.0)
        await place.channel.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        with pytest.raises(grpc.aio.UsageError):
            await place.ask(b"x")
        assert place.channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN
        await asyncio.sleep(1.0)

    at(CALM, scenario)
