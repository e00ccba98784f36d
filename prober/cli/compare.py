"""The command `ordering-prober compare`: a gate for a rollout. Is a candidate, such as a canary, no worse than a baseline?

It probes both targets at the same time, with the same random decisions, one experiment after the other, and repeats that until the time is
over. With `--stored` it uses the runs that a service has recorded instead.

It concludes once, at the end: repeated looks until something shows would find a random difference.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.cli.bars import while_running
from prober.cli.options import Output, Probes, Seed
from prober.cli.process import ExitCode, Format, must_know, warn
from prober.clock import monotonic_s, wall_s
from prober.durations import duration_s
from prober.errors import ConfigError
from prober.slo.comparison import Standing

if TYPE_CHECKING:
    from prober.comparison.comparison import Comparison
    from prober.comparison.pairs import CommonExperiments, ComparedExperiment, PairOfRuns
    from prober.config.comparisons import ComparisonSettings
    from prober.config.models import Config, TargetSettings
    from prober.runs.result import RunResult
    from prober.schedule.connections import PushReceivers

_CODE: Final = MappingProxyType(
    {Standing.NO_WORSE: ExitCode.PASS, Standing.WORSE: ExitCode.FAIL, Standing.UNKNOWN: ExitCode.UNKNOWN}
)
OWNER: Final = "compare"
"""Prefix of the names of its topics and subscriptions."""
Begin = Callable[[str, int], None]
"""Callback with the name of a run and the number of runs in a round."""


def compare(
    config: Annotated[str, typer.Option(metavar="FILE", help="The configuration with both targets.")],
    baseline: Annotated[str, typer.Option(metavar="NAME", help="The target that is the measure.")],
    candidate: Annotated[str, typer.Option(metavar="NAME", help="The target that must be no worse.")],
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="Compare runs of so long, such as 30m.")] = "",
    probe: Probes = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Probe nothing: compare what a service recorded, in the time until now.")
    ] = False,
    output: Output = Format.TEXT,
    seed: Seed = 0,
) -> None:
    """Compare two targets: is the candidate no worse than the baseline?

    Exit code 0: it is no worse. 1: it is worse. 2: wrong usage or configuration. 3: undecided, with the time that it would probably take.
    """
    from prober.comparison.comparison import comparison_as_json, comparison_as_text
    from prober.config.loading import load_with_warnings

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
    """Return the planned comparison. Raises ConfigError for names that are not configured, and if no experiment can be compared."""
    from prober.comparison.pairs import CommonExperiments, common_to, targets_of
    from prober.config.comparisons import ComparisonSettings

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
    return Planned(settings, first, second, CommonExperiments(wanted, common.different))


def _compare_stored(config: Config, planned: Planned) -> Comparison:
    """Compare stored runs. Raises ConfigError if there is no store; ends the command with 3 if it does not answer."""
    from prober.comparison.comparison import compare_stored
    from prober.sinks.status.database import Database, StatusError
    from prober.sinks.status.queries import StatusQueries

    database = Database(config.status.url.get_secret_value())
    try:
        if database.is_missing:
            raise ConfigError(
                f"there is no status store at {database}: set status.url to that of the service, or leave --stored out"
            )
        return compare_stored(StatusQueries(database), planned.settings, planned.common, wall_s())
    except StatusError as error:
        print(f"ordering-prober: the status store cannot be read: {error}", file=sys.stderr)
        raise typer.Exit(int(ExitCode.UNKNOWN)) from None
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned comparison: the settings, both targets, and the experiments that both run."""

    settings: ComparisonSettings
    baseline: TargetSettings
    candidate: TargetSettings
    common: CommonExperiments


async def compare_side_by_side(config: Config, planned: Planned, environ: Mapping[str, str], seed: int, begin: Begin) -> Comparison:
    """Probe both targets for `settings.window` and compare them.

    No pair of runs starts after that time; the current pair is awaited.

    Raises BrokerError or ConfigError if a target cannot be used. Runs against a target that does not answer report that.
    """
    from prober.comparison.comparison import compare_pairs
    from prober.comparison.pairs import PairOfRuns
    from prober.schedule.connections import PushReceivers

    pairs: list[PairOfRuns] = []
    experiments = tuple(planned.common.apart_max_s)
    began_t = monotonic_s()
    async with (
        PushReceivers(config.push, OWNER) as receivers,
        _reached(config, planned.baseline, experiments, environ, receivers) as run_at_baseline,
        _reached(config, planned.candidate, experiments, environ, receivers) as run_at_candidate,
    ):
        while monotonic_s() - began_t < planned.settings.window.total_seconds():
            experiment = experiments[len(pairs) % len(experiments)]
            begin(str(experiment), len(experiments))
            seed += 1
            runs = await asyncio.gather(run_at_baseline(experiment, seed), run_at_candidate(experiment, seed))
            pairs.append(PairOfRuns(*runs))
    return compare_pairs(planned.settings, pairs, experiments, monotonic_s() - began_t)


@asynccontextmanager
async def _reached(
    config: Config,
    target: TargetSettings,
    experiments: Sequence[ComparedExperiment],
    environ: Mapping[str, str],
    receivers: PushReceivers,
) -> AsyncIterator[Callable[[ComparedExperiment, int], Awaitable[RunResult]]]:
    """Yield a function that runs an experiment on a target once, with a seed. Every error makes its result UNKNOWN."""
    from prober.comparison.pairs import ComparedExperiment
    from prober.schedule.connections import connected
    from prober.schedule.instances import instances_of

    every = {ComparedExperiment(each.probe, each.vantage, each.part_shown): each for each in instances_of(target)}
    instances = [every[experiment] for experiment in experiments]
    async with connected(config, target, instances, environ, receivers) as (endpoint, brokers):

        def run(experiment: ComparedExperiment, seed: int) -> Awaitable[RunResult]:
            instance = every[experiment]
            return instance.run_once(endpoint, brokers[instance.vantage], OWNER, seed).carry_out()

        yield run
