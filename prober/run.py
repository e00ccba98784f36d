"""What the command `ordering-prober run` does: the service and its API in one process, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from api.app import create_app
from api.archive import Archive
from api.server import serve
from prober.config.models import Config
from prober.garbage import collect_between_runs
from prober.history.reports import ReportReader
from prober.service import Service

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


async def run(config: Config, environ: Mapping[str, str], version: str, announce: Callable[[str], None]) -> None:
    """Runs until a signal comes, then stops cleanly. `announce` is told the URL of the status page.

    Raises ConfigError if a port is taken and PermissionRefused if a target needs credentials and there are none.
    """
    collect_between_runs()
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with Service(config, environ, version) as service:
            reports = config.history.reports
            archive = Archive(service.queries, tuple(config.objectives), None if reports is None else ReportReader(str(reports)))
            serving = asyncio.create_task(
                serve(create_app(service, archive, config.api), config.api.host, config.api.port, announce=announce)
            )
            stopping = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            finally:
                serving.cancel()
                stopping.cancel()
                with suppress(asyncio.CancelledError):
                    await serving
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
