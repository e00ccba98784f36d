"""What is left of a record: an excerpt of a long history, or one with a hole.

An excerpt begins somewhere: publishes, deliveries and the opening of sessions from before are not known, and the first publish of an
epoch that is recorded may be its seventeenth (row 13 of the amendments). A hole is announced by `Interrupted` at its end: what happened
for some time before is missing (section 8.2). Sessions and publishers may have gone on through it.

Neither ends while a seek settles that the record does not show: nothing in the record could tell why what is held is redelivered.
"""

from __future__ import annotations

from random import Random

from prober.core.events import Event, FilterChanged, Interrupted, Sought


def cut(events: list[Event], random: Random) -> list[Event]:
    """The record from some moment on."""
    first_t = events[0].t + random.uniform(0, 0.8) * (_last_busy_t(events) - events[0].t)
    first_t = _settled_t(events, events[0].t, first_t)
    return [event for event in events if event.t >= first_t]


def with_hole(events: list[Event], random: Random) -> list[Event]:
    """The record without what happened in some time, and with the mark where it goes on."""
    begin_t, end_t = sorted(random.uniform(events[0].t, _last_busy_t(events)) for _ in range(2))
    end_t = min(end_t, begin_t + random.choice((0.5, 5.0, 60.0, 1000.0)))
    end_t = _settled_t(events, begin_t, end_t)
    before = [event for event in events if event.t < begin_t]
    return [*before, Interrupted(end_t), *(event for event in events if event.t >= end_t)]


def _settled_t(events: list[Event], since_t: float, until_t: float) -> float:
    """When every control operation of some time has settled, or its end."""
    hidden = [event for event in events if isinstance(event, Sought | FilterChanged) and since_t <= event.t < until_t]
    return max([until_t, *(event.t + event.settle_s for event in hidden)])


def _last_busy_t(events: list[Event]) -> float:
    """The time of the last event before the end."""
    return events[-2].t if len(events) > 1 else events[-1].t
