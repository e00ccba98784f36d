"""What it costs to write the history: CPU per event, on the event loop and in all, and rows per second; against JSON Lines.

    python -m benchmarks.history [--events N] [--repeat R]

CPU is that of the whole process, all threads together, and the best of R runs. "recording" is what the event loop does, "all in" is
that and everything behind it: encoding, the spool with its syncs, and Parquet files in their place. The ratio compares with writing the
same events as a trace file, in the same run, so it holds on any machine.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.figures import Figure, in_turn
from benchmarks.histories import streaming
from prober.config.sections import HistorySettings
from prober.core.events import Event
from prober.core.rules import Rules
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.spool import bytes_below
from prober.sinks.history.writer import FLUSH_EVERY_S, SEGMENT_BYTES_MAX, HistoryWriter, spool_root
from prober.traces.header import TraceHeader
from prober.traces.trace import write_trace

KEY = "key-3"


def best(repeat: int, work: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
    """The least of each figure."""
    gc.collect()
    return tuple(map(min, zip(*(work() for _ in range(repeat)), strict=True)))


def write(events: Sequence[Event], per_flush: int) -> tuple[float, float, float]:
    """Writes a history; CPU seconds of recording and of everything, and seconds that passed."""
    with tempfile.TemporaryDirectory() as folder:
        settings = HistorySettings(location=folder)
        writer = HistoryWriter(settings)
        log = writer.begin(RunContext("run", "demo", "test", "local", "ordering", "wire", "topic", {"s": Rules()}, 0.0))
        recording_s = 0.0
        began_s, cpu_s = perf_counter(), process_time()
        for first in range(0, len(events), per_flush):
            part = events[first : first + per_flush]
            before_s = process_time()
            for event in part:
                log.record(event)
            recording_s += process_time() - before_s
            if not writer.flush():
                raise SystemExit(f"the disk does not take it: {writer.state().spool_error}")
            writer.ship()
        log.release()
        writer.flush()
        writer.end_segment()
        writer.ship()
        figures = recording_s, process_time() - cpu_s, perf_counter() - began_s
        state = writer.close()
        if state.dropped or state.store_error or bytes_below(spool_root(settings)):
            raise SystemExit(f"the benchmark measures the wrong thing: {state}")
        return figures


def write_json(events: Sequence[Event]) -> tuple[float]:
    """CPU seconds of writing the same as a trace file, in memory."""
    cpu_s = process_time()
    write_trace(io.BytesIO(), TraceHeader("s", KEY, Rules()), events)
    return (process_time() - cpu_s,)


def read_key(events: Sequence[Event]) -> str:
    """Bytes per event on disk, and how fast one key of sixteen is read back."""
    with tempfile.TemporaryDirectory() as folder:
        writer = HistoryWriter(HistorySettings(location=folder))
        log = writer.begin(RunContext("run", "demo", "test", "local", "ordering", "wire", "topic", {"s": Rules()}, 0.0))
        for first in range(0, len(events), 50_000):
            for event in events[first : first + 50_000]:
                log.record(event)
            writer.flush()
        log.release()
        writer.flush()
        writer.end_segment()
        writer.ship()
        size = sum(path.stat().st_size for path in Path(folder).rglob("events-*.parquet"))
        began_s = perf_counter()
        count = sum(1 for _ in HistoryReader(folder).events(KEY))
        reading_s = perf_counter() - began_s
        writer.close()
        return f"{size / len(events):.1f} bytes per event on disk; one key read at {count / reading_s:,.0f} events/s"


def figures(repeat: int = 3, count: int = 200_000, rate: int = 10_000) -> Iterator[Figure]:
    """What the report says of the history."""
    events = list(islice(streaming(8), count))
    rounds = list(in_turn(repeat, lambda: write(events, int(rate * FLUSH_EVERY_S))[1], lambda: write_json(events)[0]))
    yield Figure("write an event", "times a line of a trace file", tuple(all_s / json_s for all_s, json_s in rounds))


def main() -> None:
    """Prints the whole table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    events = list(islice(streaming(8), arguments.events))
    count = len(events)
    print(f"{Path(sys.executable).name} {sys.version.split()[0]}, {count:,} events, segments of {SEGMENT_BYTES_MAX >> 20} MiB")
    (json_s,) = best(arguments.repeat, lambda: write_json(events))
    for rate in (1_000, 10_000, 100_000):
        per_flush = int(rate * FLUSH_EVERY_S)
        recording_s, all_s, passed_s = best(arguments.repeat, partial(write, events, per_flush))
        print(
            f"flushes of {per_flush:>6,} events   recording {recording_s / count * 1e6:>5.2f} us/event   "
            f"all in {all_s / count * 1e6:>5.2f} us/event   {count / passed_s:>9,.0f} rows/s   "
            f"{all_s / json_s:.2f} x the CPU of writing JSON Lines"
        )
    print(read_key(events))


if __name__ == "__main__":
    main()
