"""What is left of a record: an excerpt of a long history, or one with a hole.

An excerpt begins somewhere: publishes, deliveries and the opening of sessions from before are not known, and the first publish of an
epoch that is recorded may be its seventeenth (row 13 of the amendments). A hole is announced by `Interrupted` at its end: what happened
for some time before is missing (section 8.2). Sessions and publishers may have gone on through it.
"""

from __future__ import annotations

from random import Random

from prober.core.events import Event, Interrupted


def cut(events: list[Event], random: Random) -> list[Event]:
    """The record from some moment on."""
    first_t = events[0].t + random.uniform(0, 0.8) * (_last_busy_t(events) - events[0].t)
    return [event for event in events if event.t >= first_t]


def with_hole(events: list[Event], random: Random) -> list[Event]:
    """The record without what happened in some time, and with the mark where it goes on."""
    begin_t, end_t = sorted(random.uniform(events[0].t, _last_busy_t(events)) for _ in range(2))
    end_t = min(end_t, begin_t + random.choice((0.5, 5.0, 60.0, 1000.0)))
    before = [event for event in events if event.t < begin_t]
    return [*before, Interrupted(end_t), *(event for event in events if event.t >= end_t)]


def _last_busy_t(events: list[Event]) -> float:
    """The time of the last event before the end."""
    return events[-2].t if len(events) > 1 else events[-1].t
