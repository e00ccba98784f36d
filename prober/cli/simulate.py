"""The command `ordering-prober simulate`: the whole prober against the embedded service in virtual time, for many seeds."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prober.cli.bars import while_running
from prober.cli.options import Faults, Output
from prober.cli.process import ExitCode, Format, must_know
from prober.embedded.catalogue import CATALOGUE, LISTED
from prober.errors import ConfigError

if TYPE_CHECKING:
    from prober.simulation.detection import Detection
    from prober.simulation.many import Order
    from prober.simulation.world import Simulated
from prober.simulation.seeds import HOURS_DEFAULT, read_seeds


def simulate_seeds(
    seeds: Annotated[str, typer.Option(metavar="A..B", help="Which simulations.")] = "1..200",
    hours: Annotated[float, typer.Option(metavar="HOURS", help="Simulated hours of each.")] = HOURS_DEFAULT,
    fault: Faults = None,
    history: Annotated[str | None, typer.Option(metavar="FOLDER", help="Also write what happens as a history.")] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the sum of all simulations, and go on from there at the next start.")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Processes; 0: one for each core.")] = 0,
    output: Output = Format.TEXT,
) -> None:
    """Simulate the whole prober on the embedded service in virtual time, and tell which faults were found.

    Exit code 0: as expected. 1: a fault was missed, or there was a false alarm. 2: wrong usage.
    """
    from prober.simulation.detection import Detection
    from prober.simulation.many import Order, prepare, simulated
    from prober.simulation.results import Results

    must_know("fault", fault or (), CATALOGUE, LISTED)
    if not 0.0 < hours < float("inf"):
        raise ConfigError(f"--hours is {hours:g}: write how many hours each simulation takes, such as {HOURS_DEFAULT:g}")
    order = Order(read_seeds(seeds), hours, tuple(fault or ()), history)
    if results is not None and history is not None:
        raise ConfigError("what is in --results is not simulated again, so --history would lack it: give one of them")
    kept = None if results is None else Results(results, order.hours, order.faults)
    prepare()
    with while_running() as show:
        every = _shown(simulated(order, jobs or os.cpu_count() or 1, kept), order, show)
        if kept is None:
            detection = Detection.of(every)
        else:
            deque(every, maxlen=0)
            detection = kept.detection
    print(detection_as_json(detection, order) if output is Format.JSON else detection_as_text(detection, order))
    raise typer.Exit(int(ExitCode.PASS if detection.is_as_expected else ExitCode.FAIL))


def _shown(results: Iterable[Simulated], order: Order, show: Any) -> Iterator[Simulated]:
    for one in results:
        show(f"seed {one.plan.seed}", len(order.seeds))
        yield one


def detection_as_text(detection: Detection, order: Order) -> str:
    """Return the matrix of faults and findings, then each unexpected result with the command that repeats it."""
    from prober.simulation.detection import rules

    lines = [
        f"{detection.simulations:,} simulations, {detection.hours:,.2f} hours, {detection.runs:,} runs, {detection.events:,} events"
    ]
    if detection.cells:
        lines += ["", *_aligned(_matrix(detection))]
    lines += ["", f"false alarms in {detection.clean_runs:,} clean runs: {len(detection.failures)}"]
    lines += [f"    other rules: {name}: {detection.false_alarms[name]:,}" for name in rules()]
    for failure in detection.failures:
        lines += ["", f"{failure.what}; again with: {order.again(failure.seed)}", *(f"    {line}" for line in failure.evidence)]
    for fault in detection.below:
        probe, cell = detection.best(fault)
        seeds = detection.missing.get(fault, ())
        lines += ["", f"{fault} was found in {cell.found} of {cell.observable} observable runs of {probe}, its best probe"]
        lines += [f"    not found at all; again with: {order.again(seed)}" for seed in seeds]
    return "\n".join(lines)


def _matrix(detection: Detection) -> Iterator[Sequence[str]]:
    from prober.simulation.detection import rules

    yield ("fault", "probe", "found", "of", "after", *rules(), "as")
    for fault, probe, cell in detection.matrix:
        after = "" if cell.median_after_s is None else f"{cell.median_after_s:.1f} s"
        kinds = ", ".join(f"{kind} {count}" for kind, count in cell.kinds.most_common(2))
        yield (fault, probe, str(cell.found), str(cell.observable), after, *(str(cell.others[name]) for name in rules()), kinds)


def _aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def detection_as_json(detection: Detection, order: Order) -> str:
    """Return the same as one JSON document."""
    from prober.simulation.detection import rules

    document = {
        "simulations": detection.simulations,
        "hours": detection.hours,
        "probe_hours": detection.probe_hours,
        "runs": detection.runs,
        "events": detection.events,
        "clean_runs": detection.clean_runs,
        "failures": [
            {"seed": failure.seed, "what": failure.what, "again": order.again(failure.seed), "evidence": failure.evidence}
            for failure in detection.failures
        ],
        "below": list(detection.below),
        "missing": {fault: [order.again(seed) for seed in seeds] for fault, seeds in sorted(detection.missing.items())},
        "matrix": [
            {
                "fault": fault,
                "probe": probe,
                "vantage": "wire",
                "observable": cell.observable,
                "found": cell.found,
                "share_low": cell.bounds.low,
                "share_high": cell.bounds.high,
                "median_after_s": cell.median_after_s,
                "findings": dict(cell.kinds),
                "other_rules": {name: cell.others[name] for name in rules()},
            }
            for fault, probe, cell in detection.matrix
        ],
        "false_alarms_of_other_rules": {name: detection.false_alarms[name] for name in rules()},
    }
    return json.dumps(document, indent=2)
