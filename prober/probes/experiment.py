"""Definition of a probe.

An `Experiment` defines the actions of a probe, its requirements, the conditions of a meaningful outcome, its traffic, and its
opportunities. A `Workload` is the amount of work of a run; a `SubscriptionPlan` contains the settings of a subscription. Configuration,
objectives and simulation read all properties of a probe from here.
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
"""Payload sizes in bytes, unless the probe or the user sets others."""

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
    """Processing time of a slow consumer for a message.

    SLOW_KEY      messages of one key take a fixed time, all others none.
    FIXED         every message takes the same time.
    HEAVY_TAILED  most messages take less than the mean, and a few many times as long.
    """

    SLOW_KEY = "slow_key"
    FIXED = "fixed"
    HEAVY_TAILED = "heavy_tailed"


class Company(StrEnum):
    """Probes that `check` may run on a target together with this one.

    ANY     all but NONE: the probe measures nothing, and publishes little.
    BURSTS  all that measure nothing: the probe publishes as fast as the target accepts messages.
    QUIET   all without bursts: the probe measures latencies under a light load.
    NONE    none: the probe measures rates, or latencies under a load of its own.
    """

    ANY = "any"
    BURSTS = "bursts"
    QUIET = "quiet"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Workload:
    """Amount of work of a run. Times in seconds, sizes in bytes.

    keys            ordering keys of the run.
    bursts          number of bursts per key.
    burst_messages  messages per burst, published together.
    rate            messages per second over all keys; 0: all messages at once.
    sizes           sizes of messages, used in turn.
    subscribers     subscribers that share the subscription.
    ack_after_s     delay of an acknowledgement by a subscriber.
    processing      distribution of the processing time of slow consumers; `processing_s`: mean over the messages that take time.
    beside          messages of a run beside its bursts, whatever its settings are.
    free_s          time from the start of the run until the next may start.
    beyond_key_limit  the rate may exceed the service's limit for one key.
    part, parts     this run is number `part` of the `parts` runs that share all keys; `keys` counts the keys of this run.
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
        """Numbers of the keys of this part: every `parts`th of all keys, so that each key belongs to one part."""
        return range(self.part, self.part + self.keys * self.parts, self.parts)

    @property
    def messages(self) -> int:
        """Number of messages published in all."""
        return self.keys * self.bursts * self.burst_messages + self.beside

    @property
    def mean_size(self) -> float:
        """Mean payload size, in bytes."""
        return sum(self.sizes) / len(self.sizes)

    @property
    def period_s(self) -> float:
        """Time between two bursts of a key at which all keys together keep the rate, in seconds; 0 without a rate."""
        return self.keys * self.burst_messages / self.rate if self.rate else 0.0


def each_once(workload: Workload) -> Traffic:
    """Return the traffic of a run that receives every message once."""
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages)


def opportunities_of_order(workload: Workload) -> dict[str, int]:
    """Return an order opportunity per message behind the first of its key, and a loss opportunity per message."""
    return {"opportunities_order": workload.messages - workload.keys, "publishes_confirmed": workload.messages}


Count: TypeAlias = Callable[[Workload], int]
"""Least number of events of an indicator in a run; `keys` of its workload are those of all parts."""


def each_message(workload: Workload) -> int:
    """Return the number of messages of one burst on all keys."""
    return workload.keys * workload.burst_messages


def each_key(workload: Workload) -> int:
    """Return the number of keys."""
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
    """A subscription of an experiment, by default an ordered, streamed and verified one of its topic.

    name                      the experiment's name for it; the first subscription has none.
    mode                      mode of consumption, which decides when a key is blocked.
    ordering                  False: nothing is guaranteed, and the subscription is not verified.
    exactly_once              with exactly-once delivery.
    dead_letter_max_attempts  attempts before a message is forwarded to the dead-letter topic; 0: never.
    retain_acked              acknowledged messages are retained, so that a seek can restore them.
    of_dead_letters           it is a subscription of the dead-letter topic instead.
    backoff_s                 bounds of its retry policy; none if the lower one is 0.
    unverified                the experiment reads it (`unverified`); the prober neither records nor verifies it.
    filtered                  with a filter that only messages with an even sequence number pass.
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
    """Definition of one probe.

    guarantee      guarantee under test, in one sentence.
    act            publishes and consumes through its context, and returns when publishing is over.
    workload       default amount of work of a run; `bursts` and `ack_after_s` are always the default.
    interval_s     default time between the starts of two runs. `ack_deadline_s`: acknowledgement deadline of its subscriptions.
    least          smallest meaningful values, by name of the setting (`keys`, `messages`, `subscribers`); of keys in each part.
    paced          publishes at a rate; others send each burst at once. `rate_problem`: error in that load, empty if it is right.
    wire_only      shows nothing through Google's client library.
    traffic        traffic of an undisturbed run with a workload.
    opportunities  opportunities of a run at the wire to see a violation, by counter (`prober.core.coverage`).
    feeds          indicators it measures, with the least number of their events in a run.
    disturbs       indicators that it disturbs: its events are not counted there. It keeps messages unanswered, breaks streams, removes
                   subscribers or publishes before there is one, and so delays later messages of the same key: a client library, for
                   example, delivers the next message of a key only when the previous one is answered.
    admin_calls    measured administration calls of a run.
    simulated      values for simulations in place of the default, by name of the setting.
    requires       counters that must not be 0, or the run is UNKNOWN: name -> reason, in one line: cause; consequence; advice if it
                   persists. In the order of cause and effect: the first counter that is 0 is the reason of the run.
    subscriptions  subscriptions that it consumes; backlog and completeness of the first one count.
    paired         works at both endpoints of a target that has a peer.
    fresh          topics and subscriptions are created for each run and deleted after it.
    long_lived     its topic and its only subscription stay for days, across restarts, and runs hand over to each other (`handover`).
    own_messages   the run itself published all messages it receives; otherwise another publisher did.
    company        probes that may run at the same time in `check`. The service runs all probes on their schedules.
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
        """All indicators that it feeds, with their event counts; counts per minute for indicators counted in slices of time.

        Empty if the probe does not publish its messages.
        """
        if not self.own_messages:
            return {}
        return {one: count for one, count in _COUNTED_BY_ALL.items() if one not in self.disturbs} | dict(self.feeds)

    def uses(self, mode: Mode) -> bool:
        """Return whether a subscription of it is consumed in a mode."""
        return any(plan.mode is mode for plan in self.subscriptions)

    def messages(self, workload: Workload) -> int:
        """Return the number of messages that an undisturbed run publishes and records."""
        traffic = self.traffic(workload)
        return traffic.published - traffic.unrecorded
