"""The command `ordering-prober drill`: run drills once, in a process of their own, and print the result of each."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.cli.bars import while_running
from prober.cli.options import Faults, Output, Seed, port_option
from prober.cli.process import Format, code_of, must_know, overall_verdict, own_version
from prober.cli.terminal import show
from prober.clock import wall_s
from prober.core.verdict import Verdict
from prober.embedded.catalogue import LISTED
from prober.errors import ConfigError

if TYPE_CHECKING:
    from prober.config.sections import Drills
    from prober.drills.chain import Step
    from prober.drills.drill import DrillResult
    from prober.drills.plans import DrillPlan

_CELL: Final = 7
"""Characters of the longest cell, so that the table fits into a terminal of 80."""


def drill(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The configuration; only its section `drills` is used.")
    ] = None,
    fault: Faults = None,
    every: Annotated[
        bool, typer.Option("--all", help="Drill every fault; by default one of each sort except availability, and the control.")
    ] = False,
    prometheus: Annotated[str | None, typer.Option(metavar="URL", help="Check that the alert fires in this Prometheus.")] = None,
    alertmanager: Annotated[
        str | None, typer.Option(metavar="URL", help="Check that the alert arrives at this Alertmanager.")
    ] = None,
    port: Annotated[int | None, port_option("Serve /metrics for Prometheus and /pages for Alertmanager on this port.")] = None,
    output: Output = Format.TEXT,
    seed: Seed = 0,
) -> None:
    """Inject faults on a server of its own, and follow each to its page.

    Exit code 0: all pass. 1: a fault was missed, or the page was not sent. 2: wrong usage or configuration. 3: undecided.
    """
    from prober.config.loading import load
    from prober.config.problems import validated
    from prober.config.sections import Drills
    from prober.drills.plans import PLANS, chosen

    must_know("fault", fault or (), PLANS, LISTED)
    if every and fault:
        raise ConfigError("write --all or --fault, not both")
    given = {"faults": fault, "prometheus": prometheus, "alertmanager": alertmanager, "port": port}
    configured = dict(load(config, os.environ, opens_store=False).drills)
    settings = validated(Drills, configured | {key: value for key, value in given.items() if value is not None})
    plans = tuple(PLANS.values()) if every else chosen(settings.faults)
    with while_running() as bar:

        def begin(plan: DrillPlan) -> None:
            bar(f"drill {plan.name}: {plan.sentence}", len(plans))

        results = asyncio.run(run_drills(plans, settings, own_version(), seed, begin, _printing(plans, output)))
    if output is Format.JSON:
        print(drills_as_json(results))
    else:
        show(conclusion(results))
    raise typer.Exit(int(code_of(overall_verdict(results))))


def _printing(plans: Sequence[DrillPlan], output: Format) -> Callable[[DrillResult], None]:
    """Return a callback that prints a row for each result, after the head of the table; nothing for JSON."""
    head = f"{heading(plans)}\n"

    def tell(result: DrillResult) -> None:
        nonlocal head
        if output is Format.TEXT:
            show(head + drill_as_text(result, plans))
        head = ""

    return tell


async def run_drills(
    plans: Sequence[DrillPlan],
    settings: Drills,
    version: str,
    seed: int,
    begin: Callable[[DrillPlan], None],
    tell: Callable[[DrillResult], None],
) -> list[DrillResult]:
    """Carry out drills one after the other.

    `begin` is called before each drill, and `tell` after it.

    Meanwhile the receiver of pages serves `/metrics`, for Prometheus to scrape. Raises ConfigError if it cannot be scraped although
    Prometheus is to be asked, and for a port that is taken.
    """
    from prober.drills.chain import open_chain
    from prober.drills.drill import Drill
    from prober.sinks.metrics import Metrics, Scrapes, families

    if settings.prometheus is not None and settings.port is None:
        raise ConfigError("Prometheus must scrape this process: set its port with --port or drills.port")
    metrics = Metrics(version=version)
    metrics.health.set(families.START, wall_s())
    results = []
    async with open_chain(settings, metrics.drills(plan.name for plan in plans), Scrapes(metrics).page) as chain:
        for number, plan in enumerate(plans):
            begin(plan)
            results.append(await Drill(plan, chain, seed + number).carry_out())
            tell(results[-1])
    return results


def heading(plans: Sequence[DrillPlan]) -> str:
    """Return the head of the table."""
    from prober.drills.chain import StepName

    return _row(_width(plans), ("drill", "verdict", *StepName))


def drill_as_text(result: DrillResult, plans: Sequence[DrillPlan]) -> str:
    """Return a row of the table: the seconds of each step from the injection of the fault.

    Below it are the findings, and the reason if the drill did not pass.
    """
    lines = [_row(_width(plans), (result.drill, result.verdict, *(_cell(step) for step in result.steps)))]
    lines += [f"    found: {', '.join(result.found)}"] if result.found else []
    lines += [f"    {step.name}: {step.note}" for step in result.steps if step.followed and step.note]
    return "\n".join(lines)


def conclusion(results: Sequence[DrillResult]) -> str:
    """Return the overall verdict, and the steps that were not checked."""
    left_out = dict.fromkeys(name for result in results for name in result.not_followed)
    return f"{overall_verdict(results)}" + (f"; not followed: {', '.join(left_out)}" if left_out else "")


def drills_as_json(results: Sequence[DrillResult]) -> str:
    """Return one JSON document: the overall verdict and every drill."""
    return json.dumps({"verdict": overall_verdict(results), "drills": [_document(result) for result in results]}, allow_nan=False)


def _document(result: DrillResult) -> dict[str, object]:
    return {
        "drill": result.drill,
        "sort": result.sort,
        "verdict": result.verdict,
        "reason": result.reason,
        "steps": [
            {
                "step": step.name,
                "verdict": step.verdict,
                "seconds": None if step.took_s is None else round(step.took_s, 3),
                "followed": step.followed,
                "note": step.note,
            }
            for step in result.steps
        ],
        "found": list(result.found),
        "injected": result.injected,
        "duration_s": round(result.duration_s, 3),
        "seed": result.seed,
    }


def _cell(step: Step) -> str:
    """Return the seconds of an expected step, `quiet` if no step was expected and none came, or the verdict."""
    if not step.followed:
        return "-"
    if step.verdict is not Verdict.PASS:
        return step.verdict
    return "quiet" if step.took_s is None else f"{step.took_s:.1f} s"


def _width(plans: Sequence[DrillPlan]) -> int:
    return max(len(plan.name) for plan in plans)


def _row(width: int, cells: Sequence[str]) -> str:
    from prober.drills.chain import StepName

    name, verdict, *steps = cells
    widths = (max(_CELL, len(step)) for step in StepName)
    return f"{name:<{width}}  {verdict:<{_CELL}}" + "".join(f" {step:>{size}}" for step, size in zip(steps, widths, strict=True))
