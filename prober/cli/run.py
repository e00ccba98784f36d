"""The command `ordering-prober run`: the service and its API in one process, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.cli.process import favour_the_loop, own_version, start_logs

if TYPE_CHECKING:
    from prober.config.following import ConfigurationFile
    from prober.config.models import Config

PROGRAM: Final = "ordering-prober"
FAULTS_VARIABLE: Final = "ORDERING_PROBER_EMBEDDED__FAULTS"
A_FAULT: Final = "swap_in_batch:p=0.1"

_log = logging.getLogger(__name__)


def run(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration; without it one embedded target.")] = None,
) -> None:
    """Run the service: scheduled probes, metrics, REST API and status page, until Ctrl-C.

    Exit code 0: stopped by Ctrl-C or SIGTERM. 2: wrong usage or configuration, such as a port that is taken. 3: a target needs
    credentials and there are none, or an internal error. 130: Ctrl-C before it had started.
    """
    from prober.config.following import ConfigurationFile
    from prober.config.sections import LogFormat
    from prober.schedule.forecast import check_budget

    file = ConfigurationFile.read(config, os.environ)
    settings = file.config
    check_budget(settings, os.environ)
    announce = start_logs(settings.telemetry)
    for warning in file.warnings:
        _log.warning("%s", warning)
    is_for_people = settings.telemetry.log_format is LogFormat.TEXT
    hints = next_steps(_called()) if config is None and is_for_people and _is_calm(settings) else ""
    asyncio.run(serve(file, os.environ, own_version(), lambda url: announce(f"{url}{hints}")))


def _called() -> str:
    """Return the program as it was called, so that a printed command can be copied."""
    return sys.argv[0] if os.path.basename(sys.argv[0]) == PROGRAM else PROGRAM


def _is_calm(config: Config) -> bool:
    """Return whether the service probes only the embedded server, without a fault."""
    return not config.embedded.faults and all(target.is_embedded for target in config.targets)


def next_steps(program: str) -> str:
    """Return the next steps on the embedded server, which keeps every guarantee."""
    return f"""

The first verdicts come after some seconds, that of each probe within a minute or so. What to try next, after Ctrl-C:
  see a violated guarantee:  {FAULTS_VARIABLE}='["{A_FAULT}"]' {program} run
  see all the faults:    {program} faults
  probe an emulator:     PUBSUB_EMULATOR_HOST=127.0.0.1:8085 {program} check
"""


async def serve(file: ConfigurationFile, environ: Mapping[str, str], version: str, announce: Callable[[str], None]) -> None:
    """Run until a signal arrives, then stop cleanly.

    Calls `announce` with the URL of the status page. SIGHUP reloads the file.

    Raises ConfigError if a port is in use and PermissionRefused if a target needs credentials and there are none.
    """
    from api.app import create_app
    from api.view import Archive
    from prober.service import Service
    from prober.serving.server import listen, reload_signal, serve_until, stop_signals

    config = file.config
    with stop_signals() as stop, await listen(config.api.host, config.api.port) as listening:  # before anything is probed
        service = Service(config, environ, version, file)
        archive = Archive.of(config, service.queries)
        service.followed_by(archive.follow)
        async with service:
            app = create_app(service, archive, config.api)
            favour_the_loop()
            with reload_signal(service.reload if file.path else None):
                await serve_until(stop, app, listening, announce=announce)


def api(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The configuration of the probers whose store is shown.")
    ] = None,
) -> None:
    """Serve only the API and the status page, from the status store alone, until Ctrl-C."""
    from api.standalone import run_alone
    from prober.config.following import ConfigurationFile

    file = ConfigurationFile.read(config, os.environ)
    announce = start_logs(file.config.telemetry)
    asyncio.run(run_alone(file, os.environ, own_version(), announce))
