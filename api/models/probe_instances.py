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
    """A run that the schedule asked for and that did not start."""

    reason: Annotated[str, Field(examples=["overlap"])]
    """Why."""
    at: Time
    """When."""


class InstanceState(Answer):
    """One probe on one target, seen from one vantage, and how it stands."""

    target: Annotated[Target, Field(validation_alias=AliasPath("probe_instance", "target"))]
    """Name of the target."""
    probe: Annotated[Probe, Field(validation_alias=AliasPath("probe_instance", "probe"))]
    """Name of the probe."""
    vantage: Annotated[Vantage, Field(validation_alias=AliasPath("probe_instance", "vantage"))]
    """From where it looks: `wire` speaks to the service itself, `library` goes through Google's client library."""
    part: Annotated[Part, Field(validation_alias=AliasPath("probe_instance", "part"))]
    """Which part of the probe's keys, such as `2/4`; empty if they are not divided."""
    verdict: Verdict | None
    """Of the newest run; null: no run has ended yet."""
    status: Condition
    """Its condition now. OUTAGE: the target cannot be reached. WARN: a FAIL against usual behaviour only. STARTING: no run had time to end.
    UNKNOWN also if a PASS is overdue."""
    since: Time | None
    """Since when `verdict` is what it is."""
    overdue_s: Seconds | None
    """For how long a run should have ended by now; null if it is not overdue."""
    running_since: Time | None
    """When the run under way began; null if there is none."""
    next_run_at: Time | None
    """When the next run is to begin; null if that is not known."""
    last_pass_at: Time | None
    """When a run last ended with PASS."""
    maintenance: Annotated[str | None, Field(examples=["network works"])]
    """Why it is not verified at the moment, which may be empty; null: it is not under maintenance."""


class InstanceAnswer(InstanceState, schema="ProbeInstance"):
    """A probe instance with its last runs and findings."""

    environment: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "environment"), examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "region"), examples=["europe-west1"])]
    """Region of the target."""
    endpoint: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "endpoint"), examples=["europe-west1"])]
    """Where the target is."""
    labels: Annotated[Labels, Field(validation_alias=AliasPath("probe_instance", "labels"))]
    """Free labels of the target."""
    guarantee: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "guarantee"))]
    """The guarantee under test, in one sentence."""
    topic: Annotated[Topic, Field(validation_alias=AliasPath("probe_instance", "topic"))]
    """Full name of the topic that its runs use."""
    subscription: Annotated[Subscription, Field(validation_alias=AliasPath("probe_instance", "subscription"))]
    """Full name of the subscription that its runs use; the first one of several."""
    subscriptions: Annotated[tuple[Subscription, ...], Field(validation_alias=AliasPath("probe_instance", "subscriptions"))]
    """Full names of all subscriptions that its runs use."""
    schedule: Annotated[str, Field(validation_alias=AliasPath("probe_instance", "schedule"), examples=["every 10s"])]
    """When it runs."""
    interval_s: Annotated[Seconds, Field(validation_alias=AliasPath("probe_instance", "interval_s"))]
    """The longest time between the starts of two runs."""
    last_run: LastRunAnswer | None
    """The newest run that has ended."""
    history: tuple[RunSummaryAnswer, ...]
    """The last runs, oldest first, at most 50."""
    runs: Annotated[Mapping[Verdict, int], Field(examples=[{"PASS": 120, "FAIL": 1, "UNKNOWN": 0}])]
    """How many runs ended with each verdict since the probers started."""
    findings: tuple[FailingFindingAnswer, ...]
    """The newest findings of open incidents, at most 20."""
    findings_dropped: Count
    """Further findings of open incidents."""
    runs_expected: Count
    """How many runs the schedule asked for since the probers started."""
    runs_skipped: Count
    """How many of them did not start."""
    last_skip: SkipAnswer | None
    """The last one that did not start."""
