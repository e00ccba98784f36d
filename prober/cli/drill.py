"""The command `ordering-prober drill`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from prober.cli import fire_drills as command
from prober.cli.verify import Format
from prober.cli.version import own_version
from prober.config.drills import Drills, overlaid
from prober.config.loading import load
from prober.drills.plans import PLANS, DrillPlan, chosen
from prober.drills.results import DrillResult
from prober.errors import ConfigError

Begin = Callable[[DrillPlan], None]


def drill(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The configuration; its section drills: counts.")] = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", metavar="NAME", help="Only this drill; may be given several times.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every fault there is; otherwise one of each sort.")] = False,
    prometheus: Annotated[str | None, typer.Option(metavar="URL", help="Follow findings to this Prometheus.")] = None,
    alertmanager: Annotated[str | None, typer.Option(metavar="URL", help="Follow them to this Alertmanager.")] = None,
    port: Annotated[int | None, typer.Option(help="Listen here for /metrics scrapes and /pages of Alertmanager.")] = None,
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON document.")] = Format.TEXT,
    seed: Annotated[int, typer.Option(help="Repeats what is random.")] = 0,
) -> None:
    """Break promises on purpose, on a server of its own, and follow each to whoever is told.

    Exit code 0: all pass. 1: a fault was missed, or somebody was not told. 2: wrong usage or configuration. 3: undecided.
    """
    if every and fault:
        raise ConfigError("write --all or --fault, not both")
    given = {"faults": fault, "prometheus": prometheus, "alertmanager": alertmanager, "port": port}
    settings = overlaid(load(config, os.environ).drills, {key: value for key, value in given.items() if value is not None})
    plans = tuple(PLANS.values()) if every else chosen(settings.faults)
    with _while_drilling(plans) as begin:
        results = asyncio.run(_drill(plans, settings, own_version(), seed, begin, output))
    if output is Format.JSON:
        print(command.as_json(results))
    else:
        print(command.conclusion(results))
    raise typer.Exit(int(command.exit_code(results)))


async def _drill(
    plans: Sequence[DrillPlan], settings: Drills, version: str, seed: int, begin: Begin, output: Format
) -> list[DrillResult]:
    told = 0

    def tell(result: DrillResult) -> None:
        nonlocal told
        if output is Format.TEXT:
            print("" if told else f"{command.heading(plans)}\n", command.as_text(result, plans), sep="", flush=True)
        told += 1

    return await command.drill(plans, settings, version, seed, begin, tell)


@contextmanager
def _while_drilling(plans: Sequence[DrillPlan]) -> Iterator[Begin]:
    """A bar on standard error, on a terminal, that does not tear what is printed."""
    if not sys.stderr.isatty():
        yield lambda _plan: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task("connecting", total=len(plans))
        begun = 0

        def begin(plan: DrillPlan) -> None:
            nonlocal begun
            bar.update(task, description=f"drill {plan.name}: {plan.sentence}", completed=begun)
            begun += 1

        yield begin
