"""The top keys of an observed stream: estimates with bounds, windows that move, memory that does not grow."""

from __future__ import annotations

import gc
from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.core.events import Acked, Delivered, Event, Opened
from prober.monitoring.top_keys import Interval, StreamKeys, TopKey
from prober.probes.context import DeliveryKind
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.sink import RunBegun, RunEnded, RunListener
from prober.sinks.top_keys import SHOWN, KeyTraffic, ObservedKeys, TopKeys, Window
from prober.slo.hot_keys import HotKeyClass
from tests.unit.sinks.history.recording import Clock

INSTANCE = ProbeInstance(
    "shop", "observe", "wire", 300.0, environment="production", region="europe-west1", topic="projects/p/topics/orders"
)
NOON = 1_800_000_000.0
FOLLOWED_MAX = 768
ROUNDING = 1e-6
"""Of seconds since 1970 as a float."""

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def observed(*messages: tuple[str, int, float], until: float) -> StreamKeys:
    """A stream of keys, sizes and times, in seconds after noon, observed from noon until then."""
    stream = ObservedKeys(INSTANCE, "okp-observe")
    stream.time.begin(NOON)
    for key, size, at in messages:
        stream.came(key, size, None, NOON + at)
    return stream.snapshot(NOON + until)


def top(stream: StreamKeys) -> dict[str, TopKey]:
    return {one.key: one for one in stream.top}


def holds(interval: Interval, value: float) -> bool:
    return interval.low * (1 - ROUNDING) <= value <= interval.high * (1 + ROUNDING)


# ----------------------------------------------------------------------------------------------------------------- estimates


@given(st.lists(st.tuples(keys, st.integers(0, 10_000_000)), min_size=1, max_size=60))
def test_few_keys_are_counted_exactly(messages: list[tuple[str, int]]) -> None:
    stream = observed(*((key, size, 40.0) for key, size in messages), until=45.0)
    counts, sizes = Counter(key for key, _ in messages), Counter[str]()
    for key, size in messages:
        sizes[key] += size
    assert stream.exact
    assert stream.keys == len(counts)
    assert stream.messages_per_s == pytest.approx(len(messages) / 45.0)
    for one in stream.top:
        for load in (one.minute, one.ten_minutes):
            assert load is not None
            assert load.bytes_per_s == pytest.approx((sizes[one.key] / 45.0,) * 2)
            assert load.share == pytest.approx((counts[one.key] / len(messages),) * 2)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1_000, 4_000), st.floats(0.0, 4.0))
def test_the_true_load_of_many_keys_lies_within_the_bounds(seed: int, among: int, skew: float) -> None:
    rng = Random(seed)
    messages = [
        (f"k{int(among * rng.random() ** (1 + skew))}", rng.randrange(1, 1_000), rng.uniform(0.0, 59.9)) for _ in range(among)
    ]
    messages.sort(key=lambda one: one[2])
    stream = observed(*messages, until=59.9)
    counts, sizes = Counter(key for key, _, _ in messages), Counter[str]()
    for key, size, _ in messages:
        sizes[key] += size
    assert stream.keys <= FOLLOWED_MAX
    for one in stream.top:
        assert one.minute is not None
        assert holds(one.minute.bytes_per_s, sizes[one.key] / 59.9)
        assert holds(one.minute.messages_per_s, counts[one.key] / 59.9)
        assert holds(one.ten_minutes.share, counts[one.key] / len(messages))
        assert one.minute.share.high <= 1.0


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_a_hot_key_is_found_among_very_many(seed: int) -> None:
    rng = Random(seed)
    messages = [("hot" if rng.random() < 0.2 else f"k{rng.randrange(10**9)}", 100, at / 100) for at in range(5_900)]
    stream = observed(*messages, until=59.0)
    assert not stream.exact
    first = stream.top[0]
    assert (first.key, first.heat) == ("hot", HotKeyClass.SKEWED)
    assert first.minute is not None
    assert first.minute.share.high - first.minute.share.low < 0.02


def test_a_key_near_the_limit_stands_above_one_with_more_messages() -> None:
    large = [("large", 90_000, at / 10) for at in range(300)]
    small = [(f"small-{at % 3}", 10, at / 100) for at in range(3_000)]
    stream = observed(*sorted([*large, *small], key=lambda one: one[2]), until=30.0)
    first, second = stream.top[:2]
    assert (first.key, first.heat) == ("large", HotKeyClass.THROUGHPUT_BOUND)
    assert first.score == pytest.approx(0.9)
    assert (second.key, second.heat) == ("small-0", None)


def test_messages_without_data_are_ranked_by_their_number() -> None:
    stream = observed(*(("a" if at % 3 else "b", 0, at / 10) for at in range(300)), until=30.0)
    assert [one.key for one in stream.top] == ["a", "b"]
    assert top(stream)["a"].score == pytest.approx(2 / 3, abs=0.01)


# ------------------------------------------------------------------------------------------------------------------- windows


@given(st.lists(st.floats(0.0, 1_500.0), min_size=1, max_size=200), st.floats(0.0, 300.0))
def test_a_window_has_what_came_in_it_and_nothing_else(times: list[float], later: float) -> None:
    window = Window(60.0, 6)
    for at in sorted(times):
        window.came("k", 1, NOON + at)
    now = NOON + max(times) + later
    window.leave(now)
    assert now - 60.0 < window.since(now) <= now - 50.0
    inside = sum(NOON + at >= window.since(now) for at in times)
    assert window.traffic().messages == window.traffic().bytes == inside


def test_rates_are_per_second_of_observed_time() -> None:
    stream = ObservedKeys(INSTANCE, "okp-observe")
    for begin in (0.0, 300.0):
        stream.time.begin(NOON + begin)
        for second in range(240):
            stream.came("k", 1_000, None, NOON + begin + second + 0.5)
        stream.time.end(NOON + begin + 240.0)
    now = stream.snapshot(NOON + 550.0)
    assert now.observed_at == NOON + 540.0
    assert now.observed_s == pytest.approx(480.0)
    [key] = now.top
    assert key.minute is not None
    assert key.minute.bytes_per_s == key.ten_minutes.bytes_per_s == Interval(1_000.0, 1_000.0)


def test_the_last_minute_is_unknown_once_it_is_over() -> None:
    stream = ObservedKeys(INSTANCE, "okp-observe")
    stream.time.begin(NOON)
    for second in range(30):
        stream.came("k", 600, None, NOON + second)
    stream.time.end(NOON + 30.0)
    [key] = stream.snapshot(NOON + 120.0).top
    assert key.minute is None
    assert key.ten_minutes.bytes_per_s.low == pytest.approx(600.0)
    assert not stream.is_forgotten(NOON + 629.0)
    assert stream.is_forgotten(NOON + 631.0)


def test_nothing_is_known_in_the_first_seconds() -> None:
    assert observed(("k", 10**7, 1.0), until=9.0).top == ()
    assert observed(until=30.0).top == ()


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    stream = observed(("k", 100, 50.0), ("k", 100, 20.0), until=30.0)
    assert stream.messages_per_s == pytest.approx(2 / 30)


# ---------------------------------------------------------------------------------------------------------------- boundedness


def test_memory_does_not_grow_with_the_number_of_keys() -> None:
    window = Window(60.0, 6)
    for number in range(60_000):
        window.came(f"key-{number}", 1, NOON + number / 100)
        window.aged(f"key-{number % 100}", 1.0, NOON + number / 100)
    assert len(window._parts) <= 6
    for part in window._parts:
        assert part.traffic._messages.num_active_items <= FOLLOWED_MAX
        assert part.traffic._bytes.num_active_items <= FOLLOWED_MAX
    assert len(window.traffic().heaviest(SHOWN)) <= 2 * SHOWN


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3_000), st.integers(1, 3_000))
def test_a_sum_holds_the_true_counts_and_every_frequent_key(seed: int, first: int, second: int) -> None:
    rng, truth, traffic = Random(seed), Counter[str](), KeyTraffic()
    for messages in (first, second):
        part = KeyTraffic()
        for _ in range(messages):
            key = f"k{int(5_000 * rng.random() ** 3)}"
            truth[key] += 1
            part.came(key, 10)
        traffic.merge(part)
    assert (traffic.messages, traffic.bytes) == (truth.total(), 10 * truth.total())
    for key in (*truth, "none"):
        assert holds(traffic.messages_of(key), truth[key])
        assert holds(traffic.bytes_of(key), 10 * truth[key])
    assert {key for key, count in truth.items() if count > truth.total() / 20} <= traffic.heaviest(20)
    assert traffic.exact == (traffic.keys == len(truth))


# ----------------------------------------------------------------------------------------------------------------------- runs


OPENED = Observation(Opened(1.0, "s", "A", "client"), None, None, ())


def listening(top_keys: TopKeys) -> RunListener:
    """The listener of a run that has a session."""
    listener = top_keys.sink("okp-observe").begin(cast(RunBegun, SimpleNamespace(probe_instance=INSTANCE)))
    for _ in range(2):
        listener.event(OPENED)
    return listener


def delivery(key: str, kind: DeliveryKind | None, published_at: float, size: int | None = 1_000) -> Observation:
    event = Delivered(1.0, "s", key, "A", "", 1, "m", publish_time=int(published_at * 1e9), data_size=size)
    return Observation(event, kind, None, ())


OVER = cast(RunEnded, SimpleNamespace())


def test_a_run_counts_deliveries_and_no_redeliveries() -> None:
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    listener = listening(top_keys)
    clock.now += 20.0
    for kind in (DeliveryKind.FIRST, DeliveryKind.REDELIVERY, None):
        listener.event(delivery("k", kind, clock.now))
    listener.event(Observation(cast(Event, Acked(1.0, "s", "k", "A", "m")), None, None, ()))
    listener.event(delivery("empty", DeliveryKind.FIRST, clock.now, size=None))
    [stream] = top_keys.snapshot()
    assert (stream.target, stream.topic, stream.subscription) == ("shop", INSTANCE.topic, "okp-observe")
    assert top(stream)["k"].ten_minutes.bytes_per_s.low == pytest.approx(100.0)
    assert top(stream)["empty"].ten_minutes.bytes_per_s.low == 0.0


def test_a_run_without_a_session_observes_nothing() -> None:
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    listener = top_keys.sink("okp-observe").begin(cast(RunBegun, SimpleNamespace(probe_instance=INSTANCE)))
    clock.now += 20.0
    assert top_keys.snapshot() == ()
    listener.ended(OVER)
    clock.now += 2.0
    assert top_keys.snapshot() == ()
    late = top_keys.sink("okp-observe").begin(cast(RunBegun, SimpleNamespace(probe_instance=INSTANCE)))
    clock.now += 2.0
    assert top_keys.snapshot() == ()
    late.event(OPENED)
    clock.now += 2.0
    assert [one.observed_s for one in top_keys.snapshot()] == [pytest.approx(2.0)]


def test_ages_are_followed_on_the_keys_at_the_top() -> None:
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    listener = listening(top_keys)
    clock.now += 15.0
    listener.event(delivery("k", DeliveryKind.FIRST, clock.now - 5.0))
    [stream] = top_keys.snapshot()
    assert top(stream)["k"].age_s is None
    clock.now += 2.0
    for age_s in (3.0, 7.0, -1.0):
        listener.event(delivery("k", DeliveryKind.FIRST, clock.now - age_s))
    [stream] = top_keys.snapshot()
    assert top(stream)["k"].age_s == pytest.approx(7.0, abs=0.001)


def test_a_prober_that_observes_nothing_has_no_streams_and_forgets_those_that_it_had() -> None:
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    assert top_keys.snapshot() == ()
    clock.now += 5.0
    listening(top_keys).ended(OVER)
    clock.now += 5.0
    assert [one.subscription for one in top_keys.snapshot()] == ["okp-observe"]
    clock.now += 601.0
    assert top_keys.snapshot() == ()


def test_an_answer_is_given_again_for_a_second() -> None:
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    listening(top_keys)
    first = top_keys.snapshot()
    clock.now += 0.5
    assert top_keys.snapshot() is first
    clock.now += 0.6
    assert top_keys.snapshot() is not first
    clock.now -= 100.0
    assert top_keys.snapshot()[0].observed_at == clock.now


def test_no_sketch_is_left_when_it_is_closed() -> None:
    before = sketches()
    clock = Clock(NOON)
    top_keys = TopKeys(clock)
    listener = listening(top_keys)
    listener.event(delivery("k", DeliveryKind.FIRST, clock.now))
    assert sketches() > before
    top_keys.close()
    assert sketches() == before


def sketches() -> int:
    gc.collect()
    return sum(isinstance(one, KeyTraffic) for one in gc.get_objects())
