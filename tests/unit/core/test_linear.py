"""Verification an event takes as many steps late in a history as early in it, and as many objects are kept: counted, not timed.

A step is one instruction of the interpreter; every seventeenth event is counted, of histories that differ in their length only.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from benchmarks.histories import acked, alternating, delivered, long, nacked, published, unacked
from prober.core.events import Closed, Event, Opened
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier

SAMPLED = 17
"""Prime, so that the samples go through all that repeats."""
SLACK = 1.15


class Steps:
    """Counts the instructions that the interpreter executes in functions of its own."""

    def __init__(self) -> None:
        self.taken = 0

    def __call__(self, frame: FrameType, what: str, _: Any) -> Steps:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.taken += what == "opcode"
        return self

    def of(self, work: Callable[[Any], object], item: object) -> int:
        """How many it takes to do something with an item."""
        before, outside = self.taken, sys.gettrace()
        sys.settrace(self)
        try:
            work(item)
        finally:
            sys.settrace(outside)
        return self.taken - before


def steps_per_event(events: Iterable[Event], rules: Rules) -> float:
    """The mean over a sample of a history."""
    verifier, steps = Verifier(rules, subscriptions=("s",)), Steps()
    taken = []
    for number, event in enumerate(events):
        if number % SAMPLED:
            verifier.observe(event)
        else:
            taken.append(steps.of(verifier.observe, event))
    return sum(taken) / len(taken)


def objects_after(events: Iterable[Event], rules: Rules) -> int:
    """How many objects the checker keeps at the end of a history, numbers and texts left out."""
    verifier = Verifier(rules, subscriptions=("s",))
    for event in events:
        verifier.observe(event)
    left_out = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, str, int, float)
    found: dict[int, object] = {}
    waiting: list[object] = [verifier]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in found and not isinstance(thing, left_out):
            found[id(thing)] = thing
            waiting += gc.get_referents(thing)
    return len(found)


def hidden(messages: int) -> Iterator[Event]:
    """A filter keeps nine of ten messages back."""
    yield Opened(0.0, "s", "stream", "client")
    for first in range(1, messages + 1, 10):
        t = 0.1 * first
        yield from published(t, 0, range(first, first + 10))
        yield delivered(t + 0.01, "stream", 0, first + 9)
        yield acked(t + 0.02, "stream", 0, first + 9)


def never_acked(messages: int) -> Iterator[Event]:
    """Leases run out, what was nacked is redelivered, and nothing is acknowledged."""
    yield Opened(0.0, "s", "stream", "client")
    for seq in range(1, messages + 1):
        t = 5.0 * seq
        yield from published(t, 0, range(seq, seq + 1))
        yield delivered(t + 0.01, "stream", 0, seq)
        if seq % 10 == 0:
            yield nacked(t + 0.02, "stream", 0, seq)
            yield delivered(t + 0.03, "stream", 0, seq)


def requests(messages: int) -> Iterator[Event]:
    """Each message is a push request."""
    for seq, t in zip(range(1, messages + 1), count(1.0, 0.01), strict=False):
        yield from published(t, 0, range(seq, seq + 1))
        yield Opened(t + 0.001, "s", f"request-{seq}", f"request-{seq}")
        yield delivered(t + 0.002, f"request-{seq}", 0, seq)
        yield acked(t + 0.003, f"request-{seq}", 0, seq)
        yield Closed(t + 0.004, "s", f"request-{seq}")


HISTORIES = [
    pytest.param(unacked, 300, Rules(window=64), id="nothing is acknowledged and everything comes twice"),
    pytest.param(never_acked, 400, Rules(window=64), id="nothing is acknowledged and leases run out"),
    pytest.param(hidden, 1500, Rules(filtered=True, window=64), id="a filter hides publishes"),
    pytest.param(requests, 300, Rules(mode=Mode.PUSH, window=64), id="push requests follow each other"),
]
"""By how many messages they have, more than are remembered."""

BACKLOG = pytest.param(lambda streams: long(10 * streams, streams), 150, Rules(window=64), id="streams break and a backlog grows")


@pytest.mark.parametrize(("history", "size", "rules"), [*HISTORIES, BACKLOG])
def test_an_event_takes_as_many_steps_in_a_history_four_times_as_long(
    history: Callable[[int], Iterator[Event]], size: int, rules: Rules
) -> None:
    assert steps_per_event(history(4 * size), rules) <= SLACK * steps_per_event(history(size), rules)


def test_an_event_takes_as_many_steps_with_four_times_as_many_messages_held() -> None:
    """Two subscribers take turns, each holding many messages."""
    few, many = (steps_per_event(alternating(2, held), Rules()) for held in (60, 240))
    assert many <= SLACK * few


@pytest.mark.parametrize(("history", "size", "rules"), HISTORIES)
def test_as_much_is_kept_of_a_history_four_times_as_long(
    history: Callable[[int], Iterator[Event]], size: int, rules: Rules
) -> None:
    """Save where a backlog grows, of which every message is pending. Some of what is not needed is dropped when it has doubled."""
    assert objects_after(history(4 * size), rules) < 2 * objects_after(history(size), rules)
