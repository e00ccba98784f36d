"""Cost of the checker: time per event, as a multiple of the time of `orjson.loads` for the event's line, and bytes per key.

    python -m benchmarks.checker [HISTORY ...]

Both times of a history are measured alternately in one process, and the shortest count, so the ratios hold on any machine. They are CPU
times, so they also hold on a busy machine. The histories are legal (`benchmarks/histories.py`).
"""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import process_time
from typing import Any, Final

import orjson

from benchmarks.figures import Figure
from benchmarks.histories import HISTORIES, History
from prober.core.events import Acked, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.findings import FAILING
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.cycles import collect_rarely
from prober.traces.header import TraceHeader
from prober.traces.trace import write_trace

REPEAT: Final = 5
EVENTS: Final = 100_000
"""Number of events of an endless history."""
RULES = Rules()
LOADS = "times orjson.loads of its line"
GOALS = {
    "one subscriber": 3.5,
    "eight subscribers": 4.0,
    "pull": 7.0,
    "push": 8.0,
    "long": 6.0,
    "alternating": 20.0,
    "unacked 8000": 5.5,
    "unacked 32000": 5.5,
}
IDLE, SHORT, FULL = "idle key", "key with 20 messages", f"key, window of {RULES.window:,} full"
KIB_MAX = {IDLE: 1.0, SHORT: 10.0, FULL: 60.0}


def seconds(work: Callable[[Any], object], items: Iterable[Any]) -> float:
    """Return the CPU seconds of calling `work` with each item; other processes on the machine do not count."""
    started = process_time()
    for item in items:
        work(item)
    return process_time() - started


def ratios(history: History, repeat: int, count: int) -> list[float]:
    """Return the time of the checker as a multiple of the yardstick, once for each round.

    Raises AssertionError if the checker reports a violation.
    """
    rules = Rules(mode=history.mode)
    events = list(islice(history.events(), count if history.limited else None))
    stream = io.BytesIO()
    write_trace(stream, TraceHeader("s", "key-0", rules), events)
    lines = stream.getvalue().splitlines()[1:]
    verifier = Verifier(rules, subscriptions=("s",))
    found = [finding for event in events for finding in verifier.observe(event)]
    assert not [one for one in (*found, *verifier.finish()) if one.status in FAILING], "a violation is reported for a legal history"
    rounds = [one_round(events, lines, rules) for _ in range(repeat)]
    yardstick = min(loads for loads, _ in rounds)
    return [verification / yardstick for _, verification in rounds]


def one_round(events: Sequence[Event], lines: Sequence[bytes], rules: Rules) -> tuple[float, float]:
    """Return the seconds to parse the lines, and to verify the events.

    As in the service, the garbage collector ignores objects that exist before.
    """
    gc.collect()
    gc.freeze()
    verifier = Verifier(rules, subscriptions=("s",))
    times = seconds(orjson.loads, lines), seconds(verifier.observe, events)
    gc.unfreeze()
    return times


def bytes_per_key(keys: int, messages: int, *, idle: bool) -> float:
    """Return the bytes that the checker stores per key after `messages` delivered and acknowledged.

    idle: long after the last message.
    """
    verifier = Verifier(RULES, subscriptions=("s",))
    verifier.observe(Opened(0.0, "s", "stream", "client"))
    names = [f"key-{number}" for number in range(keys)]
    gc.collect()
    tracemalloc.start()
    t = 0.0
    for key in names:
        for seq in range(1, messages + 1):
            t += 0.001
            message_id = f"{key}-{10_000_000_000 + seq}"
            verifier.observe(PublishInvoked(t, key, "e1", seq))
            verifier.observe(Published(t, key, "e1", seq, message_id))
            verifier.observe(Delivered(t, "s", key, "stream", "e1", seq, message_id))
            verifier.observe(Acked(t, "s", key, "stream", message_id))
    if idle:
        for step in range(1, 5):
            verifier.observe(Opened(t + step * RULES.idle_after_s, "s", f"stream-{step}", "client"))
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / keys


def sizes() -> Mapping[str, float]:
    """Return the bytes per key, by kind of key."""
    return {
        IDLE: bytes_per_key(2000, 20, idle=True),
        SHORT: bytes_per_key(2000, 20, idle=False),
        FULL: bytes_per_key(100, 3000, idle=False),
    }


def figures(repeat: int = REPEAT, count: int = EVENTS, names: Sequence[str] = ()) -> Iterator[Figure]:
    """Yield the figures of the checker: by default of all histories, and of its memory."""
    collect_rarely()
    for history in HISTORIES:
        if not names or history.name in names:
            yield Figure(history.name, LOADS, tuple(ratios(history, repeat, count)), GOALS.get(history.name))
    for name, size in sizes().items() if not names else ():
        yield Figure(name, "KiB", (size / 1024,), KIB_MAX.get(name))


if __name__ == "__main__":
    for figure in figures(names=sys.argv[1:]):
        print(f"{figure.name:<32} {figure.best:8.2f} {figure.unit}", flush=True)
