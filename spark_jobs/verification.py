"""Second verification of the events of a day, on the executors.

Spark sorts the events of each run, and one checker streams over them.

A run of one process is verified as online (`prober.sinks.history.checking`). The events of a run of several processes are ordered by the
wall clock, whose error is the checker's bound. A publish is assumed to start twice that error earlier, so that no message is received
before it was published. If two processes received messages of a key within twice the error, their order is unknown. From the first of the
two on, all results that depend on the order of the key are indeterminate.

Memory: one checker, and 8 bytes for each event of its run.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from typing import Any, Final, NamedTuple

import pyarrow as pa

from prober.core.events import LONG_AGO, Delivered, Event, Opened, PublishInvoked
from prober.core.findings import FAILING, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict, verdict_of
from prober.cycles import collect_rarely
from prober.evidence.explain import explain
from prober.sinks.history.checking import RunChecker, RunRecord
from prober.sinks.history.decoding import EVENT_COLUMNS, events_of
from prober.sinks.history.schema import decode_rules
from prober.slo.objectives import MICROS

COLUMNS: Final = ("run_id", "process", "number", "time", *EVENT_COLUMNS)
"""Columns of events that `verification` needs."""
ORDERLESS: Final = frozenset(
    {Kind.PHANTOM, Kind.GHOST, Kind.ID_CONFLICT, Kind.FILTER_LEAK, Kind.PUBLISHER_DUP, Kind.STUCK, Kind.LOST_OVERTAKEN}
)
"""Findings that do not depend on the order in which a key's messages were received."""
CLOCKS: Final = "two processes received messages of this key at nearly the same time by their clocks"
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
    """Plan of verification of a run: its rules as in the table of runs, and the state of its record.

    clock_error_s   maximum difference of the clocks of several processes that recorded it, in seconds.
    """

    rules: str
    record: RunRecord = field(default_factory=RunRecord)
    clock_error_s: float = 0.0


def verification(plans: Mapping[str, RunPlan]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`: from `COLUMNS` of events, run after run in the order of verification, to `FOUND`."""

    def verify(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        collect_rarely()
        waiting: list[Row] = []
        for run_id, events in groupby(_recorded(batches), key=lambda one: one.run_id):
            plan = plans[run_id]
            run = _MergedRun(run_id, plan) if plan.record.merged else _Run(run_id, plan)
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
    """Verification of a run of one process, into rows of `FOUND`."""

    def __init__(self, run_id: str, plan: RunPlan) -> None:
        rules = decode_rules(plan.rules)
        if plan.record.merged:
            rules = {name: replace(one, clock_error_s=max(one.clock_error_s, plan.clock_error_s)) for name, one in rules.items()}
        self._run_id = run_id
        self._checker = RunChecker(rules, plan.record)
        self._wall: float | None = None

    def take(self, one: _Recorded) -> list[Row]:
        """Verify the next event; return the findings that are settled."""
        self._wall = one.wall_t - one.event.t
        return [self._row(made) for made in self._checker.take(one.event, one.number)]

    def finish(self) -> list[Row]:
        """Return the remaining findings, and the outcome of the run."""
        found, checker = self._rest(), self._checker
        ending = {
            "scope": checker.scope.value,
            "recorded": checker.recorded,
            "verified": checker.events,
            "verdict_now": self._verdict.value,
            "crash": checker.crash or None,
        }
        return [*found, self._empty() | ending]

    def _rest(self) -> list[Row]:
        return [self._row(made) for made in self._checker.finish()]

    @property
    def _verdict(self) -> Verdict:
        return self._checker.verdict

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


class _MergedRun(_Run):
    """Verification of a run of several processes; see the head of this file. A finding waits for receipts that can make it doubtful."""

    def __init__(self, run_id: str, plan: RunPlan) -> None:
        super().__init__(run_id, plan)
        self._within_s = 2.0 * plan.clock_error_s
        self._latest = ("", 0)
        self._received: dict[str, tuple[float, str]] = {}
        self._doubtful: dict[str, float] = {}
        self._recent: deque[RecordedFinding] = deque()
        self._failed = False
        self._wall = 0.0

    def take(self, one: _Recorded) -> list[Row]:
        """Verify the next event; return the findings that are settled."""
        if (one.process, one.number) == self._latest:
            return []  # it is there twice
        self._latest = one.process, one.number
        event = _by_wall_clock(one.event, one.wall_t, self._within_s)
        if isinstance(event, Delivered):
            self._compare_clocks(event, one.process)
        self._recent.extend(self._checker.verify(event, one.number))
        return self._settled(event.t)

    def _rest(self) -> list[Row]:
        self._recent.extend(self._checker.finish())
        return self._settled(inf)

    @property
    def _verdict(self) -> Verdict:
        return verdict_of(failed=self._failed and not self._checker.crash, pending=True)

    def _settled(self, now: float) -> list[Row]:
        settled = []
        while self._recent and self._recent[0].finding.t + self._within_s < now:
            made = self._doubted(self._recent.popleft())
            self._failed |= made.finding.status in FAILING
            settled.append(self._row(made))
        return settled

    def _doubted(self, made: RecordedFinding) -> RecordedFinding:
        finding = made.finding
        if finding.status is not Status.VIOLATION or finding.kind in ORDERLESS or finding.t < self._doubtful.get(finding.key, inf):
            return made
        return replace(made, finding=replace(finding, status=Status.INDETERMINATE, doubt=CLOCKS, reasons=(CLOCKS,)))

    def _compare_clocks(self, event: Delivered, process: str) -> None:
        at, by = self._received.get(event.key, (LONG_AGO, process))
        if by != process and event.t - at <= self._within_s:
            self._doubtful.setdefault(event.key, at)
        self._received[event.key] = event.t, process


def _by_wall_clock(event: Event, wall_t: float, within_s: float) -> Event:
    """Return the event with times of the common clock; a publish starts earlier, by twice the error of the clocks."""
    if isinstance(event, PublishInvoked):
        return replace(event, t=wall_t - within_s)
    if isinstance(event, Opened) and event.invoked_t is not None:
        return replace(event, t=wall_t, invoked_t=event.invoked_t + wall_t - event.t)
    return replace(event, t=wall_t)
