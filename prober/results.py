"""What a run leaves behind: its verdict with the reason, what it found, and what it counted. Everything that shows runs takes this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prober.core.indicators import Indicator
from prober.core.slo import Tally
from prober.core.verdict import Verdict
from prober.judgement import Made, Sort


@dataclass(frozen=True, slots=True)
class RunResult:
    """One finished run.

    run_id      unique; also the epoch under which its messages were published.
    probe, target, vantage   what ran, where, and from where it looked.
    verdict     three-valued. `reason` says in one line why it is FAIL or UNKNOWN, and is empty for PASS.
    started_at  seconds since 1970. `duration_s` comes from the monotonic clock.
    seed        repeats what was random in the experiment.
    topic, subscription   full names of what it used.
    findings    those kept; `counts` says how many there were of each kind and status.
    counters    what the checker saw and judged.
    checks      good, bad and undecided per indicator that counts messages or redeliveries.
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
    findings: tuple[Made, ...] = ()
    counts: Mapping[Sort, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    checks: Mapping[Indicator, Tally] = field(default_factory=dict)
    internal_error: bool = False
