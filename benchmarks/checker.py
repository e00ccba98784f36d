"""What the checker costs: time per event, as a multiple of what `orjson.loads` takes for the event's line, and bytes per key.

    python -m benchmarks.checker [--events N] [--repeat R] [--only HISTORY ...] [--against CHECKOUT ...] [--json]

All times of a history are taken in turn in one process, R times, and the shortest count; so the ratios hold on any machine. They are
times of the processor, so the ratios hold on a busy one, too. `loads` is the yardstick, `decode` makes an event of a line, `read` is a
whole trace file, `plain` a checker without doubts (`benchmarks/plain.py`), `judge` the checker: over the first quarter of the history,
and over all. The histories are legal (`benchmarks/histories.py`).

With --against, other checkouts of this project judge the same histories, in processes that take turns with those of this one.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import orjson

from benchmarks.checkouts import ROOT, said_by
from benchmarks.figures import Figure
from benchmarks.histories import HISTORIES, History
from benchmarks.plain import PlainChecker
from prober.cli.process import collect_rarely
from prober.core.events import Acked, Delivered, Event, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from prober.traces import codec as trace_codec
from prober.traces.header import TraceHeader
from prober.traces.trace import read_trace, write_trace

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

Times = dict[str, float]
"""Seconds by what was measured; `events` is how many there were, `definite` how many definite findings, which should be none."""


# --- measuring --------------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[Any], object], items: Iterable[Any]) -> float:
    """How much of the processor's time it takes to do something with each item; what else runs on the machine does not count."""
    started = process_time()
    for item in items:
        work(item)
    return process_time() - started


def measure_once(events: Sequence[Event], trace: bytes, rules: Rules) -> Times:
    """Every time of one history, once. The search for cycles is as in the service, and does not see what is there already."""
    lines = trace.splitlines()[1:]
    quarter = len(events) // 4
    gc.collect()
    gc.freeze()
    times = {"loads": seconds(orjson.loads, lines)}
    if hasattr(trace_codec, "event_decoder"):
        times["decode"] = seconds(trace_codec.event_decoder("s", "key-0"), lines)
    times["read"] = seconds(id, read_trace(io.BytesIO(trace), "benchmark"))
    times["plain"] = seconds(PlainChecker().observe, events)
    verifier = Verifier(rules, subscriptions=("s",))
    times["quarter"] = seconds(verifier.observe, events[:quarter])
    times["judge"] = times["quarter"] + seconds(verifier.observe, events[quarter:])
    gc.unfreeze()
    return times


def definite(events: Sequence[Event], rules: Rules) -> int:
    """How many definite findings there are: with any, the benchmark measures the wrong thing."""
    verifier = Verifier(rules, subscriptions=("s",))
    found = [finding for event in events for finding in verifier.observe(event)]
    return sum(finding.status in ("violation", "liveness") for finding in (*found, *verifier.finish()))


def measure(history: History, count: int, repeat: int) -> Times:
    """The shortest times of a history."""
    rules = Rules(mode=history.mode)
    events = list(islice(history.events(), count if history.limited else None))
    stream = io.BytesIO()
    write_trace(stream, TraceHeader("s", "key-0", rules), events)
    times = shortest(measure_once(events, stream.getvalue(), rules) for _ in range(repeat))
    return times | {"events": len(events), "definite": definite(events, rules)}


def shortest(all_times: Iterable[Times]) -> Times:
    """The least of each."""
    least: Times = {}
    for times in all_times:
        least |= {name: min(value, least.get(name, value)) for name, value in times.items()}
    return least


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


def sizes() -> Mapping[str, float]:
    """Bytes per key, by what kind of key."""
    return {
        IDLE: bytes_per_key(2000, 20, idle=True),
        SHORT: bytes_per_key(2000, 20, idle=False),
        FULL: bytes_per_key(100, 3000, idle=False),
    }


# --- turns in processes of their own -----------------------------------------------------------------------------------------


def turn(name: str, count: str) -> None:
    """What such a process does: one history of so many events, once."""
    collect_rarely()
    (history,) = [history for history in HISTORIES if history.name == name]
    print(json.dumps(measure(history, int(count), 1)))


def take_turns(checkouts: Sequence[Path], history: History, count: int, repeat: int) -> list[Times]:
    """The shortest times of each checkout."""
    return [shortest(times) for times in zip(*rounds(checkouts, history, count, repeat), strict=True)]


def rounds(checkouts: Sequence[Path], history: History, count: int, repeat: int) -> Iterator[list[Times]]:
    """The times of each checkout, again and again."""
    for _ in range(repeat):
        yield [json.loads(said_by(checkout, "checker", history.name, str(count))) for checkout in checkouts]


# --- for the report ----------------------------------------------------------------------------------------------------------


def figures(repeat: int = 3, count: int = 100_000) -> Iterator[Figure]:
    """What the report says of the checker."""
    for history in HISTORIES:
        times = [ratios(one) for (one,) in rounds([ROOT], history, count, repeat)]
        yield Figure(history.name, LOADS, tuple(one["judge"] for one in times), GOALS.get(history.name))
        if history is HISTORIES[0]:
            yield Figure("decode a line", LOADS, tuple(one["decode"] for one in times), 2.0)
            yield Figure("read a trace file", LOADS, tuple(one["read"] for one in times))
    for name, size in sizes().items():
        yield Figure(name, "KiB", (size / 1024,), KIB_MAX.get(name))


# --- printing ---------------------------------------------------------------------------------------------------------------

RATIOS = ("decode", "read", "plain", "quarter", "judge")


def ratios(times: Times) -> Times:
    """The times as multiples of the yardstick."""
    scale = {name: times["loads"] * (0.25 if name == "quarter" else 1) for name in RATIOS}
    return {name: times[name] / scale[name] for name in RATIOS if name in times}


def row(name: str, times: Times) -> str:
    """One line of the table."""
    shown = [f"{ratio:8.2f} x" if ratio else "       - " for ratio in map(ratios(times).get, RATIOS)]
    each_ns = times["loads"] / times["events"] * 1e9
    speed = times["events"] / times["judge"]
    warning = f"  {times['definite']:.0f} definite findings!" if times["definite"] else ""
    return f"{name:<32}{times['events']:>9,.0f}{each_ns:>8.0f} ns{''.join(shown)}{speed:>12,.0f}{warning}"


def heading(repeat: int) -> str:
    """What was measured, and the names of the columns."""
    columns = "".join(f"{name:>10}" for name in ("decode", "read", "plain", "1st 1/4", "judge"))
    names = f"{'history':<32}{'events':>9}{'loads':>11}{columns}{'events/s':>12}"
    return f"{Path(sys.executable).name} {sys.version.split()[0]}, best of {repeat}\n{names}"


def main() -> None:
    """Prints the whole table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=100_000, help="of an endless history")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="HISTORY", choices=[history.name for history in HISTORIES])
    parser.add_argument("--against", type=Path, nargs="+", metavar="CHECKOUT")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    collect_rarely()
    say: Callable[..., None] = (lambda _: None) if arguments.json else print
    say(heading(arguments.repeat))
    measured: dict[str, Times] = {}
    for history in HISTORIES:
        if arguments.only and history.name not in arguments.only:
            continue
        if arguments.against:
            checkouts = [*arguments.against, ROOT]
            taken = take_turns(checkouts, history, arguments.events, arguments.repeat)
            new = {f"{history.name}, {checkout.name}": times for checkout, times in zip(checkouts, taken, strict=True)}
        else:
            new = {history.name: measure(history, arguments.events, arguments.repeat)}
        for name, times in new.items():
            say(row(name, times))
        measured |= new
    memory = {} if arguments.only else sizes()
    for name, size in memory.items():
        say(f"{name:<32}{size / 1024:>9.2f} KiB")
    if arguments.json:
        print(
            json.dumps(
                {"histories": {name: times | {"ratios": ratios(times)} for name, times in measured.items()}, "bytes": memory}
            )
        )


if __name__ == "__main__":
    main()
