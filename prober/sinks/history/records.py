"""Runs and findings as they come out of a history: rows turned back into the values that went in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import inf
from typing import Any

import orjson

from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.judge import RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.schema import decode_rules
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of the history.

    process, clock_offset_s   who recorded it, and what to add to `t` to get seconds since 1970.
    at          when it ended, or began if it has no end, in seconds since 1970 by the clock of its events.
    result      None for a run that was cut short or still goes on. Its findings are not in it: the history keeps them apart.
    events      how many it had; `events_dropped` of them are not in the history.
    judged_events   only so many were judged online; None: all.
    """

    context: RunContext
    process: str
    clock_offset_s: float
    at: float
    result: RunResult | None = None
    events: int = 0
    events_dropped: int = 0
    judged_events: int | None = None

    @property
    def run_id(self) -> str:
        """Its name."""
        return self.context.run_id

    @property
    def began_at(self) -> float:
        """When it began, by the same clock."""
        return self.at if self.result is None else self.at - self.result.duration_s

    @property
    def ended_at(self) -> float:
        """When it ended, by the same clock; `inf` if it did not."""
        return inf if self.result is None else self.at

    @property
    def rules(self) -> Mapping[str, Rules]:
        """The bounds that it is judged under, by subscription."""
        return self.context.rules


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding of the history: of which run, when (seconds since 1970), and in words."""

    run_id: str
    process: str
    target: str
    probe: str
    vantage: str
    at: float
    made: RecordedFinding
    explanation: str


def stored_run(row: Mapping[str, Any]) -> StoredRun:
    """A run from its row; from the row of its end if `verdict` is there, else from that of its beginning."""
    context = RunContext(
        row["run_id"],
        row["target"],
        row["environment"],
        row["region"],
        row["probe"],
        row["vantage"],
        row["topic"],
        _rules(row["rules"]),
        _seconds(row["started_at"]),
        row["seed"],
    )
    clock = row["process"], row["clock_offset_s"], _seconds(row["time"])
    if row["verdict"] is None:
        return StoredRun(context, *clock)
    return StoredRun(context, *clock, _result(row, context), row["events"], row["events_dropped"], row["judged_events"])


def _result(row: Mapping[str, Any], context: RunContext) -> RunResult:
    return RunResult(
        context.run_id,
        context.probe,
        context.target,
        context.vantage,
        Verdict(row["verdict"]),
        row["reason"],
        context.started_at,
        row["duration_s"],
        context.seed,
        context.topic,
        row["subscription"],
        counts={(Kind(one["kind"]), Status(one["status"])): one["count"] for one in row["finding_counts"]},
        counters=dict(row["counters"]),
        checks={Indicator(one["indicator"]): SliCounts(one["good"], one["bad"], one["undecided"]) for one in row["checks"]},
        internal_error=row["internal_error"],
    )


def stored_finding(row: Mapping[str, Any]) -> StoredFinding:
    """A finding from its row, equal to the one that was recorded; what was not a finite number among its facts is missing."""
    facts = {name: _fact(value) for name, value in orjson.loads(row["facts"]).items() if value is not None}
    finding = Finding(
        Kind(row["kind"]),
        Status(row["status"]),
        row["subscription"],
        row["key"],
        row["t"],
        tuple(row["witnesses"]),
        facts,
        row["doubt"],
        dict(row["assumptions"]),
    )
    about = row["run_id"], row["process"], row["target"], row["probe"], row["vantage"], _seconds(row["time"])
    return StoredFinding(*about, RecordedFinding(finding, row["after"]), row["explanation"])


def _fact(value: Any) -> Fact:
    return tuple(value) if isinstance(value, list) else value


def _seconds(time: datetime) -> float:
    return time.timestamp()


@lru_cache(maxsize=256)
def _rules(text: str) -> Mapping[str, Rules]:
    """Remembered, since runs of one probe share them."""
    return decode_rules(text)
