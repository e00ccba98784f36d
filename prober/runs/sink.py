"""The port for consumers of runs: a sink receives the start, all events, and the end.

A sink always receives start and end: `ended` contains the findings that only the end decides, and a run that is cut short ends, too. All
calls happen on the event loop; a sink with more work than storing the data does it in its own thread. An exception of a listener is an
internal error: it is logged and counted, the listener gets no further events, and neither the run nor the other listeners are affected.
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
    """Start of a run.

    probe_instance  with the topic and subscription of this run, by full name.
    rules           bounds of each subscription of the run, by full name; the first is the run's own.
    started_at      seconds since 1970.
    """

    run_id: str
    probe_instance: ProbeInstance
    rules: Mapping[str, Rules]
    started_at: float
    seed: int


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """History kept by a run's recorder, from which the evidence of its findings is made.

    events    first events of the run, which must not change any more; `count`: number of all events.
    rules     bounds under which each subscription was verified.
    verified  number of events after which verification stopped, because of `unverified_because`; None: it did not stop before the end.
    """

    events: Sequence[Event]
    rules: Mapping[str, Rules]
    count: int
    verified: int | None = None
    unverified_because: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """End of a run.

    findings    findings that only the end decided; earlier ones were reported with their events.
    recorded    history kept by the recorder.
    ended_at    seconds since 1970.
    counts      whether the run counts; under maintenance it does not.
    cut_short   it was cancelled: `result` contains the findings until then. The proven ones count; the run itself is not counted.
    undecided   number of publishes and messages without a known end, by indicator.
    overdue     confirmed messages that were not received by their deadline; under maintenance these are undecided, too.
    measurements  durations that no event showed.
    unfollowed  messages not tracked in the backlog since the last run, because there were too many.
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
        """Counted checks of the run: all, or the proven ones if it was cut short; none under maintenance."""
        if not self.counts:
            return {}
        return proven_of(self.result.checks) if self.cut_short else self.result.checks


class RunListener(Protocol):
    """Receives one run: `event` for each event in order, and finally `ended`, once."""

    def event(self, seen: Observation) -> None:
        """Receive the next event of the run. Must be quick: it delays measurements."""

    def ended(self, end: RunEnded) -> None:
        """Receive the end of the run."""


class RunSink(Protocol):
    """A consumer of runs."""

    def begin(self, run: RunBegun) -> RunListener:
        """Return a listener for a run that starts.

        Must not raise: the run would not start.
        """
