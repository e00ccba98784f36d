"""What the command `ordering-prober run` does: the service and its API in one process, until SIGINT or SIGTERM."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from api.app import create_app
from api.server import serve_until, stop_signals
from api.view import Archive
from prober.cli.gc_tuning import collect_between_runs
from prober.config.models import Config
from prober.service import Service


async def run(config: Config, environ: Mapping[str, str], version: str, announce: Callable[[str], None]) -> None:
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
