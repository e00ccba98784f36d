"""How fast the simulation is: simulated hours in an hour of CPU time, and events in a second of it.

    python -m benchmarks.simulation [--hours H] [--seeds N] [--probe P]...

First each probe alone, with its default workload and schedule in calm weather; then the simulations of `ordering-prober simulate`, which
have smaller workloads. The goal is 1,000 simulated hours in an hour, on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from time import process_time

from benchmarks.figures import Figure, yardstick_s
from prober.config.models import ProbeName
from prober.simulation.many import prepare
from prober.simulation.plan import HOURS_DEFAULT, WHOLE_HOUR_S, Plan, Temper, planned
from prober.simulation.weather import CALM
from prober.simulation.world import defaults, simulate


def taken(plans: Iterable[Plan]) -> tuple[float, float, int]:
    """What some simulations took together: seconds of CPU, for so many hours and events."""
    began_s, hours, events = process_time(), 0.0, 0
    for plan in plans:
        simulated = simulate(plan)
        hours += plan.hours
        events += simulated.events
    return process_time() - began_s, hours, events


def row(name: str, plans: Iterable[Plan]) -> str:
    """The same as a line of the table."""
    taken_s, hours, events = taken(plans)
    return f"| {name} | {hours * WHOLE_HOUR_S / taken_s:,.0f} | {events / taken_s:,.0f} |"


def figures(repeat: int = 3, seeds: int = 20) -> Iterator[Figure]:
    """What the report says of simulations."""
    (target,) = defaults().targets
    prepare()
    rounds = []
    for _ in range(repeat):
        line_s = yardstick_s()
        rounds.append((line_s, *taken(planned(seed, HOURS_DEFAULT, target.probes) for seed in range(seeds))))
    yield Figure("an event", "times orjson.loads of a line", tuple(spent / events / line for line, spent, _, events in rounds))
    hours = tuple(hours * WHOLE_HOUR_S / spent for _, spent, hours, _ in rounds)
    yield Figure("simulated hours", "in an hour of CPU time", hours, 1000.0, more=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=0.2, help="simulated hours of each probe")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--probe", action="append", choices=[str(name) for name in ProbeName])
    wanted = parser.parse_args(arguments)
    (target,) = defaults().targets
    prepare()
    print("| simulated | hours in an hour of CPU time | events in a second of it |\n|---|---|---|")
    for name, settings in target.probes.items():
        if not wanted.probe or name in wanted.probe:
            alone = Plan(1, wanted.hours, Temper.CALM, {name: settings}, CALM, "", (), ())
            print(row(f"`{name}`, default workload", [alone]), flush=True)
    if not wanted.probe:
        print(row("`simulate`", (planned(seed, HOURS_DEFAULT, target.probes) for seed in range(wanted.seeds))))


if __name__ == "__main__":
    main()
