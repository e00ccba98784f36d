"""What a run uses of its target, and how long it takes to administer that.

Administration calls are timed where they are made: by an experiment, and by the code that makes its topics and subscriptions.

A call that succeeded took some time. One that *failed*, because the target did not answer or answered with an error of its own, is too
late for every threshold: what was wanted of it did not happen. One that was refused (no permission, no such topic, a request that the
target does not take) says nothing about how fast the target is, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from prober.brokers.base import AdminOperation
from prober.clock import monotonic_s
from prober.core.rules import Rules
from prober.errors import BrokerUnavailable

OURS: Final = {"managed-by": "ordering-keys-prober"}
"""Label of all topics and subscriptions that the prober creates; resources without it are never deleted."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a run uses, by full name, and how long one call may take.

    topic, subscription  what it publishes to, and the first subscription of that.
    region               the one that it publishes in, empty if that is not known.
    peer_region          the one that it publishes in at the other endpoint of its target, if that has one.
    others               its further subscriptions, by what their experiment calls them.
    dead_letter_topic    where messages go after too many attempts; empty if no subscription has such a policy.
    bounds               what may be relied on at the target, from its vantage.
    foreign_topic        the topic belongs to others: nothing is published to it, and it is neither made nor deleted.
    seek_settles_s       how long after a seek the target may still deliver as before it.
    """

    topic: str
    subscription: str
    ack_deadline_s: int
    publish_timeout_s: float
    region: str = ""
    others: Mapping[str, str] = field(default_factory=dict, hash=False)
    dead_letter_topic: str = ""
    bounds: Rules = field(default_factory=Rules)
    seek_settles_s: float = 60.0
    peer_region: str = ""
    foreign_topic: bool = False

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Full names of all subscriptions, in the order of the experiment."""
        return (self.subscription, *self.others.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """Full names of the topics that the run creates."""
        made = () if self.foreign_topic else (self.topic,)
        return (*made, self.dead_letter_topic) if self.dead_letter_topic else made

    def named(self, name: str) -> str:
        """Return the full name of a subscription by the experiment's name for it; the first has no name."""
        return self.others[name] if name else self.subscription


class Creation(NamedTuple):
    """Request that created a subscription: its time on the monotonic clock, and the duration until its answer, in seconds."""

    asked_t: float
    took_s: float


class Administered(Protocol):
    """Callback for the duration of an administration call in seconds, and whether it failed."""

    def __call__(self, operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
        """Take the end of a call."""


def nobody_times(operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
    """Ignore a call that is not timed."""


@contextmanager
def timed(operation: AdminOperation, administered: Administered) -> Iterator[None]:
    """Report the end of the call inside; re-raise its exceptions."""
    began_t = monotonic_s()
    try:
        yield
    except BrokerUnavailable:
        administered(operation, monotonic_s() - began_t, failed=True)
        raise
    administered(operation, monotonic_s() - began_t, failed=False)
