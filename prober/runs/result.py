"""Result of a run: its verdict with the reason, its findings, and its counters. All displays of runs use it."""

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
"""Upper bounds of the buckets of a histogram, from 1 ms to 50 s; a last bucket contains larger values."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations in a run, in seconds: median, p99 and maximum.

    histogram   number of durations in each bucket of `HISTOGRAM_BOUNDS_S` and above; empty for runs without a histogram.
    """

    count: int
    p50_s: float
    p99_s: float
    max_s: float
    histogram: tuple[int, ...] = ()

    @classmethod
    def of(cls, taken_s: Collection[float]) -> Durations:
        """Return the statistics of at least one duration, by nearest rank."""
        ordered = sorted(taken_s)
        count = len(ordered)
        below = [bisect_right(ordered, bound) for bound in HISTOGRAM_BOUNDS_S]
        histogram = tuple(upper - lower for lower, upper in pairwise((0, *below, count)))
        return cls(count, ordered[(count - 1) // 2], ordered[ceil(0.99 * count) - 1], ordered[-1], histogram)


def finding_id_of(run_id: str, number: int) -> str:
    """Return the id of a finding: its run, and its number among the run's findings, from 1."""
    return f"{run_id}-{number}"


@dataclass(frozen=True, slots=True)
class RunResult:
    """One finished run.

    run_id      unique id; also the epoch of its messages, unless messages of an earlier run wait.
    probe, target, vantage, part   identity of the probe instance; `part` is its part of the keys, empty if they are not divided.
    verdict     three-valued. `reason`: the cause of UNKNOWN in one line, the kinds of findings of a FAIL, empty for PASS.
    started_at  seconds since 1970. `duration_s` comes from the monotonic clock.
    seed        seed of the experiment's random decisions.
    topic, subscription   full names of its resources; the first of several subscriptions.
    findings    the kept findings; `counts`: number of all findings by kind and status.
    counters    numbers of events seen and verified by the checker, and the probe's own counters.
    checks      good, bad and undecided events per indicator of messages or redeliveries; of availability, only unsent messages.
    durations   latencies, and the age of the oldest unacknowledged message once a second; indicators without durations are missing.
    figures     measurements of the probe; failed measurements are missing.
    clock_offset_s   offset from the times of its findings to seconds since 1970; None: no longer known.
    unreachable   the target was unreachable when the run ended or had to end.
    internal_error   an internal error of the prober occurred, which proves nothing about the target.
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
        """Identity of its probe instance."""
        return InstanceKey(self.target, self.probe, self.vantage, self.part)

    def found_at(self, finding: Finding, ended_at: float) -> float:
        """Return the time of a finding in seconds since 1970, within the run; the end of the run if the clock offset is unknown."""
        if self.clock_offset_s is None:
            return ended_at
        return min(max(self.started_at, finding.t + self.clock_offset_s), ended_at)

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of its subscriptions, the first one first."""
        return subscriptions_of(self.probe, self.subscription)
