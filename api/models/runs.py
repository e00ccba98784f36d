"""Runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from api.models.base import Answer, Count, Instance, Listed, OfInstance, RunId, Seconds, Subscription, Time, Topic
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

Reason = Annotated[str, Field(examples=["REDELIVERY_SKIP"])]
Counters = Annotated[Mapping[str, int], Field(examples=[{"deliveries_first": 200, "rewinds": 12}])]


class RunSummaryAnswer(Answer, schema="RunSummary"):
    """One finished run, in short."""

    run_id: RunId
    """Unique; also the epoch under which its messages were published."""
    verdict: Verdict
    """FAIL: a guarantee was violated. UNKNOWN: inconclusive; `reason` says why."""
    reason: Reason
    """Why it is FAIL or UNKNOWN, in one line; empty for PASS."""
    started_at: Time
    """When it began."""
    duration_s: Seconds
    """How long it took."""
    internal_error: bool
    """It ended by a mistake of the prober, which says nothing about the target."""


class FindingCountAnswer(Answer, schema="FindingCount"):
    """How many findings of one kind and status a run made."""

    kind: Kind
    """The kind of finding."""
    status: Status
    """How sure it is. Only `violation` and `liveness` fail a run."""
    count: Count
    """How many."""


class LastRunAnswer(RunSummaryAnswer, schema="LastRun"):
    """The newest run, with what it used, found and counted."""

    seed: int
    """Repeats what was random in the experiment."""
    topic: Topic
    """Full name of its topic."""
    subscription: Subscription
    """Full name of its subscription."""
    findings: tuple[FindingCountAnswer, ...]
    """Its findings, by kind and status."""
    counters: Counters
    """The counters of the checker."""


class CountsAnswer(Answer, schema="Counts"):
    """How many things ended good, bad or undecided."""

    good: Count
    """Good ones."""
    bad: Count
    """Bad ones."""
    undecided: Count
    """Those that are neither provably good nor provably bad."""


class DurationsAnswer(Answer, schema="Durations"):
    """How long things took in a run."""

    count: Count
    """How many there were."""
    p50_s: Seconds
    """The median."""
    p99_s: Seconds
    """The 99th percentile."""
    max_s: Seconds
    """The longest."""
    histogram: Annotated[tuple[Count, ...], Field(examples=[[0, 0, 0, 12, 150, 38]])]
    """How many took up to 1 ms, 2 ms, 5 ms, 10 ms and so on to 50 s, and longer; empty of runs of an older prober."""


class ProberStateAnswer(Answer, schema="ProberState"):
    """How the prober was when the run ended: what to look at first when a finding is doubted."""

    instance: Instance
    """Its name."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Its version."""
    started_at: Time
    """When it started."""
    clock_offset_s: Seconds
    """The seconds to add to the time of an event of the run to get seconds since 1970."""
    events: Count
    """How many events were recorded in the run."""
    verified: Count | None
    """The number of verified events; null: all."""
    unverified_because: Annotated[str, Field(examples=["the prober stood still for 2.4 s"])]
    """Why verification ended early; empty if it did not."""


class RunAnswer(OfInstance, RunSummaryAnswer, schema="Run"):
    """One finished run, as it is listed."""

    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    ended_at: Time
    """When it ended."""
    seed: int
    """Repeats what was random in the experiment."""
    topic: Topic
    """Full name of its topic."""
    subscription: Subscription
    """Full name of its subscription; the first one of several."""
    instance: Instance
    """The prober that made it."""


class RunDetail(RunAnswer):
    """One finished run with all that was counted in it."""

    subscriptions: tuple[Subscription, ...]
    """Full names of all its subscriptions."""
    findings: Annotated[tuple[FindingCountAnswer, ...], Field(validation_alias="counts")]
    """Its findings, by kind and status, also those that are not kept one by one."""
    unreachable: bool
    """The target could not be reached when it ended, or had to end."""
    findings_omitted: Count
    """How many findings of it are not kept one by one. Information never is, and is not among them."""
    counters: Counters
    """The counters of the checker."""
    checks: Mapping[Indicator, CountsAnswer]
    """Its counts for objectives, by indicator."""
    durations: Mapping[Indicator, DurationsAnswer]
    """Latencies, and the age of the oldest unacknowledged message as it was once a second; what was not measured is missing."""
    figures: Annotated[Mapping[Figure, float], Field(examples=[{Figure.LATENCY_DURING_HOLD: 0.021}])]
    """Single measurements of its probe, by name, which ends with the unit; those that failed are missing."""
    prober: ProberStateAnswer
    """How the prober was when the run ended."""


class RunPage(Listed):
    """Runs, by when they began, the newest first."""

    items: tuple[RunAnswer, ...]
    """The runs."""
