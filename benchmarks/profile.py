"""Where the time of each hot path goes: by samples of the stack, one per 4 ms of CPU time; what a library does counts for who called it.

    python -m benchmarks.profile [--only PATH ...]

A share is that of a package of this project, named by the module that is deepest on the stack. What none of them called is the event loop,
or a thread of a library.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Final

from benchmarks.brokers import server
from benchmarks.end_to_end import Bench
from benchmarks.figures import Figure
from benchmarks.histories import streaming
from prober.brokers.base import Vantage
from prober.brokers.endpoint import parse_endpoint
from prober.cli.process import collect_rarely
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.simulation.many import prepare
from prober.simulation.plan import HOURS_DEFAULT, planned
from prober.simulation.world import defaults, simulate

EVERY_S: Final = 0.004
SHARE_MIN: Final = 0.01
ELSEWHERE: Final = "event loop and libraries"


class Samples:
    """How often which package was at work."""

    def __init__(self, depth: int) -> None:
        self.counts: Counter[str] = Counter()
        self._depth = depth

    def take(self, _signal: int, frame: FrameType | None) -> None:
        """Looks for the deepest frame of this project."""
        while frame is not None and not frame.f_globals.get("__name__", "").startswith(("prober.", "api.")):
            frame = frame.f_back
        self.counts[ELSEWHERE if frame is None else self._room(frame.f_globals["__name__"])] += 1

    def _room(self, module: str) -> str:
        return ".".join(module.split(".")[: self._depth])

    def shares(self) -> Mapping[str, float]:
        """From the largest down to `SHARE_MIN`."""
        all_of_them = self.counts.total()
        return {room: n / all_of_them for room, n in self.counts.most_common() if n >= SHARE_MIN * all_of_them}


@contextmanager
def sampling(depth: int) -> Iterator[Samples]:
    """Looks at the stack of the main thread for as long as it lasts."""
    samples = Samples(depth)
    before = signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


# --- the hot paths -----------------------------------------------------------------------------------------------------------


def checker() -> Samples:
    """Judging a history of eight subscribers, by module."""
    events = list(islice(streaming(8), 400_000))
    verifier = Verifier(Rules(), subscriptions=("s",))
    with sampling(3) as samples:
        for event in events:
            verifier.observe(event)
    return samples


def wire() -> Samples:
    """A run of the probe `ordering` at the wire."""
    with server("") as address:
        endpoint = parse_endpoint(address)
        bench = Bench(Vantage.WIRE, endpoint, 20_000, 20)
        asyncio.run(bench.measure(endpoint, 1))
        with sampling(2) as samples:
            asyncio.run(bench.measure(endpoint, 4))
    return samples


def simulation() -> Samples:
    """Simulations of forty seeds."""
    prepare()
    (target,) = defaults().targets
    with sampling(2) as samples:
        for seed in range(40):
            simulate(planned(seed, HOURS_DEFAULT, target.probes))
    return samples


PATHS: Final[Mapping[str, Callable[[], Samples]]] = {"checker": checker, "wire": wire, "simulation": simulation}


def figures(paths: Mapping[str, Callable[[], Samples]] = PATHS) -> Iterator[Figure]:
    """What the report says of them."""
    collect_rarely()
    for name, carry_out in paths.items():
        for room, share in carry_out().shares().items():
            yield Figure(f"{name}: {room}", "% of its CPU time", (100 * share,))


def main() -> None:
    """Prints them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PATHS, default=list(PATHS))
    only = parser.parse_args().only
    for figure in figures({name: PATHS[name] for name in only}):
        print(f"{figure.name:50}{figure.best:6.1f} {figure.unit}")


if __name__ == "__main__":
    main()
