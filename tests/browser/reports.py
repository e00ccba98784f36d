"""Reports of the nightly jobs, for the service that people look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from prober.sinks.metrics.label_values import Job
from prober.slo.objectives import HOUR_S
from tests.streams import course_of_a_day
from tests.unit.reports.test_reader import Row, alert, put, window


def write_reports(folder: Path, third_key: str) -> None:
    """Those of the hot keys, the last one with this key, and of the budgets."""
    keys = [
        _hot(
            "orders-1042",
            "stalled",
            1.0,
            0.04,
            "Nothing of this key was consumed for 22 minutes. Look for a subscriber that holds it.",
        ),
        _hot(
            "tenant-7", "throughput-bound", 0.92, 0.31, "Split this key: it comes to the limit of 1 MB/s per key in about 9 days."
        ),
        _hot(third_key, "skewed", 0.4, 0.12, "Spread its messages over more keys."),
    ]
    spread = {
        **_about("orders-1042"),
        "exact": True,
        "keys": 1200,
        "messages": 480_000,
        "bytes": 96_000_000,
        "median": 310,
        "p90": 700,
        "p99": 4200,
        "top_share": 0.31,
        "top_ten_share": 0.55,
        "zipf_exponent": 0.9,
        "hot": 3,
        "left_out": 0,
    }
    spread.pop("key")
    put(folder, Job.HOT_KEYS, date(2026, 2, 27), tables={"keys": keys[1:2], "subscriptions": [spread]}, left_out=0)
    said = {"line": "7 hot keys among 1,200: 1 stalled, 2 throughput-bound, 4 skewed", "finished_at": "2026-03-01T01:02:03+00:00"}
    put(
        folder,
        Job.HOT_KEYS,
        date(2026, 2, 28),
        verdict="FAIL",
        tables={"keys": keys, "subscriptions": [spread]},
        left_out=4,
        **said,
    )
    about = {"objective": "redelivery", "target": "europe"}
    spenders: list[Row] = [
        {**about, "by": "key", "value": "orders-1042", "bad": 540, "share": 0.75, "others": 0},
        {**about, "by": "key", "value": None, "bad": 180, "share": 0.25, "others": 12},
    ]
    tables: Mapping[str, Sequence[Row]] = {
        "windows": [window("redelivery", "europe", HOUR_S)],
        "alerts": [alert("redelivery")],
        "spenders": spenders,
    }
    said = {"line": "1 of 16 budgets burns too fast", "finished_at": "2026-03-01T01:04:05+00:00"}
    put(folder, Job.SLO_BURN, date(2026, 2, 28), verdict="FAIL", tables=tables, **said)


def _about(key: str) -> dict[str, Any]:
    return {
        "target": "europe",
        "environment": "production",
        "region": "europe-west1",
        "topic": "projects/shop/topics/orders",
        "subscription": "projects/shop/subscriptions/billing",
        "key": key,
    }


def _hot(key: str, heat: str, score: float, share: float, advice: str) -> Row:
    measured = {"peak_bytes_per_s": 920_000.0 * score, "backlog_max": 5200.0, "age_max_s": 1340.0, "stalled_minutes": 22.0}
    said = {
        "class": heat,
        "reasons": [heat, "skewed"],
        "score": score,
        "advice": advice,
        "messages": int(480_000 * share),
        "share": share,
    }
    return {**_about(key), **said, **measured, "course": course_of_a_day(score)}
