"""Independent sections of the configuration: costs, storage, logs, pushes, drills, the user's own subscriptions, and streams of other
publishers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from prober.brokers.endpoint import GOOGLE_CERTIFICATES, parse_endpoint
from prober.brokers.fields import parse_path
from prober.config.cron import Cron
from prober.config.values import (
    EMBEDDED,
    Cronline,
    DatabaseUrl,
    Days,
    DnsLabel,
    Duration,
    Email,
    Folder,
    Host,
    HttpUrl,
    Port,
    Positive,
    Project,
    Section,
    Share,
    Size,
    Written,
    at_least,
    named_like,
    write_size,
)
from prober.durations import write_duration
from prober.errors import ConfigError, no_such
from prober.probes.observe import KeysKept, StreamPlan


class Budget(Section):
    """Limit of the cost of probing."""

    usd_per_month: Annotated[float, Field(ge=0)] = 250.0
    """Limit for all probes on Google's service, in US dollars at list price. A costlier configuration is an error. Embedded
    servers and emulators are free."""


HISTORY_RETENTION_MIN = timedelta(days=2)
STATUS_RETENTION_MIN = timedelta(hours=1)
HISTORY_BYTES_MIN = 64 * 2**20


def _enough_bytes(value: int) -> int:
    if value < HISTORY_BYTES_MIN:
        raise ValueError(f"{value} bytes are too few for a history: write {write_size(HISTORY_BYTES_MIN)} or more, such as 50GiB")
    return value


class HistorySettings(Section):
    """The record of events, runs and findings."""

    location: Folder | None = None
    """Storage; without it there is no history."""
    spool: Annotated[str, Written("path")] | None = None
    """Local folder for unwritten data. Default: beside `location`, or the temporary folder."""
    retention: Annotated[Days, at_least(HISTORY_RETENTION_MIN, "since the nightly jobs read all of yesterday")] = timedelta(days=30)
    """Age of deleted files; at least 2d."""
    size_max: Annotated[Size, AfterValidator(_enough_bytes)] = 50 * 2**30
    """Size above which the oldest files are deleted; at least 64MiB."""
    reports: Folder | None = None
    """Reports of the nightly jobs, for the API and the status page."""


class StatusSettings(Section):
    """The store behind the API and the status page."""

    url: DatabaseUrl = SecretStr("sqlite:///ordering-prober.db")
    """SQLite, or PostgreSQL for several probers. Passwords are masked."""
    retention: Annotated[Days, at_least(STATUS_RETENTION_MIN, "or nobody can read what was found")] = timedelta(days=30)
    """Age of deleted runs and findings; at least 1h."""


class LogFormat(StrEnum):
    """Format of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """Minimum level of log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @classmethod
    def _missing_(cls, value: object) -> LogLevel | None:
        """Accept capitals, the usual form of LOG_LEVEL."""
        return next((level for level in cls if isinstance(value, str) and level == value.lower()), None)


class Telemetry(Section):
    """Logs of the prober itself."""

    log_format: LogFormat = LogFormat.TEXT
    """`json`: objects on standard output, with field names of Google Cloud Logging. `text`: lines on standard error."""
    log_level: LogLevel = LogLevel.INFO
    """Minimum level; also set by LOG_LEVEL."""


class PushSettings(Section):
    """The endpoint of the probe `push`."""

    host: Host = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] = 0
    """0: any free port."""
    address: HttpUrl | None = None
    """URL of the endpoint for targets on other machines; required there."""
    service_account: Email | None = None
    """Service account of the push tokens. The endpoint refuses other requests."""
    audience: str = ""
    """Audience of the tokens. Default: `address`."""
    keys: Annotated[str, Written("path or URL")] = GOOGLE_CERTIFICATES
    """Keys of token signatures: an https address, or a file (PEM, JSON Web Key Set, or Google's format)."""


def is_here(endpoint: Any) -> bool:
    """Return whether a target's endpoint is on this machine, so that it reaches loopback addresses.

    An invalid endpoint is reported elsewhere.
    """
    try:
        return endpoint == EMBEDDED or (isinstance(endpoint, str) and parse_endpoint(endpoint).is_here)
    except ConfigError:
        return True


SUBSCRIPTIONS_MAX: Final = 50
DISCOVERIES_MAX: Final = 10
EVERY_MIN: Final = timedelta(seconds=30)

SubscriptionPath = Annotated[
    str,
    named_like(
        "projects/[a-z0-9][a-z0-9.:-]{0,98}[a-z0-9]/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,254}",
        "is not a full name: write projects/PROJECT/subscriptions/SUBSCRIPTION",
    ),
    Written("`projects/PROJECT/subscriptions/SUBSCRIPTION`"),
]


Address = Annotated[
    str,
    named_like(
        r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:\d{1,5})?|[A-Za-z0-9-]+:\d{1,5}",
        "is not an address: write HOST.DOMAIN or HOST:PORT",
    ),
    Written("`HOST.DOMAIN` or `HOST:PORT`"),
]


class OwnSubscription(Section):
    """A subscription of your own; only its metrics in Cloud Monitoring are read."""

    name: SubscriptionPath
    """Full name."""
    target: DnsLabel | None = None
    """Target for the comparison; required with several targets."""
    late_after: Positive = timedelta(seconds=60)
    """Age of the oldest unacknowledged message of a late subscription."""


def _expression(value: str) -> str:
    """Validate a regular expression; refuse the empty one, which matches no name."""
    if not value:
        raise ValueError("must not be empty: no name would match; write a regular expression, such as orders-.*")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


class OwnDiscovery(Section):
    """Subscriptions of your own by name or labels, from the administration API of the target."""

    project: Project | None = None
    """Project; default: that of the target."""
    matching: Annotated[str, AfterValidator(_expression), Written("regular expression")] | None = None
    """Pattern of the whole name, without projects/PROJECT/subscriptions/."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Required labels with their values."""
    target: DnsLabel | None = None
    """Target for the comparison; required with several targets."""
    late_after: Positive = timedelta(seconds=60)
    """As for a named subscription."""
    at_most: Annotated[int, Field(ge=1, le=SUBSCRIPTIONS_MAX)] = 20
    """Maximum; known ones first, then by name. Others are counted and logged."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.matching is None and not self.labels:
            raise ValueError("must have matching or labels: without them every subscription of the project would be read")
        return self


class Monitoring(Section):
    """Your own subscriptions, from Cloud Monitoring."""

    subscriptions: Annotated[tuple[OwnSubscription, ...], Field(max_length=SUBSCRIPTIONS_MAX)] = ()
    """Named subscriptions; at most 50."""
    discover: Annotated[tuple[OwnDiscovery, ...], Field(max_length=DISCOVERIES_MAX)] = ()
    """Discovered subscriptions; at most 50 with the named ones."""
    every: Annotated[Positive, at_least(EVERY_MIN, "since Cloud Monitoring has a point each minute")] = timedelta(seconds=60)
    """Interval of reads."""
    endpoint: Address = "monitoring.googleapis.com"
    """Cloud Monitoring. Other addresses than Google's get a plain connection without credentials."""

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [one.name for one in self.subscriptions]
        if len(set(names)) < len(names):
            raise ValueError("subscriptions must not name one twice")
        return self


CONTROL: Final = "control"
"""The drill without a fault."""
GAP_MAX: Final = timedelta(days=7)
"""Longest time between drills; the alert for overdue drills waits a day longer."""


def _drill(name: str) -> str:
    # Here and not above: who configures no drill, such as the API in a process of its own, needs nothing of the server.
    from prober.embedded.catalogue import CATALOGUE, LISTED

    known = {*CATALOGUE, CONTROL}
    if name not in known:
        raise ValueError(no_such("fault", name, known, LISTED))
    return name


def _often(cron: Cron) -> Cron:
    if cron.longest_gap() > GAP_MAX:
        raise ValueError(f"must come at least every {write_duration(GAP_MAX)}, or PubsubProberDrillOverdue would fire")
    return cron


DrillName = Annotated[str, AfterValidator(_drill), Written("`control`, or a fault; see `ordering-prober faults`")]


class Drills(Section):
    """Fire drills: injected faults on a separate embedded server, to verify their pages."""

    cron: Annotated[Cronline, AfterValidator(_often)] | None = None
    """Start times, at least weekly; without it, no drills."""
    faults: tuple[DrillName, ...] = ()
    """Injected faults in turn; `control` injects none. Default: one of each sort but `availability`, and the control."""
    prometheus: HttpUrl | None = None
    """Prometheus with the rules of this project; without it, the drill skips the check of the alert."""
    alertmanager: HttpUrl | None = None
    """Alertmanager of Prometheus; without it, the drill skips this check."""
    host: Host = "127.0.0.1"
    """Listen address of Alertmanager's webhook; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] | None = None
    """Port of that webhook, `http://HOST:PORT/pages`; without it, the drill skips the check of the page."""
    deadline: Positive = timedelta(minutes=2)
    """Time limit from the finding to alert and page."""
    silence: Positive = timedelta(minutes=1)
    """Duration of the check for no alert; longer than a scrape and an evaluation."""


def _field_name(text: str) -> str:
    try:
        return str(parse_path(text))
    except ConfigError as error:
        raise ValueError(str(error)) from None


_TOPIC: Final = re.compile(r"(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}")


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError(
            f"must be NAME or projects/PROJECT/topics/NAME, not {text!r}; NAME has 3 to 255 characters, begins with a letter, and "
            "contains only letters, digits and -._~+%"
        )
    return text


FieldName = Annotated[str, AfterValidator(_field_name), Written("`ordering_key`, `attributes.NAME` or `json.FIELD.FIELD`")]


class Observe(Section):
    """A stream of other publishers, read through a separate subscription."""

    topic: Annotated[str, AfterValidator(_topic)]
    """Topic: name, or `projects/PROJECT/topics/NAME`."""
    group: FieldName = "ordering_key"
    """Field that groups the numbers."""
    sequence: FieldName | None = None
    """Number within the group. Without it only redelivery, age and load are observed."""
    initial: int | None = None
    """First number of each group; default: the first received."""
    maximum: int | None = None
    """Last number of each group; higher ones are only counted."""
    duration: Positive = timedelta(minutes=1)
    """Length of a run."""
    wait_timeout: Positive = timedelta(seconds=10)
    """Wait for a missing number."""
    idle_timeout: Positive = timedelta(minutes=15)
    """Silence after which a group restarts with its next number."""
    publish_time_error: Duration | None = None
    """Maximum difference of publish times from the order of storage. Only for publishers in one region; without it, wrong orders are no
    violations. Default for addresses other than Google's: 1s.
    """
    share: Annotated[Share, Field(gt=0, lt=1)] | None = None
    """Share of the ordering keys, by hash; default: all."""
    keys_max: Annotated[int, Field(ge=1_000)] = 100_000
    """Remembered ordering keys of a run; the least recent are forgotten and counted, and later keys prove less. 100,000 idle keys take
    150 MB, and active ones up to 16 KB each."""
    keys_kept: KeysKept = KeysKept.PLAIN
    """`hashed`: keys and groups are hashed before recording."""
    unordered: bool = False
    """Measure the order of a second subscription without ordering."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.sequence is None and (self.initial is not None or self.maximum is not None or self.unordered):
            raise ValueError("write sequence too: without it there is nothing to count from or to measure")
        if self.initial is not None and self.maximum is not None and self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")
        return self

    @property
    def plan(self) -> StreamPlan:
        """The settings in the form that the probe takes."""
        return StreamPlan(
            group=parse_path(self.group),
            sequence=None if self.sequence is None else parse_path(self.sequence),
            initial=self.initial,
            maximum=self.maximum,
            duration_s=self.duration.total_seconds(),
            wait_timeout_s=self.wait_timeout.total_seconds(),
            idle_timeout_s=self.idle_timeout.total_seconds(),
            share=self.share,
            keys_kept=self.keys_kept,
            unordered=self.unordered,
        )

    def topic_in(self, project: str) -> str:
        """Return the full name of the topic."""
        return self.topic if "/" in self.topic else f"projects/{project}/topics/{self.topic}"
