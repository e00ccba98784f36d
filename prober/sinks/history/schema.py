"""The columns of the probe history, defined once: for the writer, the reader and the nightly jobs.

Spark executors import it, so it needs little. Types are Arrow's; `spark_jobs.history` derives Spark's own.

Four tables, each a folder of Parquet files under `HISTORY`:

* `events/date=YYYY-MM-DD/hour=HH/`: every event of every run. A row is one `prober.core.events` value, with the columns of its run; columns
of other kinds of events are null. `EVENT_FIELDS` maps the fields of the value to columns.
* `runs/date=YYYY-MM-DD/`: two rows per run, one at its start (`verdict` is null) and one at its end. A run with only the first row was cut
short, or still goes on.
* `findings/date=YYYY-MM-DD/`: every finding of the online checker.
* `messages/date=YYYY-MM-DD/`: one row per message and subscription of a run, derived from the run's events and written at its end
(`messages`). `MESSAGES_WRITTEN` in `runs` reports the number of these rows, or that they were not written.

Dates and hours are UTC, those of the column `Table.time`. The metadata of files contains the version of this schema, and so do the rows of
`runs`, for engines that do not show the metadata. Readers refuse a newer version. Columns may be added within a version, and are null in
files without them.

(`process`, `run_id`, `number`) identifies an event, also in a copy of a file under a second name. Within a run `number` is the order of
recording, and neither `t` nor `time` ever decreases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf, isinf
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from prober.core.events import EVENT_TYPES
from prober.core.findings import Kind
from prober.core.rules import Mode, Rules

VERSION: Final = 1
VERSION_KEY: Final = "ordering_prober_schema_version"
"""Key of the schema version in a file's metadata; the value is a decimal number."""


TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
REDELIVERIES: Final = pa.list_(pa.struct([("received_at", TIMESTAMP), ("due_at", TIMESTAMP), ("lagged_us", pa.int64())]))
_COUNTS: Final = [("good", pa.int64()), ("bad", pa.int64()), ("undecided", pa.int64())]
_CHECKS: Final = pa.list_(pa.struct([("indicator", pa.string()), *_COUNTS]))
_FINDING_COUNTS: Final = pa.list_(pa.struct([("kind", pa.string()), ("status", pa.string()), ("count", pa.int64())]))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `required` columns are never null."""

    name: str
    type: pa.DataType
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its folder under `HISTORY`, its columns, whether it is divided by hour, and the sort order of rows in a file.

    Nulls come first. Statistics of the columns in `sorted_by` let queries skip rows. The date, or hour, of the column `time` names the
    folder.
    """

    name: str
    columns: tuple[Column, ...]
    sorted_by: tuple[str, ...]
    hourly: bool = False
    time: str = "time"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of a file."""
        return tuple(column.name for column in self.columns)


LAGGED: Final = "lagged_s"
"""Column of `EVENTS` that is not a field of events: the event loop lag in an event's latency (`prober.runs.recorder`)."""

MESSAGES_WRITTEN: Final = "messages"
"""Column of `RUNS` with the number of rows of the run in `MESSAGES`."""
SCHEMA_VERSION: Final = "schema_version"
"""Column of `RUNS` with the schema version under which a run was written; null: version 1."""

_RUN: Final = (
    Column("run_id", pa.string(), "the run that recorded it", required=True),
    Column("process", pa.string(), "incarnation of the recording process; its clock has one offset", required=True),
    Column("target", pa.string(), "name of the target", required=True),
    Column("environment", pa.string(), "of the target", required=True),
    Column("region", pa.string(), "of the target", required=True),
    Column("probe", pa.string(), "name of the probe", required=True),
    Column("vantage", pa.string(), "client of the probe: wire or library", required=True),
)

EVENTS: Final = Table(
    "events",
    (
        Column("time", TIMESTAMP, "`t` as wall time, by the offset that the process measured at its start", required=True),
        Column("t", pa.float64(), "the recorder's monotonic clock, seconds; comparable within a process only", required=True),
        Column("number", pa.int64(), "1, 2, 3, ... in the run, in recorder order; interrupted follows a gap", required=True),
        *_RUN,
        Column("topic", pa.string(), "full name of the run's topic", required=True),
        Column("subscription", pa.string(), "full name; null for publish events and for those that concern all subscriptions"),
        Column("key", pa.string(), "ordering key; null for events that concern all keys"),
        Column("event", pa.string(), "kind of event: a name of EVENT_TYPES", required=True),
        Column("epoch", pa.string(), "incarnation of the publisher"),
        Column("seq", pa.int64(), "sequence number per epoch and key"),
        Column("generation", pa.int64(), "the prober's own republishing of a sequence number"),
        Column("message_id", pa.string(), "assigned by the service"),
        Column("session", pa.string(), "stream, pull response or push request"),
        Column("subscriber", pa.string(), "owner of a session that opened"),
        Column("delivery_attempt", pa.int64(), "the service's approximate count, 0 without a dead-letter policy"),
        Column("seconds", pa.float64(), "a lease modification: new length of the lease from now"),
        Column("defect", pa.string(), "defect of a delivered message itself; null: none"),
        Column("matches_filter", pa.bool_(), "false: the filter should have excluded a delivered message"),
        Column("publish_time", pa.float64(), "publish time of a confirmed message according to the service, if recorded"),
        Column("invoked_t", pa.float64(), "time at which a unary pull was sent, on the clock of `t`"),
        Column("intended_t", pa.float64(), "intended time of a publish if it is before `t`, on the clock of `t`"),
        Column(
            "message_bytes",
            pa.int64(),
            "size of the data of a publish, 0 if not recorded; of a delivered message of another publisher",
        ),
        Column("settle_s", pa.float64(), "time after a seek or filter change in which earlier messages may still be delivered"),
        Column("drained", pa.bool_(), "the end of a run: publishing had stopped and the run had waited for deliveries"),
        Column("publish_region", pa.string(), "region of the publish; empty: unknown"),
        Column(
            "publish_time_ns",
            pa.int64(),
            "publish time of a delivered message according to the service, nanoseconds since 1970; null: not stated",
        ),
        Column("max_outstanding_messages", pa.int64(), "flow control of a stream that opened; null or not above 0: no limit"),
        Column("max_outstanding_bytes", pa.int64(), "likewise in bytes"),
        Column("lost", pa.bool_(), "the end of a pull: the pull had no answer"),
        Column(
            LAGGED,
            pa.float64(),
            "seconds of event loop lag in the latency that a confirmation or delivery shows; null: none",
        ),
        Column(
            "since_t", pa.float64(), "a seek: messages published since then must be redelivered; on the clock of `t`; null: unknown"
        ),
    ),
    sorted_by=("subscription", "key", "run_id", "number"),
    hourly=True,
)

RUNS: Final = Table(
    "runs",
    (
        Column("time", TIMESTAMP, "start (verdict is null) or end of the run, by the same clock as its events", required=True),
        *_RUN,
        Column("topic", pa.string(), "full name", required=True),
        Column("subscription", pa.string(), "full name of its subscription; of several, the first", required=True),
        Column("verdict", pa.string(), "PASS, FAIL or UNKNOWN; in the row of the start, null like the columns from here to checks"),
        Column("reason", pa.string(), "reason for FAIL or UNKNOWN, in one line"),
        Column("duration_s", pa.float64(), "from the monotonic clock"),
        Column("internal_error", pa.bool_(), "an internal error of the prober ended the run; no evidence about the target"),
        Column("events", pa.int64(), "number of its events; the history may contain fewer, see events_dropped"),
        Column("events_dropped", pa.int64(), "number of its events that the history dropped"),
        Column(
            "verified_events",
            pa.int64(),
            "number of events verified online, the first ones, before verification stopped; null: all",
        ),
        Column("finding_counts", _FINDING_COUNTS, "all findings, by kind and status"),
        Column("counters", pa.map_(pa.string(), pa.int64()), "counters of the checker: observed events and performed checks"),
        Column("checks", _CHECKS, "counts for objectives, by indicator"),
        Column("started_at", TIMESTAMP, "start, by the wall clock", required=True),
        Column("seed", pa.int64(), "seed that repeats the random choices of the probe", required=True),
        Column("clock_offset_s", pa.float64(), "seconds since 1970 = t + this, for all events of its process", required=True),
        Column("rules", pa.string(), "JSON: bounds of its verification, by subscription (`decode_rules`)", required=True),
        Column(
            MESSAGES_WRITTEN,
            pa.int64(),
            "rows of the run in messages; null: not written, since the run was cut short, was too large, or lost events",
        ),
        Column(SCHEMA_VERSION, pa.int64(), "schema version under which the run was written; null: 1"),
        Column("stopped", pa.bool_(), "the prober was stopped during the run; the record is complete up to that point; null: no"),
    ),
    sorted_by=("time", "run_id"),
)

FINDINGS: Final = Table(
    "findings",
    (
        Column("time", TIMESTAMP, "`t` as wall time", required=True),
        Column("t", pa.float64(), "time of its decision, on the clock of the events", required=True),
        *_RUN,
        Column("kind", pa.string(), "kind of anomaly: prober.core.findings.Kind", required=True),
        Column("status", pa.string(), "certainty: violation, liveness, indeterminate, info", required=True),
        Column("subscription", pa.string(), "full name", required=True),
        Column("key", pa.string(), "ordering key", required=True),
        Column("after", pa.int64(), "number of the run's events before the finding", required=True),
        Column("witnesses", pa.list_(pa.int64()), "numbers of the events that prove it", required=True),
        Column("facts", pa.string(), "JSON: named values", required=True),
        Column("doubt", pa.string(), "reason why it is only indeterminate; empty otherwise", required=True),
        Column("assumptions", pa.map_(pa.string(), pa.float64()), "bounds that it relies on", required=True),
        Column(
            "reasons",
            pa.list_(pa.string()),
            "assumptions of an indeterminate finding; else the tried alternatives, each with the evidence against it",
            required=True,
        ),
        Column("explanation", pa.string(), "explanation in words", required=True),
    ),
    sorted_by=("subscription", "key", "run_id", "after"),
)

MESSAGES: Final = Table(
    "messages",
    (
        *_RUN,
        Column("topic", pa.string(), "full name of the run's topic", required=True),
        Column(
            "subscription",
            pa.string(),
            "full name; a message that the run published has a row for each subscription",
            required=True,
        ),
        Column("key", pa.string(), "ordering key", required=True),
        Column("epoch", pa.string(), "incarnation of the publisher; null for a stream without recorded publishes"),
        Column("seq", pa.int64(), "sequence number per epoch and key; null for a stream without recorded publishes"),
        Column("message_id", pa.string(), "id of the record that was confirmed first, else received first; null if none was"),
        Column("own", pa.bool_(), "the run itself published the message", required=True),
        Column("bytes", pa.int64(), "size of the data; null if not recorded"),
        Column("attempts", pa.int64(), "publishes, republishing included", required=True),
        Column("confirmed", pa.int64(), "publishes that were confirmed", required=True),
        Column("rejected", pa.int64(), "publishes that stored nothing", required=True),
        Column("unknown", pa.int64(), "publishes with an unknown result", required=True),
        Column("deliveries", pa.int64(), "deliveries of any of its records", required=True),
        Column("nacks", pa.int64(), "nacks of the record `message_id`", required=True),
        Column(
            "subscriber_changes",
            pa.int64(),
            "deliveries that went to another subscriber than the delivery of the key before",
            required=True,
        ),
        Column(
            "intended_at",
            TIMESTAMP,
            "intended time of the first publish; without a recorded publish, time of the first event about the message",
            required=True,
        ),
        Column(
            "published_at",
            TIMESTAMP,
            "first publish; without a recorded publish, the publish time that the service states, if any",
        ),
        Column("confirmed_at", TIMESTAMP, "first confirmation"),
        Column("received_at", TIMESTAMP, "first delivery"),
        Column("acked_at", TIMESTAMP, "first acknowledgement of the record `message_id`"),
        Column(
            "waited_until",
            TIMESTAMP,
            "end of the wait of its confirmed records, or of the run; null: not stored, or waiting when the run was cut short",
        ),
        Column("confirmed_lagged_us", pa.int64(), "lagged_s of the first confirmation in microseconds; null: none"),
        Column("received_lagged_us", pa.int64(), "lagged_s of the first delivery in microseconds; null: none"),
        Column(
            "outcome", pa.string(), "name of the event that ended its wait, or of the last stage that it reached", required=True
        ),
        Column(
            "redeliveries",
            REDELIVERIES,
            "its deliveries after the first; due_at: the preceding nack or end of the lease; null: none",
        ),
    ),
    sorted_by=("subscription", "key", "intended_at"),
    time="intended_at",
)

TABLES: Final[Mapping[str, Table]] = MappingProxyType({table.name: table for table in (EVENTS, RUNS, FINDINGS, MESSAGES)})

# --- events ------------------------------------------------------------------------------------------------------------------

_COLUMN_OF_FIELD: Final = {
    ("publish", "size"): "message_bytes",
    ("publish", "region"): "publish_region",
    ("delivered", "publish_time"): "publish_time_ns",
    ("delivered", "data_size"): "message_bytes",
}
"""Columns of fields whose own name would be ambiguous."""

EVENT_FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        name: MappingProxyType({field.name: _COLUMN_OF_FIELD.get((name, field.name), field.name) for field in fields(event_type)})
        for name, event_type in EVENT_TYPES.items()
    }
)
"""Columns of each event by field, in the order of the event's constructor."""

_UNWRITTEN: Final[Mapping[str, object]] = MappingProxyType({"publish_region": "", "lost": False})
"""Columns that the oldest files lack, with the value of the field where they are null, unless that is None."""


def values_of(column: str, values: list[Any]) -> list[Any]:
    """Return the values of a column of `EVENTS` as fields of events, for files of any version of the program."""
    unwritten = _UNWRITTEN.get(column)
    return values if unwritten is None else [unwritten if value is None else value for value in values]


# --- rules -------------------------------------------------------------------------------------------------------------------


def encode_rules(rules: Mapping[str, Rules]) -> str:
    """Return the rules of a run as JSON, by subscription; an infinite bound becomes null."""
    return json.dumps({subscription: _row_of(one) for subscription, one in rules.items()}, separators=(",", ":"))


def _row_of(rules: Rules) -> dict[str, object]:
    values = {field.name: getattr(rules, field.name) for field in fields(Rules)}
    return {name: None if isinstance(value, float) and isinf(value) else value for name, value in values.items()}


def decode_rules(text: str) -> dict[str, Rules]:
    """Return the rules that `encode_rules` encoded. Raises ValueError for other texts."""
    try:
        return {subscription: _rules_of(row) for subscription, row in json.loads(text).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise ValueError(f"not the rules of a run: {text[:80]}") from wrong


def _rules_of(row: Mapping[str, Any]) -> Rules:
    values: dict[str, Any] = {name: inf if value is None else value for name, value in row.items()}
    return Rules(**values | {"mode": Mode(row["mode"])})


ABOUT_TIME: Final = frozenset({Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.REDELIVERY_STALL, Kind.UNACKED_STALL})
"""Kinds of findings about missed deadlines of the service.

They depend on other keys, whose outstanding messages may use up a stream's flow control, and may delay a key. So if the events of some keys
of a run yield a finding of these kinds, only all events of the run confirm or refute it. Other findings depend on the events of their key
and of sessions only, and every part includes the latter.
"""


# --- files -------------------------------------------------------------------------------------------------------------------

_FILE_NAME: Final = re.compile(r"(events|runs|findings|messages)-[A-Za-z0-9.-]+-\d+\.parquet")


def history_file_name(table: Table, writer: str, segment: int) -> str:
    """Return the name of a file: `writer` is the process, or another writer that uses each `segment` number once.

    Only files with such names are read, counted and, when they are too old, deleted. Names of unfinished files start with a dot or an
    underscore.
    """
    return f"{table.name}-{writer}-{segment:08d}.parquet"


def is_file_name(name: str) -> bool:
    """Return whether a file name, without its folder, is that of a history's file."""
    return _FILE_NAME.fullmatch(name) is not None


def folder_of(table: Table, date: str, hour: int) -> str:
    """Return the folder under `HISTORY` for a UTC date, `YYYY-MM-DD`; the hour counts only for a table that is divided by hour."""
    return f"{table.name}/date={date}/hour={hour:02d}" if table.hourly else f"{table.name}/date={date}"


def check_version(metadata: Mapping[bytes, bytes] | None) -> None:
    """Raise ValueError if this program cannot read the file of the metadata; the text can follow a file's name."""
    written = (metadata or {}).get(VERSION_KEY.encode(), b"")
    if not written.isdigit():
        raise ValueError(f"not a file of a probe history: its metadata lacks {VERSION_KEY}")
    if int(written) > VERSION:
        raise ValueError(f"written under version {int(written)} of the schema, this program knows {VERSION}; use a newer one")
