"""The messages of runs: rows written by the service and, for runs without them, rows derived from their events.

The service cannot write the rows of a run that was cut short, is too large, or lacks events; older versions wrote none. Executors derive
them as the service does (`prober.sinks.history.messages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from prober.core.events import Event
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.decoding import EVENT_COLUMNS, events_of
from prober.sinks.history.messages import MessageRows
from prober.sinks.history.schema import LAGGED, MESSAGES, MESSAGES_WRITTEN, decode_rules
from prober.slo.objectives import DAY_S, MICROS
from spark_jobs.history import struct_of
from spark_jobs.tables import Tables, collected, frame_of, held

RUN_MAX_US: Final = int(DAY_S * MICROS)
"""Maximum time after its start in which events of a run without an end are searched."""
_DAY: Final = timedelta(days=1)


class DayMessages:
    """The messages of a day and of the day before it, as in `MESSAGES`; missing rows are derived at creation.

    runs   rows of `Tables.runs` of all runs that were active on these days.
    """

    def __init__(self, tables: Tables, day: date) -> None:
        self.runs = held(tables.runs(day - _DAY, day + _DAY))
        self._tables, self._day = tables, day
        known = self.runs.select("run_id", MESSAGES_WRITTEN, "began_us", "ended_us", sf.lit(True).alias("known"))
        found = tables.read(MESSAGES, day - 2 * _DAY, day + _DAY).groupBy("run_id").agg(sf.count("*").alias("found"))
        whole = sf.coalesce(sf.col("known") & (sf.col(MESSAGES_WRITTEN) == sf.coalesce("found", sf.lit(0))), sf.lit(False))
        others = known.join(found, "run_id", "full").where(~whole).collect()
        self._others = frame_of(tables.spark, ({"run_id": row["run_id"]} for row in others), "run_id string") if others else None
        lacking = [row for row in others if row["known"]]
        self._derived = None if self._others is None or not lacking else self._derive(self._others, lacking)

    def since(self, first: date) -> DataFrame:
        """Return the messages that were to be sent on the days from `first` on."""
        written = self._tables.read(MESSAGES, first, self._day)
        if self._others is None:
            return written
        rows = written.join(sf.broadcast(self._others), "run_id", "left_anti").select(*MESSAGES.column_names)
        return rows if self._derived is None else rows.unionByName(self._derived.where(sf.col("intended_at") >= _start(first)))

    def _derive(self, names: DataFrame, lacking: Sequence[Row]) -> DataFrame:
        since_us = min(row["began_us"] for row in lacking)
        until_us = max(row["began_us"] + RUN_MAX_US if row["ended_us"] is None else row["ended_us"] for row in lacking)
        of_runs = sf.broadcast(names)
        events = self._tables.events(since_us, until_us).join(of_runs, "run_id", "left_semi")
        rows = derive(events, self.runs.join(of_runs, "run_id", "left_semi"))
        begin, end = _start(self._day - _DAY), _start(self._day + _DAY)
        # Callers read the messages more than once; the rows are few, and cost much.
        return rows.where((sf.col("intended_at") >= begin) & (sf.col("intended_at") < end)).localCheckpoint()


class Night:
    """Messages by day, for jobs that run in parallel: those of each day are derived once."""

    def __init__(self) -> None:
        self._lock, self._days = Lock(), dict[date, DayMessages]()

    def messages(self, tables: Tables, day: date) -> DayMessages:
        """Return the messages of a day; thread-safe."""
        with self._lock:
            if day not in self._days:
                self._days[day] = DayMessages(tables, day)
            return self._days[day]


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def derive(events: DataFrame, runs: DataFrame) -> DataFrame:
    """Return all messages of these runs, as in `MESSAGES`, from all their events, each given once.

    The events of a run are divided by key, so that its messages fit into memory. Each part gets the events that concern all keys.
    """
    parts = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    own = sf.array(sf.pmod(sf.xxhash64("key"), sf.lit(parts)).cast("int"))
    every = sf.when(sf.col("event").isin(*OF_ALL_KEYS), sf.sequence(sf.lit(0), sf.lit(parts - 1)))
    part = sf.explode(sf.when(sf.col("key").isNotNull(), own).otherwise(every)).alias("part")
    return (
        events.select(*COLUMNS, part)
        .repartition(parts, "run_id", "part")
        .sortWithinPartitions("run_id", "part", "time", "process", "number")
        .mapInArrow(derivation({row["run_id"]: row for row in collected(runs)}), struct_of(MESSAGES))
    )


OF_ALL_KEYS: Final = ("opened", "sought", "filter_changed")
COLUMNS: Final = ("run_id", "process", "number", "time", LAGGED, *EVENT_COLUMNS)
"""Columns of events that `derivation` needs."""


def derivation(runs: Mapping[str, Mapping[str, Any]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`: from events, part after part of these runs and in the order of time, to their messages."""

    def derived(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (run_id, _), events in groupby(_events(batches), key=itemgetter(0, 1)):
            run = runs[run_id]
            messages = MessageRows(run_id, decode_rules(run["rules"]), 0.0)
            for *_, event, lagged_s, now_us in events:
                messages.add(event, lagged_s or 0.0, now_us)
            shared = {name: run[name] for name in SHARED}
            rows = [row | shared for row in messages.rows(run["ended_us"])]
            yield pa.RecordBatch.from_pylist(rows, schema_of(MESSAGES))

    return derived


SHARED: Final = ("run_id", "process", "target", "environment", "region", "probe", "vantage", "topic")


def _events(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, Event, float | None, int]]:
    for batch in batches:
        if batch.num_rows:
            run_id, part, lagged_s = (batch.column(name).to_pylist() for name in ("run_id", "part", LAGGED))
            now_us = batch.column("time").cast(pa.int64()).to_pylist()
            yield from zip(run_id, part, events_of(batch), lagged_s, now_us, strict=True)
