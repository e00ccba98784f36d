"""Second verification of the events of a day, on the executors.

Spark sorts the events of each run, and one checker streams over them.

A run is verified as online (`prober.sinks.history.checking`). A run that several processes recorded is UNKNOWN: its events have no common
numbering. No prober makes such a run.

Memory: one checker, and 8 bytes for each event of its run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from prober.core.events import Event
from prober.core.guarded_verifier import RecordedFinding
from prober.cycles import collect_rarely
from prober.evidence.explain import explain
from prober.sinks.history.checking import RunChecker, RunRecord
from prober.sinks.history.decoding import EVENT_COLUMNS, events_of
from prober.sinks.history.schema import decode_rules
from prober.slo.objectives import MICROS

COLUMNS: Final = ("run_id", "process", "number", "time", *EVENT_COLUMNS)
"""Columns of events that `verification` needs."""
_OUTCOME: Final = {"scope": "string", "recorded": "long", "verified": "long", "verdict_now": "string", "crash": "string"}
_FOUND: Final[Mapping[str, str]] = {
    **dict.fromkeys(("run_id", "kind", "status", "subscription", "key"), "string"),
    **{"t": "double", "after": "long", "witnesses": "array<long>", "facts": "string", "doubt": "string"},
    **{"reasons": "array<string>", "explanation": "string"},
    **_OUTCOME,
}
FOUND: Final = ", ".join(f"{name} {kind}" for name, kind in _FOUND.items())
"""A row per finding, and for each run one row without a `kind` and with `OUTCOME`."""
OUTCOME: Final = tuple(_OUTCOME)
"""Scope of the run's record, numbers of recorded and verified events, the verdict, and the reason of a checker failure."""

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "array<long>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
}
_SCHEMA: Final = pa.schema([(name, _ARROW[kind]) for name, kind in _FOUND.items()])
_ROWS_AT_ONCE: Final = 1_000

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Plan of verification of a run: its rules as in the table of runs, and the state of its record."""

    rules: str
    record: RunRecord = field(default_factory=RunRecord)


def verification(plans: Mapping[str, RunPlan]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`: from `COLUMNS` of events, run after run in the order of verification, to `FOUND`."""

    def verify(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        collect_rarely()
        waiting: list[Row] = []
        for run_id, events in groupby(_recorded(batches), key=lambda one: one.run_id):
            run = _Run(run_id, plans[run_id])
            for one in events:
                waiting += run.take(one)
                if len(waiting) >= _ROWS_AT_ONCE:
                    yield _batch(waiting)
                    waiting = []
            waiting += run.finish()
        yield _batch(waiting)

    return verify


class _Recorded(NamedTuple):
    """A row of events; `wall_t` is its time in seconds since 1970."""

    run_id: str
    process: str
    number: int
    wall_t: float
    event: Event


def _recorded(batches: Iterable[pa.RecordBatch]) -> Iterator[_Recorded]:
    for batch in batches:
        if not batch.num_rows:
            continue
        run_id, process, number = (batch.column(name).to_pylist() for name in ("run_id", "process", "number"))
        wall_t = batch.column("time").cast(pa.int64()).to_numpy() / MICROS
        yield from map(_Recorded, run_id, process, number, wall_t.tolist(), events_of(batch))


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), _SCHEMA)


class _Run:
    """Verification of a run, into rows of `FOUND`."""

    def __init__(self, run_id: str, plan: RunPlan) -> None:
        self._run_id, self._plan = run_id, plan
        self._checker = RunChecker(decode_rules(plan.rules), plan.record)
        self._process = ""
        self._merged = False
        self._wall: float | None = None

    def take(self, one: _Recorded) -> list[Row]:
        """Verify the next event; return the findings that are settled. From the first event of a second process on none is verified."""
        if self._process not in ("", one.process) and not self._merged:
            self._merged = True
            recorded = self._checker.recorded
            self._checker = RunChecker(decode_rules(self._plan.rules), replace(self._plan.record, merged=True))
            self._checker.recorded = recorded
        if self._merged:
            self._checker.recorded += 1
            return []
        self._process, self._wall = one.process, one.wall_t - one.event.t
        return [self._row(made) for made in self._checker.take(one.event, one.number)]

    def finish(self) -> list[Row]:
        """Return the remaining findings, and the outcome of the run."""
        checker = self._checker
        found = [self._row(made) for made in checker.finish()]
        ending = {
            "scope": checker.scope.value,
            "recorded": checker.recorded,
            "verified": checker.events,
            "verdict_now": checker.verdict.value,
            "crash": checker.crash or None,
        }
        return [*found, self._empty() | ending]

    def _row(self, made: RecordedFinding) -> Row:
        finding = made.finding
        return self._empty() | {
            "kind": finding.kind.value,
            "status": finding.status.value,
            "subscription": finding.subscription,
            "key": finding.key,
            "t": finding.t,
            "after": made.after,
            "witnesses": list(finding.witnesses),
            "facts": json.dumps(dict(finding.facts)),
            "doubt": finding.doubt,
            "reasons": list(finding.reasons),
            "explanation": explain(finding, self._wall),
        }

    def _empty(self) -> Row:
        return dict.fromkeys(_SCHEMA.names) | {"run_id": self._run_id}
