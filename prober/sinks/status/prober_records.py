"""Records of the status store that probers write with their heartbeats, and leases. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Index, PrimaryKeyConstraint
from sqlalchemy.orm import Mapped, composite, mapped_column

from prober.config.following import ConfigurationStatus
from prober.core.verdict import Verdict
from prober.monitoring.comparison import OwnSubscriptionStatus
from prober.monitoring.top_keys import StreamKeys
from prober.runs.probe_instance import ProbeInstance
from prober.sinks.live.condition import Condition
from prober.sinks.live.snapshot import InstanceSnapshot, SkippedRun, fields_from
from prober.sinks.status.columns import Json, Record
from prober.slo.objectives import SliCounts

SILENT_AFTER_S: Final = 90.0
"""A prober without a heartbeat for this time is silent."""


class ProberRecord(Record):
    """A prober that writes to the store.

    last_heartbeat_at   time of its last report of probe instances, troubles and the following fields.
    configuration       its configuration; None: not reported.
    own                 the user's own subscriptions that it reads.
    streams             the streams that it observes, with their top keys.
    """

    __tablename__ = "probers"

    instance: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str]
    started_at: Mapped[float]
    last_heartbeat_at: Mapped[float]
    troubles: Mapped[tuple[str, ...]] = mapped_column(Json(tuple[str, ...]), default=())
    configuration: Mapped[ConfigurationStatus | None] = mapped_column(Json(ConfigurationStatus), default=None)
    own: Mapped[tuple[OwnSubscriptionStatus, ...]] = mapped_column(Json(tuple[OwnSubscriptionStatus, ...]), default=())
    streams: Mapped[tuple[StreamKeys, ...]] = mapped_column(Json(tuple[StreamKeys, ...]), default=())

    def is_silent(self, now: float) -> bool:
        """Return whether the prober has stopped sending heartbeats."""
        return now - self.last_heartbeat_at > SILENT_AFTER_S


class InstanceRecord(Record):
    """The state of a probe instance as one prober last reported it (`InstanceSnapshot`)."""

    __tablename__ = "probe_instances"

    instance: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str] = mapped_column(primary_key=True)
    probe: Mapped[str] = mapped_column(primary_key=True)
    vantage: Mapped[str] = mapped_column(primary_key=True)
    part: Mapped[str] = mapped_column(primary_key=True)
    last_heartbeat_at: Mapped[float]
    interval_s: Mapped[float]
    schedule: Mapped[str]
    environment: Mapped[str]
    region: Mapped[str]
    endpoint: Mapped[str]
    guarantee: Mapped[str]
    topic: Mapped[str]
    subscription: Mapped[str]
    labels: Mapped[Mapping[str, str]] = mapped_column(Json(Mapping[str, str]))
    verdict: Mapped[Verdict | None]
    status: Mapped[Condition]
    since: Mapped[float | None]
    last_run_id: Mapped[str | None]
    last_pass_at: Mapped[float | None]
    next_run_at: Mapped[float | None]
    running_since: Mapped[float | None]
    overdue_s: Mapped[float | None]
    runs: Mapped[Mapping[Verdict, int]] = mapped_column(Json(Mapping[Verdict, int]))
    runs_expected: Mapped[int]
    runs_skipped: Mapped[int]
    last_skip: Mapped[SkippedRun | None] = mapped_column(Json(SkippedRun))
    maintenance: Mapped[str | None]

    @classmethod
    def of(cls, instance: str, at: float, shown: InstanceSnapshot) -> InstanceRecord:
        """Return the record of a prober's report about one of its probe instances."""
        last_run_id = None if shown.last_run is None else shown.last_run.run_id
        given = fields_from(ProbeInstance, shown.probe_instance) | fields_from(InstanceSnapshot, shown, *_NOT_STORED)
        return cls(**given, instance=instance, last_heartbeat_at=at, last_run_id=last_run_id)

    @property
    def probe_instance(self) -> ProbeInstance:
        """The probe instance as it is configured."""
        return ProbeInstance(**fields_from(ProbeInstance, self))


_NOT_STORED: Final = ("probe_instance", "last_run", "history", "findings", "findings_dropped")
"""Fields of a snapshot that other tables contain."""


class Slice(Record):
    """Counts of one process for one objective on one target in a slice of time.

    definition   what is counted: the indicator and its threshold. A series restarts when it changes.
    """

    __tablename__ = "slices"
    __table_args__ = (
        PrimaryKeyConstraint("objective", "definition", "length_s", "begins_at", "target", "process"),
        Index(None, "length_s", "begins_at"),
    )

    process: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str] = mapped_column(primary_key=True)
    objective: Mapped[str] = mapped_column(primary_key=True)
    definition: Mapped[str] = mapped_column(primary_key=True)
    length_s: Mapped[int] = mapped_column(primary_key=True)
    begins_at: Mapped[float] = mapped_column(primary_key=True)
    counts: Mapped[SliCounts] = composite("good", "bad", "undecided")
    good: Mapped[int] = mapped_column(init=False)
    bad: Mapped[int] = mapped_column(init=False)
    undecided: Mapped[int] = mapped_column(init=False)


class Identity(Record):
    """The single row that identifies this store; written with the table."""

    __tablename__ = "identity"

    store_id: Mapped[str] = mapped_column(primary_key=True)


class CheckpointRecord(Record):
    """The checkpoint that the last run of a long-lived probe left for the next one (`runs.handover.Checkpoint`).

    name  the owner: the prober, or all that share its work, and the probe instance.
    """

    __tablename__ = "checkpoints"

    name: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str]
    subscription: Mapped[str]
    epoch: Mapped[str]
    left_at: Mapped[float]


class WaitingPublish(Record):
    """The publish event at `position` of a checkpoint, with its serialized type name (`core.events.EVENT_TYPES`)."""

    __tablename__ = "waiting_publishes"
    __table_args__ = (PrimaryKeyConstraint("name", "position"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    event: Mapped[str]
    key: Mapped[str]
    seq: Mapped[int]
    generation: Mapped[int]
    message_id: Mapped[str]
    size: Mapped[int]
    region: Mapped[str]


class Lease(Record):
    """A task that only one of several probers may do, with its holder and its expiry."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    until: Mapped[float]
