"""Runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from api.models.base import Answer, Count, Counts, Instance, Listed, OfInstance, RunId, Seconds, Subscription, Time, Topic
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

Reason = Annotated[str, Field(examples=["REDELIVERY_SKIP"])]
Counters = Annotated[Mapping[str, int], Field(examples=[{"deliveries_first": 200, "rewinds": 12}])]


class RunSummaryAnswer(Answer, schema="RunSummary"):
    """Summary of an ended run."""

    run_id: RunId
    """Unique id; also the epoch of its published messages."""
    verdict: Verdict
    """FAIL: a guarantee was violated. UNKNOWN: inconclusive, see `reason`."""
    reason: Reason
    """Reason of FAIL or UNKNOWN, in one line; empty for PASS."""
    started_at: Time
    """Start of the run."""
    duration_s: Seconds
    """Duration of the run."""
    internal_error: bool
    """Whether an error of the prober ended it, which is no statement on the target."""


class FindingCountAnswer(Answer, schema="FindingCount"):
    """Number of findings of one kind and status in a run."""

    kind: Kind
    """Kind of finding."""
    status: Status
    """Certainty of the findings. Only `violation` and `liveness` fail a run."""
    count: Count
    """Number of findings."""


class LastRunAnswer(RunSummaryAnswer, schema="LastRun"):
    """The newest run, with its resources, findings and counters."""

    seed: int
    """Seed of the experiment's random decisions; the same seed repeats them."""
    topic: Topic
    """Full name of its topic."""
    subscription: Subscription
    """Full name of its subscription."""
    findings: tuple[FindingCountAnswer, ...]
    """Findings of the run, by kind and status."""
    counters: Counters
    """Counters of the checker."""


class DurationsAnswer(Answer, schema="Durations"):
    """Durations in a run."""

    count: Count
    """Number of durations."""
    p50_s: Seconds
    """Median."""
    p99_s: Seconds
    """99th percentile."""
    max_s: Seconds
    """Maximum."""
    histogram: Annotated[tuple[Count, ...], Field(examples=[[0, 0, 0, 12, 150, 38]])]
    """Number of durations up to 1 ms, 2 ms, 5 ms, 10 ms and so on to 50 s, and longer; empty for runs of an older prober."""


class ProberStateAnswer(Answer, schema="ProberState"):
    """State of the prober at the end of the run: the first data to check when a finding is doubtful."""

    instance: Instance
    """Name of the prober."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Version of the prober."""
    started_at: Time
    """Start of the prober."""
    clock_offset_s: Seconds
    """Seconds to add to the time of an event of the run to get seconds since 1970."""
    events: Count
    """Number of events recorded in the run."""
    verified: Count | None
    """Number of verified events; null: all."""
    unverified_because: Annotated[str, Field(examples=["the prober's process paused for 2.4 s"])]
    """Reason why verification ended early; empty if it did not."""


class RunAnswer(OfInstance, RunSummaryAnswer, schema="Run"):
    """An ended run, as list entry."""

    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    ended_at: Time
    """End of the run."""
    seed: int
    """Seed of the experiment's random decisions; the same seed repeats them."""
    topic: Topic
    """Full name of its topic."""
    subscription: Subscription
    """Full name of its subscription; the first one of several."""
    instance: Instance
    """Name of the prober that executed it."""


class RunDetail(RunAnswer):
    """An ended run with all its counts."""

    subscriptions: tuple[Subscription, ...]
    """Full names of all its subscriptions."""
    findings: Annotated[tuple[FindingCountAnswer, ...], Field(validation_alias="counts")]
    """Findings of the run, by kind and status, including those that are not stored individually."""
    unreachable: bool
    """Whether the target was unreachable when the run ended, or made it end early."""
    findings_omitted: Count
    """Number of its findings that are not stored individually. Information never is, and is not counted here."""
    counters: Counters
    """Counters of the checker."""
    checks: Mapping[Indicator, Counts]
    """Counts for objectives, by indicator."""
    durations: Mapping[Indicator, DurationsAnswer]
    """Latencies, and the age of the oldest unacknowledged message, sampled once a second; missing if not measured."""
    figures: Annotated[Mapping[Figure, float], Field(examples=[{Figure.LATENCY_DURING_HOLD: 0.021}])]
    """Single measurements of its probe, by name, which ends with the unit; failed ones are missing."""
    prober: ProberStateAnswer
    """State of the prober at the end of the run."""


class RunPage(Listed):
    """Runs, ordered by start, the newest first."""

    items: tuple[RunAnswer, ...]
    """The runs."""
