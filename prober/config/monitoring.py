"""The section `monitoring`: the user's own subscriptions, which are set beside the prober's."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from prober.config.values import DnsLabel, Positive, Section, Written, at_least, named_like

SUBSCRIPTIONS_MAX: Final = 50
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


class Monitoring(Section):
    """Your own subscriptions, read from Cloud Monitoring and set beside the prober's. Needs the extra `monitoring`."""

    subscriptions: Annotated[tuple[OwnSubscription, ...], Field(max_length=SUBSCRIPTIONS_MAX)] = ()
    """Which; at most 50."""
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
