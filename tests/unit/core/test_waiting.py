"""How long somebody waited: added up over interruptions, found to be enough too late rather than too early.

And flow control: what uses up that of a stream, and until when.
"""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from prober.core.waiting import SAMPLES_KEPT, FlowControl, WaitingTime


def waited(*times: tuple[float, float], step_s: float = 0.0) -> WaitingTime:
    """Somebody waited from one time to the other; to `inf` if that is not over."""
    waiting = WaitingTime(step_s)
    for start_t, stop_t in times:
        waiting.start(start_t)
        if stop_t < inf:
            waiting.stop(stop_t)
    return waiting


def test_nobody_waited_ever() -> None:
    waiting = WaitingTime(1.0)
    assert not waiting.running
    assert waiting.reaches(-inf, 0.0) == inf
    assert waiting.reaches(5.0, 10.0) == inf


def test_while_somebody_waits_time_passes() -> None:
    waiting = waited((10.0, inf))
    assert waiting.running
    assert [waiting.reaches(t, 120.0) for t in (10.0, 50.0)] == [130.0, 170.0]
    assert waiting.reaches(3.0, 120.0) == 130.0  # nobody waited before


def test_while_nobody_waits_no_deadline_passes() -> None:
    waiting = waited((10.0, 60.0))
    assert not waiting.running
    assert waiting.reaches(10.0, 51.0) == inf
    assert waiting.reaches(60.0, 1.0) == inf
    assert waiting.reaches(99.0, 1.0) == inf


def test_a_deadline_that_has_passed_stays_passed() -> None:
    waiting = waited((10.0, 60.0))
    assert waiting.reaches(10.0, 49.0) == 60.0
    waiting.start(500.0)
    assert waiting.reaches(10.0, 49.0) == 60.0


def test_interruptions_do_not_begin_the_count_anew() -> None:
    waiting = waited((10.0, 60.0), (200.0, 250.0), (300.0, inf))
    assert waiting.reaches(10.0, 120.0) == 320.0
    assert waiting.reaches(10.0, 99.0) == 250.0


def test_a_moment_within_a_wait_is_taken_for_its_end() -> None:
    """What was waited before it and after it is not told apart: rather too late."""
    waiting = waited((10.0, 60.0), (200.0, inf))
    assert waiting.reaches(59.0, 10.0) == 210.0
    assert waiting.reaches(11.0, 10.0) == 210.0


def test_starting_twice_and_stopping_twice_are_no_matter() -> None:
    waiting = waited((10.0, inf))
    waiting.start(50.0)
    assert waiting.reaches(10.0, 120.0) == 130.0
    waiting.stop(60.0)
    waiting.stop(90.0)
    waiting.start(100.0)
    assert waiting.reaches(10.0, 120.0) == 170.0


def test_nobody_waits_twice_at_a_time() -> None:
    """A start that is known late (a lease ran out meanwhile) counts at the earliest from the last stop."""
    waiting = waited((10.0, 60.0))
    waiting.start(30.0)
    assert waiting.reaches(10.0, 120.0) == 130.0


@pytest.mark.parametrize("seed", range(20))
def test_it_is_never_too_early_and_not_much_too_late(seed: int) -> None:
    """Against a plain count of seconds, with a moment and a number of seconds drawn at random."""
    random = Random(seed)
    step_s = random.choice([0.0, 4.0, 16.0])
    waiting, times, t = WaitingTime(step_s), [], 0.0
    for _ in range(60):
        start_t = t + random.randrange(1, 4)
        t = start_t + random.randrange(1, 6)
        waiting.start(start_t)
        waiting.stop(t)
        times.append((start_t, t))
    waiting.start(t + 1.0)
    for _ in range(50):
        since_t, seconds = random.uniform(0.0, t), random.uniform(0.0, 60.0)
        passed_t = waiting.reaches(since_t, seconds)
        left, exactly_t = seconds, inf
        for start_t, stop_t in [*times, (t + 1.0, inf)]:
            start_t = max(start_t, since_t)
            if stop_t - start_t >= left:
                exactly_t = start_t + left
                break
            left -= max(0.0, stop_t - start_t)
        assert passed_t >= exactly_t - 1e-9
        assert passed_t <= exactly_t + 3 * (step_s + 10.0)


def test_the_past_is_bounded_and_what_is_forgotten_counts_late() -> None:
    waiting = WaitingTime(1.0)
    for n in range(10 * SAMPLES_KEPT):
        waiting.start(10.0 * n)
        waiting.stop(10.0 * n + 5.0)
    assert len(waiting._times) == len(waiting._totals) <= SAMPLES_KEPT
    waiting.start(100.0 * SAMPLES_KEPT)
    total = 50.0 * SAMPLES_KEPT
    assert waiting.reaches(0.0, total) >= 100.0 * SAMPLES_KEPT - 5.0


def test_samples_that_are_close_together_become_one() -> None:
    waiting = WaitingTime(100.0)
    for n in range(1000):
        waiting.start(float(n))
        waiting.stop(n + 0.5)
    assert len(waiting._times) <= 12


def test_flow_control_is_used_up_by_a_number_of_messages() -> None:
    flow = FlowControl(2, inf)
    flow.take(1, 100.0, 60.0)
    assert flow.used_up_until_t() == -inf
    flow.take(2, 100.0, 50.0)
    assert flow.used_up_until_t() == 60.0
    flow.extend(2, 90.0)
    assert flow.used_up_until_t() == 90.0
    flow.release(1, 15.0)
    assert flow.used_up_until_t() == 15.0  # until the acknowledgement is certainly applied
    flow.release(2, 20.0)
    assert flow.used_up_until_t() == 15.0  # there was room already


def test_flow_control_is_used_up_by_what_is_extended_though_acknowledged() -> None:
    flow = FlowControl(2, inf)
    flow.take(1, 100.0, 60.0)
    flow.release(1, 5.0)
    flow.take(2, 100.0, 60.0)
    flow.extend(1, 90.0)
    assert flow.used_up_until_t() == 90.0
    flow.take(3, 100.0, 70.0)  # so the first had been given back
    assert flow.used_up_until_t() == 90.0
    flow.release(3, 8.0)
    assert flow.used_up_until_t() == 8.0


def test_flow_control_is_used_up_by_a_number_of_bytes() -> None:
    flow = FlowControl(inf, 1000)
    flow.take(1, 400.0, 60.0)
    flow.take(2, 600.0, 60.0)
    assert flow.used_up_until_t() == 60.0
    flow.release(2, 15.0)
    flow.take(3, 500.0, 70.0)
    assert flow.used_up_until_t() == -inf  # a delivery shows that there was room


def test_a_message_that_comes_again_counts_once() -> None:
    flow = FlowControl(2, 1000)
    flow.take(1, 400.0, 60.0)
    flow.take(1, 400.0, 90.0)
    assert flow.used_up_until_t() == -inf
    flow.take(2, 400.0, 80.0)
    assert flow.used_up_until_t() == 90.0


def test_an_unknown_size_is_taken_as_unlimited() -> None:
    flow = FlowControl(inf, 1000)
    flow.take(1, inf, 60.0)
    flow.take(2, 400.0, 60.0)
    assert flow.used_up_until_t() == 60.0
    flow.release(1, 15.0)
    flow.take(3, 500.0, 70.0)
    assert flow.used_up_until_t() == -inf
    flow.take(4, 100.0, 70.0)
    assert flow.used_up_until_t() == 70.0


def test_an_answer_to_what_is_not_outstanding_makes_no_room() -> None:
    flow = FlowControl(1, inf)
    flow.release(7, 15.0)
    assert flow.used_up_until_t() == -inf
    flow.take(1, 100.0, 60.0)
    flow.release(1, 15.0)
    flow.release(1, 99.0)
    assert flow.used_up_until_t() == 15.0
