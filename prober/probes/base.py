"""What a probe is: an experiment, and what has to have happened for its outcome to mean anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from prober.probes.context import ProbeContext


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

    @property
    def numbers(self) -> range:
        """The numbers of its keys: of all keys every `parts`th, so that each belongs to one part."""
        return range(self.part, self.part + self.keys * self.parts, self.parts)

    @property
    def period_s(self) -> float:
        """From one burst of a key to its next, so that all keys together keep the rate."""
        return self.keys * self.burst_messages / self.rate if self.rate else 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One kind of experiment.

    promise     the promise under test, in one sentence.
    act         does it: publishes and consumes through its context, and returns when publishing is over.
    requires    counters of the checker that must not be 0, or the run proved nothing: name -> what did not happen.
    """

    name: str
    promise: str
    act: Callable[[ProbeContext, Workload], Awaitable[None]]
    workload: Workload = field(default_factory=Workload)
    requires: Mapping[str, str] = field(default_factory=dict)
