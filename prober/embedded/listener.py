"""An HTTP endpoint of the embedded server: an aiohttp application on one port."""

from __future__ import annotations

import os
from typing import Final

from aiohttp import web

_STOP_GRACE_S: Final = 0.2


class Listener:
    """Server of one application. A request whose client has disconnected is cancelled."""

    def __init__(self, application: web.Application, *, auto_decompress: bool = True) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=_STOP_GRACE_S,
            auto_decompress=auto_decompress,
        )

    async def start(self, host: str, port: int) -> str:
        """Listen; return the address. Port 0 takes a free port. Raises OSError if the port is in use."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"cannot listen on {join_address(host, port)}: {why}") from error
        return join_address(*self._runner.addresses[0][:2])

    async def stop(self) -> None:
        """Stop listening; open requests get a short time to end."""
        await self._runner.cleanup()


def join_address(host: str, port: int) -> str:
    """Return HOST:PORT, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
