"""A history that the service recorded while the embedded server violated its guarantees: verified again, it says what was said online."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from prober.clock import wall_s
from prober.reports.reader import ReportReader
from prober.reports.values import JobSummary
from prober.sinks.history.reader import HistoryReader
from prober.sinks.metrics.label_values import Job
from spark_jobs import reverify
from spark_jobs.history import History
from spark_jobs.work import Reports, Work
from tests.integration.programs import eventually, series, service

FAULTS = (
    "swap_in_batch:p=0.02",
    "drop:p=0.002",
    "duplicate_id:p=0.002",
    "redeliver_unacked_only:p=0.3",
    "split_holder:p=0.1",
    "reply_lost:p=0.02",
    "stream_break:p=0.01",
    "duplicate_publish_same_id:p=0.05",
    "early_redelivery:p=0.02",
    "lost_tail:p=0.2",
    "slow_ack_extension:p=0.02",
)
SETTINGS = {
    "ORDERING_PROBER_PROBES__ORDERING__RATE": "4000",
    "ORDERING_PROBER_EMBEDDED__FAULTS": str(list(FAULTS)).replace("'", '"'),
    **{
        f"ORDERING_PROBER_PROBES__{probe}__{key}": value
        for probe in ("ORDERING", "REDELIVERY", "AFFINITY")
        for key, value in {
            "SCHEDULE": '{"interval": "1s"}',
            "JITTER": "0s",
            "DEADLINES": '{"delivery": "4s", "stall": "4s", "unacked": "4s", "drain": "6s"}',
        }.items()
    },
}
RUNS = 20
PATIENCE_S = 300.0


def _today() -> date:
    return datetime.fromtimestamp(wall_s(), UTC).date()


@pytest.mark.nightly  # two minutes of the service; by day simulated histories are verified again, in `test_reverify`
def test_the_same_is_found_online_and_again(spark: SparkSession, tmp_path: Path) -> None:
    first = _today()
    location = str(tmp_path / "history")
    with service(ORDERING_PROBER_HISTORY__LOCATION=location, **SETTINGS) as (running, url):
        eventually(lambda: sum(series(url, "probe_runs_total")) >= RUNS, PATIENCE_S)
        assert running.stop() == 0
    work = Work(spark, History(spark, location), Reports(spark, str(tmp_path / "reports")), first, wall_s())
    reverify.run(work)
    summary = ReportReader(str(tmp_path / "reports")).summary(Job.REVERIFY, first)
    assert summary is not None
    recorded = list(HistoryReader(location).runs())
    if _today() == first:  # otherwise some of it is of the next day
        assert sum(summary.numbers["runs"].values()) == len(recorded) >= RUNS
        assert {"ORDER_GAP", "AFFINITY_SPLIT"} <= set(summary.numbers["kinds"])
    assert _reported(summary) == {}, summary.numbers


def _reported(summary: JobSummary) -> dict[str, int]:
    """The differences but those for which it was online, not the record, that kept a list short."""
    return {name: count for name, count in summary.numbers["differences"].items() if name != "unlisted"}
