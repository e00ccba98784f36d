"""What the checker costs: events per second on one core, against merely parsing the same events, and bytes per key.

    python benchmarks/checker.py [--events N] [--repeat R]

Every figure is the best of R runs in this process; the ratio compares two figures of the same run, so it holds on any machine. The
histories are legal: bursts on many keys, every message acknowledged, some refused and redelivered.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

from prober.core.events import Acked, Closed, Delivered, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from prober.history.trace import read_trace, write_trace
from prober.history.trace_header import TraceHeader

KEYS = 16
BURST = 20
RULES = Rules()


def history(mode: Mode, subscribers: int) -> Iterator[Event]:
    """An endless legal history: a burst on each key in turn, delivered to its subscriber and acknowledged."""
    t = 0.0
    if mode is Mode.STREAMING:
        for subscriber in range(subscribers):
            yield Opened(t, "s", f"stream-{subscriber}", f"client-{subscriber}")
    seqs = [0] * KEYS
    turn = 0
    while True:
        t += 0.02
        turn += 1
        key = turn % KEYS
        first = seqs[key] + 1
        seqs[key] += BURST
        for seq in range(first, first + BURST):
            yield PublishInvoked(t, f"key-{key}", "e1", seq)
        for seq in range(first, first + BURST):
            yield Published(t + 0.004, f"key-{key}", "e1", seq, _message_id(key, seq))
        yield from _deliveries(t + 0.005, mode, key, first, subscribers, turn)


def _deliveries(t: float, mode: Mode, key: int, first: int, subscribers: int, turn: int) -> Iterator[Event]:
    if mode is Mode.PUSH:
        for seq in range(first, first + BURST):
            yield from _response(t + 0.0005 * (seq - first), f"request-{turn}-{seq}", key, range(seq, seq + 1), opens=True)
        return
    session = f"stream-{key % subscribers}" if mode is Mode.STREAMING else f"pull-{turn}"
    again = first + BURST // 2 if mode is Mode.STREAMING and turn % 50 == 0 else 0
    yield from _response(t, session, key, range(first, first + BURST), opens=mode is Mode.PULL, refused=again)
    if again:
        yield from _response(t + 0.005, session, key, range(again, first + BURST), opens=False)


def _response(t: float, session: str, key: int, seqs: range, *, opens: bool, refused: int = 0) -> Iterator[Event]:
    if opens:
        yield Opened(t, "s", session, session)
    for seq in seqs:
        yield Delivered(t, "s", f"key-{key}", session, "e1", seq, _message_id(key, seq))
    for seq in seqs:
        answer = Nacked if seq == refused else Acked
        yield answer(t + 0.0002, "s", f"key-{key}", session, _message_id(key, seq))
    if opens:
        yield Closed(t + 0.0003, "s", session)


def _message_id(key: int, seq: int) -> str:
    return str(10_000_000_000_000_000 + key * 1_000_000_000 + seq)


def judge(rules: Rules, events: list[Event]) -> None:
    """Runs the checker over the events; a finding would mean that the benchmark measures the wrong thing."""
    verifier = Verifier(rules, subscriptions=("s",))
    for event in events:
        for finding in verifier.observe(event):
            if finding.status in ("violation", "liveness"):
                raise SystemExit(f"the benchmark's history is not legal: {finding}")


def parse(trace: bytes) -> None:
    """Parses a trace file and does nothing with it."""
    for _ in read_trace(io.BytesIO(trace), "benchmark"):
        pass


def best_of(repeat: int, work: Callable[[], None]) -> float:
    """The shortest time in seconds of `repeat` runs."""
    shortest = float("inf")
    for _ in range(repeat):
        gc.collect()
        gc.disable()
        started = perf_counter()
        work()
        shortest = min(shortest, perf_counter() - started)
        gc.enable()
    return shortest


def measure(name: str, mode: Mode, subscribers: int, count: int, repeat: int) -> None:
    """Prints one line: events per second judged, parsed, and the ratio of the two times."""
    rules = Rules(mode=mode)
    events = list(islice(history(mode, subscribers), count))
    trace = io.BytesIO()
    write_trace(trace, TraceHeader("s", "key-0", rules), events)
    judging_s = best_of(repeat, lambda: judge(rules, events))
    parsing_s = best_of(repeat, lambda: parse(trace.getvalue()))
    print(
        f"{name:<22} {count / judging_s:>12,.0f} events/s judged {count / parsing_s:>12,.0f} events/s parsed   "
        f"judging costs {judging_s / parsing_s:.2f} x parsing"
    )


def bytes_per_key(keys: int, messages: int, *, idle: bool) -> float:
    """Bytes that the checker keeps per key after `messages` delivered and acknowledged; idle: long after the last of them."""
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


def main() -> None:
    """Prints the whole table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{Path(sys.executable).name} {sys.version.split()[0]}, {arguments.events:,} events, best of {arguments.repeat}")
    for name, mode, subscribers in (
        ("one subscriber", Mode.STREAMING, 1),
        ("eight subscribers", Mode.STREAMING, 8),
        ("pull", Mode.PULL, 1),
        ("push", Mode.PUSH, 1),
    ):
        measure(name, mode, subscribers, arguments.events, arguments.repeat)
    print(f"idle key               {bytes_per_key(2000, 20, idle=True) / 1024:>12.2f} KiB")
    print(f"key with 20 messages   {bytes_per_key(2000, 20, idle=False) / 1024:>12.2f} KiB")
    print(f"key, window full       {bytes_per_key(100, 3000, idle=False) / 1024:>12.2f} KiB (window {RULES.window:,})")


if __name__ == "__main__":
    main()
