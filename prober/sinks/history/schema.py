"""The columns of the probe history, defined once: for the writer, the reader and the nightly jobs.

Plain data and the standard library only, since Spark executors import it: callers build Arrow's or Spark's own types from these lists.

Four tables, each a folder of Parquet files under `HISTORY`:

* `events/date=YYYY-MM-DD/hour=HH/`: every event of every run. One row is one `prober.core.events` value, together with what its run
  was about; columns that this kind of event does not have are null. `EVENT_FIELDS` says which columns rebuild the value.
* `runs/date=YYYY-MM-DD/`: two rows per run, one when it begins (`verdict` is null) and one when it has ended. A run of which only the
  first exists was cut short, or still goes on.
* `findings/date=YYYY-MM-DD/`: every finding of the online checker.
* `messages/date=YYYY-MM-DD/`: one row per message and subscription of a run, written when the run ends (`messages`). The row follows from
  the run's events. A run whose rows are not all there has a row in `runs` that says so (`MESSAGES_WRITTEN`).

Dates and hours are UTC, those of the column `Table.time`. Files carry the version of this schema in their metadata, and so do the rows of
`runs`, for engines that do not show the metadata. Readers refuse a newer one; columns may be added within a version, and are null where a
file does not have them.

(`process`, `run_id`, `number`) names an event. A file that is there twice, under two names, shows by it. Within a run `number` is the order
in which things were recorded, and neither `t` nor `time` ever goes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from math import inf, isinf
from types import MappingProxyType
from typing import Any, Final

from prober.core.events import EVENT_TYPES
from prober.core.findings import Kind
from prober.core.rules import Mode, Rules

VERSION: Final = 1
VERSION_KEY: Final = "ordering_prober_schema_version"
"""The entry of a file's metadata that holds the version, as a decimal number."""


class Type(StrEnum):
    """What a column holds. Times are UTC in microseconds."""

    STRING = "string"
    INT64 = "int64"
    FLOAT64 = "float64"
    BOOL = "bool"
    TIMESTAMP = "timestamp[us, UTC]"
    INT64_LIST = "list<int64>"
    STRING_LIST = "list<string>"
    INT64_MAP = "map<string, int64>"
    FLOAT64_MAP = "map<string, float64>"
    CHECKS = "list<struct<indicator: string, good: int64, bad: int64, undecided: int64>>"
    FINDING_COUNTS = "list<struct<kind: string, status: string, count: int64>>"
    REDELIVERIES = "list<struct<received_at: timestamp[us, UTC], due_at: timestamp[us, UTC], lagged_us: int64>>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `required` ones are never null."""

    name: str
    type: Type
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its folder under `HISTORY`, its columns, whether it is divided by hour, and how rows are sorted inside a file.

    Nulls come first. What is sorted by is what statistics let a query skip. `time` is the column whose date, or hour, names the folder.
    """

    name: str
    columns: tuple[Column, ...]
    sorted_by: tuple[str, ...]
    hourly: bool = False
    time: str = "time"

    @property
    def column_names(self) -> tuple[str, ...]:
        """In the order in which they stand in a file."""
        return tuple(column.name for column in self.columns)


LAGGED: Final = "lagged_s"
"""The column of `EVENTS` that no event has itself: it says what its latency is worth (`prober.runs.recorder`)."""

MESSAGES_WRITTEN: Final = "messages"
"""The column of `RUNS` that says how many rows of `MESSAGES` the run has."""
SCHEMA_VERSION: Final = "schema_version"
"""The column of `RUNS` that says under which version of the schema a run was written; null: under the first."""

_RUN: Final = (
    Column("run_id", Type.STRING, "the run that recorded it", required=True),
    Column("process", Type.STRING, "incarnation of the recording process; its clock has one offset", required=True),
    Column("target", Type.STRING, "name of the target", required=True),
    Column("environment", Type.STRING, "of the target", required=True),
    Column("region", Type.STRING, "of the target", required=True),
    Column("probe", Type.STRING, "which experiment", required=True),
    Column("vantage", Type.STRING, "from where it looked: wire or library", required=True),
)

EVENTS: Final = Table(
    "events",
    (
        Column("time", Type.TIMESTAMP, "`t` as wall time: by the offset that the process measured when it began", required=True),
        Column("t", Type.FLOAT64, "the recorder's monotonic clock, seconds; comparable within a process only", required=True),
        Column("number", Type.INT64, "1, 2, 3, ... in the run, in recorder order; after a gap stands interrupted", required=True),
        *_RUN,
        Column("topic", Type.STRING, "full name of the run's topic", required=True),
        Column("subscription", Type.STRING, "full name; null for publish events and for those that concern all subscriptions"),
        Column("key", Type.STRING, "ordering key; null for events that concern all keys"),
        Column("event", Type.STRING, "which kind of event: a name of EVENT_TYPES", required=True),
        Column("epoch", Type.STRING, "incarnation of the publisher"),
        Column("seq", Type.INT64, "sequence number per epoch and key"),
        Column("generation", Type.INT64, "the prober's own republishing of a sequence number"),
        Column("message_id", Type.STRING, "given by the service"),
        Column("session", Type.STRING, "stream, pull response or push request"),
        Column("subscriber", Type.STRING, "who owns a session that opened"),
        Column("delivery_attempt", Type.INT64, "the service's approximate count, 0 without a dead-letter policy"),
        Column("seconds", Type.FLOAT64, "a lease modification: to how long from now"),
        Column("defect", Type.STRING, "what is wrong with a delivered message itself; null if nothing is"),
        Column("matches_filter", Type.BOOL, "false: the filter should have kept a delivered message back"),
        Column("publish_time", Type.FLOAT64, "of a confirmed message as the service states it, if recorded"),
        Column("invoked_t", Type.FLOAT64, "when a unary pull was sent, on the clock of `t`"),
        Column("intended_t", Type.FLOAT64, "when a publish should have been sent if that was before `t`, on the clock of `t`"),
        Column(
            "message_bytes",
            Type.INT64,
            "size of the data of a publish, 0 if not recorded; of a delivered message if somebody else published it",
        ),
        Column("settle_s", Type.FLOAT64, "how long after a seek or filter change the past may still be delivered"),
        Column("drained", Type.BOOL, "an end: publishing had stopped and deliveries were waited for"),
        Column("publish_region", Type.STRING, "where a message is published; empty if nobody knows"),
        Column(
            "publish_time_ns", Type.INT64, "of a delivered message as the service states it, nanoseconds since 1970, if it does"
        ),
        Column("max_outstanding_messages", Type.INT64, "flow control of a stream that opened; null or not above 0: no limit"),
        Column("max_outstanding_bytes", Type.INT64, "likewise in bytes"),
        Column("lost", Type.BOOL, "the end of a pull: it had no answer"),
        Column(
            LAGGED,
            Type.FLOAT64,
            "a confirmation or delivery that shows a latency: for how many seconds of it the prober's event loop lagged; null: for none",
        ),
        Column(
            "since_t", Type.FLOAT64, "a seek: what was published since then must be redelivered, on the clock of `t`; null: unknown"
        ),
    ),
    sorted_by=("subscription", "key", "run_id", "number"),
    hourly=True,
)

RUNS: Final = Table(
    "runs",
    (
        Column(
            "time", Type.TIMESTAMP, "when the run began (verdict is null) or ended, by the same clock as its events", required=True
        ),
        *_RUN,
        Column("topic", Type.STRING, "full name", required=True),
        Column("subscription", Type.STRING, "full name of its subscription, of several the first", required=True),
        Column(
            "verdict", Type.STRING, "PASS, FAIL or UNKNOWN; in the row of the beginning it is null, and so are those down to checks"
        ),
        Column("reason", Type.STRING, "why it is FAIL or UNKNOWN, in one line"),
        Column("duration_s", Type.FLOAT64, "from the monotonic clock"),
        Column("internal_error", Type.BOOL, "it ended by a mistake of the prober, which says nothing about the target"),
        Column("events", Type.INT64, "how many events it had; the history may hold fewer, see events_dropped"),
        Column("events_dropped", Type.INT64, "how many of them the history had to give up"),
        Column("verified_events", Type.INT64, "only so many were verified online, since the prober itself stood still; null: all"),
        Column("finding_counts", Type.FINDING_COUNTS, "all findings, by kind and status"),
        Column("counters", Type.INT64_MAP, "what the checker saw and verified"),
        Column("checks", Type.CHECKS, "what counts for objectives, by indicator"),
        Column("started_at", Type.TIMESTAMP, "when it began, by the wall clock", required=True),
        Column("seed", Type.INT64, "repeats what was random in the experiment", required=True),
        Column("clock_offset_s", Type.FLOAT64, "seconds since 1970 = t + this, for all events of its process", required=True),
        Column("rules", Type.STRING, "JSON: the bounds it is verified under, by subscription (`decode_rules`)", required=True),
        Column(
            MESSAGES_WRITTEN,
            Type.INT64,
            "rows of the run in messages; null: none, for the run was cut short, too large, or lost events of its record",
        ),
        Column(SCHEMA_VERSION, Type.INT64, "under which version of the schema the run was written; null: 1"),
        Column("stopped", Type.BOOL, "the prober was stopped while the run went on, and the record is whole up to there; null: no"),
    ),
    sorted_by=("time", "run_id"),
)

FINDINGS: Final = Table(
    "findings",
    (
        Column("time", Type.TIMESTAMP, "`t` as wall time", required=True),
        Column("t", Type.FLOAT64, "when it was decided to be one, on the clock of the events", required=True),
        *_RUN,
        Column("kind", Type.STRING, "which anomaly: prober.core.findings.Kind", required=True),
        Column("status", Type.STRING, "how sure: violation, liveness, indeterminate, info", required=True),
        Column("subscription", Type.STRING, "full name", required=True),
        Column("key", Type.STRING, "ordering key", required=True),
        Column("after", Type.INT64, "made after so many events of the run", required=True),
        Column("witnesses", Type.INT64_LIST, "numbers of the events that prove it", required=True),
        Column("facts", Type.STRING, "JSON: named values", required=True),
        Column("doubt", Type.STRING, "why it is only indeterminate; empty otherwise", required=True),
        Column("assumptions", Type.FLOAT64_MAP, "the bounds that it relies on", required=True),
        Column(
            "reasons",
            Type.STRING_LIST,
            "what it assumes if it is indeterminate; else the alternatives that were tried, each with what rules it out",
            required=True,
        ),
        Column("explanation", Type.STRING, "in words", required=True),
    ),
    sorted_by=("subscription", "key", "run_id", "after"),
)

MESSAGES: Final = Table(
    "messages",
    (
        *_RUN,
        Column("topic", Type.STRING, "full name of the run's topic", required=True),
        Column("subscription", Type.STRING, "full name; a message that the run published has a row for each", required=True),
        Column("key", Type.STRING, "ordering key", required=True),
        Column("epoch", Type.STRING, "incarnation of the publisher; null for a stream whose publishes nobody recorded"),
        Column("seq", Type.INT64, "sequence number per epoch and key; null for a stream whose publishes nobody recorded"),
        Column("message_id", Type.STRING, "of the record that was confirmed first, else received first; null if none was"),
        Column("own", Type.BOOL, "the run published it itself", required=True),
        Column("bytes", Type.INT64, "size of the data; null if not recorded"),
        Column("attempts", Type.INT64, "publishes, republishing included", required=True),
        Column("confirmed", Type.INT64, "publishes that were confirmed", required=True),
        Column("rejected", Type.INT64, "publishes that stored nothing", required=True),
        Column("unknown", Type.INT64, "publishes of which nobody knows whether they stored anything", required=True),
        Column("deliveries", Type.INT64, "of any of its records", required=True),
        Column("nacks", Type.INT64, "of the record `message_id`", required=True),
        Column(
            "subscriber_changes",
            Type.INT64,
            "deliveries that went to another subscriber than the delivery of the key before",
            required=True,
        ),
        Column(
            "intended_at",
            Type.TIMESTAMP,
            "when it was to be sent; where no publish is on record, the time of the first event about it",
            required=True,
        ),
        Column("published_at", Type.TIMESTAMP, "first publish; where none is on record, as the service states it, if it does"),
        Column("confirmed_at", Type.TIMESTAMP, "first confirmation"),
        Column("received_at", Type.TIMESTAMP, "first delivery"),
        Column("acked_at", Type.TIMESTAMP, "first acknowledgement of the record `message_id`"),
        Column(
            "waited_until",
            Type.TIMESTAMP,
            "when the wait of its confirmed records ended, or the run; null: it was not stored, or waited when the run was cut short",
        ),
        Column("confirmed_lagged_us", Type.INT64, "lagged_s of the first confirmation in microseconds; null: none"),
        Column("received_lagged_us", Type.INT64, "lagged_s of the first delivery in microseconds; null: none"),
        Column(
            "outcome", Type.STRING, "name of the event that ended its wait, or of the last stage that it reached", required=True
        ),
        Column(
            "redeliveries",
            Type.REDELIVERIES,
            "its deliveries after the first; due_at: the nack, or end of the lease, that preceded; null: there were none",
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
"""Where a field's own name says too little, or is taken."""

EVENT_FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        name: MappingProxyType({field.name: _COLUMN_OF_FIELD.get((name, field.name), field.name) for field in fields(event_type)})
        for name, event_type in EVENT_TYPES.items()
    }
)
"""For each event the columns that hold its fields, by field, in the order of its constructor."""

_UNWRITTEN: Final[Mapping[str, object]] = MappingProxyType({"publish_region": "", "lost": False})
"""Columns that the first files do not have, and what an event has where they are null, if that is not None."""


def values_of(column: str, values: list[Any]) -> list[Any]:
    """The values of a column of `EVENTS` as events have them, whichever version of the program wrote them."""
    unwritten = _UNWRITTEN.get(column)
    return values if unwritten is None else [unwritten if value is None else value for value in values]


# --- rules -------------------------------------------------------------------------------------------------------------------


def encode_rules(rules: Mapping[str, Rules]) -> str:
    """The rules of a run as JSON, by subscription; no bound is null."""
    return json.dumps({subscription: _row_of(one) for subscription, one in rules.items()}, separators=(",", ":"))


def _row_of(rules: Rules) -> dict[str, object]:
    values = {field.name: getattr(rules, field.name) for field in fields(Rules)}
    return {name: None if isinstance(value, float) and isinf(value) else value for name, value in values.items()}


def decode_rules(text: str) -> dict[str, Rules]:
    """The opposite of `encode_rules`. Raises ValueError for what it cannot have written."""
    try:
        return {subscription: _rules_of(row) for subscription, row in json.loads(text).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise ValueError(f"not the rules of a run: {text[:80]}") from wrong


def _rules_of(row: Mapping[str, Any]) -> Rules:
    values: dict[str, Any] = {name: inf if value is None else value for name, value in row.items()}
    return Rules(**values | {"mode": Mode(row["mode"])})


ABOUT_TIME: Final = frozenset({Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.REDELIVERY_STALL, Kind.UNACKED_STALL})
"""Findings that say how long the service had to deliver something.

On these other keys have a say: their outstanding messages may use up a stream's flow control, and may delay a key. So where the events
of a part of a run's keys lead to one of them, only all events of the run tell whether it is right. Other findings rest on the events of
their key, and on those of sessions, which every part has.
"""


# --- files -------------------------------------------------------------------------------------------------------------------

_FILE_NAME: Final = re.compile(r"(events|runs|findings|messages)-[A-Za-z0-9.-]+-\d+\.parquet")


def history_file_name(table: Table, writer: str, segment: int) -> str:
    """What a file is called: `writer` is the process, or whatever else wrote it and gives each `segment` out once.

    Only files of such names are read, counted and, when they are too old, deleted. A name that begins with a dot or an underscore is
    for what is still being written.
    """
    return f"{table.name}-{writer}-{segment:08d}.parquet"


def is_file_name(name: str) -> bool:
    """Whether a file, by its name without the folder, is one of a history."""
    return _FILE_NAME.fullmatch(name) is not None


def folder_of(table: Table, date: str, hour: int) -> str:
    """The folder under `HISTORY` for a UTC date, `YYYY-MM-DD`; the hour counts only if the table is divided by hour."""
    return f"{table.name}/date={date}/hour={hour:02d}" if table.hourly else f"{table.name}/date={date}"


def check_version(metadata: Mapping[bytes, bytes] | None) -> None:
    """Raises ValueError, with a text that can follow a file's name, if the file of that metadata cannot be read by this program."""
    written = (metadata or {}).get(VERSION_KEY.encode(), b"")
    if not written.isdigit():
        raise ValueError(f"not a file of a probe history: its metadata lacks {VERSION_KEY}")
    if int(written) > VERSION:
        raise ValueError(f"written under version {int(written)} of the schema, this program knows {VERSION}; use a newer one")
