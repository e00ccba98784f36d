"""What the API answers, field by field. The texts are those of the OpenAPI document.

Each model reads its fields from the value of the same name that the service knows (`prober.snapshot`), so what is said here is the form
only. Times are RFC 3339 in UTC; numbers are finite.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import AliasPath, BaseModel, ConfigDict, Field, FiniteFloat

from prober.core.findings import Kind, Status
from prober.core.indicators import Indicator
from prober.core.verdict import Verdict

Time: TypeAlias = Annotated[datetime, Field(examples=["2026-03-01T12:00:00Z"])]
Seconds: TypeAlias = Annotated[FiniteFloat, Field(examples=[2.5])]
Count: TypeAlias = Annotated[int, Field(ge=0, examples=[1200])]


class Answer(BaseModel):
    """Frozen; read from attributes."""

    model_config = ConfigDict(frozen=True, from_attributes=True, use_attribute_docstrings=True)


class Run(Answer):
    """One finished run."""

    run_id: Annotated[str, Field(examples=["ordering-1f3a9c02"])]
    """Unique; also the epoch under which its messages were published."""
    verdict: Verdict
    """FAIL: a promise was broken. UNKNOWN: nothing can be said; `reason` says why."""
    reason: Annotated[str, Field(examples=["REDELIVERY_SKIP"])]
    """Why it is FAIL or UNKNOWN, in one line; empty for PASS."""
    started_at: Time
    """When it began."""
    duration_s: Seconds
    """How long it took."""
    internal_error: bool
    """It ended by a mistake of the prober, which says nothing about the target."""


class FindingCount(Answer):
    """How many findings of one kind and status a run made."""

    kind: Kind
    """What was found."""
    status: Status
    """How sure it is. Only `violation` and `liveness` fail a run."""
    count: Count
    """How many."""


class LastRun(Run):
    """The newest run, with what it used, found and counted."""

    seed: int
    """Repeats what was random in the experiment."""
    topic: Annotated[str, Field(examples=["projects/my-project/topics/okp-ordering"])]
    """Full name of its topic."""
    subscription: Annotated[str, Field(examples=["projects/my-project/subscriptions/okp-ordering"])]
    """Full name of its subscription."""
    findings: tuple[FindingCount, ...]
    """What it found, by kind and status."""
    counters: Annotated[dict[str, int], Field(examples=[{"deliveries_first": 200, "rewinds": 12}])]
    """What the checker saw and judged."""


class Finding(Answer):
    """A finding that failed a run."""

    run_id: Annotated[str, Field(examples=["ordering-1f3a9c02"])]
    """The run that made it."""
    found_at: Time
    """When that run ended."""
    kind: Kind
    """What was found."""
    status: Status
    """`violation`: no legal explanation exists. `liveness`: a deadline passed."""
    subscription: Annotated[str, Field(examples=["projects/my-project/subscriptions/okp-ordering"])]
    """Where."""
    key: Annotated[str, Field(examples=["ordering-3"])]
    """On which ordering key."""
    t: Seconds
    """When in the run it was decided, in seconds of the run's own clock."""
    explanation: Annotated[
        str, Field(examples=["Message 4 was delivered to A right after message 2; message 3 should have come again."])
    ]
    """The finding in plain words."""
    open: bool
    """The site has not passed since."""


class Skip(Answer):
    """A run that the schedule asked for and that did not start."""

    reason: Annotated[str, Field(examples=["overlap"])]
    """Why."""
    at: Time
    """When."""


class Site(Answer):
    """One probe on one target, seen from one vantage."""

    target: Annotated[str, Field(validation_alias=AliasPath("site", "target"), examples=["europe"])]
    """Name of the target."""
    probe: Annotated[str, Field(validation_alias=AliasPath("site", "probe"), examples=["ordering"])]
    """Name of the probe."""
    vantage: Annotated[str, Field(validation_alias=AliasPath("site", "vantage"), examples=["wire"])]
    """From where it looks: `wire` speaks to the service itself, `library` goes through Google's client library."""
    environment: Annotated[str, Field(validation_alias=AliasPath("site", "environment"), examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(validation_alias=AliasPath("site", "region"), examples=["europe-west1"])]
    """Region of the target."""
    endpoint: Annotated[str, Field(validation_alias=AliasPath("site", "endpoint"), examples=["europe-west1"])]
    """Where the target is."""
    labels: Annotated[dict[str, str], Field(validation_alias=AliasPath("site", "labels"), examples=[{"team": "messaging"}])]
    """Free labels of the target."""
    promise: Annotated[str, Field(validation_alias=AliasPath("site", "promise"))]
    """The promise under test, in one sentence."""
    topic: Annotated[str, Field(validation_alias=AliasPath("site", "topic"))]
    """Full name of the topic that its runs use."""
    subscription: Annotated[str, Field(validation_alias=AliasPath("site", "subscription"))]
    """Full name of the subscription that its runs use."""
    schedule: Annotated[str, Field(validation_alias=AliasPath("site", "schedule"), examples=["every 10s"])]
    """When it runs."""
    interval_s: Annotated[Seconds, Field(validation_alias=AliasPath("site", "interval_s"))]
    """The longest time between the starts of two runs."""
    verdict: Verdict | None
    """Of the newest run; null: no run has ended yet."""
    standing: Verdict | None
    """What it counts for the overall verdict: UNKNOWN if there is no verdict yet or a PASS is overdue; null under maintenance."""
    since: Time | None
    """Since when `verdict` is what it is."""
    overdue_s: Seconds | None
    """For how long a run should have ended by now; null if it is not overdue."""
    running_since: Time | None
    """When the run under way began; null if there is none."""
    next_run_at: Time | None
    """When the next run is to begin; null if that is not known."""
    last_run: LastRun | None
    """The newest run that has ended."""
    last_pass_at: Time | None
    """When a run last ended with PASS."""
    history: tuple[Run, ...]
    """The last runs, oldest first, at most 50."""
    runs: Annotated[dict[Verdict, int], Field(examples=[{"PASS": 120, "FAIL": 1, "UNKNOWN": 0}])]
    """How many runs ended with each verdict since the service started."""
    findings: tuple[Finding, ...]
    """The last findings that failed a run, newest run first, at most 20."""
    findings_dropped: Count
    """Failing findings since the service started that are not among `findings`."""
    runs_expected: Count
    """How many runs the schedule asked for since the service started."""
    runs_skipped: Count
    """How many of them did not start."""
    last_skip: Skip | None
    """The last one that did not start."""
    maintenance: Annotated[str | None, Field(examples=["network works"])]
    """Why it is not judged at the moment, which may be empty; null: it is not under maintenance."""


class Interval(Answer):
    """A closed interval of ratios."""

    low: FiniteFloat
    """At least."""
    high: FiniteFloat
    """At most."""


class Slo(Answer):
    """An objective on one target, by what was counted since the service started. Nothing counted is unknown, never good."""

    name: Annotated[str, Field(validation_alias=AliasPath("objective", "name"), examples=["order"])]
    """Name of the objective."""
    target: Annotated[str, Field(examples=["europe"])]
    """Name of the target."""
    indicator: Annotated[Indicator, Field(validation_alias=AliasPath("objective", "indicator"))]
    """What is counted."""
    objective: Annotated[FiniteFloat, Field(validation_alias=AliasPath("objective", "target"), examples=[0.9999])]
    """The share of the counted things that is to be good."""
    threshold_s: Annotated[Seconds | None, Field(validation_alias=AliasPath("objective", "threshold_s"))]
    """From when on a duration is bad; null for indicators that are no durations."""
    window_s: Annotated[Seconds, Field(validation_alias=AliasPath("objective", "window_s"), examples=[2592000])]
    """The period of the error budget."""
    labels: Annotated[dict[str, str], Field(validation_alias=AliasPath("objective", "labels"), examples=[{"team": "payments"}])]
    """Free labels of the objective."""
    good: Annotated[Count, Field(validation_alias=AliasPath("total", "good"))]
    """Things that ended good."""
    bad: Annotated[Count, Field(validation_alias=AliasPath("total", "bad"))]
    """Things that ended bad."""
    undecided: Annotated[Count, Field(validation_alias=AliasPath("total", "undecided"))]
    """Things of which neither can be said."""
    error_ratio: Annotated[FiniteFloat | None, Field(examples=[0.0001])]
    """Bad ones among the good and bad; null: there are none."""
    bounds: Interval
    """Between what the true error ratio lies with 95 % confidence (Clopper-Pearson), whatever becomes of the undecided."""
    verdict: Verdict
    """PASS: the bounds are within the error budget. FAIL: they are beyond it. UNKNOWN: too little was counted to say."""
    budget_left: Annotated[FiniteFloat | None, Field(examples=[0.72])]
    """Share of the error budget of the things counted so far: 1 untouched, 0 spent, below 0 overspent; null: nothing was decided."""


class StatusAnswer(Answer):
    """How everything stands."""

    at: Time
    """The time of this answer."""
    verdict: Verdict
    """FAIL if a site is; else UNKNOWN if one is, or none is judged; else PASS. Sites under maintenance do not count."""
    since: Time
    """Since when the verdict is what it is."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Version of the prober."""
    instance: Annotated[str, Field(examples=["prober-0"])]
    """Name of this prober."""
    started_at: Time
    """When the service started."""
    sites: tuple[Site, ...]
    """Every probe on every target from every vantage."""
    slos: tuple[Slo, ...]
    """Every objective on every target whose probes feed it."""
    troubles: Annotated[tuple[str, ...], Field(examples=[["the history cannot be written: no space left on device"]])]
    """What is wrong with the prober itself; says nothing about a target."""


class Readiness(Answer):
    """Whether the service does its work."""

    ready: bool
    """False: not (yet)."""
    problems: Annotated[tuple[str, ...], Field(examples=[["the scheduler has not started"]])]
    """What keeps it from that."""


class Health(Answer):
    """Whether the service can go on without a restart."""

    alive: bool
    """False: only a restart helps."""
