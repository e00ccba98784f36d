"""The command `ordering-prober api`: the API and the status page in a process of their own."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from prober.cli.process import own_version, start_logs


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
