"""The port for consumers of runs: a sink gets the beginning, all events, the end.

A sink always gets both: the findings that only the end decides come with `ended`, and a run that is cut short ends too. All calls happen on
the event loop; a sink with more work than noting the data does it in its own thread. An exception of a listener is an internal error: it is
logged and counted, the listener gets no further events, and neither the run nor the other listeners are affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.runs.classification import Latency, Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.slo.counts import proven_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts


@dataclass(frozen=True, slots=True)
class RunBegun:
    """What is known of a run when it begins.

    probe_instance        with the topic and subscription of this run, by full name.
    rules       the bounds of each subscription of the run, by full name; the first is the run's own.
    started_at  seconds since 1970.
    """

    run_id: str
    probe_instance: ProbeInstance
    rules: Mapping[str, Rules]
    started_at: float
    seed: int


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """What a run's recorder kept, from which the evidence for its findings is made.

    events   the first events of the run, which must not change any more; `count` is how many there were.
    rules    the bounds that each subscription was verified under.
    verified   after so many events verification ended, `unverified_because`; None: it did not end before the run.
    """

    events: Sequence[Event]
    rules: Mapping[str, Rules]
    count: int
    verified: int | None = None
    unverified_because: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """How a run ended.

    findings    those that only the end decided; those before came with their events.
    recorded    what the recorder kept.
    ended_at    seconds since 1970.
    counts      whether anything of it counts; under maintenance nothing does.
    cut_short   it was cancelled: `result` contains the findings until then. Of these the proven ones count; it is not counted as a run.
    undecided   publishes and messages whose end is unknown, by what they would count for.
    overdue     confirmed messages that were not received and passed their deadline; under maintenance these are undecided, too.
    measurements  durations that no event showed.
    unfollowed  messages whose backlog could not be followed since the last run, because there were too many.
    """

    result: RunResult
    findings: Sequence[Finding]
    recorded: KeptHistory
    ended_at: float
    counts: bool = True
    cut_short: bool = False
    unfollowed: int = 0
    undecided: Mapping[Indicator, int] = field(default_factory=dict)
    overdue: int = 0
    measurements: Sequence[Latency] = ()

    @property
    def is_counted(self) -> bool:
        """Whether it counts as a run."""
        return self.counts and not self.cut_short

    @property
    def checks(self) -> Mapping[Indicator, SliCounts]:
        """What the run's checks count: all, or what was proven before it was cut short."""
        if not self.counts:
            return {}
        return proven_of(self.result.checks) if self.cut_short else self.result.checks


class RunListener(Protocol):
    """Receives one run: `event` for each event in order, and last `ended`, once."""

    def event(self, seen: Observation) -> None:
        """The next event of the run. Must be quick: it delays what is measured."""

    def ended(self, end: RunEnded) -> None:
        """The run is over."""


class RunSink(Protocol):
    """A consumer of runs."""

    def begin(self, run: RunBegun) -> RunListener:
        """A run begins; returns its listener.

        Must not raise: the run would not begin.
        """
