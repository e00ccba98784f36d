"""The embedded service in the event loop of the simulation, behind a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from prober.embedded.behaviour import Behaviour
from prober.embedded.calls import Calls
from prober.embedded.faults import Fault, Faults
from prober.embedded.pump import Pump
from prober.embedded.servicer import Servicer
from prober.embedded.signing import Signer
from prober.embedded.state import State
from prober.simulation.network import Network
from prober.simulation.network_conditions import NetworkConditions
from prober.simulation.virtual_time import STARTED_AT

_SERIALS_PER_SECOND: Final = 1_000_000


class SimulatedService:
    """A service with faults, which sends its pushes to `app`. Its clock is separate and never set."""

    def __init__(self, faults: Iterable[Fault], conditions: NetworkConditions, rng: Random, app: App) -> None:
        loop, began = asyncio.get_running_loop(), STARTED_AT.timestamp()

        def now() -> float:
            return began + loop.time()

        self.faults = Faults(faults, now())
        self.network = Network(conditions, rng)
        state = State(int(now() * _SERIALS_PER_SECOND), Behaviour(self.faults))
        self._pump = Pump(state, now, Signer(), SimulatedPosts(self.network, app))
        self.network.serve(Servicer(self._pump, Calls(self._pump)).handlers())

    async def stop(self) -> None:
        """Stop the service with all its tasks."""
        self.network.cut(0.0)
        self._pump.stop()
        await self._pump.close()


App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application."""


class SimulatedPosts:
    """Client that sends POST requests to one app."""

    def __init__(self, network: Network, app: App) -> None:
        self._network, self._app = network, app

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """Return the status of the response; None if the network is down."""
        await asyncio.sleep(self._network.delay_s())
        if self._network.is_down:
            return None
        exchange = _Exchange(url, headers, body)
        try:
            await exchange.carried_out(self._app)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(self._network.delay_s(), exchange.given_up.set)
            raise
        await asyncio.sleep(self._network.delay_s())
        return exchange.status

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


class _Exchange:
    """One request and its response, with the callables of ASGI."""

    def __init__(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.status: int | None = None
        self.given_up = asyncio.Event()
        self._request: list[bytes] = [body]
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": urlsplit(url).path,
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }

    async def carried_out(self, app: App) -> None:
        """Return when the app has answered.

        If the caller stops waiting, the app continues; `given_up` reports that to it.
        """
        answering = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        await asyncio.shield(answering)

    async def _receive(self) -> dict[str, Any]:
        if self._request:
            return {"type": "http.request", "body": self._request.pop(), "more_body": False}
        await self.given_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
