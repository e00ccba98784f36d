"""What a probed key costs in memory: bytes of this process per ordering key, with everything that a run keeps.

    python -m benchmarks.memory [--keys N] [--rounds R]

One run with N keys: in each of R rounds each gets a message that is published, received and acknowledged, through the recorder, the
checker, the backlog and the metrics, as in the service; nothing goes over a network. The figure is the resident memory at the end of the
run less that at its beginning. For comparison: a dict of N keys with an empty dict each.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count, product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from benchmarks.figures import Figure
from prober.cli.process import collect_rarely
from prober.config.loading import load
from prober.core.events import Acked, Delivered, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.runs.backlog import BacklogTracker
from prober.runs.recorder import Recording
from prober.runs.site import SiteKey
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.measurements import Measurements
from prober.slo.counts import SloCounters

MIB = 1 << 20
PAGE_BYTES = resource.getpagesize()


def resident_bytes() -> int:
    """What this process occupies now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def probe(keys: int, rounds: int = 1) -> Recording:
    """One run over so many keys, each of which has its turn in each round."""
    config = load(None, {})
    metrics = Metrics(config.objectives).watch(config.targets[0])
    site = SiteKey(config.targets[0].name, "ordering", "wire")
    topic, subscription = metrics.topic("t"), metrics.subscription("s")
    measurements = Measurements(metrics, topic, {"s": subscription}, SloCounters(config.objectives), {}, site)
    backlog_tracker = BacklogTracker(60.0)
    clock = count()
    listeners = [lambda seen: backlog_tracker.listen(seen.event), measurements.event]
    recording = Recording({"s": Rules()}, lambda: next(clock) / 1e5, listeners, epoch="e")
    recording.record(Opened(recording.now(), "s", "stream", "client"))
    for seq, number in product(range(1, rounds + 1), range(keys)):
        key, message_id = f"key-{number:09}", f"{seq:04}{number:012}"
        recording.record(PublishInvoked(recording.now(), key, "e", seq, size=256))
        recording.record(Published(recording.now(), key, "e", seq, message_id))
        recording.record(Delivered(recording.now(), "s", key, "stream", "e", seq, message_id))
        recording.record(Acked(recording.now(), "s", key, "stream", message_id))
    return recording


def kib_per_key(keys: int) -> float:
    """What a key of so many takes."""
    collect_rarely()
    before = resident_bytes()
    recording = probe(keys)
    used = resident_bytes() - before
    recording.finish()
    return used / keys / 1024


def figures() -> Iterator[Figure]:
    """What the report says of memory; each size in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
        for keys in (1_000, 100_000, 1_000_000):
            yield Figure(f"a probed key of {keys:,}", "KiB", (process.submit(kib_per_key, keys).result(),))


def main() -> None:
    """Prints both figures and their ratio."""
    collect_rarely()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    keys: int = options.keys
    before = resident_bytes()
    plain = {f"key-{number:09}": dict[str, str]() for number in range(keys)}
    bare = resident_bytes() - before
    del plain
    before, began_t = resident_bytes(), perf_counter()
    recording = probe(keys, options.rounds)
    used = resident_bytes() - before
    recording.finish()
    assert not recording.judge.findings.failed, recording.judge.findings.counts
    print(f"{keys:,} keys: {used / MIB:,.0f} MiB, {used / keys:,.0f} bytes per key, in {perf_counter() - began_t:.0f} s")
    print(f"a dict of as many empty dicts: {bare / MIB:,.0f} MiB; probing takes {used / bare:.1f} times that")


if __name__ == "__main__":
    main()
