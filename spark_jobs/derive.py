"""The messages of runs: rows written by the service and, for runs without them, rows derived from their events.

The service cannot write the rows of a run that was cut short, is too large, or lacks events; older versions wrote none. `DERIVED` states in
SQL what `prober.sinks.history.messages` states for the service: the same events result in the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from threading import Lock
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from prober.sinks.history.schema import LAGGED, MESSAGES, MESSAGES_WRITTEN
from prober.slo.objectives import DAY_S, MICROS
from spark_jobs.tables import Tables, frame_of, held

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
    """Return all messages of these runs, as in `MESSAGES`, from all their events, each given once."""
    timed = events.select(
        "*",
        sf.struct("time", "process", "number").alias("place"),
        sf.unix_micros("time").alias("us"),
        sf.rint(sf.col(LAGGED) * MICROS).cast("long").alias("lagged_us"),
    )
    return events.sparkSession.sql(DERIVED, timed=timed, runs=runs)


DERIVED: Final = """
WITH published AS (
  SELECT run_id, key, epoch, seq,
    min(us) AS first_us,
    count_if(event = 'publish') AS attempts,
    count_if(event = 'published') AS confirmed,
    count_if(event = 'publish_failed') AS rejected,
    count_if(event = 'publish_unknown') AS unknown,
    min(IF(event = 'publish', us - CAST(rint(coalesce(t - intended_t, 0) * 1e6) AS BIGINT), NULL)) AS intended_us,
    min(IF(event = 'publish', us, NULL)) AS published_us,
    max(IF(event = 'publish', message_bytes, NULL)) AS bytes,
    min(IF(event = 'published', struct(place, us, message_id, lagged_us), NULL)) AS confirmation,
    collect_set(IF(event = 'published', message_id, NULL)) AS ids
  FROM {timed}
  WHERE event IN ('publish', 'published', 'publish_failed', 'publish_unknown')
  GROUP BY run_id, key, epoch, seq
),
asked AS (  -- the filter of a subscription passes every message, or every so many
  SELECT run_id, subscription,
    coalesce(CAST(get_json_object(rules, concat("$['", subscription, "'].filter_every")) AS INT), 0) AS passes_every
  FROM (SELECT run_id, rules, explode(subscriptions) AS subscription FROM {runs})
),
expected AS (
  SELECT * EXCEPT (passes_every) FROM published JOIN asked USING (run_id) WHERE passes_every < 2 OR seq % passes_every = 0
),
owner AS (
  SELECT run_id, subscription, session, min_by(subscriber, place) AS subscriber
  FROM {timed} WHERE key IS NULL AND event = 'opened' GROUP BY run_id, subscription, session
),
unsettled AS (
  SELECT run_id, subscription, collect_list(struct(us, event)) AS times
  FROM {timed} WHERE key IS NULL AND event IN ('sought', 'filter_changed') GROUP BY run_id, subscription
),
answer AS (  -- what happened to a record, and of the record as a whole: how often it was nacked, and what ended its wait
  SELECT *,
    lag(CASE event WHEN 'nacked' THEN us WHEN 'lease_modified' THEN us + CAST(rint(seconds * 1e6) AS BIGINT) END)
      OVER (PARTITION BY run_id, subscription, key, message_id ORDER BY place) AS due_us,
    count_if(event = 'nacked') OVER record AS nacks,
    min(IF(event = 'acked', us, NULL)) OVER record AS acked_us,
    min(IF(event = 'dead_lettered', us, NULL)) OVER record AS dead_lettered_us
  FROM {timed} WHERE event IN ('delivered', 'acked', 'nacked', 'lease_modified', 'dead_lettered')
  WINDOW record AS (PARTITION BY run_id, subscription, key, message_id)
),
delivery AS (  -- in a stream whose publishes nobody recorded a delivery has a size, and its id names the message
  SELECT run_id, subscription, key,
    IF(message_bytes IS NULL, epoch, NULL) AS epoch,
    IF(message_bytes IS NULL, seq, NULL) AS seq,
    IF(message_bytes IS NULL, NULL, message_id) AS name,
    struct(place, us, message_id, lagged_us, IF(due_us <= us, due_us, NULL) AS due_us, message_bytes AS bytes,
      publish_time_ns div 1000 AS published_us, nacks, acked_us, dead_lettered_us) AS it,
    coalesce(owner.subscriber, session) AS subscriber
  FROM (SELECT * EXCEPT (subscriber) FROM answer WHERE event = 'delivered') LEFT JOIN owner USING (run_id, subscription, session)
),
moved AS (
  SELECT *, subscriber <> lag(subscriber) OVER (PARTITION BY run_id, subscription, key ORDER BY it.place) AS is_change FROM delivery
),
received AS (
  SELECT run_id, subscription, key, epoch, seq, name,
    count(*) AS deliveries,
    count_if(is_change) AS changes,
    min(it) AS first,
    array_sort(collect_list(it)) AS every
  FROM moved GROUP BY run_id, subscription, key, epoch, seq, name
),
message AS (
  SELECT *,
    coalesce(confirmation.message_id, first.message_id) AS message_id,
    get(filter(every, one -> one.message_id = coalesce(confirmation.message_id, first.message_id)), 0) AS record,
    transform(IF(cardinality(ids) > 0, ids, array(first.message_id)),
      id -> get(filter(every, one -> one.message_id = id), 0)) AS records,
    least(confirmation.us, first.us) AS stored_us
  FROM expected FULL JOIN received USING (run_id, subscription, key, epoch, seq)
),
waited AS (  -- a record waits until the first of two ends, a message until its last record does not
  SELECT *,
    transform(records, one -> array_min(filter(
      array(struct(one.acked_us AS us, 'acked' AS event), struct(one.dead_lettered_us AS us, 'dead_lettered' AS event)),
      end -> end.us IS NOT NULL))) AS ends
  FROM message
),
ended AS (
  SELECT *,
    array_min(filter(
      concat(
        array(IF(exists(ends, end -> end IS NULL), NULL, array_max(ends))),
        coalesce(filter(times, one -> one.us >= stored_us), array())),
      end -> end IS NOT NULL)) AS end
  FROM waited LEFT JOIN unsettled USING (run_id, subscription)
)
SELECT run_id, process, target, environment, region, probe, vantage, topic, ended.subscription, key, epoch, seq, message_id,
  coalesce(epoch = run_id, false) AS own,
  coalesce(bytes, first.bytes) AS bytes,
  coalesce(attempts, 0) AS attempts,
  coalesce(confirmed, 0) AS confirmed,
  coalesce(rejected, 0) AS rejected,
  coalesce(unknown, 0) AS unknown,
  coalesce(deliveries, 0) AS deliveries,
  coalesce(record.nacks, 0) AS nacks,
  coalesce(changes, 0) AS subscriber_changes,
  timestamp_micros(coalesce(intended_us, least(first_us, first.us))) AS intended_at,
  timestamp_micros(coalesce(published_us, first.published_us)) AS published_at,
  timestamp_micros(confirmation.us) AS confirmed_at,
  timestamp_micros(first.us) AS received_at,
  timestamp_micros(record.acked_us) AS acked_at,
  timestamp_micros(IF(stored_us IS NULL, NULL, coalesce(end.us, ended_us))) AS waited_until,
  confirmation.lagged_us AS confirmed_lagged_us,
  first.lagged_us AS received_lagged_us,
  CASE WHEN end IS NOT NULL THEN end.event
       WHEN deliveries > 0 THEN 'delivered'
       WHEN confirmed > 0 THEN 'published'
       WHEN unknown > 0 THEN 'publish_unknown'
       WHEN attempts > rejected THEN 'publish'
       ELSE 'publish_failed' END AS outcome,
  IF(deliveries > 1, transform(slice(every, 2, size(every)), one -> struct(
    timestamp_micros(one.us) AS received_at, timestamp_micros(one.due_us) AS due_at, one.lagged_us AS lagged_us)), NULL)
    AS redeliveries
FROM ended JOIN {runs} AS run USING (run_id)
"""
