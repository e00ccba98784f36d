"""One order of events: whatever a run does or sees becomes an event here, before anything that follows from it happens.

A `Recording` belongs to one run. Every event is stamped with the monotonic clock, numbered by its place, given to the checker and to
whoever else listens, and kept for the dossiers. Recording is synchronous and happens on the event loop, so there is one order.

The rule that everything rests on: *a delivery is recorded before its acknowledgement can be sent, and an acknowledgement before it is
sent.* Otherwise an acknowledged but unrecorded message would look skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.judgement import Made, Tally

EVENTS_KEPT_MAX = 200_000
"""Events kept per run for dossiers; beyond that they are judged and counted, not kept."""

Listener = Callable[[Event, Iterable[Finding]], None]


class Recording:
    """The events of one run, judged as they come."""

    def __init__(self, rules: Mapping[str, Rules], clock: Callable[[], float], listeners: Iterable[Listener] = ()) -> None:
        """`rules`: the subscriptions of the run, each with its bounds and settings."""
        default = next(iter(rules.values()))
        self.verifier = Verifier(default, subscriptions=rules, rules_by_subscription=rules)
        self.tally = Tally()
        self.events: list[Event] = []
        self.count = 0
        self._finished = False
        self._clock = clock
        self._listeners = tuple(listeners)

    def now(self) -> float:
        """The time to stamp an event with."""
        return self._clock()

    def record(self, event: Event) -> None:
        """Judges an event, tells the listeners, and keeps it as long as there is room. After `finish` it does nothing."""
        if self._finished:
            return
        self.count += 1
        findings = self.verifier.observe(event)
        if findings:
            self.tally.add(findings, self.count)
        if self.count <= EVENTS_KEPT_MAX:
            self.events.append(event)
        for listener in self._listeners:
            listener(event, findings)

    def finish(self) -> Iterable[Made]:
        """Ends the history, settles what is on hold and returns the findings that were kept.

        What follows, such as closing our own streams, is no longer part of the history: it says nothing about the service, but would
        look as if streams had broken.
        """
        if not self._finished:
            self._finished = True
            self.tally.add(self.verifier.finish(), self.count)
        return self.tally.kept

    @property
    def counters(self) -> Counter[str]:
        """What was seen and judged so far."""
        return self.verifier.counters
