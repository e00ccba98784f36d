"""The schedule under virtual time, with the real APScheduler: what starts, what does not, and that each is reported."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from prober.clock import on_machine
from prober.config.models import Schedule
from prober.schedule.scheduler import HEARTBEAT_S, LATE_MAX_S, MISSED_COUNTED_MAX, Scheduler
from prober.simulation.virtual_time import STARTED_AT, VirtualTime
from prober.sinks.metrics.label_values import SkipReason


class Reported:
    """What the scheduler says, and when its actions ran."""

    def __init__(self, loop: VirtualTime) -> None:
        self.loop = loop
        self.counts: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self.runs: list[tuple[float, float]] = []

    def expected(self, name: str) -> None:
        self.counts[f"{name} expected"] += 1

    def skipped(self, name: str, reason: SkipReason) -> None:
        self.counts[f"{name} {reason}"] += 1

    def failed(self, name: str, error: BaseException) -> None:
        self.counts[f"{name} failed"] += 1
        self.errors.append(error)

    def lasting(self, seconds: float) -> Callable[[], Awaitable[None]]:
        """An action that takes so long."""

        async def act() -> None:
            began_t = self.loop.t
            try:
                await asyncio.sleep(seconds)
            finally:
                self.runs.append((round(began_t, 3), round(self.loop.t, 3)))

        return act

    @property
    def starts(self) -> list[float]:
        return [began_t for began_t, _ in self.runs]


class Trial:
    """A scheduler in virtual time."""

    def __init__(self) -> None:
        self.loop = loop = VirtualTime()
        self.reported = Reported(loop)
        self.scheduler = Scheduler(self.reported, seed=1, clock=loop.time)

    def add(self, action: Callable[[], Awaitable[None]], schedule: Schedule | None = None, jitter_s: float = 0.0) -> None:
        self.scheduler.add("p", schedule or every(10), jitter_s, action)

    def run(self, then: Coroutine[Any, Any, None] | None = None, until_s: float = 0.0, grace_s: float = 0.0) -> Counter[str]:
        """Starts, waits for `then` or for `until_s`, and stops; what was reported."""

        async def trial() -> None:
            self.scheduler.start()
            await (then or asyncio.sleep(until_s))
            await self.scheduler.stop(grace_s)

        with on_machine(self.loop.machine(seed=1)), asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(trial())
        return self.reported.counts

    async def blocked(self, from_s: float, until_s: float) -> None:
        """The loop is held up for a while."""
        await asyncio.sleep(from_s)
        self.loop.t = until_s
        await asyncio.sleep(0.01)


@pytest.fixture
def trial() -> Iterator[Trial]:
    trial = Trial()
    yield trial
    trial.loop.close()


def every(seconds: float) -> Schedule:
    return Schedule(interval=timedelta(seconds=seconds))


def at(line: str) -> Schedule:
    return Schedule.model_validate({"cron": line})


def test_an_interval_starts_at_once_and_keeps_its_points(trial: Trial) -> None:
    trial.add(trial.reported.lasting(3))
    assert trial.run(until_s=35) == {"p expected": 4}
    assert trial.reported.starts == [0, 10, 20, 30]


def test_first_runs_begin_one_after_the_other(trial: Trial) -> None:
    for name in ("p", "q", "r"):
        trial.scheduler.add(name, every(10), 0.0, trial.reported.lasting(3))
    trial.run(until_s=15)
    assert trial.reported.starts[:3] == [0, 2, 4]


def test_later_runs_do_not_begin_together(trial: Trial) -> None:
    names = [f"p{number}" for number in range(8)]
    for name in names:
        trial.scheduler.add(name, every(60), 0.0, trial.reported.lasting(3))
    trial.run(until_s=240)
    starts = sorted(trial.reported.starts[8:])
    assert min(later - earlier for earlier, later in pairwise(starts)) > 3


def test_a_first_run_long_after_the_others_begins_at_once(trial: Trial) -> None:
    trial.add(trial.reported.lasting(3))

    async def later() -> None:
        await asyncio.sleep(7)
        trial.scheduler.add("q", every(10), 0.0, trial.reported.lasting(1))
        await asyncio.sleep(2)

    trial.run(later())
    assert trial.reported.runs == [(0, 3), (7, 8)]


@pytest.mark.parametrize("line", ["0,2 * * * 6", "0,2 * 20 * mon", "0,2 * 21 * sat", "0,2 0 20 12 *"])
def test_a_crontab_line_is_in_utc_with_saturday_as_6_and_either_day(trial: Trial, line: str) -> None:
    trial.add(trial.reported.lasting(3), at(line))
    assert trial.run(until_s=600) == {"p expected": 2}
    assert trial.reported.starts == [30, 150]


def test_a_run_that_takes_long_lets_others_fall_out(trial: Trial) -> None:
    trial.add(trial.reported.lasting(25))
    assert trial.run(until_s=59, grace_s=9) == {"p expected": 6, "p overlap": 4}
    assert trial.reported.runs == [(0, 25), (30, 55)]


def test_names_do_not_hold_each_other_up(trial: Trial) -> None:
    trial.add(trial.reported.lasting(25))
    trial.scheduler.add("q", every(10), 0.0, trial.reported.lasting(0))
    assert trial.run(until_s=20)["q expected"] == 2
    assert trial.reported.starts[:2] == [2, 16.18]


def test_a_name_is_added_once(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0))
    with pytest.raises(ValueError, match="'p' is scheduled already"):
        trial.add(trial.reported.lasting(0))


def test_each_missed_start_counts_and_the_last_is_made_up_for(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0))
    assert trial.run(trial.blocked(15, 57)) == {"p expected": 6, "p misfire": 3}
    assert trial.reported.starts == [0, 10, 57]


def test_missed_starts_count_also_when_the_last_overlaps(trial: Trial) -> None:
    trial.add(trial.reported.lasting(100))
    assert trial.run(trial.blocked(15, 57)) == {"p expected": 6, "p misfire": 3, "p overlap": 2}


def test_what_is_missed_before_the_first_run_counts(trial: Trial) -> None:
    async def blocked() -> None:
        trial.loop.t = 25
        await asyncio.sleep(0.01)

    trial.add(trial.reported.lasting(0))
    assert trial.run(blocked()) == {"p expected": 3, "p misfire": 2}
    assert trial.reported.starts == [25]


def test_missed_points_of_a_crontab_line_count(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0), at("*/5 * * * *"))
    assert trial.run(trial.blocked(40, 30 + 1250)) == {"p expected": 5, "p misfire": 3}
    assert trial.reported.starts == [30, 30 + 1250]


def test_a_time_of_the_day_is_not_made_up_for_much_later(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0), at("0 0 * * *"))
    assert trial.run(trial.blocked(10, 30 + LATE_MAX_S + 1)) == {"p expected": 1, "p misfire": 1}
    assert trial.reported.starts == []


def test_a_time_of_the_day_is_made_up_for_within_the_hour(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0), at("0 0 * * *"))
    assert trial.run(trial.blocked(10, 30 + LATE_MAX_S - 1)) == {"p expected": 1}
    assert trial.reported.starts == [30 + LATE_MAX_S - 1]


@pytest.mark.parametrize(("schedule", "starts"), [(every(60), [0, 60, 75, 120]), (at("* * * * *"), [30, 75, 90])])
def test_a_clock_that_is_set_forward_is_no_million_missed_starts(
    trial: Trial, schedule: Schedule, starts: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async def set_forward() -> None:
        await asyncio.sleep(74.5)
        trial.loop.set_forward = timedelta(days=50 * 365)
        await asyncio.sleep(60)

    trial.add(trial.reported.lasting(0), schedule)
    assert trial.run(set_forward()) == {"p expected": len(starts)}
    assert trial.reported.starts == starts
    assert "the clock was set forward to 2075" in caplog.text


def test_as_many_missed_starts_as_can_be_counted_are(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0), every(10))
    counts = trial.run(trial.blocked(5, 10 * MISSED_COUNTED_MAX + 5))
    assert counts == {"p expected": MISSED_COUNTED_MAX + 1, "p misfire": MISSED_COUNTED_MAX - 1}


def test_the_random_wait_leaves_the_points_where_they_are(trial: Trial) -> None:
    trial.add(trial.reported.lasting(0), jitter_s=2.0)
    assert trial.run(until_s=995) == {"p expected": 100}
    waits = [began_t - 10 * number for number, began_t in enumerate(trial.reported.starts)]
    assert waits[0] == 0.0
    assert min(waits[1:]) >= 0.0
    assert 1.8 < max(waits) <= 2.0
    assert 0.8 < sum(waits[1:]) / 99 < 1.2


def test_a_seed_repeats_the_waits() -> None:
    starts = []
    for _ in range(2):
        trial = Trial()
        trial.add(trial.reported.lasting(0), jitter_s=2.0)
        trial.run(until_s=45)
        starts.append(trial.reported.starts)
    assert starts[0] == starts[1]


def test_the_schedule_goes_on_after_an_error(trial: Trial) -> None:
    async def fail() -> None:
        raise ZeroDivisionError(f"at {trial.loop.t:.0f}")

    trial.add(fail)
    assert trial.run(until_s=15) == {"p expected": 2, "p failed": 2}
    assert [str(error) for error in trial.reported.errors] == ["at 0", "at 10"]


def test_a_cancellation_from_within_is_an_error(trial: Trial) -> None:
    async def fail() -> None:
        raise asyncio.CancelledError

    trial.add(fail)
    assert trial.run(until_s=15) == {"p expected": 2, "p failed": 2}


def test_stopping_waits_for_a_run(trial: Trial) -> None:
    trial.add(trial.reported.lasting(8))
    assert trial.run(until_s=5, grace_s=30) == {"p expected": 1}
    assert trial.reported.runs == [(0, 8)]
    assert trial.loop.t < 10


def test_stopping_ends_what_takes_longer(trial: Trial) -> None:
    trial.add(trial.reported.lasting(100))
    assert trial.run(until_s=5, grace_s=30) == {"p expected": 1}
    assert trial.reported.runs == [(0, 35)]


def test_what_waits_for_its_random_time_does_not_begin_after_the_stop(trial: Trial) -> None:
    trial.add(trial.reported.lasting(5), at("0 0 * * *"), jitter_s=3000.0)
    assert trial.run(until_s=31, grace_s=5000) == {"p expected": 1}
    assert trial.reported.runs == []
    assert trial.loop.t < 32


def test_nor_does_it_after_earlier_runs(trial: Trial) -> None:
    trial.add(trial.reported.lasting(5), jitter_s=9.0)
    assert trial.run(until_s=10.001, grace_s=5000) == {"p expected": 2}
    assert trial.reported.runs == [(0, 5)]
    assert trial.loop.t < 11


def test_stopping_waits_for_what_a_run_does_when_it_is_cancelled(trial: Trial) -> None:
    tidied_up = []

    async def act() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(3)
            tidied_up.append(trial.loop.t)

    async def stop() -> None:
        await asyncio.sleep(5)
        await trial.scheduler.stop(1.0)
        assert tidied_up == [9]

    trial.add(act)
    assert trial.run(stop()) == {"p expected": 1}


@pytest.mark.parametrize("scheduled_first", [True, False])
def test_a_stop_at_the_very_time_of_a_start_is_no_overlap(
    trial: Trial, caplog: pytest.LogCaptureFixture, *, scheduled_first: bool
) -> None:
    async def stop() -> None:
        if scheduled_first:
            await asyncio.sleep(9.5)
            await asyncio.sleep(0.5)
        else:
            await asyncio.sleep(10)

    trial.add(trial.reported.lasting(0))
    counts = trial.run(stop())
    assert counts["p overlap"] == 0
    assert counts["p expected"] >= 1
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_nothing_starts_after_the_stop(trial: Trial) -> None:
    async def stop() -> None:
        await asyncio.sleep(5)
        await trial.scheduler.stop(0.0)
        assert not trial.scheduler.run_now("p")
        assert not trial.scheduler.alive(1000.0)
        await asyncio.sleep(100)

    trial.add(trial.reported.lasting(0))
    assert trial.run(stop()) == {"p expected": 1}
    assert trial.reported.starts == [0]


def test_a_run_on_demand_is_not_expected_and_overlaps_like_others(trial: Trial) -> None:
    async def demand() -> None:
        scheduler = trial.scheduler
        assert scheduler.run_now("p") is True
        assert scheduler.run_now("p") is False
        assert scheduler.running("p")
        await asyncio.sleep(20)
        assert not scheduler.running("p")

    trial.add(trial.reported.lasting(15), at("0 0 * * *"))
    trial.scheduler.add("q", at("0 0 * * *"), 0.0, trial.reported.lasting(0))
    assert trial.run(demand()) == {}
    assert trial.reported.runs == [(0, 15)]


def test_a_run_on_demand_makes_the_scheduled_one_overlap(trial: Trial) -> None:
    async def demand() -> None:
        await asyncio.sleep(29)
        trial.scheduler.run_now("p")
        await asyncio.sleep(10)

    trial.add(trial.reported.lasting(5), at("0 0 * * *"))
    assert trial.run(demand()) == {"p expected": 1, "p overlap": 1}


def test_an_unknown_name_is_a_mistake(trial: Trial) -> None:
    for ask in (trial.scheduler.running, trial.scheduler.next_run_at, trial.scheduler.run_now):
        with pytest.raises(KeyError):
            ask("x")


def test_the_next_run_is_known(trial: Trial) -> None:
    async def look() -> None:
        scheduler = trial.scheduler
        await asyncio.sleep(12)
        assert scheduler.next_run_at("p") == STARTED_AT.timestamp() + 20
        assert scheduler.next_run_at("q") == datetime(2025, 12, 20, 3, 0, tzinfo=UTC).timestamp()

    trial.add(trial.reported.lasting(0))
    trial.scheduler.add("q", at("0 3 * * *"), 0.0, trial.reported.lasting(0))
    assert trial.scheduler.next_run_at("p") is None
    trial.run(look())
    assert trial.scheduler.next_run_at("p") is None


def test_it_is_alive_while_its_heart_beats(trial: Trial) -> None:
    within_s = 3 * HEARTBEAT_S

    async def look() -> None:
        alive = trial.scheduler.alive
        assert not alive(within_s), "nothing was noticed yet"
        await asyncio.sleep(100)
        assert alive(within_s)
        trial.loop.t += 2 * within_s  # the loop is blocked
        assert not alive(within_s)
        await asyncio.sleep(0.01)
        assert alive(within_s)
        trial.loop.set_forward = timedelta(hours=-1)  # nothing is due for an hour
        await asyncio.sleep(2 * within_s)
        assert not alive(within_s)

    assert not trial.scheduler.alive(within_s)
    trial.run(look())
    assert not trial.scheduler.alive(within_s)
