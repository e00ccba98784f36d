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

ROUNDS: Final = 5
EVENTS: Final = 100_000
"""Number of events of an endless history."""
GOALS: Final[Mapping[str, float]] = {"one subscriber": 3.5, "push": 8.0, "alternating": 20.0}
KEYS, MESSAGES = 2_000, 20
KIB_MAX: Final = 10.0


def seconds(work: Callable[[Any], object], items: Iterable[Any]) -> float:
    """Return the CPU seconds of calling `work` with each item."""
    started = process_time()
    for item in items:
        work(item)
    return process_time() - started


def ratios(history: History) -> list[float]:
    """Return the time of the checker as a multiple of the yardstick, once for each round.

    Raises AssertionError if the checker reports a violation.
    """
    rules = Rules(mode=history.mode)
    events = list(islice(history.events(), EVENTS if history.limited else None))
    stream = io.BytesIO()
    write_trace(stream, TraceHeader("s", "key-0", rules), events)
    lines = stream.getvalue().splitlines()[1:]
    verifier = Verifier(rules, subscriptions=("s",))
    found = [finding for event in events for finding in verifier.observe(event)]
    assert not [one for one in (*found, *verifier.finish()) if one.status in FAILING], "a violation is reported for a legal history"
    rounds = [one_round(events, lines, rules) for _ in range(ROUNDS)]
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


def bytes_per_key() -> float:
    """Return the bytes that the checker stores per key after some delivered and acknowledged messages."""
    verifier = Verifier(Rules(), subscriptions=("s",))
    verifier.observe(Opened(0.0, "s", "stream", "client"))
    names = [f"key-{number}" for number in range(KEYS)]
    gc.collect()
    tracemalloc.start()
    t = 0.0
    for key in names:
        for seq in range(1, MESSAGES + 1):
            t += 0.001
            message_id = f"{key}-{10_000_000_000 + seq}"
            verifier.observe(PublishInvoked(t, key, "e1", seq))
            verifier.observe(Published(t, key, "e1", seq, message_id))
            verifier.observe(Delivered(t, "s", key, "stream", "e1", seq, message_id))
            verifier.observe(Acked(t, "s", key, "stream", message_id))
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / KEYS


def figures(names: Iterable[str] = GOALS) -> Iterator[Figure]:
    """Yield the figures of these histories, and of the checker's memory."""
    collect_rarely()
    for history in HISTORIES:
        if history.name in names:
            yield Figure(history.name, "times orjson.loads of its line", ratios(history), GOALS.get(history.name))
    yield Figure(f"key with {MESSAGES} messages", "KiB", [bytes_per_key() / 1024], KIB_MAX)


if __name__ == "__main__":
    for figure in figures(sys.argv[1:] or [history.name for history in HISTORIES]):
        print(f"{figure.name:<32} {figure.best:8.2f} {figure.unit}", flush=True)
