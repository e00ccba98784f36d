"""Resources of a run at its target, and the timing of their administration.

Administration calls are timed by their callers: an experiment, and the code that creates its topics and subscriptions.

A successful call has a duration. A *failed* call (no answer, or an error of the target itself) is too late for every threshold: its effect
did not happen. A refused call (no permission, no such topic, an invalid request) proves nothing about the speed of the target, and is not
reported.
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
    """Resources of a run by full name, and the timeout of a publish.

    topic, subscription  topic it publishes to, and its first subscription.
    region               region of publishing; empty if unknown.
    peer_region          region of publishing at the other endpoint of its target, if there is one.
    others               its further subscriptions, by the experiment's names.
    dead_letter_topic    topic for messages after too many attempts; empty if no subscription has a dead-letter policy.
    bounds               bounds of the target's behaviour, for its vantage.
    foreign_topic        the topic belongs to another owner: it is neither published to, nor created, nor deleted.
    seek_settles_s       time after a seek during which the target may still deliver as before, in seconds.
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
        """Receive the end of a call."""


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
