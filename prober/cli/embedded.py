"""The command `ordering-prober embedded`: a Pub/Sub server of one's own."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Annotated

import typer

from prober.cli.options import port_option
from prober.embedded.faults import FaultError, parse_fault
from prober.errors import ConfigError


def embedded(
    port: Annotated[int, port_option("The port for gRPC; 0 takes a free one.")] = 8085,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen, IPv4 or IPv6. Beyond loopback everybody may use it.")
    ] = "127.0.0.1",
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="SPEC", help="A fault to inject, such as drop:p=0.1,key=orders-*."),
    ] = None,
    rest_port: Annotated[int | None, port_option("Also serve REST clients on this port; 0 takes a free one.")] = None,
    admin_port: Annotated[int | None, port_option("Also take faults over HTTP on this port; 0 takes a free one.")] = None,
) -> None:
    """Run only the embedded Pub/Sub server, with the faults that you inject."""
    from prober.embedded.server import serve_embedded

    try:
        ip_address(host)
    except ValueError:
        raise ConfigError(
            f"--host must be an IPv4 or IPv6 address of this machine, such as 127.0.0.1 or ::1, not {host!r}"
        ) from None
    try:
        faults = [parse_fault(text) for text in fault or ()]
        asyncio.run(serve_embedded(port, faults, admin_port, host, rest_port=rest_port))
    except FaultError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"{error}; choose another --port, --rest-port, --admin-port or --host") from error
