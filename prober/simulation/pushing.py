"""Push requests without sockets: from the service to the app of the prober's endpoint, under the same network conditions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from prober.simulation.network import Network

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
