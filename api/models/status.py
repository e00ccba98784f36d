"""Status of all probers, targets, objectives and own subscriptions."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AliasPath, BeforeValidator, Field, FiniteFloat

from api.models.base import Answer, Count, Instance, Listed, Seconds, Subscription, Target, Time
from api.models.probe_instances import InstanceAnswer
from api.models.slos import SloAnswer
from prober.core.verdict import Verdict
from prober.monitoring.comparison import Late
from prober.sinks.live.condition import Condition


def _reported(*path: str, **shown: Any) -> Any:
    """Return a field with a nested path in the snapshot of an own subscription."""
    return Field(validation_alias=AliasPath("status", *path), **shown)


class Configuration(Answer):
    """Configuration in force at a prober."""

    file: Annotated[str, Field(examples=["/etc/ordering-prober/prober.yaml"])]
    """Path of the file; empty: no file, only defaults and the environment."""
    digest: Annotated[str, Field(examples=["3f1c0a9be2d4"])]
    """The first digits of its SHA-256, as `sha256sum` prints them; empty without a file."""
    since: Time
    """Time since which it is in force."""
    restart: Annotated[tuple[str, ...], Field(examples=[["api.port"]])]
    """Changed keys that need a restart of the prober; until then their old values apply."""
    refused_at: Time | None
    """Time of rejection of the file's present content, so that an older one is in force; null: it was not rejected."""
    refusal: Annotated[str, Field(examples=[""])]
    """Reason of the rejection; empty: it was not rejected."""
    usd_per_month: Annotated[float, Field(ge=0, examples=[21.06])]
    """Maximum cost of its probes on the real service per month, in US dollars at list price; 0: they do not probe it."""
    faults: Annotated[tuple[str, ...], Field(examples=[["reorder_run@0.01"]])]
    """Faults that its embedded server injects."""


class Prober(Answer):
    """One prober."""

    instance: Instance
    """Name of the prober."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Version of the prober."""
    started_at: Time
    """Start of the prober."""
    last_heartbeat_at: Time
    """Time of the last heartbeat."""
    silent: bool
    """Whether the last heartbeat is too old to rely on."""
    configuration: Configuration | None
    """Configuration in force there; null: unknown."""


class ProberList(Listed):
    """All probers that write to the store."""

    items: tuple[Prober, ...]
    """The probers."""


class OwnPoint(Answer):
    """The newest point of a metric in Cloud Monitoring."""

    value: Annotated[FiniteFloat, Field(examples=[12.0])]
    """Value of the point."""
    at: Time
    """End of the interval of the point."""


class OwnSubscriptionAnswer(Answer, schema="OwnSubscription"):
    """A subscription of yours, compared with the prober's own messages at the time of its newest point in Cloud Monitoring."""

    name: Annotated[Subscription, _reported("name")]
    """Full name of the subscription."""
    target: Annotated[Target, _reported("target")]
    """Target whose probes it is compared with."""
    late: Late
    """Late side. A value that cannot be read, is missing or too old makes it unknown."""
    sentence: Annotated[str, Field(examples=["Unknown. Nothing is known of yours: it was not read yet."])]
    """Result in words."""
    late_after_s: Annotated[Seconds, _reported("late_after_s")]
    """Age of the oldest message from which a side is late."""
    read_at: Annotated[Time | None, _reported("read_at")]
    """Time of the last read, successful or not; null: not read yet."""
    failure: Annotated[str, _reported("failure", examples=[""])]
    """Reason of the failed read; empty: it succeeded."""
    oldest_unacked_age_s: Annotated[OwnPoint | None, _reported("reading", "oldest_unacked_age")]
    """Age of its oldest unacknowledged message; null: no point."""
    undelivered: Annotated[OwnPoint | None, _reported("reading", "undelivered")]
    """Number of unacknowledged messages."""
    acked: Annotated[OwnPoint | None, _reported("reading", "acked")]
    """Number of messages acknowledged in a minute."""
    expired: Annotated[OwnPoint | None, _reported("reading", "expired")]
    """Number of acknowledgement deadlines that expired in a minute."""
    gap_s: Annotated[Seconds, _reported("reading", "gap_s")]
    """Longest gap between the last points."""
    prober_oldest_unacked_age_s: Annotated[Seconds | None, _reported("prober", "age_s")]
    """Age of the prober's own oldest unacknowledged message in the minute before that point; null: unknown."""


class StatusAnswer(Answer):
    """Status of all probers, targets, objectives and own subscriptions."""

    at: Time
    """Time of this response."""
    status: Condition
    """Worst condition of all probes and open incidents, as on the status page: OUTAGE, FAIL, BLIND (the target answers and no run can be
    verified), UNKNOWN, WARN, STARTING, PASS.
    """
    verdict: Verdict
    """FAIL if any probe instance has FAIL; else UNKNOWN if any has UNKNOWN or an open incident, or none has a verdict; else PASS. Instances
    under maintenance do not count.
    """
    since: Time
    """Earliest time since which a probe instance that determines the verdict has its state; with an open incident its start."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Version of the answering process."""
    instance: Instance
    """Name of the answering process."""
    started_at: Time
    """Start of the answering process."""
    open_incidents: Annotated[Count, Field(validation_alias="incidents"), BeforeValidator(len)]
    """Number of open incidents; `/api/v1/incidents?open=true` lists them."""
    probe_instances: tuple[InstanceAnswer, ...]
    """All probes on all targets from all vantages."""
    slos: tuple[SloAnswer, ...]
    """All objectives on all targets whose probes measure them."""
    notices: Annotated[tuple[str, ...], Field(examples=[["test is the prober's embedded server, not Google Cloud Pub/Sub."]])] = ()
    """A sentence about each target that is an embedded server, with the faults that it injects."""
    troubles: Annotated[tuple[str, ...], Field(examples=[["the history cannot be written: no space left on device"]])]
    """Problems of probers or the store; they are no statement on a target."""
    probers: tuple[Prober, ...]
    """The probers."""
    own_subscriptions: tuple[OwnSubscriptionAnswer, ...]
    """Your own subscriptions; they do not influence the verdict."""

    def timeless(self) -> Self:
        """Return a copy without values that change as time passes: times of the response, heartbeats and periods, overdue time, budgets."""
        still = {"counted_since": self.started_at, "measured": 0.0, "budget_left": None}
        return self.model_copy(
            update={
                "at": self.started_at,
                "probe_instances": tuple(
                    instance.model_copy(update={"overdue_s": instance.overdue_s and 0.0}) for instance in self.probe_instances
                ),
                "slos": tuple(slo.model_copy(update=still) for slo in self.slos),
                "probers": tuple(one.model_copy(update={"last_heartbeat_at": one.started_at}) for one in self.probers),
            }
        )


class ReadinessAnswer(Answer, schema="Readiness"):
    """Readiness of the service."""

    ready: bool
    """Whether the service is ready."""
    problems: Annotated[tuple[str, ...], Field(examples=[["the scheduler has not started"]])]
    """Reasons why it is not ready."""


class Health(Answer):
    """Liveness of the service."""

    alive: bool
    """False: only a restart helps."""
