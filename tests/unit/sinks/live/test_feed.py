"""Runs under way, as those who watch them get them: the latest events of all keys, or of one."""

from __future__ import annotations

import pytest

from prober.core.events import Opened, PublishInvoked
from prober.core.findings import Finding
from prober.core.verdict import Verdict
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded
from prober.sinks.live.feed import (
    ENDED_KEPT_MAX,
    EVENTS_KEPT_MAX,
    KEY_EVENTS_KEPT_MAX,
    KEYS_KEPT_MAX,
    SESSIONS_MAX,
    VIEWERS_MAX,
    LiveFeed,
    TooManyViewers,
    WatchedRun,
)
from tests.unit.api.asking import STUCK

EUROPE = ProbeInstance("europe", "ordering", "wire", interval_s=10.0)


def begun(feed: LiveFeed, run_id: str = "run-1") -> WatchedRun:
    return feed.begin(RunBegun(run_id, EUROPE, {}, 1_772_366_400.0, 1))


def published(run: WatchedRun, count: int) -> None:
    for number in range(1, count + 1):
        run.event(Observation(PublishInvoked(10.0 + number, "k", "e", number), None, None, ()))


def publish(run: WatchedRun, key: str, *findings: Finding) -> None:
    run.event(Observation(PublishInvoked(10.0, key, "e", 1), None, None, findings))


def end(run: WatchedRun) -> None:
    result = RunResult(run.run_id, "ordering", "europe", "wire", Verdict.PASS, "", 0.0, 1.0)
    run.ended(RunEnded(result, (), KeptHistory((), {}, 0), 1.0))


def test_a_viewer_gets_every_event_in_turn() -> None:
    feed = LiveFeed()
    run = begun(feed)
    published(run, 5)
    with feed.watching(run, "", 2) as viewer:
        assert [step.number for step in viewer.take(2)] == [3, 4]
        assert [step.number for step in viewer.take(2)] == [5]
        assert viewer.take(2) == []
        end(run)
        (last,) = viewer.take(2)
        assert (last.number, last.event, viewer.is_over, run.verdict) == (6, None, True, Verdict.PASS)


def test_the_oldest_events_are_dropped() -> None:
    feed = LiveFeed()
    run = begun(feed)
    published(run, EVENTS_KEPT_MAX + 30)
    assert (run.last, run.count, run.first_t) == (EVENTS_KEPT_MAX + 30, EVENTS_KEPT_MAX + 30, 11.0)
    with feed.watching(run, "", 10) as viewer:
        assert viewer.take(1)[0].number == 31


def test_a_key_keeps_its_own_events_and_those_of_all() -> None:
    run = begun(LiveFeed())
    run.event(Observation(Opened(1.0, "s", "A#1", "A"), None, None, ()))
    publish(run, "quiet")
    published(run, EVENTS_KEPT_MAX)
    publish(run, "quiet")
    end(run)
    last = EVENTS_KEPT_MAX + 4
    assert [step.number for step in run.steps_of("quiet")] == [1, 2, last - 1, last]
    assert len(run.steps_of("k")) == KEY_EVENTS_KEPT_MAX + 2
    assert next(iter(run.steps_of(""))).number == 5
    with LiveFeed().watching(run, "quiet", 2) as viewer:
        assert [step.number for step in viewer.take(5)] == [last - 1, last]
        assert viewer.is_over


def test_a_key_keeps_the_event_of_another_that_revealed_its_finding() -> None:
    run = begun(LiveFeed())
    publish(run, "k", STUCK)
    publish(run, "other", STUCK)
    assert [step.number for step in run.steps_of("k")] == [1, 2]
    assert [step.number for step in run.steps_of("other")] == [2]


def test_messages_without_a_key_are_on_none() -> None:
    run = begun(LiveFeed())
    publish(run, "")
    publish(run, "k")
    assert list(run.keys) == ["k"]
    assert [step.number for step in run.steps_of("k")] == [2]


def test_the_key_without_events_for_longest_is_dropped() -> None:
    run = begun(LiveFeed())
    for number in range(KEYS_KEPT_MAX):
        publish(run, f"k{number}")
    publish(run, "k0")
    publish(run, "one more")
    assert len(run.keys) == KEYS_KEPT_MAX
    assert {"k0", "k1", "one more"} & set(run.keys) == {"k0", "one more"}
    assert [step.number for step in run.steps_of("k1")] == [2]


def test_there_are_only_so_many_viewers() -> None:
    feed = LiveFeed()
    run = begun(feed)
    feed.viewers = VIEWERS_MAX - 1
    with feed.watching(run, "", 0):
        with pytest.raises(TooManyViewers), feed.watching(run, "", 0):
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
