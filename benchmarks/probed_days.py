"""Days of history as probers write them, for measurements of the nightly jobs: 576 short runs on eight probe instances, all legal.

Four probers run two probe instances each, and write a file per hour. A run takes twenty minutes and may cross the hour, so the publish of
some messages is in one file and the receipt in the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.days import CALM_GAP_S, PLAIN_BYTES, REFUSED_OF, STEPS, T0_S, message_rows, recorded, stepped
from prober.core.events import Ended, Event, Opened
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.arrow import conform
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
)
from prober.sinks.history.schema import EVENTS, MESSAGES, RUNS, Table, history_file_name
from prober.sinks.history.store import HistoryStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts

PROBERS: Final = 4
INSTANCES_EACH: Final = 2
RUNS_EACH: Final = 72
RUNS_A_DAY: Final = PROBERS * INSTANCES_EACH * RUNS_EACH
KEYS: Final = 16
EVENTS_PER_MESSAGE: Final = 4
INSTANCES_APART_S: Final = 60.0
EVERY_S: Final = (DAY_S - INSTANCES_APART_S * PROBERS * INSTANCES_EACH) / RUNS_EACH
OPENS_S, SENDS_S, SENT_S, ENDS_S = 1.0, 2.0, EVERY_S - 5.0, EVERY_S - 1.0
"""Times in a run, in seconds from its start."""


class ProbedRun(NamedTuple):
    """One run: the numbers of messages of its keys, and the number of its first event."""

    context: RunContext
    origin: Origin
    begins_s: float
    messages: int

    def events(self) -> pa.Table:
        """Return all events, with all columns."""
        opened = Opened(self.t(OPENS_S), self.subscription, "stream", "prober")
        traffic = self._traffic()
        ended = Ended(self.t(ENDS_S), drained=True)
        return pa.concat_tables(
            [self._single(1, opened), recorded(traffic, self.context, self.origin, 2), self._single(traffic.num_rows + 2, ended)]
        )

    def rows(self, events: int) -> list[dict[str, object]]:
        """Return its rows of the table of runs."""
        context, origin = self.context, self.origin
        checks = {one: SliCounts(self.messages * KEYS) for one in (Indicator.ORDER, Indicator.COMPLETENESS)}
        result = RunResult(
            context.run_id, context.probe, context.target, context.vantage, Verdict.PASS, "", context.started_at, ENDS_S,
            counters={"keys": KEYS}, checks=checks,
        )  # fmt: skip
        counts = EventCounts(events, 0, None, self.messages * KEYS)
        return [beginning_row(context, origin, self.t(0.0)), ending_row(context, origin, self.t(ENDS_S), result, counts)]

    @property
    def subscription(self) -> str:
        """Its only subscription."""
        return next(iter(self.context.rules))

    def t(self, since_s: float) -> float:
        """Return the time on its prober's clock, `since_s` seconds after its start."""
        return T0_S + self.begins_s + since_s

    def _single(self, number: int, event: Event) -> pa.Table:
        return events_table(EventEncoder(self.context, self.origin).batches(number, [event]))

    def message_rows(self) -> pa.Table:
        """Return its rows of the table of messages."""
        n = np.arange(self.messages * KEYS)
        names = self._columns(n, n)
        columns = {name: names[name] for name in ("key", "message_id", "seq")} | {"bytes": names["message_bytes"]}
        times = [self._sent_s(n) + step.later_s for step in STEPS]
        return message_rows(self.context, self.origin, times, self._refused(n), columns)

    def _sent_s(self, n: np.ndarray) -> np.ndarray:
        """Return the publish times of messages, in seconds of the day."""
        return self.begins_s + SENDS_S + n * self._gap_s / KEYS

    def _refused(self, n: np.ndarray) -> np.ndarray:
        refused: np.ndarray = (self._gap_s > CALM_GAP_S) & (n // KEYS % REFUSED_OF == REFUSED_OF // 2)
        return refused

    @property
    def _gap_s(self) -> float:
        return (SENT_S - SENDS_S) / self.messages

    def _traffic(self) -> pa.Table:
        n = np.tile(np.arange(self.messages * KEYS), len(STEPS))
        steps = np.repeat(np.arange(len(STEPS)), self.messages * KEYS)
        later_s = np.array([step.later_s for step in STEPS])
        refused = self._refused(n)
        wanted = np.array([-1 if step.refused is None else int(step.refused) for step in STEPS])[steps]
        t = self._sent_s(n) + later_s[steps]
        order = np.argsort(t, kind="stable")
        order = order[((wanted == -1) | (wanted == refused))[order]]
        return stepped(steps[order], t[order], self._columns(n[order], order))

    def _columns(self, n: np.ndarray, order: np.ndarray) -> dict[str, pa.Array]:
        size = len(order)
        return {
            "subscription": pa.repeat(self.subscription, size),
            "key": pa.array([f"key-{number:02}" for number in range(KEYS)]).take(pa.array(n % KEYS)),
            "epoch": pa.repeat(self.context.run_id, size),
            "seq": pa.array(n // KEYS + 1),
            "generation": pa.repeat(0, size),
            "message_id": pa.array(round(self.begins_s * 1e6) * 10**6 + n).cast(pa.string()),
            "session": pa.repeat("stream", size),
            "delivery_attempt": pa.repeat(0, size),
            "matches_filter": pa.repeat(True, size),
            "message_bytes": pa.array(np.full(size, PLAIN_BYTES), mask=order >= self.messages * KEYS),
        }


def runs_of(prober: int, day: date, events: int) -> Iterator[ProbedRun]:
    """Yield the runs of a prober in their order; `events`: number of events of all probers on the day."""
    midnight = datetime.combine(day, time(), UTC).timestamp()
    origin = Origin(f"prober-{prober}", midnight - T0_S)
    messages = max(1, events // (RUNS_A_DAY * EVENTS_PER_MESSAGE * KEYS))
    for number in range(RUNS_EACH):
        for instance in range(prober * INSTANCES_EACH, (prober + 1) * INSTANCES_EACH):
            begins_s = number * EVERY_S + instance * INSTANCES_APART_S
            about = (
                "benchmark",
                "production",
                "europe-west1",
                f"probe-{instance}",
                "wire",
                f"projects/benchmark/topics/site-{instance}",
            )
            rules = {f"projects/benchmark/subscriptions/site-{instance}": Rules()}
            yield ProbedRun(RunContext(f"run-{instance}-{number}", *about, rules, midnight + begins_s), origin, begins_s, messages)


def write_probed_day(location: str, day: date, events: int) -> None:
    """Write a day with about this number of events; the rows of the runs come last, so a history with all of them is complete."""
    store = HistoryStore(location)
    rows = {prober: list(_written_events(store, prober, day, events)) for prober in range(PROBERS)}
    for prober, members in rows.items():
        _write(store, RUNS, conform(pa.Table.from_batches([rows_batch(RUNS, members)]), RUNS), prober, 25)


def _written_events(store: HistoryStore, prober: int, day: date, events: int) -> Iterator[dict[str, object]]:
    """Write the events of a prober hour by hour, and yield the rows of its runs."""
    waiting: list[pa.Table] = []
    messages: list[pa.Table] = []
    hour = 1
    for run in runs_of(prober, day, events):
        while run.begins_s >= hour * HOUR_S:
            waiting = [_write_until(store, waiting, prober, hour)]
            _write(store, MESSAGES, pa.concat_tables(messages), prober, hour)
            messages = []
            hour += 1
        waiting.append(run.events())
        messages.append(run.message_rows())
        yield from run.rows(waiting[-1].num_rows)
    _write(store, EVENTS, pa.concat_tables(waiting), prober, 24)
    _write(store, MESSAGES, pa.concat_tables(messages), prober, 24)


def _write_until(store: HistoryStore, waiting: list[pa.Table], prober: int, hour: int) -> pa.Table:
    """Write all events before the end of an hour (the first is 1); return the later ones."""
    rows = pa.concat_tables(waiting).combine_chunks()
    past = pc.less(rows["t"], T0_S + hour * HOUR_S)
    _write(store, EVENTS, rows.filter(past), prober, hour)
    return rows.filter(pc.invert(past))


def _write(store: HistoryStore, table: Table, rows: pa.Table, prober: int, segment: int) -> None:
    for file in divided(rows, table, history_file_name(table, f"prober-{prober}", segment)):
        store.write(file.path, file.content)
