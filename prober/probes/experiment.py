"""What a probe is.

An `Experiment` says what it does, what it needs for that, what has to have happened for its outcome to mean anything, what a run costs and
how many opportunities it gives; a `Workload` how much a run does; a `SubscriptionPlan` what one of its subscriptions is made with. The
configuration, the objectives and the simulation read here whatever depends on the probe, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Final, TypeAlias

from prober.brokers.base import AdminOperation
from prober.core.rules import Mode
from prober.probes.context import ProbeContext
from prober.probes.cost import Traffic
from prober.slo.indicators import Indicator

SIZES: Final = (256,)
"""Sizes of payloads in bytes, unless the probe or the user says otherwise."""

CHECK_TARGET: Final = "if this persists, check the topic and subscription of the run, and the log of the prober"
NOTHING_DELIVERED: Final = f"no message of the run was delivered, so nothing was verified; {CHECK_TARGET}"
NOTHING_NACKED: Final = (
    f"no message was nacked, since too few were delivered in time, so redelivery was not exercised; {CHECK_TARGET}"
)
NOTHING_REDELIVERED: Final = f"no message was redelivered in time, so redelivery was not verified; {CHECK_TARGET}"
ONE_SUBSCRIBER: Final = (
    "no two subscribers were connected at the same time, so key affinity was not verified; if this persists, "
    "set subscribers of the probe to 2 or more"
)


class Processing(StrEnum):
    """How long a slow consumer takes for a message.

    SLOW_KEY      messages of one key take a fixed time, all others none.
    FIXED         every message takes the same time.
    HEAVY_TAILED  most take less than the mean, and a few many times as long.
    """

    SLOW_KEY = "slow_key"
    FIXED = "fixed"
    HEAVY_TAILED = "heavy_tailed"


class Company(StrEnum):
    """Which other probes may run at the same time on a target that is checked once.

    ANY     all but NONE: it measures nothing, and publishes little.
    BURSTS  all that measure nothing: it publishes as fast as the target takes messages.
    QUIET   all without bursts: it measures latencies under a light load.
    NONE    none: it measures rates, or latencies under a load of its own.
    """

    ANY = "any"
    BURSTS = "bursts"
    QUIET = "quiet"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Workload:
    """How much a run does. Times in seconds, sizes in bytes.

    keys            ordering keys of the run.
    bursts          how often each key is published on.
    burst_messages  messages per burst, published together.
    rate            messages per second over all keys; 0: everything at once.
    sizes           sizes of messages, used in turn.
    subscribers     subscribers that share the subscription.
    ack_after_s     how long a subscriber takes to acknowledge.
    processing      how long slow consumers take, and `processing_s` for a message, on average over those that take any time.
    beside          messages of a run beside its bursts, whatever its settings are.
    free_s          how long after its begin the next run may begin.
    beyond_key_limit  the rate may be above what the service takes on one key.
    part, parts     all keys are divided among so many runs, of which this is one; `keys` are those of this run.
    """

    keys: int = 8
    bursts: int = 5
    burst_messages: int = 10
    rate: float = 0.0
    sizes: tuple[int, ...] = SIZES
    subscribers: int = 3
    ack_after_s: float = 0.05
    beyond_key_limit: bool = False
    part: int = 0
    parts: int = 1
    processing: Processing = Processing.SLOW_KEY
    processing_s: float = 0.0
    beside: int = 0
    free_s: float = inf

    @property
    def numbers(self) -> range:
        """The numbers of its keys: of all keys every `parts`th, so that each belongs to one part."""
        return range(self.part, self.part + self.keys * self.parts, self.parts)

    @property
    def messages(self) -> int:
        """How many messages are published in all."""
        return self.keys * self.bursts * self.burst_messages + self.beside

    @property
    def mean_size(self) -> float:
        """Of a payload, on average, in bytes."""
        return sum(self.sizes) / len(self.sizes)

    @property
    def period_s(self) -> float:
        """From one burst of a key to its next, so that all keys together keep the rate."""
        return self.keys * self.burst_messages / self.rate if self.rate else 0.0


def each_once(workload: Workload) -> Traffic:
    """What is sent and received if every message comes once."""
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages)


def opportunities_of_order(workload: Workload) -> dict[str, int]:
    """One for each message behind the first of its key, and each may be lost."""
    return {"opportunities_order": workload.messages - workload.keys, "publishes_confirmed": workload.messages}


Count: TypeAlias = Callable[[Workload], int]
"""How many things of an indicator a run counts at the least; `keys` are those of all parts."""


def each_message(workload: Workload) -> int:
    """Each message of one burst."""
    return workload.keys * workload.burst_messages


def each_key(workload: Workload) -> int:
    """Each key."""
    return workload.keys


_COUNTED_BY_ALL: Final[Mapping[Indicator, Count]] = MappingProxyType(
    {
        Indicator.END_TO_END_LATENCY: each_message,
        Indicator.OLDEST_UNACKED_MESSAGE_AGE: lambda _workload: 1,
        Indicator.STALLED_KEYS: each_key,
    }
)


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """A subscription that an experiment needs, of its topic. By default an ordered one that is consumed by streams, and verified.

    name                      what the experiment calls it; the first one of an experiment has no name.
    mode                      how it is consumed, which decides what holds a key.
    ordering                  without it nothing is guaranteed there, and it is unverified as well.
    exactly_once              with exactly-once delivery.
    dead_letter_max_attempts  after so many attempts a message goes to the dead-letter topic; 0: never.
    retain_acked              what was acknowledged is kept, so that a seek can bring it back.
    of_dead_letters           it is of the dead-letter topic instead.
    backoff_s                 the bounds of its retry policy, the lower one 0: it has none.
    unverified                the experiment reads it (`unverified`); the prober neither records nor verifies it.
    filtered                  with a filter that messages with an even sequence number pass, and no others.
    """

    name: str = ""
    mode: Mode = Mode.STREAMING
    exactly_once: bool = False
    dead_letter_max_attempts: int = 0
    ordering: bool = True
    retain_acked: bool = False
    of_dead_letters: bool = False
    filtered: bool = False
    backoff_s: tuple[float, float] = (0.0, 0.0)
    unverified: bool = False

    @property
    def is_verified(self) -> bool:
        """Whether its deliveries are recorded and verified."""
        return self.ordering and not self.unverified


@dataclass(frozen=True, slots=True)
class Experiment:
    """What one probe does.

    guarantee        the guarantee under test, in one sentence.
    act            does it: publishes and consumes through its context, and returns when publishing is over.
    workload       how much a run does by default; of `bursts` and `ack_after_s` always.
    interval_s     from the start of one run to that of the next, by default; `ack_deadline_s` is that of its subscriptions.
    least          with less it shows nothing: by name of the setting (`keys`, `messages`, `subscribers`), of keys in each part.
    paced          publishes at a rate; others send each burst at once. `rate_problem`: what is wrong with that load, empty if it is right.
    wire_only      has nothing to show through Google's client library.
    traffic        what one run sends and receives with a workload, while the service does as it should.
    opportunities  how many opportunities (`prober.core.opportunity_counters`) a run gives at the wire to see a violation, by their
                   counters.
    feeds          the indicators that it is for, with how many of their things a run counts at the least.
    disturbs       the indicators whose things it keeps from being good: they are not counted there. It keeps messages unanswered, breaks
                   streams, removes subscribers or publishes before there is one, so that later messages of the same key are late because
                   of it: a client library, for one, hands out the next message of a key only when the last one is answered.
    admin_calls    the administration calls of a run that are measured.
    simulated      what a simulation chooses from instead of the default, by name of the setting.
    requires       counters that must not be 0, or the run is UNKNOWN: name -> the reason, in one line: cause; consequence; what to do if it
                   persists. In the order of cause and effect: the first that is 0 is the reason of the run.
    subscriptions  what it consumes, the one whose backlog and completeness count first.
    paired         works at both endpoints of a target that has a peer.
    fresh          topics and subscriptions are made for each run and deleted after it.
    long_lived     its topic and its only subscription stay for days, across restarts, and runs hand over to each other (`handover`).
    own_messages   what comes was published by the run itself; anything else is another's.
    company        which probes may run at the same time in `check`. The service runs all probes on their schedules.
    """

    name: str
    guarantee: str
    act: Callable[[ProbeContext, Workload], Awaitable[None]]
    workload: Workload = field(default_factory=Workload)
    interval_s: float = 60.0
    ack_deadline_s: float = 10.0
    least: Mapping[str, int] = field(default_factory=dict)
    paced: bool = False
    rate_problem: Callable[[Workload], str] = lambda _workload: ""
    wire_only: bool = False
    traffic: Callable[[Workload], Traffic] = each_once
    opportunities: Callable[[Workload], Mapping[str, int]] = lambda _workload: {}
    feeds: Mapping[Indicator, Count] = field(default_factory=dict)
    disturbs: frozenset[Indicator] = frozenset()
    admin_calls: Mapping[AdminOperation, int] = field(default_factory=dict)
    simulated: Mapping[str, Sequence[float]] = field(default_factory=dict)
    requires: Mapping[str, str] = field(default_factory=dict)
    subscriptions: tuple[SubscriptionPlan, ...] = (SubscriptionPlan(),)
    paired: bool = False
    fresh: bool = False
    long_lived: bool = False
    own_messages: bool = True
    company: Company = Company.ANY

    @property
    def counts(self) -> Mapping[Indicator, Count]:
        """All indicators that it feeds; of those that are counted in slices of time, how many a minute. None if others publish."""
        if not self.own_messages:
            return {}
        return {one: count for one, count in _COUNTED_BY_ALL.items() if one not in self.disturbs} | dict(self.feeds)

    def uses(self, mode: Mode) -> bool:
        """Whether a subscription of it is consumed in a mode."""
        return any(plan.mode is mode for plan in self.subscriptions)

    def messages(self, workload: Workload) -> int:
        """How many messages it publishes and records with a workload, if nothing keeps it from doing so."""
        traffic = self.traffic(workload)
        return traffic.published - traffic.unrecorded
