"""The command `ordering-prober compare`: a gate for a rollout. Is a candidate, such as a canary, no worse than a baseline?

It probes both targets itself, side by side: each experiment runs at both at the same time, with the same random decisions, one experiment
after the other and again until the time is over. With `--stored` it takes what a running service has recorded instead.

It concludes once, when the time is over: who looks again and again until something shows will see something.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

import typer

from prober.cli.bars import while_running
from prober.cli.process import ExitCode, Format, must_know, warn
from prober.cli.side_by_side import Planned, compare_side_by_side
from prober.clock import wall_s
from prober.comparison.comparison import Comparison
from prober.comparison.experiments import Common, common_to, targets_of
from prober.comparison.stored import compare_stored
from prober.comparison.words import comparison_as_json, comparison_as_text
from prober.config.comparisons import ComparisonSettings
from prober.config.loading import load_with_warnings
from prober.config.models import Config
from prober.config.values import duration_s
from prober.errors import ConfigError
from prober.sinks.status.database import Database, StatusError
from prober.sinks.status.queries import StatusQueries
from prober.slo.comparison import Standing

_CODE: Final = MappingProxyType(
    {Standing.NO_WORSE: ExitCode.PASS, Standing.WORSE: ExitCode.FAIL, Standing.UNKNOWN: ExitCode.UNKNOWN}
)


def compare(
    config: Annotated[str, typer.Option(metavar="FILE", help="The configuration with both targets.")],
    baseline: Annotated[str, typer.Option(metavar="NAME", help="The target that is the measure.")],
    candidate: Annotated[str, typer.Option(metavar="NAME", help="The target that must be no worse.")],
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="Compare runs of so long, such as 30m.")] = "",
    probe: Annotated[list[str] | None, typer.Option("--probe", help="Only this probe; may be given several times.")] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Probe nothing: compare what a service recorded, in the time until now.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="Text, or one JSON document.")] = Format.TEXT,
    seed: Annotated[int, typer.Option(help="Seed of everything random in the experiments.")] = 0,
) -> None:
    """Compare two targets: is the candidate no worse than the baseline?

    Exit code 0: it is no worse. 1: it is worse. 2: wrong usage or configuration. 3: nobody can tell yet, and it says for how long.
    """
    settings, warnings = load_with_warnings(config, os.environ, opens_store=stored)
    warn(warnings)
    planned = plan(settings, baseline, candidate, probe or (), duration_s(duration) if duration else None)
    for name in planned.common.different:
        warn([f"the probe {name} is configured differently for {baseline} and {candidate}: it is left out"])
    if stored:
        found = _compare_stored(settings, planned)
    else:
        with while_running() as show:
            found = asyncio.run(compare_side_by_side(settings, planned, os.environ, seed, show))
    print(comparison_as_json(found) if output is Format.JSON else comparison_as_text(found))
    raise typer.Exit(int(_CODE[found.standing]))


def plan(config: Config, baseline: str, candidate: str, probes: Sequence[str], for_s: float | None) -> Planned:
    """What is to be compared. Raises ConfigError for what is not configured, and if there is nothing to compare."""
    must_know("target", (baseline, candidate), [target.name for target in config.targets])
    if baseline == candidate:
        raise ConfigError(f"{baseline} cannot be compared with itself: name another target as --candidate")
    known = (each for each in config.comparisons if (each.baseline, each.candidate) == (baseline, candidate))
    settings = next(known, None) or ComparisonSettings(baseline=baseline, candidate=candidate)
    if for_s is not None:
        settings = settings.model_copy(update={"window": timedelta(seconds=for_s)})
    first, second = targets_of(config, baseline, candidate)
    must_know("probe", probes, [*first.probes])
    common = common_to(first, second)
    wanted = {each: apart_s for each, apart_s in common.apart_max_s.items() if not probes or each.probe in probes}
    if not wanted:
        raise ConfigError(f"{baseline} and {candidate} have no probe in common that both run alike: there is nothing to compare")
    return Planned(settings, first, second, Common(wanted, common.different))


def _compare_stored(config: Config, planned: Planned) -> Comparison:
    """Raises ConfigError if there is no store; ends the command with 3 if it does not answer."""
    database = Database(config.status.url.get_secret_value())
    try:
        if database.is_sqlite and not Path(database.engine.url.database or "").exists():  # asking would make it
            raise ConfigError(
                f"there is no status store at {database}: set status.url to that of the service, or leave --stored out"
            )
        return compare_stored(StatusQueries(database), planned.settings, planned.common, wall_s())
    except StatusError as error:
        print(f"ordering-prober: the status store cannot be read: {error}", file=sys.stderr)
        raise typer.Exit(int(ExitCode.UNKNOWN)) from None
    finally:
        database.close()
