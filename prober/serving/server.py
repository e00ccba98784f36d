"""The web server, in the caller's event loop. The caller also handles signals.

No connection waits for its client for long, and waiting connections never exclude other clients. uvicorn closes only a connection that is
silent after an answer. A connection without a complete request, or whose client does not read the answer, would stay open for ever. A
connection *waits* while it depends on its client alone: before a request, while headers or body arrive, and while an answer cannot be
sent.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from typing import Final, cast

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from prober.errors import ConfigError

GRACE_S: Final = 2
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
WAIT_MAX_S: Final = 10.0
"""The longest idle time of a connection, and the longest time for the headers of a request. The app limits the time for a body."""
READ_MIN_BYTES: Final = 10 << 10
"""The bytes of an answer that a client must read in `WAIT_MAX_S` to stay connected."""
CONNECTIONS_MAX: Final = 512
"""Largest number of connections, above that of concurrent requests, so that one is always waiting; file descriptors often end at 1,024."""
ACCEPTED_AT_ONCE: Final = 16
"""Number of connections that the event loop accepts before it does anything else.

This many more than `CONNECTIONS_MAX` may be open until it closes the surplus, and everything else waits for that long.
"""
THREADS_MAX: Final = 4
"""Number of routes that run at a time.

More would not be faster, since only one thread at a time runs Python, and would delay the event loop, on which probes measure time.
"""
KNOCKING_MAX: Final = 2048
"""Number of connections that wait in the system to be accepted; further ones try again a second later."""


async def serve(app: FastAPI, listening: socket.socket, *, announce: Callable[[str], None]) -> None:
    """Serve an app on a socket of `listen` until cancelled; then requests under way may end, for two seconds at most.

    From then on `app.state.is_ending` is true: an endless answer ends itself. `announce` is called with the URL once the server accepts
    connections. A wildcard address is announced as the loopback address. `uvicorn.access` logs requests if it logs at debug level.
    """
    app.state.is_ending = False
    current_default_thread_limiter().total_tokens = THREADS_MAX
    server = _Server(_config(app), lambda: announce(_url(listening)))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    finally:
        app.state.is_ending = server.should_exit = True
        await serving
        listening.close()


async def serve_until(stop: asyncio.Event, app: FastAPI, listening: socket.socket, *, announce: Callable[[str], None]) -> None:
    """Serve an app until `stop` is set, or the server fails."""
    serving = asyncio.create_task(serve(app, listening, announce=announce))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        serving.cancel()
        stopping.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@contextmanager
def reload_signal(reload: Callable[[], None] | None) -> Iterator[None]:
    """Call `reload` on SIGHUP within this context, and do nothing else then. None: SIGHUP ends the process, as a closed terminal does."""
    if reload is None:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Return an event that SIGINT or SIGTERM sets; they do nothing else within this context."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


class _Server(Server):
    """uvicorn without its signal handlers; calls `up` once it accepts connections."""

    def __init__(self, config: Config, up: Callable[[], None]) -> None:
        super().__init__(config)
        self._up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(KNOCKING_MAX)  # asyncio takes in as many at once as it lets wait
        self._up()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: FastAPI) -> Config:
    chatty = logging.getLogger("uvicorn.access").isEnabledFor(logging.DEBUG)
    return Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level=None if chatty else logging.WARNING,
        access_log=chatty,
        server_header=False,
        proxy_headers=False,
        http=HttpConnection,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=ceil(WAIT_MAX_S),
        timeout_graceful_shutdown=GRACE_S,
    )


async def listen(host: str, port: int, section: str = "api") -> socket.socket:
    """Return a listening socket on the first address of the host; port 0 chooses a free one.

    Connections wait until they are served. Raises ConfigError, which names the `section` of the configuration with the address.
    """
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = addresses[0]
        listening = socket.create_server((address[0], address[1]), family=family)
        # Connections inherit it. asyncio sets it only where it recognizes TCP, and without it an answer's body waits 40 ms for an ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise ConfigError(_why_not(host, port, section, error)) from error


def _why_not(host: str, port: int, section: str, error: OSError) -> str:
    variable = f"ORDERING_PROBER_{section.upper()}"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken; name another with {section}.port or {variable}__PORT"
    if error.errno == errno.EACCES:
        return f"port {port} is reserved by the system; name one from 1024 on with {section}.port or {variable}__PORT"
    why = error.strerror or error
    return f"cannot listen on {host}: {why}; name an address of this machine with {section}.host or {variable}__HOST"


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    host = _WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class HttpConnection(H11Protocol):
    """A connection. Beyond `CONNECTIONS_MAX`, the longest waiting connection is closed for the new one."""

    _waits_since: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _asks = False
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add a connection; close the longest waiting one if there are too many."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > CONNECTIONS_MAX:
            _longest_waiting(self)._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._do_not_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received bytes. The first ones of a request restart its time limit; further ones do not."""
        if not self._asks:
            self._asks = True
            self._wait()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Start to wait after an answer has been passed to the transport, though perhaps not sent."""
        self._asks = False
        self._wait()
        super().on_response_complete()  # which begins with the next request, if that is there already
        self._look()

    def pause_writing(self) -> None:
        """Start to wait: the client reads more slowly than the answer is produced."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """End the wait: the client has continued to read."""
        super().resume_writing()
        self._look()

    def shutdown(self) -> None:
        """Close the connection at the end of the server, if the body of its request is incomplete."""
        super().shutdown()
        if self._is_under_way() and self.cycle.more_body:
            self._close()

    def _is_under_way(self) -> bool:
        """Return whether a request is being answered, or will be after its body has arrived."""
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _look(self) -> None:
        """End the wait while a request is being answered. Until its body is complete it may still be closed for another connection."""
        if not self._is_under_way() or self.flow.write_paused:
            return
        if self.cycle.more_body:
            self._cancel_timer()
        else:
            self._do_not_wait()

    def _wait(self) -> None:
        self._waits_since = self.loop.time()
        self._arm_timer()

    def _do_not_wait(self) -> None:
        self._waits_since = None
        self._cancel_timer()

    def _arm_timer(self) -> None:
        self._cancel_timer()
        self._unsent = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(WAIT_MAX_S, self._waited)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _waited(self) -> None:
        if self._unsent - self.transport.get_write_buffer_size() >= READ_MIN_BYTES:
            self._arm_timer()
        else:
            self._close()

    def _close(self) -> None:
        """Close at once: unsent data will not be read."""
        self._do_not_wait()
        self.transport.abort()


def _longest_waiting(newest: HttpConnection) -> HttpConnection:
    """Return the longest waiting connection of the server; the newest one itself, if all others are being answered."""
    waiting = {
        one: one._waits_since for one in newest.connections if isinstance(one, HttpConnection) and one._waits_since is not None
    }
    return min(waiting, key=lambda one: waiting[one], default=newest)
