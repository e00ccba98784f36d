"""Every query of every dashboard returns data on a Prometheus that scraped a real service with faults, or it is said why not.

A minute is scraped; with FULL_DASHBOARDS=1 ten, after which the long windows of the recording rules have to answer, too. On a machine
that is busy it takes longer until there is something of everything: what has no data is asked again for a while.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from prober.alerting.objectives import REMAINING, burn_rate_series
from prober.clock import monotonic_s, wall_s
from prober.sinks.metrics import families
from prober.slo.objectives import DAY_S
from tests.dashboards.committed import NAMES, Asked, breakdowns, choices, dashboard, interpolated, queries
from tests.dashboards.live import SCRAPE_S, Prometheus, prometheus_command, service_and_prometheus
from tests.integration.programs import eventually

FULL = os.environ.get("FULL_DASHBOARDS") == "1"
SCRAPED_S = 600.0 if FULL else 75.0
PATIENCE_S = 120.0
STEP_S = 15.0
BOARDS = {board["uid"]: board for board in map(dashboard, NAMES)}

NEEDS_JOBS = "needs nightly jobs that succeeded, and their reports"
NEEDS_A_DRILL = "needs a fire drill, which needs a Prometheus and an Alertmanager of its own"
NEEDS_OWN = "needs subscriptions of one's own, in Cloud Monitoring"
NEEDS_STREAM = "needs a stream that others publish"
WITHOUT_DATA = {
    ("okp-jobs", "Longest time without a success"): NEEDS_JOBS,
    ("okp-jobs", "Last success of each job"): NEEDS_JOBS,
    ("okp-jobs", "Time since the last success"): NEEDS_JOBS,
    ("okp-jobs", "Violated guarantees found only by later verification"): NEEDS_JOBS,
    ("okp-jobs", "Found only by later verification, by kind"): NEEDS_JOBS,
    ("okp-jobs", "Hot keys by class"): NEEDS_JOBS,
    ("okp-jobs", "Hot keys, broken down"): NEEDS_JOBS,
    ("okp-keys", "Hot keys by class"): NEEDS_JOBS,
    ("okp-keys", "Who is late"): NEEDS_OWN,
    ("okp-keys", "Oldest unacknowledged message of yours"): NEEDS_OWN,
    ("okp-keys", "Your subscriptions"): NEEDS_OWN,
    ("okp-keys", "Data on the top keys"): NEEDS_STREAM,
    ("okp-keys", "Share of the messages on the top keys"): NEEDS_STREAM,
    ("okp-keys", "Age of messages on the top keys"): NEEDS_STREAM,
    ("okp-prober", "Fire drills"): NEEDS_A_DRILL,
    ("okp-prober", "Fire drills: time to each step"): NEEDS_A_DRILL,
    ("okp-prober", "Fire drills: findings"): NEEDS_A_DRILL,
    **{(uid, "annotation Drills"): NEEDS_A_DRILL for uid in BOARDS},
}
PERHAPS_ABSENT = (
    "backlog_begins_bytes_per_second",
    "refusals_begin_bytes_per_second",
    "pubsub_prober_scale_",
    "push_fell_behind_",
    "long_lived_waited_seconds",
)
"""Figures that a run does not always have: on a key that keeps up no backlog begins."""

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(SCRAPED_S + 2 * PATIENCE_S + 180.0)]


@pytest.fixture
def scraped(tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a service for a while."""
    if prometheus_command() is None:
        reason = "prometheus is not installed (Debian, Ubuntu: apt install prometheus)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with service_and_prometheus(tmp_path) as prometheus:
        until = monotonic_s() + SCRAPED_S
        eventually(lambda: monotonic_s() >= until, SCRAPED_S + 10.0)
        yield prometheus


def takes_long(expr: str) -> bool:
    """Whether a query reads a recorded window that adds up recorded hours, in steps of five minutes."""
    return any(name in expr for name in (REMAINING, burn_rate_series(3 * DAY_S)))


def answer(prometheus: Prometheus, asked: Asked, by: str) -> list[object]:
    """The series that Grafana would show a value of."""
    windows = {"__rate_interval": f"{STEP_S + SCRAPE_S:g}s", "__range": f"{SCRAPED_S:g}s"}
    expr, now = interpolated(asked.expr, by, windows), wall_s()
    instant = asked.target.get("instant")
    found = prometheus.instant(expr, now) if instant else prometheus.over(expr, now - SCRAPED_S - PATIENCE_S, now, STEP_S)
    return [one for one in found if any(value != "NaN" for _, value in one.get("values", [one.get("value")]))]


def silent(prometheus: Prometheus) -> Iterator[str]:
    """Queries without an answer, in words."""
    for asked in everything():
        excused = asked.where in WITHOUT_DATA or any(figure in asked.expr for figure in PERHAPS_ABSENT)
        if not excused and (FULL or not takes_long(asked.expr)):
            for by in broken_down_by(asked):
                if not answer(prometheus, asked, by):
                    yield f"{asked.where} by {by}: {asked.expr}"


def without_choice(prometheus: Prometheus) -> Iterator[str]:
    """Variables that offer nothing."""
    for board in BOARDS.values():
        for selector, label in choices(board):
            if not prometheus.instant(f"count by ({label}) ({interpolated(selector)})"):
                yield f"{board['uid']}: {label}"


def without_exemplars(prometheus: Prometheus) -> Iterator[tuple[str, str]]:
    """Queries that show single measurements, and got none that names its run. Administration calls belong to no run."""
    now = wall_s()
    for asked in everything():
        if asked.target.get("exemplar") and families.CONTROL_PLANE_LATENCY.full_name not in asked.expr:
            found = prometheus.exemplars(interpolated(asked.expr), now - SCRAPED_S - PATIENCE_S, now)
            if not any("run_id" in one["labels"] for series in found for one in series["exemplars"]):
                yield asked.where


def everything() -> list[Asked]:
    """Every query of every dashboard."""
    return [asked for name in NAMES for asked in queries(dashboard(name))]


def broken_down_by(asked: Asked) -> list[str]:
    """What a query can be broken down by, if it can."""
    return breakdowns(BOARDS[asked.board]) if "${by" in asked.expr else [""]


def lasting(complaints: Callable[[], Iterable[str | tuple[str, str]]]) -> list[str | tuple[str, str]]:
    """What is still missing when it had time to come."""
    give_up_t = monotonic_s() + PATIENCE_S
    while (missing := list(complaints())) and monotonic_s() < give_up_t:
        threading.Event().wait(SCRAPE_S)
    return missing


def test_every_table_entry_is_about_a_panel() -> None:
    assert set(WITHOUT_DATA) - {asked.where for asked in everything()} == set()


def test_every_query_returns_data_or_it_is_said_why_not(scraped: Prometheus) -> None:
    assert lasting(lambda: silent(scraped)) == []
    assert lasting(lambda: without_choice(scraped)) == []
    unexpected = [one.where for one in everything() if one.where in WITHOUT_DATA and answer(scraped, one, broken_down_by(one)[0])]
    assert unexpected == []
    assert lasting(lambda: without_exemplars(scraped)) == []
