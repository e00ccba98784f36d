"""Top keys as gauges: by rank, never by key, and nothing where no stream is observed."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest
from prometheus_client.samples import Sample

from prober.monitoring.top_keys import StreamKeys
from prober.sinks.metrics import Metrics
from tests.streams import ORDERS_STREAM, SUBSCRIPTION, stream
from tests.unit.sinks.metrics.scraping import samples

LABELS = {"target": "europe", "environment": "production", "region": "europe-west1", "subscription": SUBSCRIPTION}


def scraped(*streams: StreamKeys) -> list[Sample]:
    metrics = Metrics()
    metrics.watch_keys(lambda: streams)
    return [one for one in samples(metrics) if one.name.startswith("pubsub_prober_top_key_")]


def by_rank(found: list[Sample], name: str) -> list[float]:
    assert all({**one.labels, "rank": ""} == {**LABELS, "rank": ""} for one in found)
    chosen = {one.labels["rank"]: one.value for one in found if one.name == f"pubsub_prober_top_key_{name}"}
    assert list(chosen) == ["1", "2", "3", "4", "5"]
    return list(chosen.values())


def test_every_rank_of_an_observed_stream() -> None:
    found = scraped(ORDERS_STREAM)
    assert by_rank(found, "bytes_per_second") == [840_000.0, 20_000.0, 9_000.0, 0.0, 0.0]
    assert by_rank(found, "share_ratio") == pytest.approx([0.31, 0.2, 0.01, 0.0, 0.0])
    ages = by_rank(found, "age_seconds")
    assert ages[:2] == [12.0, 0.2]
    assert all(map(isnan, ages[2:]))
    assert "acct" not in str(found)


def test_what_is_not_observed_now_is_no_number() -> None:
    earlier = replace(ORDERS_STREAM, top=tuple(replace(one, minute=None) for one in ORDERS_STREAM.top))
    for streams in (earlier, stream()):
        assert [isnan(one.value) for one in scraped(streams)] == [True] * 15


def test_no_series_where_no_stream_is_observed() -> None:
    assert scraped() == []


def test_a_mistake_is_counted_and_shows_nothing() -> None:
    metrics = Metrics()

    def broken() -> tuple[StreamKeys, ...]:
        raise ValueError("mistake")

    metrics.watch_keys(broken)
    found = samples(metrics)
    assert [one for one in found if one.name.startswith("pubsub_prober_top_key_")] == []
    errors = {one.labels["component"]: one.value for one in found if one.name == "pubsub_prober_internal_errors_total"}
    assert errors["metrics"] == 1.0
