"""Comparisons of what is in the status store, and what the watch tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.clock import wall_s
from prober.comparison.comparison import Comparison, StoredComparisons, compare_stored
from prober.comparison.pairs import common_to, targets_of
from prober.config.loading import load
from prober.config.models import Config
from prober.runs.probe_instance import ProbeInstance
from prober.sinks.metrics import Metrics
from prober.sinks.status.database import Database
from prober.sinks.status.entries import EndedRun, entry_of
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.store import StatusStore
from prober.slo.comparison import Standing
from tests.unit.comparison.runs import run
from tests.unit.sinks.metrics.test_comparisons import reported
from tests.unit.sinks.status.examples import PROBER, sqlite_url

NOW = 1_800_000_000.0
CONFIG = """
targets:
  - {name: production, endpoint: embedded, probes: {ordering: {}}}
  - {name: canary, endpoint: embedded, probes: {ordering: {}}}
slos: {affinity: false}
comparisons: [{baseline: production, candidate: canary, window: 10m}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "prober.yaml").write_text(CONFIG)
    return load(tmp_path / "prober.yaml", {})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StatusStore]:
    database = Database(sqlite_url(tmp_path))
    made = StatusStore(database)
    made.prepare()
    yield made
    database.close()


def fill(store: StatusStore, target: str, *ages_s: float, now: float = NOW) -> None:
    instance = ProbeInstance(target, "ordering", "wire", interval_s=10.0)
    store.record(
        [entry_of(EndedRun(instance, run(now - age, target=target), now - age + 1.0, 0.0, None), PROBER) for age in ages_s]
    )


def queries_at(tmp_path: Path) -> StatusQueries:
    return StatusQueries(Database(sqlite_url(tmp_path)))


def compared(tmp_path: Path, config: Config) -> Comparison:
    queries, (settings,) = queries_at(tmp_path), config.comparisons
    try:
        return compare_stored(queries, settings, common_to(*targets_of(config, "production", "canary")), NOW)
    finally:
        queries.database.close()


def test_runs_of_the_window_are_compared(tmp_path: Path, config: Config, store: StatusStore) -> None:
    fill(store, "production", *range(10, 400, 10), 5000)
    fill(store, "canary", *range(12, 402, 10), 5002)
    found = compared(tmp_path, config)
    assert found.standing is Standing.NO_WORSE
    assert sum(found.pairs.values()) == 39
    assert found.took_s == pytest.approx(390.0)


def test_an_empty_store_tells_nothing(tmp_path: Path, config: Config, store: StatusStore) -> None:
    found = compared(tmp_path, config)
    assert (found.standing, found.aspects, found.took_s) == (Standing.UNKNOWN, (), 0.0)
    assert len(found.missing) == 1


def test_the_metrics_report_it_and_take_it_back_when_the_store_is_gone(tmp_path: Path, config: Config, store: StatusStore) -> None:
    fill(store, "production", *range(10, 400, 10), now=wall_s())
    fill(store, "canary", *range(10, 400, 10), now=wall_s())
    metrics, queries, gone = Metrics(), queries_at(tmp_path), queries_at(tmp_path / "gone")
    watch = StoredComparisons(config, metrics.comparisons, queries)
    assert reported(metrics, "standing", "standing")["unknown"] == 1
    watch.look()
    assert reported(metrics, "standing", "standing")["no_worse"] == 1
    StoredComparisons(config, metrics.comparisons, gone).look()
    assert reported(metrics, "standing", "standing") == {"no_worse": 0, "worse": 0, "unknown": 1}
    for each in (queries, gone):
        each.database.close()
