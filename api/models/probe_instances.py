"""Probe instances: one probe on one target, seen from one vantage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AliasPath, Field

from api.models.base import Answer, Count, Labels, Part, Probe, Seconds, Subscription, Target, Time, Topic, Vantage
from api.models.findings import FailingFindingAnswer
from api.models.runs import LastRunAnswer, RunSummaryAnswer
from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition


class SkipAnswer(Answer, schema="Skip"):
    """A scheduled run that did not start."""

    reason: Annotated[str, Field(examples=["overlap"])]
    """Reason of the skip."""
    at: Time
    """Time of the skip."""


class InstanceState(Answer):
    """A probe instance and its state: one probe on one target, seen from one vantage."""

    target: Annotated[Target, Field(validation_alias=AliasPath("probe_instance", "target"))]
    """Name of the target."""
    probe: Annotated[Probe, Field(validation_alias=AliasPath("probe_instance", "probe"))]
    """Name of the probe."""
    vantage: Annotated[Vantage, Field(validation_alias=AliasPath("probe_instance", "vantage"))]
    """`wire`: directly through the service's API; `library`: through Google's client library."""
    part: Annotated[Part, Field(validation_alias=AliasPath("probe_instance", "part"))]
    """Part of the probe's keys, such as `2/4`; empty if they are not divided."""
    verdict: Verdict | None
    """Verdict of the newest run; null: no run has ended yet."""
    status: Condition
    """Present condition. OUTAGE: the target is unreachable. WARN: a FAIL only against usual behaviour. STARTING: no run has had time to
    end. UNKNOWN also if a PASS is overdue.
    """
    since: Time | None
    """Time since which `verdict` has this value."""
    overdue_s: Seconds | None
    """Time by which the end of a run is overdue; null if it is not overdue."""
    running_since: Time | None
    """Start of the run in progress; null if there is none."""
    next_run_at: Time | None
    """Start of the next run; null if unknown."""
    last_pass_at: Time | None
    """End of the last run with PASS."""
    maintenance: Annotated[str | None, Field(examples=["network works"])]
    """Reason of the present maintenance, which may be empty; null: no maintenance."""


class InstanceAnswer(InstanceState, schema="ProbeInstance"):
    """A probe instance with its last runs and findings."""

    environment: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "environment"), examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "region"), examples=["europe-west1"])]
    """Region of the target."""
    endpoint: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "endpoint"), examples=["europe-west1"])]
    """Endpoint of the target."""
    labels: Annotated[Labels, Field(validation_alias=AliasPath("probe_instance", "labels"))]
    """Free labels of the target."""
    guarantee: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "guarantee"))]
    """The guarantee under test, in one sentence."""
    topic: Annotated[Topic, Field(validation_alias=AliasPath("probe_instance", "topic"))]
    """Full name of the topic of its runs."""
    subscription: Annotated[Subscription, Field(validation_alias=AliasPath("probe_instance", "subscription"))]
    """Full name of the subscription of its runs; the first one of several."""
    subscriptions: Annotated[tuple[Subscription, ...], Field(validation_alias=AliasPath("probe_instance", "subscriptions"))]
    """Full names of all subscriptions of its runs."""
    schedule: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "schedule"), examples=["every 10s"])]
    """Schedule of its runs."""
    interval_s: Annotated[Seconds, Field(validation_alias=AliasPath("probe_instance", "interval_s"))]
    """Longest time between the starts of two runs."""
    last_run: LastRunAnswer | None
    """Newest ended run."""
    history: tuple[RunSummaryAnswer, ...]
    """Last runs, oldest first, at most 50."""
    runs: Annotated[Mapping[Verdict, int], Field(examples=[{"PASS": 120, "FAIL": 1, "UNKNOWN": 0}])]
    """Number of runs by verdict since the probers started."""
    findings: tuple[FailingFindingAnswer, ...]
    """Newest findings of open incidents, at most 20."""
    findings_dropped: Count
    """Number of further findings of open incidents."""
    runs_expected: Count
    """Number of scheduled runs since the probers started."""
    runs_skipped: Count
    """Number of scheduled runs that did not start."""
    last_skip: SkipAnswer | None
    """Last scheduled run that did not start."""
