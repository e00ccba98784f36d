"""What a run leaves behind: its verdict with the reason, what it found, and what it counted. Everything that shows runs takes this."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Final

from prober.core.findings import Finding
from prober.core.guarded_verifier import RecordedFinding, Sort
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey, subscriptions_of
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

HISTOGRAM_BOUNDS_S: Final = tuple(step * 10.0**power for power in range(-3, 2) for step in (1.0, 2.0, 5.0))
"""The upper bounds of the buckets of a histogram, from 1 ms to 50 s; a last bucket has what is above."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things took in a run, in seconds: the median, what 99 % did not exceed, and the longest.

    histogram   how many are in each bucket of `HISTOGRAM_BOUNDS_S` and above; empty of runs that counted none.
    """

    count: int
    p50_s: float
    p99_s: float
    max_s: float
    histogram: tuple[int, ...] = ()

    @classmethod
    def of(cls, taken_s: Collection[float]) -> Durations:
        """Of at least one; by nearest rank."""
        ordered = sorted(taken_s)
        count = len(ordered)
        below = [bisect_right(ordered, bound) for bound in HISTOGRAM_BOUNDS_S]
        histogram = tuple(upper - lower for lower, upper in pairwise((0, *below, count)))
        return cls(count, ordered[(count - 1) // 2], ordered[ceil(0.99 * count) - 1], ordered[-1], histogram)


def finding_id_of(run_id: str, number: int) -> str:
    """What a finding is called everywhere: by its run, and its place among the run's findings from 1."""
    return f"{run_id}-{number}"


@dataclass(frozen=True, slots=True)
class RunResult:
    """One finished run.

    run_id      unique; also the epoch under which its messages were published.
    probe, target, vantage, part   what ran, where, from where it looked, and with which part of the keys if they are divided.
    verdict     three-valued. `reason` says in one line why it is UNKNOWN, lists the kinds of a FAIL, and is empty for PASS.
    started_at  seconds since 1970. `duration_s` comes from the monotonic clock.
    seed        repeats what was random in the experiment.
    topic, subscription   full names of what it used; the first one of several subscriptions.
    findings    those kept; `counts` says how many there were of each kind and status.
    counters    what the checker saw and verified.
    checks      good, bad and undecided per indicator that counts messages or redeliveries; of availability, only what was never sent.
    durations   latencies, and the age of the oldest unacknowledged message as it was once a second; indicators without any are missing.
    figures     what its probe measured once; those that it could not measure are missing.
    clock_offset_s   what to add to the times of its findings to get seconds since 1970; None: no longer known.
    unreachable   the target could not be reached when the run ended, or had to end.
    internal_error   it ended by a mistake of ours, which says nothing about the target.
    """

    run_id: str
    probe: str
    target: str
    vantage: str
    verdict: Verdict
    reason: str
    started_at: float
    duration_s: float
    seed: int = 0
    topic: str = ""
    subscription: str = ""
    findings: tuple[RecordedFinding, ...] = ()
    counts: Mapping[Sort, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    checks: Mapping[Indicator, SliCounts] = field(default_factory=dict)
    durations: Mapping[Indicator, Durations] = field(default_factory=dict)
    figures: Mapping[Figure, float] = field(default_factory=dict)
    unreachable: bool = False
    internal_error: bool = False
    part: str = ""
    clock_offset_s: float | None = None

    @property
    def probe_instance(self) -> InstanceKey:
        """Where it ran."""
        return InstanceKey(self.target, self.probe, self.vantage, self.part)

    def found_at(self, finding: Finding, ended_at: float) -> float:
        """Time of a finding, in seconds since 1970 and within the run; the end of the run if the offset of its clock is unknown."""
        if self.clock_offset_s is None:
            return ended_at
        return min(max(self.started_at, finding.t + self.clock_offset_s), ended_at)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of all that it received from, the first one first."""
        return subscriptions_of(self.probe, self.subscription)
