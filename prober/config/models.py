"""The sections of the configuration. Values are frozen and complete: what `load` returns needs no defaults and no further checks.

The text under each key is also its entry on the reference page, docs/configuration.md.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, SecretStr, model_validator

from prober.brokers.base import Vantage
from prober.config.comparisons import COMPARISONS_MAX, ComparisonSettings
from prober.config.sections import Budget, Drills, HistorySettings, Monitoring, Observe, PushSettings, StatusSettings, Telemetry
from prober.config.values import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_PROJECT,
    EMBEDDED,
    Cronline,
    Days,
    DnsLabel,
    Duration,
    EndpointText,
    FaultSpec,
    Host,
    Hours,
    HttpUrl,
    LabelName,
    LastingVantage,
    Milliseconds,
    ObjectiveName,
    Port,
    Positive,
    Project,
    Section,
    Share,
    Size,
    Word,
    name_of_host,
)
from prober.durations import write_duration
from prober.probes.catalogue import ProbeName
from prober.probes.experiment import SIZES, Processing
from prober.slo.indicators import MEANINGS, Indicator
from prober.slo.objectives import PERIOD_S, Objective

WINDOW_MIN = timedelta(days=7)  # the slowest alert looks back three days
ACK_DEADLINE_MIN, ACK_DEADLINE_MAX = timedelta(seconds=10), timedelta(seconds=600)  # the service takes nothing else
RESERVED_LABELS = frozenset({"target", "environment", "region"})
MESSAGE_BYTES_MAX = 10_000_000
OBJECTIVE_MIN = 0.5


class Schedule(Section):
    """When a probe runs: every `interval`, or at the points of `cron`. Exactly one of the two."""

    interval: Positive | None = None
    """From the start of one run to the start of the next."""
    cron: Cronline | None = None
    """Points in time. 0 and 7 are Sunday."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.interval is None) == (self.cron is None):
            raise ValueError("write either interval or cron, one of the two")
        return self

    @property
    def longest_gap(self) -> timedelta:
        """The longest time between the starts of two runs."""
        if self.cron is not None:
            return self.cron.longest_gap()
        return self.interval or timedelta.max

    @property
    def shortest_gap(self) -> timedelta:
        """The shortest time between the starts of two runs."""
        if self.cron is not None:
            return self.cron.shortest_gap()
        return self.interval or timedelta.max


class Deadlines(Section):
    """How long the service may take before something counts as not done."""

    publish: Positive = timedelta(seconds=10)
    """A publish without an answer by then ends unknown."""
    delivery: Positive = timedelta(seconds=120)
    """A confirmed message that is not delivered by then, while its key stands still, is stuck or lost."""
    stall: Positive = timedelta(seconds=120)
    """A redelivery that began and has not come further by then has stalled."""
    unacked: Positive = timedelta(seconds=120)
    """Deadline for the redelivery of a message that was nacked, or whose lease ended."""
    drain: Positive = timedelta(seconds=150)
    """How long a run waits for pending messages before it is judged without them; at least as long as the deadlines for deliveries."""

    @model_validator(mode="after")
    def _drain_is_longest(self) -> Self:
        name, longest = max(
            (("delivery", self.delivery), ("stall", self.stall), ("unacked", self.unacked)), key=lambda item: item[1]
        )
        if self.drain < longest:
            raise ValueError(
                f"drain ({write_duration(self.drain)}) must not be shorter than {name} ({write_duration(longest)}): a run that ends before "
                f"the deadline never finds a message overdue; make drain longer, or {name} shorter"
            )
        return self


class ProbeSettings(Section):
    """How one kind of experiment is run."""

    schedule: Schedule
    """When it runs."""
    jitter: Duration = timedelta(seconds=1)
    """Each start is delayed by a random time up to this, so that probers do not march in step."""
    keys: Annotated[int, Field(ge=1, le=1_000_000)]
    """Ordering keys per run."""
    parts: Annotated[int, Field(ge=1, le=1000)] = 1
    """Into how many runs the keys are divided, so that several probers may share them (see `sharding`)."""
    messages: Annotated[int, Field(ge=1, le=100_000)]
    """Messages per key and burst."""
    rate: Annotated[float, Field(ge=0)] = 0.0
    """Messages per second over all keys; 0 sends the whole burst at once."""
    beyond_key_limit: bool = False
    """`hot_key` only: `rate` may be up to four times what the service takes on one key, to see from which load on it refuses publishes."""
    processing: Processing = Processing.SLOW_KEY
    """`isolation` only: what its slow consumer takes time for: the messages of one key, all alike (`fixed`), or all, most of them less
    and a few many times as long (`heavy_tailed`)."""
    processing_time: Duration = timedelta()
    """`isolation` only: how long its slow consumer takes for a message, on average, at most 20s."""
    sizes: Annotated[tuple[Annotated[Size, Field(ge=0, le=MESSAGE_BYTES_MAX)], ...], Field(min_length=1)] = SIZES
    """Sizes of payloads, used in turn. A message that needs more for its own content is longer."""
    subscribers: Annotated[int, Field(ge=1, le=1000)]
    """Subscribers that share the subscription."""
    vantages: Annotated[tuple[LastingVantage, ...], Field(min_length=1)] = (Vantage.WIRE,)
    """From where it looks. Each vantage is a run of its own."""
    ack_deadline: Duration = timedelta(seconds=60)
    """The subscription's acknowledgement deadline, 10s to 600s."""
    deadlines: Deadlines = Deadlines()
    """See below."""
    observe: Observe | None = None
    """What the probe `observe` reads; see below."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not ACK_DEADLINE_MIN <= self.ack_deadline <= ACK_DEADLINE_MAX or self.ack_deadline.microseconds:
            raise ValueError("ack_deadline must be whole seconds from 10s to 600s, as the service demands")
        if self.schedule.interval is not None and self.jitter >= self.schedule.interval:
            raise ValueError("jitter must be shorter than schedule.interval: make it less, or the interval longer")
        if len(set(self.vantages)) < len(self.vantages):
            raise ValueError("vantages must not name one twice: each is a run of its own")
        if self.parts > self.keys:
            raise ValueError(f"parts must not be more than keys: {self.parts} of {self.keys}")
        return self

    @property
    def part_names(self) -> tuple[str, ...]:
        """The parts that the keys are divided into, such as `1/2` and `2/2`; one empty name if they are not divided."""
        return tuple(f"{part}/{self.parts}" for part in range(1, self.parts + 1)) if self.parts > 1 else ("",)


class TargetSettings(Section):
    """One service that is probed."""

    name: DnsLabel
    """Unique. The label `target` of every series about it."""
    endpoint: EndpointText = EMBEDDED
    """Where it is. `embedded` is the Pub/Sub server in this process. `global` proves no publishing region, so findings about order stay
    indeterminate there."""
    peer: EndpointText | None = None
    """Another endpoint of the same service, in another region, for the probe `region`. That of the embedded server is by default itself."""
    project: Project = DEFAULT_PROJECT
    """Google Cloud project. Has a default for the embedded server only."""
    environment: Word = DEFAULT_ENVIRONMENT
    """test, staging, canary, production, or your own word. Has a default for the embedded server only."""
    region: Word = "local"
    """The label `region`. By default what `endpoint` says: that region, `global`, or `local` for an address."""
    labels: Mapping[LabelName, str] = Field(default_factory=dict)
    """Free labels, shown by `pubsub_prober_target_info` and the API."""
    probes: Mapping[ProbeName, ProbeSettings]
    """Which probes run there: a list of names, or a mapping of names to what is different there. By default all that can."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if taken := RESERVED_LABELS & set(self.labels):
            raise ValueError(f"labels must not hold {', '.join(sorted(taken))}: every series has that already")
        return self

    @property
    def series(self) -> tuple[str, str, str]:
        """What every series about it carries: target, environment, region."""
        return self.name, self.environment, self.region

    @property
    def is_embedded(self) -> bool:
        """Whether it is the server in this process."""
        return self.endpoint == EMBEDDED


class Slo(Section):
    """An objective for an indicator. It holds for every target whose probes feed the indicator."""

    indicator: Indicator
    """What is counted."""
    objective: Share
    """The share of the counted things that must be good."""
    window: Days = timedelta(seconds=PERIOD_S)
    """The period of the error budget; rolling."""
    threshold: Milliseconds | None = None
    """From when on a duration is bad: for latencies and ages, and there always."""
    labels: Mapping[LabelName, str] = Field(default_factory=dict)
    """Passed on to alerts and the API."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.objective < OBJECTIVE_MIN:
            raise ValueError(
                f"objective is the share that must be good, and {self.objective * 100:.6g}% means that most may be bad: write 99.9%"
            )
        if self.window < WINDOW_MIN:
            raise ValueError(f"window must be at least {WINDOW_MIN.days}d, since the slowest alert looks back three days")
        if MEANINGS[self.indicator].thresholded and self.threshold is None:
            raise ValueError(f"threshold is missing: {self.indicator} is bad from some duration on, so write threshold: 1s")
        if not MEANINGS[self.indicator].thresholded and self.threshold is not None:
            raise ValueError(f"remove threshold: {self.indicator} is not a duration")
        return self

    def objective_named(self, name: str) -> Objective:
        """The objective as the core's value."""
        threshold_s = None if self.threshold is None else self.threshold.total_seconds()
        return Objective(name, self.indicator, self.objective, self.window.total_seconds(), threshold_s, self.labels)


class Reads(StrEnum):
    """Who may read."""

    OPEN = "open"
    TOKEN = "token"


class Api(Section):
    """The status page, the REST API and /metrics."""

    host: Host = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] = 8080
    """0 takes any free port."""
    token: SecretStr | None = None
    """What `POST` requests must present; without it there are none. Only by environment, never in the file."""
    reads: Reads = Reads.OPEN
    """Read access: every client, or only clients with the token. Health and metrics are always open."""
    runbooks: HttpUrl | None = None
    """Your copy of docs/runbooks, which pages link to; without it they link to the runbooks that the service has, at `/runbooks`."""


class Maintenance(Section):
    """A time in which a target or region is neither probed nor judged: once, or again and again."""

    starts: AwareDatetime | None = Field(None, alias="from")
    """Begin, with a time zone: 2026-12-24T18:00:00Z. Together with `to`."""
    ends: AwareDatetime | None = Field(None, alias="to")
    """End."""
    cron: Cronline | None = None
    """Begins. Together with `duration`."""
    duration: Hours | None = None
    """How long each lasts: less than from one begin to the next."""
    target: DnsLabel | None = None
    """Name of a target. This or `region`."""
    region: Word | None = None
    """Region of targets."""
    reason: str = ""
    """Shown on the status page."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        once, again = (self.starts, self.ends), (self.cron, self.duration)
        if (None in once and None in again) or any(once) == any(again):
            raise ValueError("write either from and to, or cron and duration")
        if self.starts is not None and self.ends is not None and self.starts >= self.ends:
            raise ValueError("to must be later than from")
        if (self.target is None) == (self.region is None):
            raise ValueError("write either target or region, one of the two")
        if self.cron is not None and self.duration is not None and self.duration >= (gap := self.cron.shortest_gap()):
            raise ValueError(f"duration must be shorter than {write_duration(gap)}, after which {self.cron} begins again")
        return self

    def covers(self, target: TargetSettings, at: datetime) -> bool:
        """Whether the target is under maintenance at that time. The end is outside."""
        if target.name != self.target and target.region != self.region:
            return False
        if self.starts is not None and self.ends is not None:
            return self.starts <= at < self.ends
        return self.cron is not None and self.duration is not None and at < self.cron.latest(at) + self.duration


class Sharding(Section):
    """Whether several probers share the work."""

    group: DnsLabel | None = None
    """Probers of one group that use one `status.url`, a PostgreSQL, divide the probes among themselves; without it each does all."""


class Embedded(Section):
    """The Pub/Sub server in this process."""

    port: Annotated[Port, Field(ge=0, le=65535)] = 0
    """0 takes any free port."""
    faults: tuple[FaultSpec, ...] = ()
    """Faults to inject from the start, for drills."""


class Config(Section):
    """The whole configuration."""

    instance: DnsLabel | None = None
    """What this prober is called. The names of its topics and subscriptions begin with it; by default the name of the host."""
    targets: Annotated[tuple[TargetSettings, ...], Field(min_length=1)]
    """What is probed."""
    probes: Mapping[ProbeName, ProbeSettings]
    """How, unless a target says otherwise."""
    slos: Mapping[ObjectiveName, Slo]
    """The objectives."""
    history: HistorySettings = HistorySettings()
    """The record of everything."""
    status: StatusSettings = StatusSettings()
    """The store behind the API."""
    api: Api = Api()
    """Where the service listens."""
    push: PushSettings = PushSettings()
    """Where messages are pushed to."""
    telemetry: Telemetry = Telemetry()
    """Logs."""
    maintenance: tuple[Maintenance, ...] = ()
    """When not to probe."""
    sharding: Sharding = Sharding()
    """Whether several probers share the work."""
    budget: Budget = Budget()
    """What probing may cost."""
    monitoring: Monitoring = Monitoring()
    """Your own subscriptions."""
    comparisons: Annotated[tuple[ComparisonSettings, ...], Field(max_length=COMPARISONS_MAX)] = ()
    """Targets that are compared."""
    embedded: Embedded = Embedded()
    """The server in this process."""
    drills: Drills = Drills()
    """Fire drills: tests of the whole alerting path."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives as the core's values."""
        return tuple(slo.objective_named(name) for name, slo in self.slos.items())

    @property
    def name(self) -> str:
        """What this prober is called: `instance`, or else the name of the host."""
        return self.instance or name_of_host(socket.gethostname())

    def maintenance_of(self, target: TargetSettings, at: datetime) -> Maintenance | None:
        """The maintenance that a target is under at a time, if any."""
        return next((window for window in self.maintenance if window.covers(target, at)), None)
