"""Small histories for tests: runs whose events are core events, as rows of the tables and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from prober.core.events import EVENT_TYPES, Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.simulation.virtual_time import STARTED_AT
from prober.sinks.history.arrow import schema_of, to_parquet
from prober.sinks.history.messages import MessageRows
from prober.sinks.history.schema import (
    EVENT_FIELDS,
    EVENTS,
    FINDINGS,
    LAGGED,
    MESSAGES,
    MESSAGES_WRITTEN,
    RUNS,
    TIMESTAMP,
    Table,
    encode_rules,
    folder_of,
    history_file_name,
)
from spark_jobs.history import struct_of
from spark_jobs.tables import frame_of

DAY = STARTED_AT.date() + timedelta(days=1)
"""That of simulations, so that both can stand in one history."""
MIDNIGHT = datetime.combine(DAY, time(), UTC).timestamp()
OFFSET = MIDNIGHT - 1000.0  # `t` = 1000 is midnight
TOPIC = "projects/p/topics/t"
S = "projects/p/subscriptions/s"

Row = dict[str, Any]
_NAMES = {event_type: name for name, event_type in EVENT_TYPES.items()}


class Taped:
    """One run on its way into a history. Times are seconds after midnight of `DAY`."""

    def __init__(self, run_id: str = "ordering-1", rules: Mapping[str, Rules] | None = None, **about: str) -> None:
        self.run_id = run_id
        self.rules = dict(rules or {S: Rules()})
        self.about = {
            "run_id": run_id,
            "process": "p1",
            "target": "prod",
            "environment": "production",
            "region": "europe-west1",
            "probe": "ordering",
            "vantage": "wire",
            "topic": TOPIC,
        } | about
        self.events: list[Row] = []
        self.findings: list[Row] = []
        self.runs: list[Row] = []
        self.counts: list[Row] = []
        self.messages: list[Row] = []
        self._recorded: list[tuple[Event, float]] = []

    def add(self, *events: Event, number: int = 0, process: str = "", lagged_s: float | None = None) -> Taped:
        """Records events; their `t` is seconds after midnight.

        `lagged_s`: for how long of the latency that each of them shows the event loop lagged.
        """
        for event in events:
            name = _NAMES[type(event)]
            values = {column: getattr(event, field) for field, column in EVENT_FIELDS[name].items()}
            for column in ("t", "intended_t", "invoked_t"):
                if values.get(column) is not None:
                    values[column] += 1000.0
            row = dict.fromkeys(EVENTS.column_names) | self.about | values
            last = max((row["number"] for row in self.events if row["process"] == (process or "p1")), default=0)
            row |= {"number": number or last + 1, "event": name, "time": _time(event.t), LAGGED: lagged_s}
            if process:
                row["process"] = process
            self.events.append(row)
            self._recorded.append((event, lagged_s or 0.0))
        return self

    def began(self, at: float) -> Taped:
        """The row of the beginning. Until the run ends its messages are those of a run that was cut short."""
        self.messages = self._messages(None)
        row = dict.fromkeys(RUNS.column_names) | self.about
        row |= {"time": _time(at), "started_at": _time(at), "subscription": next(iter(self.rules)), "seed": 1}
        self.runs.append(row | {"clock_offset_s": OFFSET, "rules": encode_rules(self.rules)})
        return self

    def ended(self, began: float, at: float, verdict: str = "PASS", **said: Any) -> Taped:
        """Both rows of a run that has ended; `said` are columns of the second."""
        self.began(began)
        self.messages = self._messages(round((MIDNIGHT + at) * 1e6))
        numbers = {"events": len(self.events), "events_dropped": 0, "internal_error": False, "duration_s": at - began}
        numbers[MESSAGES_WRITTEN] = len(self.messages)
        lists: Row = {"finding_counts": [], "counters": {}, "checks": []}
        self.runs.append(self.runs[-1] | {"time": _time(at), "verdict": verdict, "reason": ""} | numbers | lists | said)
        return self

    def _messages(self, ended_us: int | None) -> list[Row]:
        """As the service would write them."""
        made = MessageRows(self.run_id, self.rules, MIDNIGHT)
        for event, lagged_s in self._recorded:
            made.add(event, lagged_s)
        moments = [column.name for column in MESSAGES.columns if column.type == TIMESTAMP]
        rows: list[Row] = [self.about | row for row in made.rows(ended_us)]
        for row in rows:
            row |= {name: _moment(row[name]) for name in moments}
            for again in row["redeliveries"] or ():
                again |= {name: _moment(again[name]) for name in ("received_at", "due_at")}
        return rows

    def found(self, finding: Finding, after: int) -> Taped:
        """A finding of the online checker; its `t` is seconds after midnight."""
        row = (
            dict.fromkeys(FINDINGS.column_names)
            | self.about
            | {field.name: getattr(finding, field.name) for field in fields(finding)}
        )
        row |= {"time": _time(finding.t), "t": finding.t + 1000.0, "after": after, "explanation": "", "facts": "{}"}
        row |= {"witnesses": list(finding.witnesses), "reasons": list(finding.reasons), "assumptions": {}}
        row |= {"kind": finding.kind.value, "status": finding.status.value}
        self.findings.append(row)
        return self


def frame(spark: SparkSession, table: Table, *runs: Taped) -> DataFrame:
    """All rows of a table of these runs."""
    return frame_of(spark, _listed(rows_of(table, runs)), struct_of(table))


def rows_of(table: Table, runs: Iterable[Taped]) -> list[Row]:
    """All rows of a table of these runs, in its columns' order."""
    rows = [row for run in runs for row in getattr(run, table.name)]
    return [{name: row[name] for name in table.column_names} for row in rows]


def write(history: Path, *runs: Taped, writer: str = "p1", segment: int = 1) -> list[Path]:
    """The runs as files of a history, one for each folder that they concern; returns them. Only runs that ended have messages."""
    written = []
    for table in (EVENTS, RUNS, FINDINGS, MESSAGES):
        folders: dict[str, list[Row]] = {}
        ended = [run for run in runs if run.runs and run.runs[-1].get(MESSAGES_WRITTEN) is not None]
        for row in rows_of(table, ended if table is MESSAGES else runs):
            at = row[table.time]
            folders.setdefault(folder_of(table, f"{at:%Y-%m-%d}", at.hour), []).append(row)
        for folder, rows in folders.items():
            path = history / folder / history_file_name(table, writer, segment)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(to_parquet(pa.Table.from_pylist(_listed(rows), schema_of(table)), table))
            written.append(path)
    return written


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(MIDNIGHT + seconds, UTC)


def _moment(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def _listed(rows: Iterable[Row]) -> list[Row]:
    """With mappings as lists of pairs, which is what Arrow takes."""
    return [{name: _mapped(value) for name, value in row.items()} for row in rows]


def _mapped(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) and not {"indicator", "kind"} & value.keys() else value
