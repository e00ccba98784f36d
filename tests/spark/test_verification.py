"""Events on their way through the checker, without Spark: in batches as they come, run after run."""

from __future__ import annotations

import pyarrow as pa
import pytest

from prober.core.events import Closed, Delivered, Ended, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.sinks.history.arrow import schema_of
from prober.sinks.history.checking import RunRecord
from prober.sinks.history.schema import EVENTS, encode_rules
from spark_jobs import verification as module
from spark_jobs.verification import COLUMNS, RunPlan, verification
from tests.spark.taped import S, Taped


def taped(run_id: str, *received: int) -> Taped:
    """Messages 1 to 3 are published, and these received."""
    run = Taped(run_id).add(Opened(0.0, S, "A", "A"))
    for seq in (1, 2, 3):
        run.add(PublishInvoked(seq, "k", run_id, seq), Published(seq + 0.1, "k", run_id, seq, f"m{seq}"))
    run.add(*(Delivered(5.0 + at, S, "k", "A", run_id, seq, f"m{seq}") for at, seq in enumerate(received)))
    return run.add(Closed(20.0, S, "A"), Ended(21.0, drained=True))


@pytest.fixture
def rows() -> pa.Table:
    events = [event for run in (taped("gap", 1, 3), taped("right", 1, 2, 3)) for event in run.events]
    return pa.Table.from_pylist(events, schema_of(EVENTS)).select(COLUMNS)


PLANS = {name: RunPlan(encode_rules({S: Rules()}), RunRecord(events=count)) for name, count in (("gap", 11), ("right", 12))}


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_batches_may_end_anywhere(rows: pa.Table, at_once: int) -> None:
    batches = [*rows.to_batches(at_once), *rows.slice(0, 0).to_batches()]
    found = pa.Table.from_batches(verification(PLANS)(batches)).to_pylist()
    assert [(row["run_id"], row["kind"]) for row in found if row["status"] == "violation"] == [("gap", "ORDER_GAP")]
    endings = {row["run_id"]: row for row in found if row["kind"] is None}
    assert {name: (row["scope"], row["recorded"], row["verified"]) for name, row in endings.items()} == {
        "gap": ("whole", 11, 11),
        "right": ("whole", 12, 12),
    }
    assert endings["gap"]["verdict_now"] == "FAIL"
    assert [row["run_id"] for row in found] == sorted(row["run_id"] for row in found)


def test_findings_leave_before_the_run_ends(rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 1)
    first, *rest = verification(PLANS)(rows.to_batches(1))
    assert first.to_pylist()[0]["kind"] == "ORDER_GAP"
    assert rest


def test_nothing_gives_nothing() -> None:
    assert pa.Table.from_batches(verification({})([])).num_rows == 0
