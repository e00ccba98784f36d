"""Judging the events of a day again, with the checker that judged them online, as they stream through an executor.

A run is judged as it was online: all its events in recorder order, by one checker. A run that is too large for that is divided by ordering
key: what belongs to a key goes to the shard of the key, what concerns all keys to every shard. The checker decides about each key by
itself, except for how long the service had to deliver something (`ABOUT_TIME`), so that together they find the same but for that. Memory:
one checker at a time, the events of a stretch (`spark_jobs.packing`), and 8 bytes for each event of its shard.

What may be said is limited by what is on record:

* After a hole in the numbering nothing from before counts: an interruption is put there, unless the recorder has done so itself.
* Events after those that were judged online are left out, and what was on hold there stays so; the same holds at the end of a run
  that did not wait for deliveries: it was cut short, or could not go on.
* In a run of several processes the events are merged by wall time, with the error of their clocks as the checker's bound. A publish is
  taken to have begun twice that error earlier, for no message is received before it was published. If two processes received messages
  of a key within twice the error, nobody knows in which order, and everything that depends on the order of the key is indeterminate
  from the first of the two on.
"""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from prober.core.events import LONG_AGO, Delivered, Event, Interrupted, Opened
from prober.core.findings import Finding, Kind, Status
from prober.core.judge import Judge
from prober.core.rules import Rules
from prober.evidence.explain import explain
from prober.sinks.history.schema import decode_rules
from spark_jobs.packing import JudgingPlan, unpacked

ORDERLESS: Final = frozenset(
    {Kind.PHANTOM, Kind.GHOST, Kind.ID_CONFLICT, Kind.FILTER_LEAK, Kind.PUBLISHER_DUP, Kind.STUCK, Kind.LOST_OVERTAKEN}
)
"""What is found does not depend on the order in which a key's messages were received."""
CLOCKS: Final = "two processes received messages of this key at nearly the same time by their clocks"

FOUND: Final = (
    "run_id string, shard int, kind string, status string, subscription string, key string, t double, after long, "
    "witnesses array<long>, facts string, doubt string, reasons array<string>, explanation string, events long, owed boolean, "
    "crash string"
)
"""A row per finding, and for each shard one without a `kind`, which says how many events were judged, and whether anything is owed."""


def folding(plans: Mapping[str, JudgingPlan]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What to do with a partition of `PACKAGES`, sorted by run, shard and stretch: gives batches of `FOUND`."""

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*(batch.column(name) for name in _PACKAGE), strict=True))
        for (run_id, shard), members in groupby(map(_plain, rows), key=itemgetter(0, 1)):
            plan = plans[run_id]
            judging = _Fold(run_id, shard, plan)
            for _, packages in groupby(members, key=itemgetter(2)):
                found = [
                    row
                    for recorded in unpacked([package[3] for package in packages], merged=plan.merged)
                    for row in judging.take(*recorded)
                ]
                if found:
                    yield _batch(found)
            yield _batch(judging.finish())

    return fold


def _plain(row: Iterable[pa.Scalar]) -> tuple[Any, ...]:
    return tuple(value.as_py() for value in row)


class _Fold:
    """One shard of one run on its way through the checker."""

    def __init__(self, run_id: str, shard: int, plan: JudgingPlan) -> None:
        self.identity = run_id, shard
        self._plan = plan
        self._within_s = 2.0 * plan.clock_error_s if plan.merged else -inf
        rules = {name: _patient(one, plan) for name, one in decode_rules(plan.rules).items()}
        self._judge = Judge(rules)
        self._numbers = array("q")
        self._latest = ("", 0)
        self._received: dict[str, tuple[float, str]] = {}
        self._doubtful: dict[str, float] = {}
        self._wall: float | None = None
        self._recent: deque[tuple[Finding, int]] = deque()
        self._left_out = False

    def take(self, event: Event, number: int, process: str, wall_t: float) -> Iterator[dict[str, object]]:
        """Judges an event."""
        if (process, number) == self._latest or self._judge.fault is not None:
            return  # there twice
        if self._plan.limit is not None and number > self._plan.limit:
            self._left_out = True
            return
        if self._plan.merged:
            event = _by_wall_clock(event, wall_t)
        if self._is_after_hole(number) and not isinstance(event, Interrupted):
            self._observe(Interrupted(event.t), number)
        self._wall = wall_t - event.t
        if self._plan.merged and isinstance(event, Delivered):
            self._compare_clocks(event, process)
        self._observe(event, number)
        yield from self._settled(event.t)
        self._latest = process, number

    def finish(self) -> list[dict[str, object]]:
        """Settles what may be settled; the last row says how it went."""
        number = self._numbers[-1] if self._numbers else 0
        if self._plan.settled and not self._left_out and (self._judge.ended or self._plan.merged):
            self._recent.extend((finding, number) for finding in self._judge.finish(number))
        owed = self._left_out or not self._plan.settled or self._judge.owed
        return [
            *self._settled(inf),
            self._empty() | {"events": len(self._numbers), "owed": owed, "crash": self._judge.stopped_because},
        ]

    def _observe(self, event: Event, number: int) -> None:
        self._numbers.append(number)
        self._recent.extend((finding, number) for finding in self._judge.observe(event, number))

    def _settled(self, now: float) -> Iterator[dict[str, object]]:
        """The findings that no receipt which is still to come can make doubtful."""
        while self._recent and self._recent[0][0].t + self._within_s < now:
            yield self._row(*self._recent.popleft())

    def _is_after_hole(self, number: int) -> bool:
        return self._plan.shards == 1 and not self._plan.merged and number != self._latest[1] + 1

    def _compare_clocks(self, event: Delivered, process: str) -> None:
        at, by = self._received.get(event.key, (LONG_AGO, process))
        if by != process and event.t - at <= self._within_s:
            self._doubtful.setdefault(event.key, at)
        self._received[event.key] = event.t, process

    def _row(self, finding: Finding, after: int) -> dict[str, object]:
        doubtful = finding.t >= self._doubtful.get(finding.key, inf) and finding.kind not in ORDERLESS
        if doubtful and finding.status is Status.VIOLATION:
            finding = replace(finding, status=Status.INDETERMINATE, doubt=CLOCKS, reasons=(CLOCKS,))
        return self._empty() | {
            "kind": finding.kind.value,
            "status": finding.status.value,
            "subscription": finding.subscription,
            "key": finding.key,
            "t": finding.t,
            "after": after,
            "witnesses": [self._numbers[witness - 1] for witness in finding.witnesses],
            "facts": json.dumps(dict(finding.facts)),
            "doubt": finding.doubt,
            "reasons": list(finding.reasons),
            "explanation": explain(finding, self._wall),
        }

    def _empty(self) -> dict[str, object]:
        return dict.fromkeys(_FIELDS) | {"run_id": self.identity[0], "shard": self.identity[1]}


def _patient(rules: Rules, plan: JudgingPlan) -> Rules:
    return replace(rules, clock_error_s=max(rules.clock_error_s, plan.clock_error_s)) if plan.merged else rules


def _by_wall_clock(event: Event, wall_t: float) -> Event:
    """The event of a merged run, whose times are those of the common clock."""
    if isinstance(event, Opened) and event.invoked_t is not None:
        return replace(event, t=wall_t, invoked_t=event.invoked_t + wall_t - event.t)
    return replace(event, t=wall_t)


_SCHEMA: Final = pa.schema(
    [
        ("run_id", pa.string()),
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("status", pa.string()),
        ("subscription", pa.string()),
        ("key", pa.string()),
        ("t", pa.float64()),
        ("after", pa.int64()),
        ("witnesses", pa.list_(pa.int64())),
        ("facts", pa.string()),
        ("doubt", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("explanation", pa.string()),
        ("events", pa.int64()),
        ("owed", pa.bool_()),
        ("crash", pa.string()),
    ]
)
_FIELDS: Final = tuple(_SCHEMA.names)
_PACKAGE: Final = ("run_id", "shard", "stretch", "events")


def _batch(rows: Iterable[Mapping[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], _SCHEMA)
