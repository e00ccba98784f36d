"""The recorder of a run: one order of all its events.

Each action and each observation becomes an event before any consequence of it happens.

A `Recording` belongs to one run. Every event is stamped with the monotonic clock, numbered by its place, given to the checker and to the
other listeners, and kept for the evidence. Recording is synchronous and happens on the event loop, so there is one order.

The rule that everything rests on: *a delivery is recorded before its acknowledgement can be sent, and an acknowledgement before it is
sent.* Otherwise an acknowledged but unrecorded message would look skipped.

A recorder that stands still would take its own silence for the service's, and so would one behind a network that does. So a run ticks
(`tick`) and checks the liveness of the target (`note_answer`). If the process stood still for longer than `PAUSE_MAX_S`, if
no answer came for longer than `ANSWER_MAX_S` (where messages are pushed, a refused connection is none), or if the checker failed, what
follows is recorded but not verified any more: `verifier.stopped_because` says why.
Nothing here raises: what calls it are callbacks of streams, which have to go on.

When the event loop lagged, what was measured then says how slow the prober was, not how slow the service was. Whatever waits for the event
loop, such as a message that has come, waits longer while the loop is busy or gets no processor. A run ticks; a tick that comes too late
shows that. The loop *lags* from the last tick in time before such a one until the next tick in time, since after a pause there is work to
catch up on. How long that was within a measurement is what the lag may have added to it: in the rest of that time whatever came was taken
at once.

Nothing is taken back: the classification of a measurement rests on the data at its end. A single pause that no tick shows is shorter than
`TICK_S + LAG_MAX_S`, which is less than every threshold that holds by default.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Final

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.guarded_verifier import GuardedVerifier, RecordedFinding
from prober.core.rules import Rules
from prober.probes.catalogue import DISTURBED
from prober.probes.context import DeliveryKind
from prober.runs.classification import Classifier, Latency, Observation
from prober.runs.result import Durations
from prober.slo.counts import is_overdue
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

DURATIONS_KEPT_MAX: Final = 100_000
"""Durations remembered per run and indicator; those that come later are only counted in the metrics."""
EVENTS_KEPT_MAX = 200_000
"""Events kept per run for evidence; beyond that they are verified and counted, not kept."""

PAUSE_MAX_S = 2.0
"""Less than every bound that verdicts rely on; a busy machine stays below it."""

LIVENESS_CHECK_S = 1.0
"""How long after an answer the next liveness check of the target begins."""
ANSWER_MAX_S = 2.0
"""How long an answer may take. A message on the same connection was sent after the request before the last answer, so it was under
way for at most `LIVENESS_CHECK_S + 2 * ANSWER_MAX_S`, which is the bound on the delivery delay that verdicts at the wire rely on."""

GIVE_CPU: Final = "so later events were not verified; if this persists, give the prober more CPU"
CHECK_NETWORK: Final = "so later events were not verified; if this persists, check the target, the network and the prober's CPU"

Listener = Callable[[Observation], None]
TICK_S: Final = 0.25
LAG_MAX_S: Final = 0.1
"""How late a tick may be, and how long the loop's thread may wait for a processor from tick to tick. From so long a delay on, asyncio calls
a callback slow; a shorter one is part of every measurement."""
PERIODS_MAX: Final = 1000


class Timings:
    """What one run took, by indicator."""

    def __init__(self) -> None:
        self._taken: defaultdict[Indicator, array[float]] = defaultdict(lambda: array("d"))

    def took(self, latency: Latency) -> None:
        """Something took so long, or is so old."""
        taken = self._taken[latency.indicator]
        if len(taken) < DURATIONS_KEPT_MAX:
            taken.append(latency.seconds)

    def durations(self, probe: str) -> dict[Indicator, Durations]:
        """How long things took so far, without what the probe disturbs itself (`Experiment.disturbs`)."""
        return {indicator: Durations.of(taken) for indicator, taken in self._taken.items() if probe not in DISTURBED[indicator]}


class Recording:
    """The events of one run, verified as they come."""

    def __init__(
        self,
        rules: Mapping[str, Rules],
        clock: Callable[[], float],
        listeners: Iterable[Listener] = (),
        epoch: str = "",
        starved: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`rules`: the subscriptions of the run, each with its bounds and settings. `epoch`: that of its own messages, if known.

        `starved`: for how long the calling thread has waited for a processor so far, in seconds.
        """
        self.verifier = GuardedVerifier(rules)
        self.events: list[Event] = []
        self.events_seen = 0
        self._counted: Counter[str] = Counter()
        self._listeners_faults: list[Exception] = []
        self._finished = False
        self._lag = LoopLag()
        self._clock, self._starved = clock, starved
        self.timings = Timings()
        self.measurements: list[Latency] = []
        """Durations that no event shows."""
        self.figures: dict[Figure, float] = {}
        """What the probe measured once, by figure."""
        self.late: Sequence[Finding] = ()
        """What only the end decided."""
        self.stood_still = False
        """Whether the process paused for too long, which makes the target look silent."""
        self.overdue_keys: set[tuple[str, str]] = set()
        """Subscriptions and keys of which the checker has found that what is missing there was not delivered by its deadline."""
        self._first = next(iter(rules))
        self._classifier = Classifier(epoch, self._first if len(rules) > 1 else "")
        self._listeners = list(listeners)
        self._silence_ends_t = inf
        self._answer_due_t = inf

    def listen(self, listener: Listener) -> None:
        """Adds a listener for the events that follow."""
        self._listeners.append(listener)

    def now(self) -> float:
        """The time to stamp an event with."""
        return self._clock()

    def tick(self) -> float:
        """Notes a tick of the event loop.

        Returns how late the tick is, in seconds, if ticks are due every `TICK_S`.
        """
        now = self._clock()
        self._notice_silence(now, self.events_seen)
        self._silence_ends_t = now + TICK_S + PAUSE_MAX_S
        return self._lag.tick(now, self._starved())

    def lagged_s(self, taken_s: float) -> float:
        """For how long of what took so long, until now, the event loop lagged."""
        now = self._clock()
        return self._lag.within(now - taken_s, now)

    def note_answer(self) -> None:
        """Notes that a liveness check was answered now; the next answer is due `LIVENESS_CHECK_S + ANSWER_MAX_S` later."""
        now = self._clock()
        self._notice_silence(now, self.events_seen)
        self._answer_due_t = now + LIVENESS_CHECK_S + ANSWER_MAX_S

    def record(self, event: Event) -> DeliveryKind | None:
        """Verify and classify an event, pass it to the listeners, and keep it.

        It is kept while the bounds allow. Returns the kind of the delivery.

        After `finish` it does nothing.
        """
        if self._finished:
            return None
        self.events_seen += 1
        self._notice_silence(event.t, self.events_seen - 1)
        findings = self.verifier.observe(event, self.events_seen)
        if findings:
            self._notice_overdue(findings)
        if self.events_seen <= EVENTS_KEPT_MAX:
            self.events.append(event)
        kind, latency = self._classifier.classify(event)
        if latency is not None:
            lagged_s = self._lag.within(event.t - latency.seconds, event.t)
            latency = latency._replace(lagged_s=lagged_s) if lagged_s else latency
            self.timings.took(latency)
        seen = Observation(event, kind, latency, findings)
        for listener in self._listeners:
            try:
                listener(seen)
            except Exception as fault:
                self._listeners_faults.append(fault)
                self._listeners = [other for other in self._listeners if other is not listener]
        return kind

    def finish(self) -> Iterable[RecordedFinding]:
        """Ends the history and returns the findings that were kept. What is on hold is settled if deliveries were waited for; in a run that
        was cut off it stays on hold, since what explains it may have been still to come.

        What follows, such as closing our own streams, is no longer part of the history: it says nothing about the service, but would
        look as if streams had broken.
        """
        if not self._finished:
            self._finished = True
            if self.verifier.ended:
                self.late = self.verifier.finish(self.events_seen)
                self._notice_overdue(self.late)
        return self.verifier.findings.kept

    @property
    def unanswered(self) -> bool:
        """Whether the target has been silent for too long by now, and that is not our own silence."""
        return self._answer_due_t < self._clock() <= self._silence_ends_t

    @property
    def faults(self) -> list[Exception]:
        """What went wrong in the checker or in listeners: mistakes of ours."""
        return [*self._listeners_faults, *([] if self.verifier.fault is None else [self.verifier.fault])]

    @property
    def attempts(self) -> int:
        """How many publishes were tried, whatever became of them; a message counts each time."""
        return self._classifier.attempts

    @property
    def answered_t(self) -> float:
        """When a publish was confirmed last, or a message received; before the first, minus infinity."""
        return self._classifier.answered_t

    @property
    def undecided(self) -> Mapping[Indicator, int]:
        """The undecided, by what it would count for."""
        return self._classifier.undecided(self._overdue_on_first)

    @property
    def overdue(self) -> int:
        """Confirmed messages that were not received and passed their deadline; none after a fault of the checker."""
        return self._classifier.overdue(self._overdue_on_first)

    @property
    def counters(self) -> Counter[str]:
        """What was seen and verified so far, and what was counted beside it."""
        seen = self.verifier.counters + self._counted
        if self._classifier.unclassified:
            seen["deliveries_unclassified"] = self._classifier.unclassified
        return seen

    def count(self, name: str, by: int = 1) -> None:
        """Counts something that is no event, under a name of its own among the counters."""
        self._counted[name] += by

    def took(self, indicator: Indicator, seconds: float, since_t: float, until_t: float) -> None:
        """Takes a duration that no event shows; it was measured between two times of the clock.

        Beyond `DURATIONS_KEPT_MAX` they are counted as dropped, under a counter of the run.
        """
        if len(self.measurements) >= DURATIONS_KEPT_MAX:
            self.count("durations_dropped")
            return
        latency = Latency(indicator, seconds, self._lag.within(since_t, until_t))
        self.measurements.append(latency)
        self.timings.took(latency)

    def measured(self, figure: Figure, value: float) -> None:
        """Takes a figure of the run. One that is not finite says nothing and is left out."""
        if isfinite(value):
            self.figures[figure] = value

    def _notice_overdue(self, findings: Iterable[Finding]) -> None:
        self.overdue_keys.update((finding.subscription, finding.key) for finding in findings if is_overdue(finding))

    @property
    def _overdue_on_first(self) -> set[str]:
        return {key for subscription, key in self.overdue_keys if subscription == self._first}

    def _notice_silence(self, now: float, verified: int) -> None:
        """Stop verifying after `verified` events if process or target were silent too long.

        A process pause explains the silence of the target.

        Silence after the end of the history, such as while topics are deleted, explains nothing in it.
        """
        if self._finished or now <= min(self._silence_ends_t, self._answer_due_t):
            return
        self.stood_still |= now > self._silence_ends_t
        if self.verifier.stopped_because:
            return
        if now > self._silence_ends_t:
            why = f"the prober's process paused for {now - self._silence_ends_t + PAUSE_MAX_S:.1f} s, {GIVE_CPU}"
        else:
            silent_s = now - self._answer_due_t + ANSWER_MAX_S
            why = f"no answer came from the target for {silent_s:.1f} s, {CHECK_NETWORK}"
        self.verifier.stop(why, verified)


class LoopLag:
    """The times at which the event loop lagged. Bounded: beyond `PERIODS_MAX` the two oldest become one, with the time between them."""

    def __init__(self) -> None:
        self._tick_t: float | None = None
        self._starved_s = 0.0
        self._lagging_since_t: float | None = None
        self._begins: list[float] = []
        self._ends: list[float] = []

    def tick(self, now: float, starved_s: float = 0.0) -> float:
        """A tick, which is due `TICK_S` after the last one; returns how late it is, in seconds.

        `starved_s`: for how long the loop's thread has waited for a processor so far.
        """
        before, self._tick_t = self._tick_t, now
        waited_s, self._starved_s = starved_s - self._starved_s, starved_s
        if before is None:
            return 0.0
        late_s = max(0.0, now - before - TICK_S)
        if max(late_s, waited_s) > LAG_MAX_S:
            self._lagging_since_t = before if self._lagging_since_t is None else self._lagging_since_t
        elif self._lagging_since_t is not None:
            self._keep(self._lagging_since_t, now)
            self._lagging_since_t = None
        return late_s

    def within(self, since_t: float, until_t: float) -> float:
        """How long the loop lagged between two times of which the later is now, in seconds."""
        lagging_since_t = self._lagging_since_t
        if lagging_since_t is None and self._tick_t is not None and until_t > self._tick_t + TICK_S + LAG_MAX_S:
            lagging_since_t = self._tick_t
        lagged_s = 0.0 if lagging_since_t is None else max(0.0, until_t - max(since_t, lagging_since_t))
        if self._ends and since_t < self._ends[-1]:
            first = bisect_right(self._ends, since_t)
            periods = zip(self._begins[first:], self._ends[first:], strict=True)
            lagged_s += sum(max(0.0, min(end, until_t) - max(begin, since_t)) for begin, end in periods)
        return lagged_s

    def _keep(self, begin: float, end: float) -> None:
        self._begins.append(begin)
        self._ends.append(end)
        if len(self._begins) > PERIODS_MAX:
            del self._begins[1], self._ends[0]
