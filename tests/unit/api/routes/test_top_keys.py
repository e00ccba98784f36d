"""The top keys of observed streams, for programs and for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prober.monitoring.top_keys import StreamKeys
from prober.reports.reader import ReportReader
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.prober_records import SILENT_AFTER_S, ProberRecord
from prober.sinks.status.store import StatusStore
from tests.streams import ORDERS_STREAM, SUBSCRIPTION, stream, top_key
from tests.unit.api.asking import EUROPE, NOON, StubView, ask, copy_of, view
from tests.unit.api.pages import Page
from tests.unit.reports.test_reader import DAY, key, put

REPORT = f"/api/v1/hot-keys?date={DAY}"
OTHER = stream(top_key("only", 10.0, 1.0), target="us", subscription="okp-prober-0-us-observe-wire")


def observing(*streams: StreamKeys, reports: Path | None = None) -> StubView:
    """A service that observes streams, as its store has it."""
    asked = view(EUROPE)
    asked.write_to(copy_of("empty"))
    asked.streams = streams
    asked.tell()
    if reports is not None:
        asked.archive = replace(asked.archive, reports=ReportReader(str(reports)))
    return asked


def hot_keys(asked: StubView, path: str = "/api/v1/hot-keys", status: int = 200) -> Any:
    response = ask(asked, path)
    assert response.status_code == status, response.text
    return response.json()


def said(asked: StubView, path: str = "/") -> str:
    return Page(ask(asked, path).text).said()


def test_without_a_date_the_top_keys_of_now_stand_beside_the_newest_report(tmp_path: Path) -> None:
    put(tmp_path, Job.HOT_KEYS, tables={"keys": [key("a", 0.9)], "subscriptions": []})
    asked = observing(ORDERS_STREAM, reports=tmp_path)
    found = hot_keys(asked)
    assert (found["report"]["day"], [one["key"] for one in found["items"]]) == (str(DAY), ["a"])
    [orders] = found["streams"]
    assert (orders["topic"], orders["subscription"], orders["observed_at"]) == (
        ORDERS_STREAM.topic,
        SUBSCRIPTION,
        "2026-03-01T12:00:00Z",
    )
    first = orders["top"][0]
    assert (first["key"], first["heat"], first["score"], first["age_s"]) == ("acct-7", "throughput-bound", 0.84, 12.0)
    assert first["minute"]["bytes_per_s"] == {"low": 840_000.0, "high": 840_000.0}
    of_day = hot_keys(asked, REPORT)
    assert ([one["key"] for one in of_day["items"]], of_day["streams"]) == (["a"], [])


def test_bounds_are_reported_where_keys_are_estimated() -> None:
    inexact = stream(top_key("k", 100_000.0, 0.2, error=0.1), exact=False)
    [one] = hot_keys(observing(inexact))["streams"]
    assert not one["exact"]
    assert one["top"][0]["minute"]["share"] == {"low": 0.2, "high": pytest.approx(0.22)}
    assert "k 100 kB to 110 kB/s 40 to 44/s 20 % to 22 %" in said(observing(inexact))


def test_a_stream_is_reported_without_any_report() -> None:
    found = hot_keys(observing(ORDERS_STREAM))
    assert (found["report"], found["items"], len(found["streams"])) == (None, [], 1)


def test_which_streams_are_asked_for() -> None:
    asked = observing(ORDERS_STREAM, OTHER)
    assert [one["target"] for one in hot_keys(asked)["streams"]] == ["europe", "us"]
    assert [one["target"] for one in hot_keys(asked, "/api/v1/hot-keys?target=us")["streams"]] == ["us"]
    [one] = hot_keys(asked, f"/api/v1/hot-keys?subscription={SUBSCRIPTION}&limit=1")["streams"]
    assert [top["key"] for top in one["top"]] == ["acct-7"]
    assert "history.reports" in hot_keys(asked, "/api/v1/hot-keys?target=none", 404)["detail"]


def test_a_quiet_service_says_nothing_of_streams() -> None:
    asked = observing()
    assert "history.reports" in hot_keys(asked, status=404)["detail"]
    for path in ("/", "/hot-keys"):
        assert "Hot keys now" not in said(asked, path)


def test_what_a_silent_prober_observed_is_not_now() -> None:
    asked = observing()
    store = StatusStore(asked.archive.queries.database)
    store.heartbeat(ProberRecord("prober-1", "1", NOON, NOON - SILENT_AFTER_S - 1.0, streams=(OTHER,)), (), ())
    store.heartbeat(ProberRecord("prober-2", "1", NOON, NOON - 1.0, streams=(ORDERS_STREAM,)), (), ())
    assert [one["target"] for one in hot_keys(asked)["streams"]] == ["europe"]


def test_the_pages_show_them() -> None:
    shown = said(observing(ORDERS_STREAM, OTHER))
    assert "Hot keys now Load by ordering key on streams that the probe observe reads." in shown
    assert "orders europe · 1.4 MB/s and 200 messages/s in ten minutes · 1,000 keys · observed 8 min of it" in shown
    assert "acct-7 throughput-bound 840 kB/s 62/s 31 % 12 s 840 kB/s" in shown
    assert "acct-42 skewed 20 kB/s 40/s 20 %" in shown
    assert "only 10 B/s" in said(observing(ORDERS_STREAM, OTHER), "/hot-keys?target=us")
    assert "acct-7" not in said(observing(ORDERS_STREAM, OTHER), "/hot-keys?target=us")


def test_a_stream_of_which_nothing_is_known_yet() -> None:
    earlier = stream(replace(top_key("k", 10.0, 1.0), minute=None, age_s=None))
    assert "k unknown unknown unknown unknown 10 B/s" in said(observing(earlier))
    assert "No messages with an ordering key yet." in said(observing(stream()))
