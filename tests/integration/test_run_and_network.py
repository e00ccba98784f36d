"""One run in this process, with a network between it and the target that can be made to stand still; and what is left of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from prober.brokers.base import Vantage
from prober.brokers.connect import connect
from prober.brokers.endpoint import Endpoint
from prober.config.loading import load
from prober.core.events import Delivered
from prober.core.verdict import Verdict
from prober.embedded.server import EmbeddedServer
from prober.runs.classification import Observation
from prober.runs.recorder import ANSWER_MAX_S, LIVENESS_CHECK_S
from prober.runs.resources import Provisioner
from prober.runs.runner import Run
from prober.schedule.instances import PlannedInstance, instances_of


class Network:
    """Passes bytes on between clients and one address; what comes back from there waits while `passing` is cleared."""

    def __init__(self, address: str) -> None:
        self.passing = asyncio.Event()
        self.passing.set()
        self._host, _, port = address.rpartition(":")
        self._port = int(port)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client has connected."""
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        at_once = asyncio.Event()
        at_once.set()
        await asyncio.gather(self._pass_on(reader, far_writer, at_once), self._pass_on(far_reader, writer, self.passing))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event) -> None:
        try:
            while data := await reader.read(65536):
                await passing.wait()
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def network(address: str) -> AsyncIterator[tuple[Network, str]]:
    """A network to that address, and where it begins."""
    between = Network(address)
    async with await asyncio.start_server(between.connected, "127.0.0.1", 0) as listening:
        yield between, f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def run_at(address: str) -> AsyncIterator[Run]:
    """A run of `ordering`, at the wire."""
    instance: PlannedInstance = next(iter(instances_of(load(None, {}).targets[0])))
    endpoint = Endpoint(address, secure=False)
    target = instance.at(endpoint)
    broker = await connect(endpoint, Vantage.WIRE)
    try:
        yield Run(instance.experiment, broker, target, Provisioner(target, "test", lasting=False), instance.workload)
    finally:
        await broker.close()


def test_a_network_that_stands_still_is_not_held_against_the_target() -> None:
    """Messages that it held up look as if they had gone to two subscribers at once, or had been forgotten."""

    async def scenario() -> None:
        async with EmbeddedServer(0) as server, network(server.address) as (between, address), run_at(address) as run:
            seen = 0

            def stand_still(observed: Observation) -> None:
                nonlocal seen
                seen += isinstance(observed.event, Delivered)
                if seen == 20:
                    between.passing.clear()
                    asyncio.get_running_loop().call_later(LIVENESS_CHECK_S + ANSWER_MAX_S + 1.0, between.passing.set)

            run.recording.listen(stand_still)
            result = await run.carry_out()
            assert (result.verdict, dict(result.counts)) == (Verdict.UNKNOWN, {})
            assert "no answer came from the target" in result.reason

    asyncio.run(scenario())


def test_the_events_of_a_run_are_given_back_when_it_is_over() -> None:
    """Without a search for cycles, which comes rarely."""

    async def scenario() -> None:
        async with EmbeddedServer(0) as server:
            given_back: list[bool] = []
            async with run_at(server.address) as run:
                weakref.finalize(run.recording, partial(given_back.append, True))
                assert (await run.carry_out()).verdict is Verdict.PASS
            del run
            async with asyncio.timeout(5.0):  # tasks that were cancelled take a turn of the loop to end
                while not given_back:
                    await asyncio.sleep(0)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()
