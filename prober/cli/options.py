"""Options of several commands: each has one name, one meaning and one completion by the shell."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from prober.cli.process import Format
from prober.errors import ProberError


def port_option(meaning: str) -> Any:
    """An option whose value is the number of a TCP port."""
    return typer.Option(metavar="PORT", min=0, max=65_535, help=meaning)


def _probes() -> list[str]:
    from prober.probes.catalogue import PROBES

    return list(PROBES)


def _faults() -> list[str]:
    from prober.embedded.catalogue import CATALOGUE

    return list(CATALOGUE)


def _targets(ctx: typer.Context) -> list[str]:
    """Return the targets of the file that precedes the option on the line."""
    from prober.config.loading import load

    try:
        return [target.name for target in load(ctx.params.get("config"), os.environ, opens_store=False).targets]
    except ProberError:
        return []


Configuration = Annotated[str | None, typer.Option("--config", metavar="FILE", help="The configuration.")]
EndpointOption = Annotated[
    str,
    typer.Option(
        "--endpoint",
        metavar="ENDPOINT",
        help="The service: global, a region such as europe-west1, or HOST:PORT; wins over PUBSUB_EMULATOR_HOST and the configuration.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option("--fault", metavar="NAME", help="Only this fault; may be given several times.", autocompletion=_faults),
]
Output = Annotated[Format, typer.Option("--format", help="Text, or JSON.")]
Probes = Annotated[
    list[str] | None,
    typer.Option("--probe", metavar="NAME", help="Only this probe; may be given several times.", autocompletion=_probes),
]
Seed = Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Seed of everything random.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this time on: 2026-11-20T08:00:00Z.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="NAME", help="Only this target; may be given several times.", autocompletion=_targets),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to this time.")]
