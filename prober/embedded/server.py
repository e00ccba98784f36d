"""The embedded server: a Pub/Sub service on a local address, and an endpoint to arm faults while it runs.

    async with EmbeddedServer(port=0) as server:
        ...  # any Pub/Sub client works on server.address, for instance through PUBSUB_EMULATOR_HOST

The endpoint speaks HTTP, on loopback only:

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

import asyncio
import dataclasses
import json
import logging
import signal
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final, Self

import grpc.aio
from aiohttp import web

from prober.clock import wall_s
from prober.embedded.behaviour import Behaviour
from prober.embedded.calls import Calls
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Armed, Fault, FaultError, Faults, parse_fault
from prober.embedded.pump import Pump
from prober.embedded.rest import Listener, RestEndpoint, join_address
from prober.embedded.servicer import Servicer
from prober.embedded.signing import Signer
from prober.embedded.state import State

LOOPBACK: Final = "127.0.0.1"
_ITEMS_DEFAULT: Final = 100
_log: Final = logging.getLogger(__name__)
_STOP_GRACE_S: Final = 0.2
_SERIALS_PER_SECOND: Final = 1_000_000  # more than this server can give out, so that ids never repeat after a restart
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 16 << 20),  # above the service's own limit, so that it is the service that refuses
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.max_ping_strikes", 0),  # clients may keep their connections alive as they like
)


class EmbeddedServer:
    """One Pub/Sub service, on loopback unless another host is given.

    host        address of this machine to listen on, IPv4 or IPv6. The service does not authenticate its clients.
    port        port of the gRPC service; 0 takes a free one (see `address`).
    faults      faults armed from the start; more can be armed later.
    admin_port  port of the HTTP endpoint for drills (see above); None: no endpoint, 0: a free port.
    rest_port   port of the same service over REST, for clients without gRPC; None: no REST, 0: a free port.
    now         seconds since the epoch; the default reads the wall clock once and then the loop's clock, so it never steps.

    All state is in memory and lost when the server stops.
    """

    def __init__(
        self,
        port: int = 0,
        faults: Iterable[Fault] = (),
        admin_port: int | None = None,
        *,
        host: str = LOOPBACK,
        rest_port: int | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._host = host
        self.address = join_address(host, port)
        self.admin_address = self.rest_address = ""
        self._wanted = tuple(faults)
        self._port, self._admin_port, self._rest_port = port, admin_port, rest_port
        self._now = now
        self.signer = Signer()
        """Signer of the tokens of pushes."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. Raises OSError if the port is in use."""
        now = self._now or _steady_clock(asyncio.get_running_loop())
        self.faults = Faults(self._wanted, now())
        self.state = State(int(now() * _SERIALS_PER_SECOND), Behaviour(self.faults))
        self._pump = Pump(self.state, now, self.signer)
        calls = Calls(self._pump)
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers(tuple(Servicer(self._pump, calls).handlers()))
        wanted = join_address(self._host, self._port)
        try:
            port = self._server.add_insecure_port(wanted)
        except RuntimeError as error:  # whose text advises to debug gRPC
            raise OSError(f"cannot listen on {wanted}: the port is taken, or the address is not of this machine") from error
        await self._server.start()
        self.address = join_address(self._host, port)
        self._rest, self._admin = RestEndpoint(calls), AdminEndpoint(self)
        try:
            if self._rest_port is not None:
                self.rest_address = await self._rest.start(self._host, self._rest_port)
            if self._admin_port is not None:
                self.admin_address = await self._admin.start(LOOPBACK, self._admin_port)
        except OSError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Reject new calls, end the streams, drop all state. Warn of fault patterns that matched nothing."""
        for armed in self.faults.all():
            if armed.fault.key != "*" and not armed.asked:
                _log.warning("the fault %s was never injected: nothing in its time matched %r", armed.fault, armed.fault.key)
        self._pump.stop()
        await self._server.stop(_STOP_GRACE_S)
        await self._pump.close()
        await self._rest.stop()
        await self._admin.stop()

    def arm(self, fault: Fault) -> Armed:
        """Arm a fault now."""
        armed = self.faults.arm(fault, self._pump.now())
        self._pump.ask()
        return armed

    def disarm(self, number: int) -> bool:
        """Disarm a fault and resume the key queues that it silenced; return False if there is no fault of this number."""
        found = self.faults.disarm(number)
        self.state.reconsider(self._pump.now())
        self._pump.ask()
        return found


class AdminEndpoint(Listener):
    """HTTP endpoint for the faults of one server."""

    def __init__(self, server: EmbeddedServer) -> None:
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
        super().__init__(application)
        self._server = server

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"items": [_shown(armed) for armed in self._server.faults.all()]})

    async def _arm(self, request: web.Request) -> web.Response:
        try:
            document = await request.json()
            text = document["fault"] if isinstance(document, dict) else None
            if not isinstance(text, str):
                return _problem(400, 'the body must be {"fault": "NAME:p=0.1,..."}')
            return web.json_response(_shown(self._server.arm(parse_fault(text))), status=201)
        except FaultError as error:
            return _problem(400, str(error))
        except (json.JSONDecodeError, KeyError):
            return _problem(400, 'the body must be {"fault": "NAME:p=0.1,..."}')

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
            return _problem(400, "limit must be a whole number")
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


def _steady_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return a clock in seconds since the epoch that never steps."""
    offset = wall_s() - loop.time()
    return lambda: offset + loop.time()


async def serve_embedded(
    port: int,
    faults: Iterable[Fault] = (),
    admin_port: int | None = None,
    host: str = LOOPBACK,
    say: Callable[[str], None] = print,
    *,
    rest_port: int | None = None,
) -> None:
    """Run the embedded server until SIGINT or SIGTERM. Raises OSError if a port is in use.

    `say` is called with one line for each address, once the server is ready.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with EmbeddedServer(port, faults, admin_port, host=host, rest_port=rest_port) as server:
            if not ip_address(host).is_loopback:
                say(f"every client that reaches {host} may use this server: it does not authenticate clients")
            say(f"Pub/Sub on {server.address}: export PUBSUB_EMULATOR_HOST={server.address}")
            if server.rest_address:
                say(f"Pub/Sub over REST on http://{server.rest_address}")
            if server.admin_address:
                say(f"Fault injection on http://{server.admin_address}/faults")
            await stop.wait()
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
