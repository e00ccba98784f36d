"""Sections of the configuration that stand for themselves: cost, what is kept, logs, pushes, fire drills, the
user's own subscriptions, a stream that others publish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator

from prober.brokers.endpoint import GOOGLE_CERTIFICATES, parse_endpoint
from prober.brokers.fields import parse_path
from prober.config.cron import Cron
from prober.config.problems import from_pydantic, report
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
    """What probing may cost."""

    usd_per_month: Annotated[float, Field(ge=0)] = 250.0
    """The most that all probes together may cost a month on the real service, in US dollars at list price. A configuration that may cost
    more is refused. Embedded servers and emulators cost nothing."""


HISTORY_RETENTION_MIN = timedelta(days=2)
STATUS_RETENTION_MIN = timedelta(hours=1)
HISTORY_BYTES_MIN = 64 * 2**20


def _enough_bytes(value: int) -> int:
    if value < HISTORY_BYTES_MIN:
        raise ValueError(f"{value} bytes are too few for a history: write {write_size(HISTORY_BYTES_MIN)} or more, such as 50GiB")
    return value


class HistorySettings(Section):
    """The record of every event, run and finding."""

    location: Folder | None = None
    """Where it is kept; without it there is none."""
    spool: Annotated[str, Written("path")] | None = None
    """Local folder for what is not yet written to `location`. By default next to it, or in the system's temporary folder."""
    retention: Annotated[Days, at_least(HISTORY_RETENTION_MIN, "since the nightly jobs read all of yesterday")] = timedelta(days=30)
    """Older files are deleted. At least 2d, for the nightly jobs."""
    size_max: Annotated[Size, AfterValidator(_enough_bytes)] = 50 * 2**30
    """Above this size the oldest files are deleted. At least 64MiB."""
    reports: Folder | None = None
    """Where the nightly jobs write their reports, for the API and the status page to show; without it they show none."""


class StatusSettings(Section):
    """The store behind the API and the status page."""

    url: DatabaseUrl = SecretStr("sqlite:///ordering-prober.db")
    """SQLite, or PostgreSQL for several probers. A password in it is never shown."""
    retention: Annotated[Days, at_least(STATUS_RETENTION_MIN, "or nobody can read what was found")] = timedelta(days=30)
    """Runs and findings that are older are deleted. At least 1h."""


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @classmethod
    def _missing_(cls, value: object) -> LogLevel | None:
        """In capitals too, as LOG_LEVEL is often written."""
        return next((level for level in cls if isinstance(value, str) and level == value.lower()), None)


class Telemetry(Section):
    """Logs of the prober itself."""

    log_format: LogFormat = LogFormat.TEXT
    """`json`: one object per line on standard output, with the field names of Google Cloud Logging. `text`: lines on standard error."""
    log_level: LogLevel = LogLevel.INFO
    """The least important lines to write; the variable LOG_LEVEL sets it too."""


class PushSettings(Section):
    """The endpoint that the probe `push` has messages pushed to."""

    host: Host = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] = 0
    """0 takes any free port."""
    address: HttpUrl | None = None
    """The URL by which targets that are not on this machine reach the endpoint. Without it the probe does not run there."""
    service_account: Email | None = None
    """The service account whose tokens Google signs for pushes. Requests without such a token are refused."""
    audience: str = ""
    """Whom the tokens are meant for. By default `address`."""
    keys: Annotated[str, Written("path or URL")] = GOOGLE_CERTIFICATES
    """The keys that tokens are signed with: an https address, or a file in PEM, as JSON Web Key Set, or as Google publishes them."""


def is_here(endpoint: Any) -> bool:
    """Whether a target's endpoint is on this machine, and so reaches loopback.

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
    """A subscription of your own. It is never used: only what Cloud Monitoring says of it is read."""

    name: SubscriptionPath
    """Its full name."""
    target: DnsLabel | None = None
    """The target whose probes it is compared with; not needed if there is only one."""
    late_after: Positive = timedelta(seconds=60)
    """From this age of the oldest unacknowledged message on a subscription is late, yours and the prober's."""


def _expression(value: str) -> str:
    """Refuses what is no regular expression, and the empty one, which matches no name."""
    if not value:
        raise ValueError("must not be empty: no name would match; write a regular expression, such as orders-.*")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


class OwnDiscovery(Section):
    """Subscriptions of your own by name or labels, instead of one by one. The list comes from the administration API of the target."""

    project: Project | None = None
    """Where to look; without it, in the target's project."""
    matching: Annotated[str, AfterValidator(_expression), Written("regular expression")] | None = None
    """What the whole name must match, without projects/PROJECT/subscriptions/."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels that it must carry, with these values."""
    target: DnsLabel | None = None
    """The target whose probes they are compared with; not needed if there is only one."""
    late_after: Positive = timedelta(seconds=60)
    """As of a subscription that is named."""
    at_most: Annotated[int, Field(ge=1, le=SUBSCRIPTIONS_MAX)] = 20
    """So many are read, those that are read already and then by name; the others are counted and logged."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.matching is None and not self.labels:
            raise ValueError("must have matching or labels: without them every subscription of the project would be read")
        return self


class Monitoring(Section):
    """Your own subscriptions, read from Cloud Monitoring and set beside the prober's."""

    subscriptions: Annotated[tuple[OwnSubscription, ...], Field(max_length=SUBSCRIPTIONS_MAX)] = ()
    """Which; at most 50."""
    discover: Annotated[tuple[OwnDiscovery, ...], Field(max_length=DISCOVERIES_MAX)] = ()
    """Those that are found; at most 50 together with those that are named."""
    discover_every: Annotated[Positive, at_least(EVERY_MIN, "since each look lists all subscriptions of a project")] = timedelta(
        minutes=10
    )
    """How often they are looked for."""
    every: Annotated[Positive, at_least(EVERY_MIN, "since Cloud Monitoring has a point each minute")] = timedelta(seconds=60)
    """How often they are read."""
    endpoint: Address = "monitoring.googleapis.com"
    """Where Cloud Monitoring is. An address that is not Google's is on a plain connection, without credentials."""

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [one.name for one in self.subscriptions]
        if len(set(names)) < len(names):
            raise ValueError("subscriptions must not name one twice")
        return self


CONTROL: Final = "control"
"""The drill that plants nothing."""
GAP_MAX: Final = timedelta(days=7)
"""The alert for overdue drills waits a day longer."""


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
    """Fire drills: faults that are injected on a server of their own in this process, to verify that their pages are sent."""

    cron: Annotated[Cronline, AfterValidator(_often)] | None = None
    """When the service runs the drills, at least once a week; without it, it runs none."""
    faults: tuple[DrillName, ...] = ()
    """Which faults are planted in turn; `control` plants none. By default one of each sort but `availability`, and the control."""
    prometheus: HttpUrl | None = None
    """The Prometheus that evaluates the rules of this project; without it, the drill does not check that the alert fires."""
    alertmanager: HttpUrl | None = None
    """The Alertmanager that Prometheus sends its alerts to; without it, the drill does not check that the alert arrives there."""
    host: Host = "127.0.0.1"
    """Address to listen on for Alertmanager's webhook; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] | None = None
    """Port for that webhook, `http://HOST:PORT/pages`. Without it, the drill does not check that a page arrives."""
    deadline: Positive = timedelta(minutes=2)
    """How long after the finding its alert and page may come."""
    silence: Positive = timedelta(minutes=1)
    """How long the drill checks that no alert fires where nothing may be found: longer than Prometheus takes to scrape and evaluate."""


def overlaid(settings: Drills, given: Mapping[str, Any]) -> Drills:
    """Settings with what the command line gives in their place. Raises ConfigError."""
    try:
        return Drills.model_validate({**dict(settings), **given})
    except ValidationError as error:
        raise ConfigError(report(from_pydantic(error, Drills), "drills", {})) from error


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
    """A stream that others publish. It is read through a subscription of the prober's own; theirs are left alone."""

    topic: Annotated[str, AfterValidator(_topic)]
    """The topic: its name, or `projects/PROJECT/topics/NAME`."""
    group: FieldName = "ordering_key"
    """What messages are numbered by."""
    sequence: FieldName | None = None
    """Their number within the group. Without it only redelivery, age and load are observed."""
    initial: int | None = None
    """The first number of every group; by default the first that comes."""
    maximum: int | None = None
    """The last number of every group; higher ones are counted and not judged."""
    duration: Positive = timedelta(minutes=1)
    """For how long a run observes."""
    wait_timeout: Positive = timedelta(seconds=10)
    """How long a missing number is waited for before it is given up."""
    idle_timeout: Positive = timedelta(minutes=15)
    """After how long without a message a group restarts with the number that comes next."""
    publish_time_error: Duration | None = None
    """How far publish times may be from the order in which the service stored the messages of a key: the longest that a publish may hang.
    Only if all publishers of the topic publish in one region; without it no wrong order is a violation of the service. By default 1s for an
    address that is not Google's.
    """
    share: Annotated[Share, Field(gt=0, lt=1)] | None = None
    """The share of the ordering keys that is observed, chosen by their hash; by default all."""
    keys_max: Annotated[int, Field(ge=1_000)] = 100_000
    """How many ordering keys a run remembers. Beyond it those seen least recently are forgotten, which is counted; what comes on keys
    that are new from then on proves less. 100,000 take about 150 MB while nothing of them is pending, and up to 16 KB each while messages
    still come."""
    keys_kept: KeysKept = KeysKept.PLAIN
    """`hashed`: ordering keys and groups are hashed before anything is recorded."""
    unordered: bool = False
    """Also read a second subscription of the prober's own without ordering, and measure what order it has."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.sequence is None and (self.initial is not None or self.maximum is not None or self.unordered):
            raise ValueError("write sequence too: without it there is nothing to count from or to measure")
        if self.initial is not None and self.maximum is not None and self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")
        return self

    @property
    def plan(self) -> StreamPlan:
        """The same as the probe takes it."""
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
        """The full name of the topic."""
        return self.topic if "/" in self.topic else f"projects/{project}/topics/{self.topic}"
