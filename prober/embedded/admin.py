"""The endpoint for drills: faults are armed, listed and taken back over HTTP while the server runs. Loopback only.

    GET    /healthz          200 while the server runs
    GET    /faults           {"items": [{"number", "fault", "active", "injected"}]}
    POST   /faults           {"fault": "drop:p=0.1"}: armed from now on; 201 with the same fields
    DELETE /faults/{number}  taken back; 204, or 404
    DELETE /faults           all of them
    GET    /ledger           {"counts": {name: n}, "items": [{"t", "fault", "number", "where", "key", "message_id"}]}, the latest first;
                             ?limit=100
    GET    /catalogue        every fault with its explanation

Errors are problem details (RFC 9457).
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final, Protocol

from aiohttp import web

from prober.embedded.faults import CATALOGUE, Armed, Fault, FaultError, Faults, parse_fault

_ITEMS_DEFAULT: Final = 100


class Drilled(Protocol):
    """What can be drilled: the server."""

    faults: Faults

    def arm(self, fault: Fault) -> Armed:
        """Let a fault loose now."""

    def disarm(self, number: int) -> bool:
        """Take a fault back; False if there is none of that number."""


class AdminEndpoint:
    """The HTTP side of the faults of one server."""

    def __init__(self, server: Drilled) -> None:
        self._server = server
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> str:
        """Listen; the address. Raises OSError if the port is taken."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/faults", self._list),
                web.post("/faults", self._arm),
                web.delete("/faults", self._disarm_all),
                web.delete("/faults/{number}", self._disarm),
                web.get("/ledger", self._ledger),
                web.get("/catalogue", self._catalogue),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        listening: tuple[str, int] = self._runner.addresses[0]
        return f"{listening[0]}:{listening[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"items": [_shown(armed) for armed in self._server.faults.all()]})

    async def _arm(self, request: web.Request) -> web.Response:
        try:
            document = await request.json()
            text = document["fault"] if isinstance(document, dict) else None
            if not isinstance(text, str):
                return _problem(400, 'the body is {"fault": "NAME:p=0.1,..."}')
            return web.json_response(_shown(self._server.arm(parse_fault(text))), status=201)
        except FaultError as error:
            return _problem(400, str(error))
        except (json.JSONDecodeError, KeyError):
            return _problem(400, 'the body is {"fault": "NAME:p=0.1,..."}')

    async def _disarm(self, request: web.Request) -> web.Response:
        number = request.match_info["number"]
        if not number.isdecimal() or not self._server.disarm(int(number)):
            return _problem(404, f"there is no fault number {number}")
        return web.Response(status=204)

    async def _disarm_all(self, _: web.Request) -> web.Response:
        for armed in self._server.faults.all():
            self._server.disarm(armed.number)
        return web.Response(status=204)

    async def _ledger(self, request: web.Request) -> web.Response:
        limit = request.query.get("limit", str(_ITEMS_DEFAULT))
        if not limit.isdecimal():
            return _problem(400, "limit is a number")
        ledger = self._server.faults.ledger
        latest = [dataclasses.asdict(injection) for injection in list(ledger.latest)[::-1][: int(limit)]]
        return web.json_response({"counts": dict(ledger.counts), "items": latest})

    async def _catalogue(self, _: web.Request) -> web.Response:
        return web.json_response({"items": [dataclasses.asdict(description) for description in CATALOGUE.values()]})


def _shown(armed: Armed) -> dict[str, Any]:
    return {"number": armed.number, "fault": str(armed.fault), "active": armed.left > 0, "injected": armed.injected}


def _problem(status: int, detail: str) -> web.Response:
    document = {"type": "about:blank", "status": status, "detail": detail}
    return web.json_response(document, status=status, content_type="application/problem+json")
