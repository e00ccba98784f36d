"""Guarantees of the resequencer, on arbitrary arrivals with tight limits."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from prober.ordering.resequencer import Arrivals, Resequencer

WAIT_S, IDLE_S = 10.0, 30.0

Steps = list[tuple[int, int | None]]
STEPS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 4, 10, 31]), st.integers(-1, 12) | st.none()), max_size=60)
RESEQUENCERS = st.builds(
    Resequencer,
    st.integers(-1, 2),
    st.sampled_from([3.0, WAIT_S, 50.0]),
    st.sampled_from([2.0, IDLE_S]),
    waiting_max=st.integers(1, 5),
    gaps_max=st.integers(1, 4),
)


class Reference:
    """The same by sets of numbers, without a bound on memory: each number below the expected one was seen or given up."""

    def __init__(self, first: int, wait_s: float, idle_s: float) -> None:
        self.first, self.wait_s, self.idle_s = first, wait_s, idle_s
        self.counts = Arrivals()
        self.begin()

    def begin(self) -> None:
        self.seen: set[int] = set()
        self.given_up: set[int] = set()
        self.waiting: dict[int, float] = {}
        self.expected = self.first
        self.active_t: float | None = None

    def release(self) -> None:
        while self.expected in self.waiting:
            del self.waiting[self.expected]
            self.counts.released += 1
            self.expected += 1

    def advance(self, now: float) -> None:
        while self.waiting and min(self.waiting.values()) + self.wait_s <= now:
            self.active_t = min(self.waiting.values()) + self.wait_s
            longest = next(number for number, t in self.waiting.items() if t + self.wait_s == self.active_t)
            while longest in self.waiting:
                missing = range(self.expected, min(self.waiting))
                self.given_up.update(missing)
                self.counts.gave_up += len(missing)
                self.counts.overtook += 1
                self.expected = min(self.waiting)
                self.release()
        if not self.waiting and self.active_t is not None and self.active_t + self.idle_s <= now:
            self.counts.forgotten += 1
            self.begin()

    def arrive(self, number: int, now: float) -> None:
        self.advance(now)
        self.counts.deliveries += 1
        if number < self.first:
            self.counts.before_start += 1
        elif number in self.seen:
            self.counts.duplicates += 1
        elif number in self.given_up:
            self.counts.late += 1
        else:
            self.counts.early += number > self.expected
            self.waiting[number] = now
            self.release()
        if number >= self.first:
            self.seen.add(number)
        self.active_t = now


def play(steps: Steps, resequencer: Resequencer | Reference) -> float:
    """Each step lets time pass, then a number arrives, if there is one. The time at the end."""
    now = 0.0
    for pause, number in steps:
        now += pause
        if number is None:
            resequencer.advance(now)
        else:
            resequencer.arrive(number, now)
    return now


@given(steps=STEPS, first=st.integers(-1, 2), wait_s=st.sampled_from([3.0, WAIT_S, 50.0]), idle_s=st.sampled_from([2.0, IDLE_S]))
def test_it_counts_as_the_reference_does(steps: Steps, first: int, wait_s: float, idle_s: float) -> None:
    resequencer, reference = Resequencer(first, wait_s, idle_s), Reference(first, wait_s, idle_s)
    play(steps, resequencer)
    play(steps, reference)
    assert resequencer.arrivals == reference.counts


@given(steps=STEPS, resequencer=RESEQUENCERS)
def test_every_message_is_counted_once_whatever_the_bounds(steps: Steps, resequencer: Resequencer) -> None:
    now = play(steps, resequencer)
    arrivals = resequencer.arrivals
    assert arrivals.deliveries == sum(number is not None for _, number in steps)
    assert min(asdict(arrivals).values()) >= 0
    assert 0 <= arrivals.waiting <= 5
    refused = arrivals.late + arrivals.duplicates + arrivals.late_or_duplicate + arrivals.before_start
    assert arrivals.released + arrivals.waiting + refused == arrivals.deliveries
    resequencer.advance(now + 50.0)
    assert arrivals.waiting == 0
    assert arrivals.released + refused == arrivals.deliveries


@given(steps=STEPS, waiting=st.integers(1, 5), pauses=st.data())
def test_how_often_time_is_advanced_does_not_matter(steps: Steps, waiting: int, pauses: st.DataObject) -> None:
    seldom, often = (Resequencer(1, WAIT_S, IDLE_S, waiting_max=waiting, gaps_max=waiting) for _ in range(2))
    play(steps, seldom)
    now = 0.0
    for pause, number in steps:
        for part in sorted(pauses.draw(st.lists(st.floats(0, pause), max_size=3))):
            often.advance(now + part)
        now += pause
        if number is not None:
            often.arrive(number, now)
    often.advance(now)
    seldom.advance(now)
    assert often.arrivals == seldom.arrivals


@given(order=st.permutations(range(1, 20)), data=st.data())
def test_any_permutation_within_the_waits_comes_out_sorted(order: list[int], data: st.DataObject) -> None:
    resequencer = Resequencer(1, WAIT_S, IDLE_S)
    for now, number in zip(sorted(data.draw(st.lists(st.floats(0, WAIT_S - 0.1), min_size=19, max_size=19))), order, strict=True):
        resequencer.arrive(number, now)
    arrivals = resequencer.arrivals
    assert (arrivals.released, arrivals.in_order + arrivals.early, arrivals.overtook, arrivals.gave_up) == (19, 19, 0, 0)
