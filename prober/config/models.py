"""The sections of the configuration. Values are frozen and complete: the result of `load` needs no defaults and no further checks.

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
    """Start times of a probe: exactly one of the two keys."""

    interval: Positive | None = None
    """From start to start."""
    cron: Cronline | None = None
    """Start times; 0 and 7 are Sunday."""

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
    """Time limits for the service."""

    publish: Positive = timedelta(seconds=10)
    """A publish without an answer by then has an unknown outcome."""
    delivery: Positive = timedelta(seconds=120)
    """A confirmed message without delivery by then, on a key without progress, is stuck or lost."""
    stall: Positive = timedelta(seconds=120)
    """A redelivery without progress by then has stalled."""
    unacked: Positive = timedelta(seconds=120)
    """Deadline for the redelivery of a nacked or expired message."""
    drain: Positive = timedelta(seconds=150)
    """Wait of a run for pending messages; at least the three deadlines above."""

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
    """Settings of a probe."""

    schedule: Schedule
    """Start times."""
    jitter: Duration = timedelta(seconds=1)
    """Maximum of a random delay of each start."""
    keys: Annotated[int, Field(ge=1, le=1_000_000)]
    """Ordering keys per run."""
    parts: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of runs that divide the keys, for `sharding`."""
    messages: Annotated[int, Field(ge=1, le=100_000)]
    """Messages per key and burst."""
    rate: Annotated[float, Field(ge=0)] = 0.0
    """Messages per second over all keys; 0 sends the whole burst at once."""
    beyond_key_limit: bool = False
    """`hot_key` only: `rate` may exceed the limit of a key fourfold."""
    processing: Processing = Processing.SLOW_KEY
    """`isolation` only: the slow messages: those of one key, all alike, or all with few very slow ones."""
    processing_time: Duration = timedelta()
    """`isolation` only: mean processing time of the slow consumer, at most 20s."""
    sizes: Annotated[tuple[Annotated[Size, Field(ge=0, le=MESSAGE_BYTES_MAX)], ...], Field(min_length=1)] = SIZES
    """Minimum payload sizes, used in turn."""
    subscribers: Annotated[int, Field(ge=1, le=1000)]
    """Subscribers of the subscription."""
    vantages: Annotated[tuple[LastingVantage, ...], Field(min_length=1)] = (Vantage.WIRE,)
    """Vantages; each has runs of its own."""
    ack_deadline: Duration = timedelta(seconds=60)
    """Acknowledgement deadline of the subscription, 10s to 600s."""
    deadlines: Deadlines = Deadlines()
    """Time limits."""
    observe: Observe | None = None
    """The stream of the probe `observe`."""

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
    """A probed service."""

    name: DnsLabel
    """Unique name; the label `target` of series."""
    endpoint: EndpointText = EMBEDDED
    """Address. `embedded`: the Pub/Sub server in this process. `global`: findings about order stay indeterminate."""
    peer: EndpointText | None = None
    """Endpoint of the same service in another region, for the probe `region`. The embedded server is its own peer."""
    project: Project = DEFAULT_PROJECT
    """Google Cloud project. Default for the embedded server only."""
    environment: Word = DEFAULT_ENVIRONMENT
    """Such as `staging` or `production`. Default for the embedded server only."""
    region: Word = "local"
    """The label `region`. By default that of `endpoint`, or `local` for an address."""
    labels: Mapping[LabelName, str] = Field(default_factory=dict)
    """Free labels in `pubsub_prober_target_info` and the API."""
    probes: Mapping[ProbeName, ProbeSettings]
    """Probes of the target: a list of names, or a mapping of names to changed settings."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if taken := RESERVED_LABELS & set(self.labels):
            raise ValueError(f"labels must not hold {', '.join(sorted(taken))}: every series has that already")
        return self

    @property
    def series(self) -> tuple[str, str, str]:
        """Labels of every series of the target: target, environment, region."""
        return self.name, self.environment, self.region

    @property
    def is_embedded(self) -> bool:
        """Whether the target is the server in this process."""
        return self.endpoint == EMBEDDED


class Slo(Section):
    """Objectives of indicators, for each target whose probes feed the indicator."""

    indicator: Indicator
    """Counted things; see below."""
    objective: Share
    """Share of good things."""
    window: Days = timedelta(seconds=PERIOD_S)
    """Rolling period of the error budget."""
    threshold: Milliseconds | None = None
    """Maximum of a good latency or age; required there."""
    labels: Mapping[LabelName, str] = Field(default_factory=dict)
    """Labels of alerts and in the API."""

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
        """Return the objective as a value of the core."""
        threshold_s = None if self.threshold is None else self.threshold.total_seconds()
        return Objective(name, self.indicator, self.objective, self.window.total_seconds(), threshold_s, self.labels)


class Reads(StrEnum):
    """Read access."""

    OPEN = "open"
    TOKEN = "token"


class Api(Section):
    """The status page, the REST API and /metrics."""

    host: Host = "127.0.0.1"
    """Listen address; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] = 8080
    """0: any free port."""
    token: SecretStr | None = None
    """Bearer token of `POST` requests; without it, all are refused. Only by environment, never in the file."""
    reads: Reads = Reads.OPEN
    """Read access: all clients, or clients with the token. Health and metrics stay open."""
    runbooks: HttpUrl | None = None
    """Link target of pages: your copy of docs/runbooks. Default: `/runbooks` of the service."""


class Maintenance(Section):
    """Periods without probes of a target or region, once or recurring."""

    starts: AwareDatetime | None = Field(None, alias="from")
    """Begin, with a time zone; with `to`."""
    ends: AwareDatetime | None = Field(None, alias="to")
    """End."""
    cron: Cronline | None = None
    """Begins; with `duration`."""
    duration: Hours | None = None
    """Length of each; less than between two begins."""
    target: DnsLabel | None = None
    """Name of a target; this or `region`."""
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
        """Return whether the target is under maintenance at that time. The end is excluded."""
        if target.name != self.target and target.region != self.region:
            return False
        if self.starts is not None and self.ends is not None:
            return self.starts <= at < self.ends
        return self.cron is not None and self.duration is not None and at < self.cron.latest(at) + self.duration


class Sharding(Section):
    """Division of the work among several probers."""

    group: DnsLabel | None = None
    """Probers of one group with one PostgreSQL in `status.url` divide the probes; without it each runs all."""


class Embedded(Section):
    """The Pub/Sub server in this process."""

    port: Annotated[Port, Field(ge=0, le=65535)] = 0
    """0: any free port."""
    faults: tuple[FaultSpec, ...] = ()
    """Faults injected from the start."""


class Config(Section):
    """The whole configuration."""

    instance: DnsLabel | None = None
    """Name of the prober and prefix of its resources; default: the host name."""
    targets: Annotated[tuple[TargetSettings, ...], Field(min_length=1)]
    """Probed services."""
    probes: Mapping[ProbeName, ProbeSettings]
    """Settings of probes, for all targets."""
    slos: Mapping[ObjectiveName, Slo]
    """Objectives."""
    history: HistorySettings = HistorySettings()
    """Record of events, runs and findings."""
    status: StatusSettings = StatusSettings()
    """Store of the API."""
    api: Api = Api()
    """Listener and access."""
    push: PushSettings = PushSettings()
    """Endpoint of pushes."""
    telemetry: Telemetry = Telemetry()
    """Logs."""
    maintenance: tuple[Maintenance, ...] = ()
    """Periods without probes."""
    sharding: Sharding = Sharding()
    """Division of the work among several probers."""
    budget: Budget = Budget()
    """Limit of costs."""
    monitoring: Monitoring = Monitoring()
    """Your own subscriptions."""
    comparisons: Annotated[tuple[ComparisonSettings, ...], Field(max_length=COMPARISONS_MAX)] = ()
    """Compared targets."""
    embedded: Embedded = Embedded()
    """The embedded server."""
    drills: Drills = Drills()
    """Tests of the alerting path."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives as values of the core."""
        return tuple(slo.objective_named(name) for name, slo in self.slos.items())

    @property
    def name(self) -> str:
        """Name of this prober: `instance`, or the name of the host."""
        return self.instance or name_of_host(socket.gethostname())

    def maintenance_of(self, target: TargetSettings, at: datetime) -> Maintenance | None:
        """Return the maintenance of a target at a time, if any."""
        return next((window for window in self.maintenance if window.covers(target, at)), None)
