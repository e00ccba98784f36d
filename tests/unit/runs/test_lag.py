"""When the event loop lagged, and what that means for what was measured then."""

from __future__ import annotations

import pytest

from prober.runs import lag
from prober.runs.lag import BEAT_S, LAG_MAX_S, LoopLag
from prober.slo.defaults import DEFAULTS


@pytest.fixture
def loop_lag() -> LoopLag:
    return LoopLag()


def beats(loop_lag: LoopLag, *times: float) -> list[float]:
    return [loop_lag.beat(t) for t in times]


def test_beats_say_how_late_they_are(loop_lag: LoopLag) -> None:
    assert beats(loop_lag, 10.0, 10.25, 11.5, 11.6) == [0.0, 0.0, 1.0, 0.0]


def test_beats_in_time_show_no_lag(loop_lag: LoopLag) -> None:
    beats(loop_lag, *(BEAT_S * beat for beat in range(40)), 40 * BEAT_S + LAG_MAX_S)
    assert loop_lag.within(0.0, 10.0) == 0.0


def test_the_loop_lags_from_the_last_beat_in_time_until_the_next_one(loop_lag: LoopLag) -> None:
    beats(loop_lag, 0.0, 0.25, 1.25, 2.25, 2.5, 2.75, 3.0)
    assert loop_lag.within(0.0, 3.0) == 2.25
    assert loop_lag.within(1.0, 3.0) == 1.5
    assert loop_lag.within(2.5, 3.0) == 0.0


def test_a_beat_that_is_overdue_shows_before_it_comes(loop_lag: LoopLag) -> None:
    beats(loop_lag, 0.0, 0.25)
    assert loop_lag.within(0.0, 0.25 + BEAT_S + LAG_MAX_S) == 0.0
    assert loop_lag.within(0.0, 5.25) == 5.0
    assert loop_lag.within(4.0, 5.25) == 1.25


def test_what_comes_before_the_next_beat_in_time_was_held_up(loop_lag: LoopLag) -> None:
    beats(loop_lag, 0.0, 0.25, 2.0)
    assert loop_lag.within(0.0, 2.1) == pytest.approx(1.85)


def test_before_the_first_beat_nothing_is_known(loop_lag: LoopLag) -> None:
    assert loop_lag.within(0.0, 100.0) == 0.0


def test_what_is_remembered_is_bounded_and_nothing_is_made_good(loop_lag: LoopLag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "PERIODS_MAX", 2)
    beats(loop_lag, 0.0, 1.0, 1.25, 10.0, 10.25, 20.0, 20.25, 20.5)
    assert loop_lag.within(0.0, 20.5) == 10.25 + 10.0  # the first two with what is between them
    assert loop_lag.within(10.25, 20.5) == 10.0


def test_a_pause_that_no_beat_shows_is_shorter_than_every_threshold() -> None:
    assert min(one.threshold_s for one in DEFAULTS if one.threshold_s) > BEAT_S + LAG_MAX_S
