"""Simulations of many seeds, on all cores; results in the order of the seeds."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from prober.cycles import collect_rarely
from prober.simulation.plan import planned
from prober.simulation.results import Results
from prober.simulation.seeds import HOURS_DEFAULT
from prober.simulation.world import Simulated, defaults, simulate


@dataclass(frozen=True, slots=True)
class Order:
    """The simulations to run.

    faults   faults to inject, no others; empty: all.
    history  location of a history to write; None: no history.
    """

    seeds: range
    hours: float = HOURS_DEFAULT
    faults: tuple[str, ...] = ()
    history: str | None = None

    def again(self, seed: int) -> str:
        """Return the command that repeats the simulation of a seed."""
        hours = f" --hours {self.hours:g}" if self.hours != HOURS_DEFAULT else ""
        faults = "".join(f" --fault {fault}" for fault in self.faults)
        return f"ordering-prober simulate --seeds {seed}..{seed}{hours}{faults}"


def prepare() -> None:
    """Prepare a program for many simulations: exempt present objects from garbage collection, and collect rarely."""
    collect_rarely()
    gc.collect()
    gc.freeze()


def simulated(order: Order, jobs: int, results: Results | None = None) -> Iterator[Simulated]:
    """Run the simulations in `jobs` worker processes, or in this process if that is 1; yield their results.

    Simulations that `results` already contains are not repeated. The others are added to it, and written when the caller stops.
    """
    if results is None:
        yield from _carried_out(order, order.seeds, jobs)
        return
    try:
        for one in _carried_out(order, results.without(order.seeds), jobs):
            results.add(one)
            yield one
    finally:
        results.write()


def _carried_out(order: Order, seeds: Sequence[int], jobs: int) -> Iterator[Simulated]:
    one = partial(_simulated, order)
    if jobs == 1 or len(seeds) <= 1:
        yield from map(one, seeds)
        return
    # Libraries in here have threads of their own, which a forked process would miss.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=prepare) as pool:
        yield from pool.map(one, seeds)


def _simulated(order: Order, seed: int) -> Simulated:
    (target,) = defaults().targets
    return simulate(planned(seed, order.hours, target.probes, order.faults), order.history)
