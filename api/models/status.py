"""How everything stands."""

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
    """A field that stands deeper in what the snapshot says of an own subscription."""
    return Field(validation_alias=AliasPath("status", *path), **shown)


class Configuration(Answer):
    """Which configuration is in force at a prober."""

    file: Annotated[str, Field(examples=["/etc/ordering-prober/prober.yaml"])]
    """Its path; empty: there is none, only defaults and the environment."""
    digest: Annotated[str, Field(examples=["3f1c0a9be2d4"])]
    """The first digits of its SHA-256, as `sha256sum` prints them; empty without a file."""
    since: Time
    """When it came into force."""
    restart: Annotated[tuple[str, ...], Field(examples=[["api.port"]])]
    """Keys that wait for a restart of the prober; until then their old values hold."""
    refused_at: Time | None
    """When the file was refused as it is now, so that an older content is in force; null: it was not."""
    refusal: Annotated[str, Field(examples=[""])]
    """Why it was refused; empty: it was not."""
    usd_per_month: Annotated[float, Field(ge=0, examples=[21.06])]
    """The most that its probes cost a month on the real service, in US dollars at list price; 0: they probe none."""
    faults: Annotated[tuple[str, ...], Field(examples=[["reorder_run@0.01"]])]
    """The faults that its embedded server injects."""


class Prober(Answer):
    """One prober."""

    instance: Instance
    """Its name."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Its version."""
    started_at: Time
    """When it started."""
    last_heartbeat_at: Time
    """When the prober last reported its probe instances."""
    silent: bool
    """That is too long ago to rely on."""
    configuration: Configuration | None
    """Which configuration is in force there; null: it does not say."""


class ProberList(Listed):
    """Every prober that writes to the store."""

    items: tuple[Prober, ...]
    """The probers."""


class OwnPoint(Answer):
    """The newest point of a metric in Cloud Monitoring."""

    value: Annotated[FiniteFloat, Field(examples=[12.0])]
    """Its value."""
    at: Time
    """The end of what it is about."""


class OwnSubscriptionAnswer(Answer, schema="OwnSubscription"):
    """A subscription of yours beside the prober's own messages, at the time of its newest point in Cloud Monitoring."""

    name: Annotated[Subscription, _reported("name")]
    """Its full name."""
    target: Annotated[Target, _reported("target")]
    """The target whose probes it is compared with."""
    late: Late
    """The late side. A value that cannot be read, is missing or too old makes it unknown."""
    sentence: Annotated[str, Field(examples=["Unknown. Nothing is known of yours: it was not read yet."])]
    """The same in words."""
    late_after_s: Annotated[Seconds, _reported("late_after_s")]
    """From this age of the oldest message on a side is late."""
    read_at: Annotated[Time | None, _reported("read_at")]
    """When it was last read, or tried to; null: not yet."""
    failure: Annotated[str, _reported("failure", examples=[""])]
    """Why that failed; empty: it did not."""
    oldest_unacked_age_s: Annotated[OwnPoint | None, _reported("reading", "oldest_unacked_age")]
    """Age of its oldest unacknowledged message; null: there is no point."""
    undelivered: Annotated[OwnPoint | None, _reported("reading", "undelivered")]
    """Messages that are not acknowledged."""
    acked: Annotated[OwnPoint | None, _reported("reading", "acked")]
    """Messages acknowledged in a minute."""
    expired: Annotated[OwnPoint | None, _reported("reading", "expired")]
    """Acknowledgement deadlines that expired in a minute."""
    gap_s: Annotated[Seconds, _reported("reading", "gap_s")]
    """The longest time without a point among the last ones."""
    prober_oldest_unacked_age_s: Annotated[Seconds | None, _reported("prober", "age_s")]
    """The same age of the prober's own messages in the minute before that point; null: not known."""


class StatusAnswer(Answer):
    """How everything stands."""

    at: Time
    """The time of this answer."""
    status: Condition
    """The worst condition of all probes and open incidents, as the status page shows it: OUTAGE, FAIL, BLIND (the target answers and no run
    can be verified), UNKNOWN, WARN, STARTING, PASS."""
    verdict: Verdict
    """FAIL if a probe instance is; else UNKNOWN if one is, has an open incident, or none has a verdict; else PASS, maintenance aside."""
    since: Time
    """Since when the first of the probe instances that make the verdict stands so: one with an open incident since that began."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """Version of the process that answers."""
    instance: Instance
    """Name of the process that answers."""
    started_at: Time
    """When that process started."""
    open_incidents: Annotated[Count, Field(validation_alias="incidents"), BeforeValidator(len)]
    """How many incidents are open; `/api/v1/incidents?open=true` has them."""
    probe_instances: tuple[InstanceAnswer, ...]
    """Every probe on every target from every vantage."""
    slos: tuple[SloAnswer, ...]
    """Every objective on every target whose probes feed it."""
    notices: Annotated[tuple[str, ...], Field(examples=[["test is the prober's embedded server, not Google Cloud Pub/Sub."]])] = ()
    """A sentence about each target that is an embedded server, with the faults that it injects."""
    troubles: Annotated[tuple[str, ...], Field(examples=[["the history cannot be written: no space left on device"]])]
    """Problems of probers or the store; they say nothing about a target."""
    probers: tuple[Prober, ...]
    """The probers."""
    own_subscriptions: tuple[OwnSubscriptionAnswer, ...]
    """Your own subscriptions; nothing in them counts for the verdict."""

    def timeless(self) -> Self:
        """A copy without values that change as time passes: times of the answer, heartbeats and periods, overdue time, budgets."""
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
    """Whether the service does its work."""

    ready: bool
    """False: not (yet)."""
    problems: Annotated[tuple[str, ...], Field(examples=[["the scheduler has not started"]])]
    """The reasons why it is not ready."""


class Health(Answer):
    """Whether the service can go on without a restart."""

    alive: bool
    """False: only a restart helps."""
