"""What a probe is.

An `Experiment` says what it does, what it needs for that, what has to have happened for its outcome to mean anything, what a run costs and
how many chances it gives; a `Workload` how much a run does; a `SubscriptionPlan` what one of its subscriptions is made with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from prober.core.rules import Mode
from prober.probes.context import ProbeContext
from prober.probes.cost import Traffic

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
    free_s          how long after its begin the next run may begin.
    part, parts     all keys are divided among so many runs, of which this is one; `keys` are those of this run.
    """

    keys: int = 8
    bursts: int = 5
    burst_messages: int = 10
    rate: float = 0.0
    sizes: tuple[int, ...] = (64,)
    subscribers: int = 3
    ack_after_s: float = 0.05
    part: int = 0
    parts: int = 1
    free_s: float = inf

    @property
    def numbers(self) -> range:
        """The numbers of its keys: of all keys every `parts`th, so that each belongs to one part."""
        return range(self.part, self.part + self.keys * self.parts, self.parts)

    @property
    def messages(self) -> int:
        """How many messages are published in all."""
        return self.keys * self.bursts * self.burst_messages

    @property
    def period_s(self) -> float:
        """From one burst of a key to its next, so that all keys together keep the rate."""
        return self.keys * self.burst_messages / self.rate if self.rate else 0.0


def each_once(workload: Workload) -> Traffic:
    """What is sent and received if every message comes once."""
    return Traffic(workload.keys * workload.bursts, workload.messages, workload.messages)


def chances_of_order(workload: Workload) -> dict[str, int]:
    """One for each message behind the first of its key, and each may be lost."""
    return {"chances_order": workload.messages - workload.keys, "publishes_confirmed": workload.messages}


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """A subscription that an experiment needs, of its topic. By default an ordered one that is consumed by streams, and judged.

    name                      what the experiment calls it; the first one of an experiment has no name.
    mode                      how it is consumed, which decides what holds a key.
    ordering                  without it nothing is promised there: the experiment may read it (`unjudged`), nobody records or judges it.
    exactly_once              with exactly-once delivery.
    dead_letter_max_attempts  after so many attempts a message goes to the dead-letter topic; 0: never.
    retain_acked              what was acknowledged is kept, so that a seek can bring it back.
    of_dead_letters           it is of the dead-letter topic instead.
    """

    name: str = ""
    mode: Mode = Mode.STREAMING
    exactly_once: bool = False
    dead_letter_max_attempts: int = 0
    ordering: bool = True
    retain_acked: bool = False
    of_dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """What one probe does.

    promise        the promise under test, in one sentence.
    act            does it: publishes and consumes through its context, and returns when publishing is over.
    traffic        what one run sends and receives with a workload, while the service does as it should.
    chances        how many chances (`prober.core.chances`) a run gives at the wire to see the promise broken, by their counters.
    requires       counters that must not be 0, or the run is UNKNOWN: name -> the reason, in one line: cause; consequence; what to do if it
                   persists. In the order of cause and effect: the first that is 0 is the reason of the run.
    subscriptions  what it consumes, the one whose backlog and completeness count first.
    paired         works at both endpoints of a target that has a peer.
    fresh          topics and subscriptions are made for each run and deleted after it.
    own_messages   what comes was published by the run itself; anything else is another's.
    """

    name: str
    promise: str
    act: Callable[[ProbeContext, Workload], Awaitable[None]]
    traffic: Callable[[Workload], Traffic] = each_once
    chances: Callable[[Workload], Mapping[str, int]] = lambda _workload: {}
    workload: Workload = field(default_factory=Workload)
    requires: Mapping[str, str] = field(default_factory=dict)
    subscriptions: tuple[SubscriptionPlan, ...] = (SubscriptionPlan(),)
    paired: bool = False
    fresh: bool = False
    own_messages: bool = True

    def messages(self, workload: Workload) -> int:
        """How many messages it publishes with a workload, if nothing keeps it from doing so."""
        return self.traffic(workload).published
