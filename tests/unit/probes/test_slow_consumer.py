"""A consumer that takes its time: who waits for whom, whose lease lasts, and what is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from statistics import mean, median
from types import SimpleNamespace
from typing import Any, cast

import pytest

from prober.brokers.base import Received
from prober.core.events import Acked, LeaseModified
from prober.probes.context import Delivery, ProbeContext
from prober.probes.experiment import Processing, Workload
from prober.probes.slow_consumer import LONGEST_S, SlowConsumer, processing_times


class Clock:
    """The parts of a context that a consumer uses, with a time that moves when the test says so."""

    def __init__(self) -> None:
        self.t = 0.0
        self.resources = self
        self.ack_deadline_s = 10
        self.log: list[str] = []
        self.acked: list[Received] = []
        self._later: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.t

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._later.append((self.t + delay_s, action))

    def move_to(self, t: float) -> None:
        while due := [one for one in self._later if one[0] <= t]:
            first = min(due, key=lambda one: one[0])
            self._later.remove(first)
            self.t = first[0]
            first[1]()
        self.t = t

    def record(self, event: Acked | LeaseModified) -> None:
        self.log.append(f"{self.t:g} {'ack' if isinstance(event, Acked) else 'extend'} {event.key}{event.message_id}")


def consumer(takes_s: float) -> tuple[Clock, SlowConsumer]:
    clock = Clock()
    return clock, SlowConsumer(cast("ProbeContext", clock), lambda key: takes_s if key == "slow" else 0.0)


def delivered(clock: Clock, key: str, seq: int) -> Delivery:
    session: Any = SimpleNamespace(name="A", is_over=False, ack=clock.acked.append, modify_lease=lambda *_: None)
    received: Any = SimpleNamespace(message_id=str(seq))
    return Delivery("s", key, seq, False, session, received, cast("ProbeContext", clock))


def test_a_key_is_processed_one_message_after_the_other_and_others_at_once() -> None:
    clock, slow = consumer(2.0)
    slow.expect("slow", (1, 2), 0.0)
    slow.expect("k", (1,), 0.0)
    for key, seq in (("slow", 1), ("slow", 2), ("k", 1)):
        slow.take(delivered(clock, key, seq))
    assert slow.backlog == 2
    clock.move_to(10.0)
    assert clock.log == ["0 ack k1", "2 ack slow1", "4 ack slow2"]
    assert (slow.processed, slow.oldest_s, slow.backlog) == (2, 4.0, 0)


def test_what_waits_is_extended_and_nothing_else() -> None:
    clock, slow = consumer(7.0)
    for seq in (1, 2):
        slow.take(delivered(clock, "slow", seq))
    clock.move_to(30.0)
    assert clock.log == ["5 extend slow1", "5 extend slow2", "7 ack slow1", "10 extend slow2", "14 ack slow2"]


def test_a_redelivered_message_keeps_its_place_and_is_acknowledged_where_it_came_last() -> None:
    clock, slow = consumer(2.0)
    first, again = delivered(clock, "slow", 1), replace(delivered(clock, "slow", 1), again=True)
    slow.take(first)
    slow.take(delivered(clock, "slow", 2))
    slow.take(again)
    clock.move_to(4.0)
    assert clock.acked[0] is again.received
    assert [received.message_id for received in clock.acked] == ["1", "2"]
    assert slow.redelivered == 1


def test_what_is_left_is_acknowledged_at_the_end_and_never_processed() -> None:
    clock, slow = consumer(2.0)
    slow.expect("slow", (1, 2, 3), 0.0)
    slow.take(delivered(clock, "slow", 1))
    slow.take(delivered(clock, "slow", 2))
    slow.give_up("slow", (3,))
    assert asyncio.run(slow.finish(0.0)) == 2
    clock.move_to(10.0)
    assert clock.log == ["0 ack slow1", "0 ack slow2"]
    assert slow.processed == 0


@pytest.mark.parametrize("processing", Processing)
def test_a_message_takes_as_long_on_average_as_configured(processing: Processing) -> None:
    takes_s = processing_times(Workload(processing=processing, processing_s=0.5), "slow", Random(1))
    slow, other = ([takes_s(key) for _ in range(20_000)] for key in ("slow", "other"))
    assert mean(slow) == pytest.approx(0.5, rel=0.1)
    assert mean(other) == (0.0 if processing is Processing.SLOW_KEY else pytest.approx(0.5, rel=0.1))
    if processing is Processing.HEAVY_TAILED:
        assert median(slow) < 0.6 * mean(slow)
        assert 10.0 < max(slow) <= LONGEST_S
