"""The command `ordering-prober embedded`: a Pub/Sub server of one's own."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from prober.embedded.faults import FaultError, parse_fault
from prober.errors import ConfigError


def embedded(
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8085,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="SPEC", help="A fault to inject, such as drop:p=0.1,key=orders-*."),
    ] = None,
    admin_port: Annotated[int | None, typer.Option(help="Also take faults over HTTP on this port; 0 takes a free one.")] = None,
) -> None:
    """Run only the embedded Pub/Sub server, with the faults that you inject."""
    from prober.embedded.server import serve_embedded

    try:
        asyncio.run(serve_embedded(port, [parse_fault(text) for text in fault or ()], admin_port))
    except FaultError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"cannot listen on port {port}: {error}; name another with --port") from error
