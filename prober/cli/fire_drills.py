"""The command `drill`: drills once, in a process that does nothing else, and says how each went."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from prober.cli.exit_codes import ExitCode, code_of
from prober.clock import wall_s
from prober.config.drills import Drills
from prober.core.verdict import Verdict, worst
from prober.drills.chain import open_chain
from prober.drills.drill import Drill
from prober.drills.plans import DrillPlan
from prober.drills.results import DrillResult, Step, StepName
from prober.errors import ConfigError
from prober.sinks.metrics import Metrics, Scrapes

_CELL: Final = 7
"""Characters of the longest cell; so the table fits into a terminal of 80."""


async def drill(
    plans: Sequence[DrillPlan],
    settings: Drills,
    version: str,
    seed: int,
    begin: Callable[[DrillPlan], None],
    tell: Callable[[DrillResult], None],
) -> list[DrillResult]:
    """Carries out drills one after the other; `begin` and `tell` hear of each before and after it.

    While it goes on, `/metrics` is where pages arrive, for Prometheus to scrape. Raises ConfigError if it cannot be scraped although
    Prometheus is to be asked, and for a port that is taken.
    """
    if settings.prometheus is not None and settings.port is None:
        raise ConfigError("Prometheus must scrape this process to be followed: say on which port, with --port or drills.port")
    metrics = Metrics(version=version)
    metrics.health.started(wall_s())
    results = []
    async with open_chain(settings, metrics.drills(plan.name for plan in plans), Scrapes(metrics).page) as chain:
        for number, plan in enumerate(plans):
            begin(plan)
            results.append(await Drill(plan, chain, seed + number).carry_out())
            tell(results[-1])
    return results


def exit_code(results: Sequence[DrillResult]) -> ExitCode:
    """The worst verdict decides."""
    return code_of(overall(results))


def overall(results: Sequence[DrillResult]) -> Verdict:
    """The verdict of all of them; of none nothing is known."""
    return worst(result.verdict for result in results)


def heading(plans: Sequence[DrillPlan]) -> str:
    """The head of the table."""
    return _row(_width(plans), ("drill", "verdict", *StepName))


def as_text(result: DrillResult, plans: Sequence[DrillPlan]) -> str:
    """A row of the table: the seconds of each step from when the fault struck; below it what was found, and why it did not pass."""
    lines = [_row(_width(plans), (result.drill, result.verdict, *(_cell(step) for step in result.steps)))]
    lines += [f"    found: {', '.join(result.found)}"] if result.found else []
    lines += [f"    {step.name}: {step.note}" for step in result.steps if step.followed and step.note]
    return "\n".join(lines)


def conclusion(results: Sequence[DrillResult]) -> str:
    """The overall verdict, and what it does not say because nobody looked."""
    left_out = dict.fromkeys(name for result in results for name in result.not_followed)
    return f"{overall(results)}" + (f"; not followed: {', '.join(left_out)}" if left_out else "")


def as_json(results: Sequence[DrillResult]) -> str:
    """One document: the overall verdict and every drill."""
    return json.dumps({"verdict": overall(results), "drills": [_document(result) for result in results]}, allow_nan=False)


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
        "struck": result.struck,
        "duration_s": round(result.duration_s, 3),
        "seed": result.seed,
    }


def _cell(step: Step) -> str:
    """Seconds if it came as it should; `quiet` if nothing had to come and nothing did; otherwise the verdict."""
    if not step.followed:
        return "-"
    if step.verdict is not Verdict.PASS:
        return step.verdict
    return "quiet" if step.took_s is None else f"{step.took_s:.1f} s"


def _width(plans: Sequence[DrillPlan]) -> int:
    return max(len(plan.name) for plan in plans)


def _row(width: int, cells: Sequence[str]) -> str:
    name, verdict, *steps = cells
    widths = (max(_CELL, len(step)) for step in StepName)
    return f"{name:<{width}}  {verdict:<{_CELL}}" + "".join(f" {step:>{size}}" for step, size in zip(steps, widths, strict=True))
