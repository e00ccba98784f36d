"""Recording: verified as it comes, and no longer once our own silence could be taken for the service's.

And when the event loop lagged, and what that means for what was measured then.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import pytest

from prober.core.events import Delivered, Ended, Event
from prober.core.findings import Finding, Kind
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.runs import classification, recorder
from prober.runs.classification import Latency, Observation
from prober.runs.recorder import ANSWER_MAX_S, LAG_MAX_S, LIVENESS_CHECK_S, PAUSE_MAX_S, TICK_S, LoopLag, Recording
from prober.schedule.instances import DELIVERY_DELAY_MAX_S, LOCAL_CLOSE_DETECTION_MAX_S
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator
from prober.slo.objectives import DEFAULTS
from tests.notation import history

SKIP = "P1,2,3 A<1@1 A<3@2"
OVERTAKEN = "open A of client c open B of client c P1,2 B<2@1"


class Clock:
    """Time that passes when it is asked to."""

    def __init__(self) -> None:
        self.t = 0.0

    def __call__(self) -> float:
        return self.t


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recording(clock: Clock) -> Recording:
    return Recording({"s": Rules()}, clock)


def record(recording: Recording, clock: Clock, line: str, *, ticking: bool = True) -> None:
    for event in history(line):
        while ticking and clock.t + TICK_S < event.t:
            clock.t += TICK_S
            recording.tick()
        clock.t = event.t
        recording.record(event)


def test_events_are_verified_kept_and_reported(recording: Recording, clock: Clock) -> None:
    reported: list[tuple[Event, list[Finding]]] = []
    recording.listen(lambda seen: reported.append((seen.event, list(seen.findings))))
    record(recording, clock, SKIP)
    assert [event for event, _ in reported] == recording.events == history(SKIP)
    assert [finding.kind for _, findings in reported for finding in findings] == [made.finding.kind for made in recording.finish()]
    assert recording.verifier.findings.failed


@pytest.mark.parametrize("end", ["", " stop @1.1"])
def test_what_is_on_hold_when_a_run_is_cut_off_stays_so(recording: Recording, clock: Clock, end: str) -> None:
    """Message 1 may be on its way on the other stream of the same client."""
    record(recording, clock, OVERTAKEN + end)
    assert list(recording.finish()) == []
    assert recording.verifier.pending


def test_what_is_on_hold_when_deliveries_were_waited_for_is_settled(recording: Recording, clock: Clock) -> None:
    record(recording, clock, OVERTAKEN + " end @2")
    assert [made.finding.kind for made in recording.finish()] == [Kind.ORDER_GAP]


def test_after_the_end_nothing_is_recorded(recording: Recording, clock: Clock) -> None:
    recording.finish()
    record(recording, clock, SKIP)
    assert recording.events == []


def test_a_delivery_of_which_the_kind_is_forgotten_is_counted(
    recording: Recording, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classification, "RECEIVED_KEPT_MAX", 2)
    record(recording, clock, "P1,2,3 A<1,2,3@1 A<1@5")
    assert recording.counters["deliveries_unclassified"] == 1


@pytest.mark.parametrize(("stood_s", "verified"), [(PAUSE_MAX_S, True), (PAUSE_MAX_S + 0.1, False)])
def test_after_a_pause_nothing_is_verified(recording: Recording, clock: Clock, stood_s: float, verified: bool) -> None:
    recording.tick()
    clock.t += TICK_S + stood_s
    recording.tick()
    recording.record(Delivered(clock.t, "s", "k", "A", "e1", 1, "m1"))
    assert bool(recording.counters) is verified
    assert ("process paused for 2.1 s" in recording.verifier.stopped_because) is not verified


@pytest.mark.parametrize(("silent_s", "verified"), [(ANSWER_MAX_S, True), (ANSWER_MAX_S + 0.1, False)])
def test_what_comes_while_the_target_is_silent_is_not_verified(
    recording: Recording, clock: Clock, silent_s: float, verified: bool
) -> None:
    recording.note_answer()
    clock.t += LIVENESS_CHECK_S + silent_s
    recording.record(Delivered(clock.t, "s", "k", "A", "e1", 1, "m1"))
    recording.note_answer()
    assert bool(recording.counters) is verified
    assert ("no answer came from the target for 2.1 s" in recording.verifier.stopped_because) is not verified


def test_a_beat_notices_that_the_target_is_silent(recording: Recording, clock: Clock) -> None:
    """Otherwise a run would wait for messages that the target has not delivered until the end."""
    recording.note_answer()
    while clock.t < LIVENESS_CHECK_S + ANSWER_MAX_S:
        assert not recording.verifier.stopped_because
        recording.tick()
        clock.t += TICK_S
    clock.t += TICK_S
    recording.tick()
    assert recording.verifier.stopped_because


def test_our_own_pause_is_not_called_a_silence_of_the_target(recording: Recording, clock: Clock) -> None:
    recording.note_answer()
    recording.tick()
    clock.t = 1000.0
    recording.note_answer()
    assert "the prober's process paused" in recording.verifier.stopped_because


def test_after_our_own_pause_the_target_does_not_count_as_unanswered(recording: Recording, clock: Clock) -> None:
    recording.note_answer()
    recording.tick()
    clock.t += LIVENESS_CHECK_S + ANSWER_MAX_S + 0.1
    assert not recording.unanswered
    recording.tick()
    assert recording.unanswered


def test_silence_after_the_end_of_the_history_is_not_noticed(recording: Recording, clock: Clock) -> None:
    """Such as while topics are deleted slowly: what was recorded before stays verified."""
    recording.note_answer()
    recording.tick()
    recording.finish()
    clock.t = 1000.0
    recording.tick()
    assert not recording.verifier.stopped_because


def test_what_goes_unnoticed_is_shorter_than_what_verdicts_rely_on() -> None:
    assert LIVENESS_CHECK_S + 2 * ANSWER_MAX_S <= DELIVERY_DELAY_MAX_S
    assert min(DELIVERY_DELAY_MAX_S, LOCAL_CLOSE_DETECTION_MAX_S) > TICK_S + PAUSE_MAX_S


def test_an_event_notices_a_pause_before_the_next_tick(recording: Recording, clock: Clock) -> None:
    """Otherwise deadlines would seem to have passed while nobody looked."""
    record(recording, clock, "P1 open A of client A@0")
    recording.tick()
    clock.t = 1000.0
    recording.record(Ended(clock.t, drained=True))
    assert list(recording.finish()) == []
    assert recording.verifier.stopped_because


def test_a_beat_says_how_late_it_is(recording: Recording, clock: Clock) -> None:
    assert recording.tick() == 0.0
    clock.t = TICK_S + 0.5
    assert recording.tick() == pytest.approx(0.5)


def test_a_fault_of_the_checker_ends_verification_and_nothing_else(
    recording: Recording, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterable[Finding]:
        raise ZeroDivisionError

    record(recording, clock, "P1")
    monkeypatch.setattr(Verifier, "observe", broken)
    record(recording, clock, "A<1@1 A ack 1@1.5")
    assert "the checker failed at event 3" in recording.verifier.stopped_because
    assert len(recording.events) == 5
    assert [type(fault) for fault in recording.faults] == [ZeroDivisionError]
    assert list(recording.finish()) == []


def test_a_listener_that_fails_is_asked_no_more_and_verification_goes_on(recording: Recording, clock: Clock) -> None:
    def broken(_seen: Observation) -> None:
        raise KeyError("ours")

    recording.listen(broken)
    record(recording, clock, SKIP)
    assert len(recording.faults) == 1
    assert recording.verifier.findings.failed
    assert not recording.verifier.stopped_because


def test_a_latency_says_for_how_long_of_it_the_loop_lagged(recording: Recording, clock: Clock) -> None:
    reported: list[Latency | None] = []
    recording.listen(lambda seen: reported.append(seen.latency))
    recording.tick()
    record(recording, clock, "P1@0 A<1@0.2", ticking=False)
    clock.t = 1.25
    recording.tick()
    record(recording, clock, "P2@1.25 A<2@1.5", ticking=False)
    clock.t = 1.5
    recording.tick()
    record(recording, clock, "P3@1.5 A<3@1.8", ticking=False)
    assert [(round(one.seconds, 6), one.lagged_s) for one in reported if one is not None] == [
        (0.2, 0.0),
        (0.25, 0.25),
        (0.3, 0.0),
    ]


def test_what_takes_time_beside_the_events_lagged_as_well(recording: Recording, clock: Clock) -> None:
    recording.tick()
    clock.t = 5.0
    assert recording.lagged_s(3.0) == 3.0


def test_what_no_event_shows_is_taken_with_how_long_the_loop_lagged(recording: Recording, clock: Clock) -> None:
    recording.tick()
    clock.t = 1.5
    recording.tick()
    clock.t = 1.75
    recording.tick()
    clock.t = 3.0
    recording.took(Indicator.HEAD_OF_LINE_DELAY, 0.5, 0.0, 2.0)
    recording.took(Indicator.HEAD_OF_LINE_DELAY, 0.25, 2.0, 2.0)
    assert recording.measurements == [
        Latency(Indicator.HEAD_OF_LINE_DELAY, 0.5, 1.75),
        Latency(Indicator.HEAD_OF_LINE_DELAY, 0.25),
    ]
    assert recording.timings.durations("isolation")[Indicator.HEAD_OF_LINE_DELAY].count == 2


def test_a_figure_that_is_no_number_is_missing(recording: Recording) -> None:
    recording.measured(Figure.BACKLOG_BEGINS, inf)
    recording.measured(Figure.HOT_KEY_PUBLISHED, 5.0)
    assert recording.figures == {Figure.HOT_KEY_PUBLISHED: 5.0}


@pytest.fixture
def loop_lag() -> LoopLag:
    return LoopLag()


def ticks(loop_lag: LoopLag, *times: float) -> list[float]:
    return [loop_lag.tick(t) for t in times]


def test_beats_say_how_late_they_are(loop_lag: LoopLag) -> None:
    assert ticks(loop_lag, 10.0, 10.25, 11.5, 11.6) == [0.0, 0.0, 1.0, 0.0]


def test_beats_in_time_show_no_lag(loop_lag: LoopLag) -> None:
    ticks(loop_lag, *(TICK_S * tick for tick in range(40)), 40 * TICK_S + LAG_MAX_S)
    assert loop_lag.within(0.0, 10.0) == 0.0


def test_the_loop_lags_from_the_last_beat_in_time_until_the_next_one(loop_lag: LoopLag) -> None:
    ticks(loop_lag, 0.0, 0.25, 1.25, 2.25, 2.5, 2.75, 3.0)
    assert loop_lag.within(0.0, 3.0) == 2.25
    assert loop_lag.within(1.0, 3.0) == 1.5
    assert loop_lag.within(2.5, 3.0) == 0.0


def test_the_loop_lags_while_its_thread_waits_for_a_processor(loop_lag: LoopLag) -> None:
    for t, starved_s in ((0.0, 7.0), (0.25, 7.05), (0.5, 7.2), (0.75, 7.4), (1.0, 7.4), (1.25, 7.5)):
        assert loop_lag.tick(t, starved_s) == 0.0
    assert loop_lag.within(0.0, 1.25) == 0.75


def test_a_beat_that_is_overdue_shows_before_it_comes(loop_lag: LoopLag) -> None:
    ticks(loop_lag, 0.0, 0.25)
    assert loop_lag.within(0.0, 0.25 + TICK_S + LAG_MAX_S) == 0.0
    assert loop_lag.within(0.0, 5.25) == 5.0
    assert loop_lag.within(4.0, 5.25) == 1.25


def test_what_comes_before_the_next_beat_in_time_was_held_up(loop_lag: LoopLag) -> None:
    ticks(loop_lag, 0.0, 0.25, 2.0)
    assert loop_lag.within(0.0, 2.1) == pytest.approx(1.85)


def test_before_the_first_beat_nothing_is_known(loop_lag: LoopLag) -> None:
    assert loop_lag.within(0.0, 100.0) == 0.0


def test_what_is_remembered_is_bounded_and_nothing_is_made_good(loop_lag: LoopLag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "PERIODS_MAX", 2)
    ticks(loop_lag, 0.0, 1.0, 1.25, 10.0, 10.25, 20.0, 20.25, 20.5)
    assert loop_lag.within(0.0, 20.5) == 10.25 + 10.0  # the first two with what is between them
    assert loop_lag.within(10.25, 20.5) == 10.0


def test_a_pause_that_no_beat_shows_is_shorter_than_every_threshold() -> None:
    assert min(one.threshold_s for one in DEFAULTS if one.threshold_s) > TICK_S + LAG_MAX_S
