"""The embedded server and whoever connects to it, in virtual time: minutes of waiting pass in no time, and nothing depends on the machine.

Everything of ours runs as it is: the adapter at the wire, the servicer, the endpoint of pushes with its tokens, the runner, the verifier.
In the place of gRPC and HTTP there is the network of the simulation, which keeps order and delays as they do. So what a test proves here it
proves for all but the sockets; those have a few tests of their own. Google's client library has threads of its own and cannot take part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
import pytest
from fastapi import FastAPI
from google.auth import _helpers

from prober.brokers.endpoint import local_endpoint
from prober.brokers.push import endpoint as push_endpoint
from prober.clock import on_machine, wall_s
from prober.embedded import pump
from prober.simulation.network import Network
from prober.simulation.network_conditions import CALM
from prober.simulation.service import SimulatedPosts
from prober.simulation.virtual_time import VirtualTime

Result = TypeVar("Result")
_PORTS: Final = count(1)


def in_virtual_time(scenario: Callable[[], Coroutine[Any, Any, Result]], seed: int = 0) -> Result:
    """What the scenario returns, in an event loop of its own. `seed`: of what two runs of it would otherwise draw differently."""
    loop = _Loop()
    places = _Places(seed)
    with places.instead_of_sockets(), on_machine(loop.machine(seed)), asyncio.Runner(loop_factory=lambda: loop) as runner:
        result = runner.run(scenario())
    assert places.faults == []
    return result


class _Loop(VirtualTime):
    """What others do in a thread is done at once: time must not leap ahead of it."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _Places:
    """Who listens where."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._networks: dict[str, Network] = {}
        self._apps: dict[str, FastAPI] = {}

    @property
    def faults(self) -> list[Exception]:
        """Mistakes of the servers."""
        return [fault for network in self._networks.values() for fault in network.faults]

    @contextmanager
    def instead_of_sockets(self) -> Iterator[None]:
        """Whoever opens a channel, a server or an endpoint does it here."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grpc.aio, "server", lambda **_: _Server(self))
            patch.setattr(grpc.aio, "insecure_channel", self._open_channel)
            patch.setattr(push_endpoint, "listen", self._listen)
            patch.setattr(push_endpoint, "serve", self._serve)
            patch.setattr(pump, "HttpPosts", lambda: _Posts(self))
            patch.setattr(_helpers, "utcnow", lambda: datetime.fromtimestamp(wall_s(), UTC).replace(tzinfo=None))  # looks at tokens
            yield

    def network(self, address: str) -> Network:
        """The way to who listens at an address, or will."""
        return self._networks.setdefault(address, Network(CALM, self._rng))

    def app(self, url: str) -> FastAPI:
        """Who takes what is posted to a URL."""
        return self._apps[urlsplit(url).netloc]

    def _open_channel(self, address: str, **_options: object) -> grpc.aio.Channel:
        return self.network(address).open_channel(local_endpoint(address), None)

    async def _listen(self, host: str, _port: int, _section: str) -> str:
        return f"{host}:{next(_PORTS)}"

    async def _serve(self, app: FastAPI, address: str, *, announce: Callable[[str], None]) -> None:
        self._apps[address] = app
        announce(f"http://{address}/")
        await asyncio.get_running_loop().create_future()


class _Server:
    """As far as ours uses `grpc.aio.Server`."""

    def __init__(self, places: _Places) -> None:
        self._places = places
        self._handlers: tuple[grpc.GenericRpcHandler, ...] = ()

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self._handlers = tuple(handlers)

    def add_insecure_port(self, address: str) -> int:
        host, _, _port = address.rpartition(":")
        port = next(_PORTS)
        self._network = self._places.network(f"{host}:{port}")
        return port

    async def start(self) -> None:
        self._network.serve(self._handlers)

    async def stop(self, _grace_s: float) -> None:
        self._network.cut(float("inf"))


class _Posts:
    """Carries requests to the app that listens there."""

    def __init__(self, places: _Places) -> None:
        self._places = places

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int | None:
        posts = SimulatedPosts(self._places.network("pushes"), self._app(url))
        return await posts.post(url, headers, body)

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _app(self, url: str) -> Callable[[Any, Any, Any], Awaitable[None]]:
        return self._places.app(url)
