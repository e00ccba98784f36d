"""A run under way with a finding, for those who watch it."""

from __future__ import annotations

from prober.core.events import Acked, Delivered, Ended, Event, Opened, Published, PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.classification import Observation
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded
from prober.sinks.live.feed import LiveFeed, WatchedRun
from tests.unit.api.asking import EUROPE, NOON

RUN = "ordering-7"
KEY = "<key>"
GAP = Finding(
    Kind.ORDER_GAP, Status.VIOLATION, "s", KEY, 2.0, (5, 7), {"seq": 2, "missing": (1,), "missing_count": 1, "subscriber": "A"}
)
EVENTS: tuple[Event, ...] = (
    Opened(1.0, "s", f"{RUN}-2#2", f"{RUN}-2"),
    PublishInvoked(1.1, KEY, RUN, 1),
    Published(1.2, KEY, RUN, 1, "m1"),
    PublishInvoked(1.3, "other", RUN, 1),
    PublishInvoked(1.4, KEY, RUN, 2),
    Published(1.5, KEY, RUN, 2, "m2"),
    Delivered(2.0, "s", KEY, f"{RUN}-2#2", RUN, 2, "m2"),
    Acked(2.1, "s", KEY, f"{RUN}-2#2", "m2"),
)


def see(run: WatchedRun, event: Event) -> None:
    """An event happens; the delivery is a finding."""
    run.event(Observation(event, None, None, (GAP,) if isinstance(event, Delivered) else ()))


def under_way(feed: LiveFeed, run_id: str = RUN) -> WatchedRun:
    """A run with all of these events."""
    run = feed.begin(RunBegun(run_id, EUROPE, {}, NOON - 4.0, 1))
    for event in EVENTS:
        see(run, event)
    return run


def end(run: WatchedRun) -> None:
    """The run ends with a FAIL."""
    see(run, Ended(3.0, drained=True))
    result = RunResult(run.run_id, "ordering", "europe", "wire", Verdict.FAIL, "ORDER_GAP", NOON - 4.0, 2.0)
    run.ended(RunEnded(result, (), KeptHistory((), {}, len(EVENTS)), NOON))
