"""The last station: a small HTTP server that Alertmanager pages, and that Prometheus may scrape where nobody else lets it.

    POST /pages    Alertmanager's webhook, version 4 (prometheus.io/docs/alerting/latest/configuration, "webhook_config")
    GET  /metrics  the metrics, if it was given any

It is apart from the API on purpose: Alertmanager has no token of ours and needs none here, since all that a page can do is to end the
wait of a drill; and the command `drill`, which has no API, takes the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from aiohttp import web

from prober.drills.alerts import FIRING, drill_of
from prober.errors import ConfigError

PAGES: Final = "/pages"
BODY_MAX: Final = 1 << 20
"""Bytes of one page: some hundred alerts."""

Expose: TypeAlias = Callable[[str], Awaitable[tuple[str, bytes]]]
"""What a scrape with this Accept header gets: content type and body."""


class Receiver:
    """Listens while it is open. Remembers of each drill only whether a page about it has come."""

    def __init__(self, host: str, port: int, metrics: Expose | None = None) -> None:
        self.address = ""
        self._host, self._port, self._metrics = host, port, metrics
        self._paged: dict[str, bool] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listens; raises ConfigError if it cannot."""
        application = web.Application(client_max_size=BODY_MAX)
        application.add_routes([web.post(PAGES, self._page)])
        if self._metrics is not None:
            application.add_routes([web.get("/metrics", self._scraped)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self.stop()
            raise ConfigError(f"cannot listen on {self._host}:{self._port}: {error}; name another with drills.port") from error
        host, port = self._runner.addresses[0][:2]
        self.address = f"{host}:{port}"

    async def stop(self) -> None:
        """Stops listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def expect(self, drill: str) -> None:
        """Watches for pages about a drill from now on; what came before is forgotten, and so is what comes about others."""
        self._paged[drill] = False

    async def sees(self, drill: str) -> str | None:
        """An empty note if a page about a drill has come since it was expected."""
        return "" if self._paged.get(drill) else None

    async def _page(self, request: web.Request) -> web.Response:
        try:
            document = await request.json()
            alerts = [alert for alert in document["alerts"] if alert["status"] == FIRING]
            drills = [drill_of(alert) for alert in alerts]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return _problem(400, "this is no page of Alertmanager's webhook, version 4")
        for drill in self._paged.keys() & set(drills):
            self._paged[drill] = True
        return web.json_response({"alerts": len(alerts)})

    async def _scraped(self, request: web.Request) -> web.Response:
        assert self._metrics is not None  # there is no such route otherwise
        content_type, body = await self._metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _problem(status: int, detail: str) -> web.Response:
    document: dict[str, Any] = {"type": "about:blank", "status": status, "detail": detail}
    return web.json_response(document, status=status, content_type="application/problem+json")
