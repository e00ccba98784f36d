"""The web server, inside the event loop of whoever starts it. Signals are left to that one, too."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from typing import Final

from fastapi import FastAPI
from uvicorn import Config, Server

from prober.errors import ConfigError
from prober.serving.connections import WAIT_MAX_S, Connection

GRACE_S: Final = 2
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


async def serve(app: FastAPI, host: str, port: int, *, announce: Callable[[str], None], section: str = "api") -> None:
    """Serves an app until cancelled, then lets what is being answered end, for two seconds at most.

    `announce` is called with the URL once there is somebody to answer; port 0 takes a free one. A wildcard address is announced as
    the loopback address. ConfigError if it cannot listen there, which names the `section` of the configuration that says where.
    Requests are logged by `uvicorn.access` if that logs at debug level.
    """
    listening = await _listen(host, port, section)
    server = _Server(_config(app), lambda: announce(_url(listening)))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
        listening.close()


async def serve_until(stop: asyncio.Event, app: FastAPI, host: str, port: int, *, announce: Callable[[str], None]) -> None:
    """Serves an app until it is told to stop, or cannot go on; errors as above."""
    serving = asyncio.create_task(serve(app, host, port, announce=announce))
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
    """Inside of this SIGHUP calls `reload`, and does nothing else. None: it ends the process, as when a terminal is closed."""
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
    """An event that is set by SIGINT or SIGTERM, which do nothing else inside of this."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


class _Server(Server):
    """uvicorn, which otherwise takes the signal handlers of the process; says when it answers."""

    def __init__(self, config: Config, up: Callable[[], None]) -> None:
        super().__init__(config)
        self._up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
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
        http=Connection,
        timeout_keep_alive=ceil(WAIT_MAX_S),
        timeout_graceful_shutdown=GRACE_S,
    )


async def _listen(host: str, port: int, section: str) -> socket.socket:
    """A listening socket on the first address that the host stands for."""
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
