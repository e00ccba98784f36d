"""Runs under way, as those who watch them get them: the latest events, and how many they missed."""

from __future__ import annotations

import pytest

from prober.core.events import Opened, PublishInvoked
from prober.core.verdict import Verdict
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded
from prober.sinks.live.feed import ENDED_KEPT_MAX, EVENTS_KEPT_MAX, SESSIONS_MAX, VIEWERS_MAX, LiveFeed, TooManyViewers, WatchedRun

EUROPE = ProbeInstance("europe", "ordering", "wire", interval_s=10.0)


def begun(feed: LiveFeed, run_id: str = "run-1") -> WatchedRun:
    return feed.begin(RunBegun(run_id, EUROPE, {}, 1_772_366_400.0, 1))


def published(run: WatchedRun, count: int) -> None:
    for number in range(1, count + 1):
        run.event(Observation(PublishInvoked(10.0 + number, "k", "e", number), None, None, ()))


def end(run: WatchedRun) -> None:
    result = RunResult(run.run_id, "ordering", "europe", "wire", Verdict.PASS, "", 0.0, 1.0)
    run.ended(RunEnded(result, (), KeptHistory((), {}, 0), 1.0))


def test_a_viewer_gets_every_event_in_turn() -> None:
    feed = LiveFeed()
    run = begun(feed)
    published(run, 5)
    with feed.watching(run, 2) as viewer:
        assert [step.number for step in viewer.take(2)] == [3, 4]
        assert [step.number for step in viewer.take(2)] == [5]
        assert viewer.take(2) == []
        end(run)
        (last,) = viewer.take(2)
        assert (last.number, last.event, viewer.missed, run.verdict) == (6, None, 0, Verdict.PASS)


def test_the_oldest_events_are_dropped_and_counted() -> None:
    feed = LiveFeed()
    run = begun(feed)
    published(run, EVENTS_KEPT_MAX + 30)
    assert (run.missed, run.last, run.count, run.first_t) == (30, EVENTS_KEPT_MAX + 30, EVENTS_KEPT_MAX + 30, 11.0)
    with feed.watching(run, 10) as viewer:
        assert viewer.take(1)[0].number == 31
        assert viewer.missed == 20


def test_there_are_only_so_many_viewers() -> None:
    feed = LiveFeed()
    run = begun(feed)
    feed.viewers = VIEWERS_MAX - 1
    with feed.watching(run, 0):
        with pytest.raises(TooManyViewers), feed.watching(run, 0):
            pass
        assert (feed.viewers, feed.refused) == (VIEWERS_MAX, 1)
    assert feed.viewers == VIEWERS_MAX - 1


def test_runs_that_ended_are_forgotten_in_turn() -> None:
    feed = LiveFeed()
    first = begun(feed, "under-way")
    for number in range(ENDED_KEPT_MAX + 5):
        end(begun(feed, f"run-{number}"))
    names = [run.run_id for run in feed.runs()]
    assert names[0] == f"run-{ENDED_KEPT_MAX + 4}"
    assert names[-1] == first.run_id
    assert len(names) <= ENDED_KEPT_MAX + 2


def test_sessions_are_known_up_to_a_number() -> None:
    run = begun(LiveFeed())
    for number in range(SESSIONS_MAX + 5):
        run.event(Observation(Opened(1.0, "s", f"A#{number}", f"A{number % 2}"), None, None, ()))
    assert (len(run.owners), run.places) == (SESSIONS_MAX, {"A0": 0, "A1": 1})
