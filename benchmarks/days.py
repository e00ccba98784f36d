"""Simple days of history of any size for measurements of the nightly jobs: legal traffic on many keys, a few of them hot.

A day is one long run. Message n of a key is sent near (n + phase) / rate, and the times of its other events follow from that. So any part
of the day can be computed independently, column by column and in the order of the recorder, and memory does not grow with the day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import count, pairwise
from math import ceil
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prober.core.events import Ended, Event, Opened
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.arrow import ARROW_TYPES, conform
from prober.sinks.history.encoding import (
    EventCounts,
    EventEncoder,
    Origin,
    RunContext,
    beginning_row,
    divided,
    ending_row,
    events_table,
    rows_batch,
    shared_columns,
    wall_time,
)
from prober.sinks.history.schema import EVENT_FIELDS, EVENTS, MESSAGES, RUNS, Table, Type, history_file_name
from prober.sinks.history.store import HistoryStore
from prober.slo.hot_keys import HotKeyClass
from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S

PROCESS: Final = "benchmark"
TOPIC, SUBSCRIPTION = "projects/benchmark/topics/traffic", "projects/benchmark/subscriptions/traffic"
RUN_ID: Final = "traffic-1"
STREAMS: Final = ("stream-0", "stream-1", "stream-2", "stream-3")
KEYS_MAX: Final = 4_000
MESSAGES_PER_KEY: Final = 200
"""Minimum number of messages per key: a day has as many keys as it allows, up to `KEYS_MAX`."""
EVENTS_PER_MESSAGE: Final = 4
ROWS_AT_ONCE: Final = 250_000
T0_S: Final = 1_000.0
"""Reading of the recorder's clock at midnight, in seconds."""
OPENS_S, SENDS_S, ENDS_S = 5.0, 10.0, DAY_S - 1.0
PLAIN_BYTES: Final = 256
BUSY_BYTES_PER_S: Final = 0.95e6
REFUSED_OF: Final = 97
"""Interval of nacked and redelivered messages: one message in this many."""
CALM_GAP_S: Final = 2.0
"""Minimum gap between messages of a key with nacks: with a shorter gap later messages are redelivered, too."""
GOLDEN: Final = 0.618034
"""Golden ratio: its multiples fill the time between two turns evenly, without repetition."""

Numbers = NDArray[Any]


# --- keys --------------------------------------------------------------------------------------------------------------------


class KeyTraffic(NamedTuple):
    """Traffic of one key.

    share     share of the messages of the day, all sent by `until_s`.
    slowness  duration of receiving all messages as a multiple of that of sending them: above 1, its consumer is too slow.
    """

    name: str
    share: float
    until_s: float = DAY_S - 10 * MINUTE_S
    is_busy: bool = False
    slowness: float = 1.0


HOT: Final = {
    KeyTraffic("hot-skewed", 0.3): HotKeyClass.SKEWED,
    KeyTraffic("hot-throughput", 0.01, HOUR_S, is_busy=True): HotKeyClass.THROUGHPUT_BOUND,
    KeyTraffic("hot-consumer", 0.14, 0.65 * DAY_S, slowness=1.45): HotKeyClass.CONSUMER_BOUND,
}
"""Keys that the jobs must find, and their classes."""


def key_traffic(messages: int) -> list[KeyTraffic]:
    """Return all keys of a day with this number of messages."""
    rng = Random(1)
    weights = [rng.uniform(0.7, 1.3) for _ in range(min(KEYS_MAX, messages // MESSAGES_PER_KEY))]
    plain = (1.0 - sum(key.share for key in HOT)) / sum(weights)
    return [*HOT, *(KeyTraffic(f"key-{number:05}", weight * plain) for number, weight in enumerate(weights))]


# --- events of messages --------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """Event of messages: its delay after the publish, whether it waits for the consumer, and its messages (`refused`; None: all)."""

    event: str
    later_s: float
    waits: bool = True
    refused: bool | None = None


STEPS: Final = (
    Step("publish", 0.0, waits=False),
    Step("published", 0.02, waits=False),
    Step("delivered", 0.06),
    Step("acked", 0.08, refused=False),
    Step("nacked", 0.08, refused=True),
    Step("delivered", 0.36, refused=True),
    Step("acked", 0.4, refused=True),
)
PUBLISH, CONFIRM, RECEIVE, ACK, NACK, RECEIVE_AGAIN, ACK_AGAIN = range(len(STEPS))
"""Numbers of the steps; only the publish has the size of the message."""


class Traffic:
    """The messages of one day."""

    def __init__(self, messages: int) -> None:
        rng, keys = Random(2), key_traffic(messages)
        self._names = pa.array([key.name for key in keys])
        self._counts = np.array([round(key.share * messages) for key in keys])
        self._rates = self._counts / np.array([key.until_s - SENDS_S for key in keys])
        self._phases = np.array([rng.uniform(0.0, 0.5) for _ in keys])
        self._paces = np.array([rng.uniform(0.5, 1.5) for _ in keys])
        self._slowness = np.array([key.slowness for key in keys])
        self._sizes = np.where([key.is_busy for key in keys], BUSY_BYTES_PER_S / self._rates, PLAIN_BYTES).astype(int)
        self._calm = 0.5 / self._rates > CALM_GAP_S

    def parts(self) -> Iterable[tuple[float, float]]:
        """Return parts of the day of at most an hour, in seconds."""
        parts = ceil(EVENTS_PER_MESSAGE * self._counts.sum() / DAY_S * HOUR_S / ROWS_AT_ONCE)
        return pairwise(np.linspace(0.0, DAY_S, 24 * parts + 1))

    def messages(self, run: RunContext, origin: Origin) -> Iterator[pa.Table]:
        """Yield all messages in the order of publishing, in the same parts: rows of the table."""
        for begin, end in self.parts():
            _, k, n, sent_s = self._selected(PUBLISH, begin, end)
            times = [self._slowed(step)[k] * sent_s + step.later_s * self._paces[k] for step in STEPS]
            refused = self._calm[k] & (n % REFUSED_OF == 0)
            names = {"key": self._names.take(pa.array(k)), "message_id": pa.array((k + 1) * 10**10 + n).cast(pa.string())}
            if len(k):
                yield message_rows(
                    run, origin, times, refused, {**names, "seq": pa.array(n + 1), "bytes": pa.array(self._sizes[k])}
                )

    def events(self) -> Iterator[pa.Table]:
        """Yield all events in the recorder's order, in parts of at most an hour: the columns that differ from row to row."""
        for begin, end in self.parts():
            columns = zip(*(self._selected(number, begin, end) for number in range(len(STEPS))), strict=True)
            steps, keys, numbers, times = map(np.concatenate, columns)
            order = np.argsort(times, kind="stable")
            if len(order):
                yield self._rows(steps[order], keys[order], numbers[order], times[order])

    def _selected(self, number: int, begin: float, end: float) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return the occurrences of a step in a period: step, keys, message numbers and times."""
        step = STEPS[number]
        first = np.clip(self._turns(step, begin) - 1.0, 0, self._counts).astype(int)
        last = np.clip(self._turns(step, end) + 1.0, 0, self._counts).astype(int)
        k = np.repeat(np.arange(len(first)), last - first)
        n = np.arange(len(k)) - np.repeat(np.cumsum(last - first) - last, last - first)
        t = self._slowed(step)[k] * self._sent_s(k, n) + step.later_s * self._paces[k]
        chosen = (begin <= t) & (t < end)
        if step.refused is not None:
            chosen &= (self._calm[k] & (n % REFUSED_OF == 0)) == step.refused
        return np.full(chosen.sum(), number), k[chosen], n[chosen], t[chosen]

    def _sent_s(self, k: Numbers, n: Numbers) -> Numbers:
        sent_s: Numbers = SENDS_S + (n + self._phases[k] + 0.5 * (n * GOLDEN % 1.0)) / self._rates[k]
        return sent_s

    def _turns(self, step: Step, t: float) -> Numbers:
        """Return the number of the message of each key to which the step happens at about `t`."""
        sent_s = (t - step.later_s * self._paces) / self._slowed(step)
        turns: Numbers = (sent_s - SENDS_S) * self._rates
        return turns

    def _slowed(self, step: Step) -> Numbers:
        return self._slowness if step.waits else np.ones(len(self._slowness))

    def _rows(self, steps: Numbers, k: Numbers, n: Numbers, t: Numbers) -> pa.Table:
        columns = {
            "subscription": pa.repeat(SUBSCRIPTION, len(k)),
            "key": self._names.take(pa.array(k)),
            "epoch": pa.repeat(RUN_ID, len(k)),
            "seq": pa.array(n + 1),
            "generation": pa.repeat(0, len(k)),
            "message_id": pa.array((k + 1) * 10**10 + n).cast(pa.string()),
            "session": pa.array(STREAMS).take(pa.array(k % len(STREAMS))),
            "delivery_attempt": pa.repeat(0, len(k)),
            "matches_filter": pa.repeat(True, len(k)),
            "message_bytes": pa.array(self._sizes[k], mask=steps != PUBLISH),  # of deliveries it is recorded if others published
        }
        return stepped(steps, t, columns)


def stepped(steps: Numbers, t: Numbers, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return events by the number of their step, at seconds of the day; each has only the columns of its type."""
    own = {name: _of_steps([name in EVENT_FIELDS[step.event].values() for step in STEPS], steps) for name in columns}
    present = {name: pc.if_else(own[name], values, None) for name, values in columns.items()}
    return pa.table({"t": t + T0_S, "event": _of_steps([step.event for step in STEPS], steps), **present})


def _of_steps(values: list[Any], steps: Numbers) -> pa.Array:
    return pa.array(values).take(pa.array(steps))


def message_rows(
    run: RunContext, origin: Origin, times: Sequence[Numbers], refused: Numbers, columns: Mapping[str, pa.Array]
) -> pa.Table:
    """Return rows of the table of messages.

    Arguments: the columns that differ from row to row, the time of each step, and the nacked messages.
    """
    count = len(refused)
    at = [wall_time(pa.array(t + T0_S), origin.clock_offset_s) for t in times]
    again = [at[step].filter(pa.array(refused)) for step in (RECEIVE_AGAIN, NACK)]
    lagged_us = pa.nulls(len(again[0]), pa.int64())
    structs = pa.StructArray.from_arrays([*again, lagged_us], fields=list(ARROW_TYPES[Type.REDELIVERIES].value_type))
    offsets = np.concatenate(([0], np.cumsum(refused))).astype(np.int32)
    acked = pc.if_else(pa.array(refused), at[ACK_AGAIN], at[ACK])
    shared = {"topic": run.topic, "subscription": next(iter(run.rules)), "epoch": run.run_id, "own": True, "outcome": "acked"}
    shared |= {**shared_columns(run, origin), **dict.fromkeys(("attempts", "confirmed"), 1)}
    shared |= dict.fromkeys(("rejected", "unknown", "subscriber_changes"), 0)
    return conform(
        pa.table(
            {
                **{name: pa.repeat(value, count) for name, value in shared.items()},
                **columns,
                "deliveries": pa.array(1 + refused.astype(int)),
                "nacks": pa.array(refused.astype(int)),
                "intended_at": at[PUBLISH],
                "published_at": at[PUBLISH],
                "confirmed_at": at[CONFIRM],
                "received_at": at[RECEIVE],
                "acked_at": acked,
                "waited_until": acked,
                "redeliveries": pa.ListArray.from_arrays(pa.array(offsets), structs, mask=pa.array(~refused)),
            }
        ),
        MESSAGES,
    )


# --- files -------------------------------------------------------------------------------------------------------------------


def write_day(location: str, day: date, events: int) -> None:
    """Write a day with about this number of events; the rows of its run come last, so a history that contains them is complete."""
    midnight = datetime.combine(day, time(), UTC).timestamp()
    origin = Origin(PROCESS, midnight - T0_S)
    about = ("benchmark", "production", "europe-west1", "traffic", "wire", TOPIC)
    run = RunContext(RUN_ID, *about, {SUBSCRIPTION: Rules()}, midnight)
    files = _Files(HistoryStore(location), run, origin)
    files.write_events(1, [Opened(T0_S + OPENS_S, SUBSCRIPTION, stream, stream) for stream in STREAMS])
    number = len(STREAMS) + 1
    traffic, messages = Traffic(events // EVENTS_PER_MESSAGE), 0
    for rows in traffic.events():
        files.write_traffic(number, rows)
        number += rows.num_rows
    for rows in traffic.messages(run, origin):
        files.write_messages(rows)
        messages += rows.num_rows
    files.write_events(number, [Ended(T0_S + ENDS_S, drained=True)])
    result = RunResult(RUN_ID, run.probe, run.target, run.vantage, Verdict.PASS, "", midnight, ENDS_S)
    ended = ending_row(run, origin, T0_S + ENDS_S, result, EventCounts(number, 0, None, messages))
    files.write_runs([beginning_row(run, origin, T0_S), ended])


def recorded(rows: pa.Table, run: RunContext, origin: Origin, first: int) -> pa.Table:
    """Return rows of `stepped` with all columns of the table; `first`: number of the first row in its run."""
    shared = {"topic": run.topic, **shared_columns(run, origin)}
    columns = {name: pa.repeat(value, rows.num_rows) for name, value in shared.items()}
    columns["number"] = pa.arange(first, first + rows.num_rows)
    columns["time"] = wall_time(rows["t"], origin.clock_offset_s)
    columns |= dict(zip(rows.column_names, rows.columns, strict=True))
    return conform(pa.table(columns), EVENTS)


class _Files:
    """The files of one run."""

    def __init__(self, store: HistoryStore, run: RunContext, origin: Origin) -> None:
        self._store, self._run, self._origin = store, run, origin
        self._segments = count(1)

    def write_events(self, first: int, events: list[Event]) -> None:
        """Write events; `first`: number of the first."""
        self._write(EVENTS, events_table(EventEncoder(self._run, self._origin).batches(first, events)))

    def write_traffic(self, first: int, rows: pa.Table) -> None:
        """Write rows of `Traffic`; `first`: number of the first."""
        self._write(EVENTS, recorded(rows, self._run, self._origin, first))

    def write_messages(self, rows: pa.Table) -> None:
        """Write rows of `Traffic.messages`."""
        self._write(MESSAGES, rows)

    def write_runs(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write the rows of runs."""
        self._write(RUNS, conform(pa.Table.from_batches([rows_batch(RUNS, rows)]), RUNS))

    def _write(self, table: Table, rows: pa.Table) -> None:
        for file in divided(rows, table, history_file_name(table, PROCESS, next(self._segments))):
            self._store.write(file.path, file.content)
