"""The embedded server: a Pub/Sub service on an address of this machine.

async with EmbeddedServer(port=0) as server:
    ...  # any Pub/Sub client works on server.address, for instance through PUBSUB_EMULATOR_HOST
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

import grpc.aio

from prober.clock import wall_s
from prober.embedded.admin import AdminEndpoint
from prober.embedded.behaviour import FaultyBehaviour
from prober.embedded.faults import Armed, Fault, Faults
from prober.embedded.pump import Pump
from prober.embedded.servicer import Servicer
from prober.embedded.state import State

_HOST: Final = "127.0.0.1"
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
    """One Pub/Sub service on loopback.

    port        of the gRPC service; 0 takes a free one, `address` says which.
    faults      what goes wrong from the start; more can be armed later.
    admin_port  of the HTTP endpoint for drills (see `admin`); None: there is none, 0: a free one.
    now         seconds since the epoch; the default takes the wall clock once and the loop's clock from then on, so it never steps.

    Everything is kept in memory and gone when the server stops.
    """

    def __init__(
        self,
        port: int = 0,
        faults: Iterable[Fault] = (),
        admin_port: int | None = None,
        *,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.address = f"{_HOST}:{port}"
        self.admin_address = ""
        self._wanted = tuple(faults)
        self._port, self._admin_port = port, admin_port
        self._now = now

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; raises OSError if the port is taken."""
        now = self._now or _steady_clock(asyncio.get_running_loop())
        self.faults = Faults(self._wanted, now())
        self.state = State(int(now() * _SERIALS_PER_SECOND), FaultyBehaviour(self.faults))
        self._pump = Pump(self.state, now)
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers(tuple(Servicer(self._pump).handlers()))
        try:
            port = self._server.add_insecure_port(f"{_HOST}:{self._port}")
        except RuntimeError as error:
            raise OSError(f"cannot listen on {_HOST}:{self._port}: {error}") from error
        await self._server.start()
        self.address = f"{_HOST}:{port}"
        self._admin = AdminEndpoint(self)
        if self._admin_port is not None:
            try:
                self.admin_address = await self._admin.start(_HOST, self._admin_port)
            except OSError:
                await self.stop()
                raise

    async def stop(self) -> None:
        """Refuse new calls, end the streams, forget everything."""
        self._pump.stop()
        await self._server.stop(_STOP_GRACE_S)
        await self._pump.close()
        await self._admin.stop()

    def arm(self, fault: Fault) -> Armed:
        """Let a fault loose now."""
        armed = self.faults.arm(fault, self._pump.now())
        self._pump.ask()
        return armed

    def disarm(self, number: int) -> bool:
        """Take a fault back, and let what it has silenced be heard again; False if there is none of that number."""
        found = self.faults.disarm(number)
        self.state.reconsider(self._pump.now())
        self._pump.ask()
        return found


def _steady_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Seconds since the epoch that pass evenly."""
    offset = wall_s() - loop.time()
    return lambda: offset + loop.time()


async def serve(port: int, faults: Iterable[Fault] = (), admin_port: int | None = None, say: Callable[[str], None] = print) -> None:
    """Run the embedded server until SIGINT or SIGTERM. Raises OSError if a port is taken.

    `say` gets one line for each address, once the server answers.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with EmbeddedServer(port, faults, admin_port) as server:
            say(f"Pub/Sub on {server.address}: export PUBSUB_EMULATOR_HOST={server.address}")
            if server.admin_address:
                say(f"drills on http://{server.admin_address}/faults")
            await stop.wait()
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
