"""What the metrics say of the status store: counts, and nothing once it does not answer."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.core.findings import Kind
from prober.schedule import store_watch
from prober.schedule.store_watch import StoreWatch
from prober.sinks.metrics import Metrics
from prober.sinks.status.database import Database
from prober.sinks.status.queries import StatusQueries
from tests.unit.sinks.metrics.scraping import samples
from tests.unit.sinks.status.examples import START, entry, sqlite_url, store_at


def acknowledged(metrics: Metrics) -> dict[str, float]:
    name = "pubsub_prober_incidents_acknowledged"
    return {one.labels["timeliness"]: one.value for one in samples(metrics) if one.name == name}


def test_incidents_by_timeliness_and_nothing_without_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "wall_s", lambda: START + 600.0)
    store_at(sqlite_url(tmp_path)).record([entry("a", Kind.GHOST)])
    metrics = Metrics()
    assert all(map(isnan, acknowledged(metrics).values()))
    for folder, known in ((tmp_path, True), (tmp_path / "gone", False)):
        database = Database(sqlite_url(folder))
        StoreWatch(load(None, {}), metrics, StatusQueries(database)).look()
        database.close()
        found = acknowledged(metrics)
        assert found == {"in_time": 0.0, "late": 1.0, "pending": 0.0, "ended": 0.0} if known else all(map(isnan, found.values()))
