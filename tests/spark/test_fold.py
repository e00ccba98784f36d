"""What a row of events becomes before it is judged, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from prober.core.events import Closed, Delivered, Event, Opened, PublishInvoked
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.schema import EVENTS, encode_rules
from spark_jobs import fold
from spark_jobs.packing import PACKED_COLUMNS, JudgingPlan, packing
from spark_jobs.scan import Chunk
from tests.spark.taped import S, Taped
from tests.unit.sinks.history.older import ADDED


class Listening:
    """A checker that keeps what it is given."""

    heard: list[Event]
    owed = False

    def __init__(self, *_: object, **__: object) -> None:
        Listening.heard = []

    def observe(self, event: Event) -> Sequence[Finding]:
        self.heard.append(event)
        return ()

    def finish(self) -> Sequence[Finding]:
        return ()


def judged(monkeypatch: pytest.MonkeyPatch, run: Taped, *, without: Sequence[str] = ()) -> list[Event]:
    """The events that the checker gets from the rows of a run, some of whose columns are null."""
    monkeypatch.setattr("prober.core.judge.Verifier", Listening)
    rows: list[dict[str, Any]] = [row | dict.fromkeys(without) for row in run.events]
    plans = {run.run_id: JudgingPlan(encode_rules(run.rules))}
    packages = packing(plans, 0.0)(Chunk(pa.Table.from_pylist(rows, schema_of(EVENTS)).select(PACKED_COLUMNS)))
    list(fold.folding(plans)(packages))
    return Listening.heard


def telling() -> Taped:
    return Taped(rules={S: Rules()}).add(
        Opened(-1000.0, S, "A", "a", max_outstanding_messages=5, max_outstanding_bytes=600),
        PublishInvoked(-999.0, "k", "e", 1, region="europe-west1"),
        Delivered(-998.0, S, "k", "A", "e", 1, "m", publish_time=1_767_323_045_123_456_789),
        Closed(-997.0, S, "A", lost=True),
    )


def test_everything_that_was_recorded_reaches_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, telling()) == [
        Opened(0.0, S, "A", "a", max_outstanding_messages=5, max_outstanding_bytes=600),
        PublishInvoked(1.0, "k", "e", 1, region="europe-west1"),
        Delivered(2.0, S, "k", "A", "e", 1, "m", publish_time=1_767_323_045_123_456_789),
        Closed(3.0, S, "A", lost=True),
    ]


def test_what_older_files_do_not_have_is_what_nobody_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, telling(), without=ADDED) == [
        Opened(0.0, S, "A", "a"),
        PublishInvoked(1.0, "k", "e", 1),
        Delivered(2.0, S, "k", "A", "e", 1, "m"),
        Closed(3.0, S, "A"),
    ]
