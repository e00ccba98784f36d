"""The recorder of a run: one order of all its events.

Each action and each observation becomes an event before any of its consequences happens.

A `Recording` belongs to one run. Every event is stamped with the monotonic clock, numbered, passed to the checker and to the other
listeners, and kept as evidence. Recording is synchronous and happens on the event loop, so there is a single order.

The fundamental rule: *a delivery is recorded before its acknowledgement can be sent, and an acknowledgement before it is sent.* Otherwise
an acknowledged but unrecorded message would look skipped.

A paused recorder would take its own silence for the service's, and so would a recorder behind a stalled network. So a run ticks (`tick`)
and checks the liveness of the target (`note_answer`). Verification stops if the process paused for longer than `PAUSE_MAX_S`, if the target
did not answer for longer than `ANSWER_MAX_S` (where messages are pushed, a refused connection is no answer), or if the checker failed.
Later events are recorded but not verified; `verifier.stopped_because` is the reason. No method raises: the callers are callbacks of
streams, which must continue.

While the event loop lags, a measurement contains the slowness of the prober, not only that of the service: a received message waits longer
while the loop is busy or has no processor. A late tick reveals a lag. The loop *lags* from the last punctual tick before the late one until
the next punctual tick, since after a pause it has work to catch up on. The lag within a measurement bounds its contribution to the
measurement: during the rest of the time, events were handled at once.

A classification is never revised: it uses the data at the end of the measurement. A single pause that no tick reveals is shorter than
`TICK_S + LAG_MAX_S`, which is less than every default threshold.
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
"""Largest number of durations kept per run and indicator; later ones are only counted in the metrics."""
EVENTS_KEPT_MAX = 200_000
"""Largest number of events kept per run as evidence; later ones are verified and counted, not kept."""

PAUSE_MAX_S = 2.0
"""Longest process pause before verification stops, in seconds: less than every bound of the verdicts; a busy machine stays below it."""

LIVENESS_CHECK_S = 1.0
"""Pause between an answer and the next liveness check of the target, in seconds."""
ANSWER_MAX_S = 2.0
"""Longest wait for an answer, in seconds.

A message on the same connection was sent after the request before the last answer, so it was in transit for at most `LIVENESS_CHECK_S + 2 *
ANSWER_MAX_S`. That is the bound on the delivery delay used by verdicts at the wire.
"""

GIVE_CPU: Final = "so later events were not verified; if this persists, give the prober more CPU"
CHECK_NETWORK: Final = "so later events were not verified; if this persists, check the target, the network and the prober's CPU"

Listener = Callable[[Observation], None]
TICK_S: Final = 0.25
LAG_MAX_S: Final = 0.1
"""Largest lateness of a punctual tick, and longest wait of the loop's thread for a processor between two ticks, in seconds.

Asyncio calls a callback of this duration slow; a shorter lag is part of every measurement.
"""
PERIODS_MAX: Final = 1000


class Timings:
    """Durations of one run, by indicator."""

    def __init__(self) -> None:
        self._taken: defaultdict[Indicator, array[float]] = defaultdict(lambda: array("d"))

    def took(self, latency: Latency) -> None:
        """Add a latency or age."""
        taken = self._taken[latency.indicator]
        if len(taken) < DURATIONS_KEPT_MAX:
            taken.append(latency.seconds)

    def durations(self, probe: str) -> dict[Indicator, Durations]:
        """Return the durations by indicator, without indicators that the probe disturbs itself (`Experiment.disturbs`)."""
        return {indicator: Durations.of(taken) for indicator, taken in self._taken.items() if probe not in DISTURBED[indicator]}


class Recording:
    """Events of one run, verified as they are recorded."""

    def __init__(
        self,
        rules: Mapping[str, Rules],
        clock: Callable[[], float],
        listeners: Iterable[Listener] = (),
        epoch: str = "",
        starved: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Create the recording of a run.

        `rules`: subscriptions of the run, each with its bounds and settings. `epoch`: epoch of its own messages, if known. `starved`:
        returns how long the calling thread has waited for a processor so far, in seconds.
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
        """Measurements of the probe, by figure."""
        self.late: Sequence[Finding] = ()
        """Findings that only the end decided."""
        self.stood_still = False
        """Whether the process paused for too long, which makes the target look silent."""
        self.overdue_keys: set[tuple[str, str]] = set()
        """Subscriptions and keys on which a message was not delivered by its deadline, according to the checker."""
        self._first = next(iter(rules))
        self.classifier = Classifier(epoch, self._first if len(rules) > 1 else "")
        self._listeners = list(listeners)
        self._silence_ends_t = inf
        self._answer_due_t = inf

    def listen(self, listener: Listener) -> None:
        """Add a listener for later events."""
        self._listeners.append(listener)

    def now(self) -> float:
        """Return the time to stamp an event with."""
        return self._clock()

    def tick(self) -> float:
        """Process a tick of the event loop, due every `TICK_S`. Return its lateness in seconds."""
        now = self._clock()
        self._notice_silence(now, self.events_seen)
        self._silence_ends_t = now + TICK_S + PAUSE_MAX_S
        return self._lag.tick(now, self._starved())

    def lagged_s(self, taken_s: float) -> float:
        """Return how long the event loop lagged during the last `taken_s` seconds, in seconds."""
        now = self._clock()
        return self._lag.within(now - taken_s, now)

    def note_answer(self) -> None:
        """Note the answer of a liveness check; the next one is due `LIVENESS_CHECK_S + ANSWER_MAX_S` later."""
        now = self._clock()
        self._notice_silence(now, self.events_seen)
        self._answer_due_t = now + LIVENESS_CHECK_S + ANSWER_MAX_S

    def record(self, event: Event) -> DeliveryKind | None:
        """Verify and classify an event, pass it to the listeners, and keep it within the bounds.

        Return the kind of a delivery. Does nothing after `finish`.
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
        kind, latency = self.classifier.classify(event)
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
        """End the history and return the kept findings.

        Findings on hold are settled if deliveries were waited for. In a run that was cut off they stay on hold, since their explanation may
        have been still to come. Later events, such as the closing of the prober's own streams, are not part of the history: they are
        unrelated to the service, but would look like broken streams.
        """
        if not self._finished:
            self._finished = True
            if self.verifier.ended:
                self.late = self.verifier.finish(self.events_seen)
                self._notice_overdue(self.late)
        return self.verifier.findings.kept

    @property
    def unanswered(self) -> bool:
        """Whether the target has been silent for too long, without a pause of the prober."""
        return self._answer_due_t < self._clock() <= self._silence_ends_t

    @property
    def faults(self) -> list[Exception]:
        """Internal errors of the checker and of listeners."""
        return [*self._listeners_faults, *([] if self.verifier.fault is None else [self.verifier.fault])]

    @property
    def undecided(self) -> Mapping[Indicator, int]:
        """Number of undecided events, by indicator."""
        return self.classifier.undecided(self._overdue_on_first)

    @property
    def overdue(self) -> int:
        """Number of confirmed messages that were not received by their deadline; 0 after a fault of the checker."""
        return self.classifier.overdue(self._overdue_on_first)

    @property
    def counters(self) -> Counter[str]:
        """Numbers of events seen and verified so far, and further counters of the run."""
        seen = self.verifier.counters + self._counted
        if self.classifier.unclassified:
            seen["deliveries_unclassified"] = self.classifier.unclassified
        return seen

    def count(self, name: str, by: int = 1) -> None:
        """Increment a counter of the run that no event feeds."""
        self._counted[name] += by

    def took(self, indicator: Indicator, seconds: float, since_t: float, until_t: float) -> None:
        """Record a duration that no event shows, measured between two times of the clock.

        Beyond `DURATIONS_KEPT_MAX`, durations are only counted as dropped.
        """
        if len(self.measurements) >= DURATIONS_KEPT_MAX:
            self.count("durations_dropped")
            return
        latency = Latency(indicator, seconds, self._lag.within(since_t, until_t))
        self.measurements.append(latency)
        self.timings.took(latency)

    def measured(self, figure: Figure, value: float) -> None:
        """Record a measurement of the run; ignore one that is not finite."""
        if isfinite(value):
            self.figures[figure] = value

    def _notice_overdue(self, findings: Iterable[Finding]) -> None:
        self.overdue_keys.update((finding.subscription, finding.key) for finding in findings if is_overdue(finding))

    @property
    def _overdue_on_first(self) -> set[str]:
        return {key for subscription, key in self.overdue_keys if subscription == self._first}

    def _notice_silence(self, now: float, verified: int) -> None:
        """Stop verifying after `verified` events if process or target were silent too long.

        A process pause explains the silence of the target. Silence after the end of the history, such as during the deletion of topics,
        explains nothing in it.
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
    """Periods during which the event loop lagged. At most `PERIODS_MAX`: then the two oldest are merged, with the time between them."""

    def __init__(self) -> None:
        self._tick_t: float | None = None
        self._starved_s = 0.0
        self._lagging_since_t: float | None = None
        self._begins: list[float] = []
        self._ends: list[float] = []

    def tick(self, now: float, starved_s: float = 0.0) -> float:
        """Process a tick, due `TICK_S` after the last one. Return its lateness in seconds.

        `starved_s`: how long the loop's thread has waited for a processor so far.
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
        """Return how long the loop lagged between two times, the later of which is now, in seconds."""
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
