"""The command `ordering-prober run`: the service and its API in one process, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from api.app import create_app
from api.server import serve_until, stop_signals
from api.view import Archive
from prober.cli.process import collect_between_runs, own_version
from prober.config.loading import load_with_warnings
from prober.config.models import Config
from prober.logs import set_up as set_up_logs
from prober.service import Service

_log = logging.getLogger(__name__)


def run(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration; without it one embedded target.")] = None,
) -> None:
    """Run the service: scheduled probes, metrics, REST API and status page, until Ctrl-C."""
    settings, warnings = load_with_warnings(config, os.environ)
    set_up_logs(settings.telemetry, sys.stderr)
    for warning in warnings:
        _log.warning("%s", warning)
    asyncio.run(_serve(settings, os.environ, own_version(), lambda url: print(f"status page: {url}", flush=True)))


async def _serve(config: Config, environ: Mapping[str, str], version: str, announce: Callable[[str], None]) -> None:
    """Runs until a signal comes, then stops cleanly. `announce` is told the URL of the status page.

    Raises ConfigError if a port is taken and PermissionRefused if a target needs credentials and there are none.
    """
    collect_between_runs()
    with stop_signals() as stop:
        service = Service(config, environ, version)
        archive = Archive.of(config, service.queries)
        async with service:
            app = create_app(service, archive, config.api)
            await serve_until(stop, app, config.api.host, config.api.port, announce=announce)
