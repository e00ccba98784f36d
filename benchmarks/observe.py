"""What observing a stream takes, and whether it accuses anybody of what is legal.

    python -m benchmarks.observe memory [--keys N] [--keys-max M]
    python -m benchmarks.observe stream [--messages N] [--writers W]

`memory`: one run that receives a message on each of N ordering keys, one group each, through what a run of `observe` keeps; nothing
goes over a network. Printed is how much of this process that is, and what was forgotten.

`stream`: N messages over gRPC on a hundred keys from the embedded server in a process of its own, where streams break, replies to
publishers are lost, so that their clients try again, and messages come again early. W writers in another process publish with Google's
library, each with numbers of its own; each begins anew from 1 halfway. The observer begins anew, too, after each minute, as the
service does: where the machine is too slow, the rest of a run is not judged. Anything found is an error of the checker.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from time import perf_counter

from google.api_core.exceptions import GoogleAPICallError
from google.cloud import pubsub_v1

from benchmarks.memory import MIB, resident_bytes
from prober.cli.observe import observe_once
from prober.cli.observe_report import StreamObservation
from prober.config.sections import Observe
from prober.core.events import Acked, Delivered, Opened
from prober.core.kinds import is_told
from prober.core.rules import Rules
from prober.probes.observed import ObservedStream
from prober.runs.backlog import BacklogTracker
from prober.runs.recorder import Recording
from prober.sinks.top_keys import KeyTraffic

TOPIC = "projects/benchmark/topics/orders"
KEYS = 100
AT_ONCE = 1_000
"""Few enough that the server answers within two seconds: what comes after a longer silence is not judged."""
FAULTS = ("reply_lost:p=0.005", "stream_break:p=0.0005", "early_redelivery:p=0.001", "ack_lost:p=0.001")
QUIET_S, RUN_S = 5.0, 60.0
COUNTERS = (
    "deliveries_unrecorded",
    "deliveries_redelivery",
    "numbers_repeated",
    "numberings",
    "deliveries_unplaced",
    "sessions_closed",
)


def memory(keys: int, keys_max: int) -> None:
    """Prints what so many keys take."""
    gc.collect()
    before, began = resident_bytes(), perf_counter()
    tracker, clock = BacklogTracker(60.0), count()
    rules = replace(Rules(publishes_recorded=False, attempts_observed=False), keys_max=keys_max)
    recording = Recording({"s": rules}, lambda: next(clock) / 1e4, [lambda seen: tracker.listen(seen.event), KeyTraffic().event])
    stream = ObservedStream(10.0, 900.0)
    recording.record(Opened(recording.now(), "s", "stream", "client"))
    for number in range(keys):
        key, message_id = f"account-{number:09}", f"{number:016}"
        recording.record(Delivered(recording.now(), "s", key, "stream", key, 1, message_id, publish_time=number, data_size=100))
        recording.record(Acked(recording.now(), "s", key, "stream", message_id))
        stream.came(0.1)
        stream.numbered(key, 1, recording.now())
    recording.finish()
    used, counters = resident_bytes() - before, recording.counters
    print(
        f"{keys:,} keys, {keys_max:,} remembered at most: {used / MIB:,.0f} MiB, {used / keys:,.0f} bytes a key, "
        f"{perf_counter() - began:.0f} s, {counters['keys_forgotten']:,} forgotten, {recording.judge.findings.counts or 'nothing found'}"
    )


@contextmanager
def server() -> Iterator[str]:
    """The embedded server in a process of its own; its address."""
    faults = [part for fault in FAULTS for part in ("--fault", fault)]
    command = [sys.executable, "-u", "-c", "from prober.cli import main; main()", "embedded", "--port", "0", *faults]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rpartition("=")[2].strip()
        finally:
            process.terminate()


def publish(address: str, messages: int, writers: int) -> None:
    """Publishes with Google's library, by turns of the writers."""
    os.environ["PUBSUB_EMULATOR_HOST"] = address
    options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
    client = pubsub_v1.PublisherClient(publisher_options=options)
    numbers: dict[tuple[str, str], int] = {}
    for begun in range(0, messages, AT_ONCE):
        life = 2 * begun // messages
        sent = []
        for place in range(begun, min(messages, begun + AT_ONCE)):
            key, writer = f"acct-{place * 7919 % KEYS}", f"writer-{place % writers}-{life}"
            numbers[key, writer] = seq = numbers.get((key, writer), 0) + 1
            sent.append((key, client.publish(TOPIC, b"{}", ordering_key=key, writer=writer, seq=str(seq))))
        for key, one in sent:
            try:
                one.result()
            except (GoogleAPICallError, RuntimeError):
                client.resume_publish(TOPIC, key)
    client.stop()


async def observed(address: str, messages: int, writers: int) -> None:
    """Observes again and again while others publish."""
    publishing = multiprocessing.get_context("spawn").Process(target=publish, args=(address, messages, writers))
    publishing.start()
    began, received, judged = perf_counter(), 0, 0
    while publishing.is_alive():
        seen = await observed_once(address, publishing.is_alive)
        received += seen.stream.counts["received"]
        judged += seen.result.counters.get("deliveries_unrecorded", 0)
        print(told(seen), flush=True)
    print(f"{messages:,} published in {perf_counter() - began:.0f} s, {received:,} received, {judged:,} of them judged")


async def observed_once(address: str, goes_on: Callable[[], bool]) -> StreamObservation:
    """One run: for `RUN_S`, or until a while after the last message."""
    wanted = Observe(topic=TOPIC, group="attributes.writer", sequence="attributes.seq", duration=timedelta(hours=2))
    stop, ends_t = asyncio.Event(), perf_counter() + RUN_S
    observing = asyncio.create_task(observe_once(wanted, address, {}, stop=stop))
    while goes_on() and perf_counter() < ends_t:
        await asyncio.sleep(0.5)
    await asyncio.sleep(QUIET_S)
    stop.set()
    return await observing


def told(seen: StreamObservation) -> str:
    """A run in a line."""
    result = seen.result
    accused = {sort: n for sort, n in result.counts.items() if is_told(*sort)}
    counted = ", ".join(f"{result.counters.get(name, 0):,} {name}" for name in COUNTERS)
    return (
        f"{result.verdict}{f' ({result.reason})' if result.reason else ''}: {seen.stream.counts['received']:,} messages in "
        f"{result.duration_s:,.0f} s, {resident_bytes() / MIB:,.0f} MiB; {counted}; found: {accused or 'nothing'}"
    )


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("memory", "stream"))
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--keys-max", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--writers", type=int, default=3)
    wanted = parser.parse_args()
    if wanted.what == "memory":
        memory(wanted.keys, wanted.keys_max)
        return
    with server() as address:
        os.environ["PUBSUB_EMULATOR_HOST"] = address
        pubsub_v1.PublisherClient().create_topic(request={"name": TOPIC})
        asyncio.run(observed(address, wanted.messages, wanted.writers))


if __name__ == "__main__":
    main()
