"""Keys, subscriptions, objectives, and what the nightly jobs say of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from prober.core.verdict import Verdict
from prober.reports.reader import ReportReader
from prober.schedule.forecast import detectable
from prober.sinks.metrics.label_values import Job
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.slices import KEPT_S, UPTIME_DEFINITION, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.api.asking import EUROPE, NOON, StubView, archive_at, ask, copy_of, end, view
from tests.unit.api.kept import SLASHED, answer, full_view
from tests.unit.api.pages import Page
from tests.unit.reports.test_reader import DAY, alert, key, put, spender, window

OLDER = date(2026, 11, 18)


def with_reports(folder: Path, asked: StubView | None = None) -> StubView:
    """A service that knows where reports are."""
    asked = asked or full_view()
    asked.archive = replace(asked.archive, reports=ReportReader(str(folder)))
    return asked


def reported(asked: StubView, path: str, status: int = 200) -> Any:
    response = ask(asked, path)
    assert response.status_code == status, response.text
    return response.json()


def spread(subscription: str) -> dict[str, Any]:
    about = {"target": "prod", "environment": "production", "region": "eu", "topic": "t", "subscription": subscription}
    counts = {"exact": True, "keys": 3, "messages": 30, "bytes": 300, "hot": 1, "left_out": 0}
    return {**about, **counts, "median": 9, "p90": 12, "p99": None, "top_share": 0.4, "top_ten_share": 1.0, "zipf_exponent": None}


class TestKeys:
    @pytest.mark.parametrize("path", ["/api/v1/keys?key=", "/api/v1/keys/"])
    def test_what_was_found_on_a_key_whatever_it_is_called(self, path: str) -> None:
        quoted = "".join(f"%{byte:02X}" for byte in SLASHED.encode())
        found = answer(path + quoted)
        assert found == {
            "key": SLASHED,
            "findings": [
                {
                    "subscription": "projects/p/subscriptions/s",
                    "kind": "ORDER_GAP",
                    "status": "violation",
                    "count": 2,
                    "open": 2,
                    "first_at": "2026-01-02T03:07:07Z",
                    "last_at": "2026-01-02T03:07:07Z",
                }
            ],
            "report_day": None,
            "hot": [],
        }

    def test_a_slash_may_stay_as_it_is(self) -> None:
        assert answer("/api/v1/keys/a/b//c")["key"] == "a/b//c"

    def test_a_key_on_which_nothing_was_found(self) -> None:
        assert answer("/api/v1/keys/other")["findings"] == []

    def test_what_the_newest_report_says_of_it(self, tmp_path: Path) -> None:
        put(tmp_path, Job.HOT_KEYS, OLDER, tables={"keys": [key("k", 0.1)], "subscriptions": []})
        put(tmp_path, Job.HOT_KEYS, tables={"keys": [key("k", 0.9, backlog_max=7.0), key("l", 0.8)], "subscriptions": []})
        found = reported(with_reports(tmp_path), "/api/v1/keys/k")
        (hot,) = found["hot"]
        assert (found["report_day"], hot["score"], hot["heat"], hot["evidence"]) == (str(DAY), 0.9, "skewed", {"backlog_max": 7.0})


class TestSubscriptions:
    def test_those_that_are_probed_and_those_on_which_something_was_found(self, tmp_path: Path) -> None:
        put(tmp_path, Job.HOT_KEYS, tables={"keys": [], "subscriptions": [spread("s")]})
        listed = reported(with_reports(tmp_path), "/api/v1/subscriptions?since=2026-01-02T03:06:00Z")
        assert listed["since"] == "2026-01-02T03:06:00Z"
        probed, other = listed["items"]
        assert (probed["subscription"], probed["topic"]) == ("projects/p/subscriptions/s", "projects/p/topics/t")
        assert [(instance["target"], instance["probe"]) for instance in probed["probe_instances"]] == [("europe", "ordering")]
        assert [(group["kind"], group["count"]) for group in probed["findings"]] == [("ORDER_GAP", 2)]
        assert (other["subscription"], other["topic"], other["probe_instances"]) == ("s", None, [])
        assert (probed["spread"], other["spread"]["keys"]) == (None, 3)

    def test_all_of_a_probe_with_several(self) -> None:
        name = "projects/p/subscriptions/okp-europe-publish-wire-0123abcd-012345"
        place = replace(EUROPE, probe="publish", subscription=name)
        others = [f"projects/p/subscriptions/okp-europe-publish-wire-{other}-0123abcd-012345" for other in ("second", "filtered")]
        all_of_it = [name, *others]
        listed = reported(view(place), "/api/v1/subscriptions")["items"]
        assert [item["subscription"] for item in listed] == sorted(all_of_it)
        assert [instance["probe"] for item in listed for instance in item["probe_instances"]] == ["publish"] * 3
        (shown,) = reported(view(place), "/api/v1/probes/publish")["probe_instances"]
        assert shown["subscriptions"] == all_of_it

    def test_a_day_back_unless_asked_otherwise(self) -> None:
        listed = answer("/api/v1/subscriptions")
        assert listed["since"] == "2026-02-28T12:00:00Z"
        assert [item["findings"] for item in listed["items"]] == [[]]


class TestSlos:
    def counted(self) -> StubView:
        """200 good and 2 bad in the last five minutes, by another process."""
        asked = view(EUROPE)
        url = copy_of("empty")
        asked.archive = archive_at(url)
        order = next(one for one in asked.archive.objectives if one.name == "order")
        database = Database(url)
        slices = [
            Slice("p", "europe", "order", definition_of(order), length_s, NOON - length_s, SliCounts(1_980, 20, 1))
            for length_s in KEPT_S
        ]
        StatusStore(database).heartbeat(ProberRecord("prober-1", "1", NOON, NOON), (), slices)
        database.close()
        return asked

    def test_all(self) -> None:
        slos = reported(self.counted(), "/api/v1/slos")["items"]
        order = next(slo for slo in slos if slo["name"] == "order")
        assert (order["target"], order["good"], order["bad"], order["undecided"]) == ("europe", 1980, 20, 1)
        assert [(burn["severity"], burn["window_s"]) for burn in order["burn"]][:2] == [("page", 3600.0), ("page", 21600.0)]
        assert order["burn"][0]["state"] == "firing"

    def test_it_says_how_rare_a_fault_may_be_that_is_found(self) -> None:
        asked = self.counted()
        assert reported(asked, "/api/v1/slos/order")["targets"][0]["detectable"] == []
        asked.archive = replace(asked.archive, detectable={("europe", Indicator.ORDER): detectable(1000.0)})
        (europe,) = reported(asked, "/api/v1/slos/order")["targets"]
        assert [found["within_s"] for found in europe["detectable"]] == [3600, 86400, 2592000]
        assert europe["detectable"][0]["share"] == pytest.approx(0.003, rel=0.01)
        page = Page(ask(asked, "/slos/order").text).said()
        assert "1 in 330 within 1 h, 1 in 8,000 within 1 d, 1 in 240,000 within 30 d, with 95 % probability" in page

    def test_one_in_full(self, tmp_path: Path) -> None:
        reports = tmp_path / "reports"
        burn: dict[str, Any] = {"windows": [window("order", "europe", 300.0)], "alerts": [{**alert("order"), "target": "europe"}]}
        put(reports, Job.SLO_BURN, tables={**burn, "spenders": [{**spender("k", 2), "target": "europe"}, spender("other", 1)]})
        slo = reported(with_reports(reports, self.counted()), "/api/v1/slos/order")
        assert (slo["name"], slo["indicator"], slo["objective"], slo["report_day"]) == ("order", "order", 0.9999, str(DAY))
        assert slo["budget"] == pytest.approx(0.0001)
        assert (slo["counted"], slo["bad_if"]) == ("message", "it was first received out of order")
        (europe,) = slo["targets"]
        short = europe["windows"][0]
        assert [window["window_s"] for window in europe["windows"]] == [300, 1800, 3600, 7200, 21600, 86400, 259200, 2592000]
        assert (short["good"], short["bad"], short["undecided"], short["error_ratio"]) == (1980, 20, 1, 0.01)
        assert short["burn_rate"] == pytest.approx(100.0)
        assert short["burn_bounds"]["low"] < 100.0 < short["burn_bounds"]["high"]
        assert europe["measured"] == 60.0 / 2_592_000.0
        assert europe["budget_left"] == pytest.approx(1.0 - 100.0 * europe["measured"])
        assert short["exhausted_in_s"] == pytest.approx(europe["budget_left"] * 25_920.0)
        assert [(alert["severity"], alert["quiet_minutes"]) for alert in europe["alerts"]] == [("page", 3)]
        assert [(spender["by"], spender["value"], spender["bad"]) for spender in europe["spenders"]] == [("key", "k", 2)]

    def test_nothing_counted_is_unknown(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.UNKNOWN)
        (europe,) = reported(asked, "/api/v1/slos/publish_latency")["targets"]
        assert (europe["verdict"], europe["budget_left"]) == ("UNKNOWN", None)
        assert {window["burn_rate"] for window in europe["windows"]} == {None}
        assert {window["exhausted_in_s"] for window in europe["windows"]} == {None}

    def test_monthly_uptime(self) -> None:
        asked = self.counted()
        minutes = [
            Slice("p", "europe", "a", UPTIME_DEFINITION, 60, NOON - 60.0 * number, counts)
            for number, counts in enumerate([SliCounts(1), SliCounts(1), *[SliCounts(bad=1)] * 4, SliCounts(1)])
        ]
        StatusStore(asked.archive.queries.database).heartbeat(ProberRecord("prober-1", "1", NOON, NOON), (), minutes)
        (march,) = reported(asked, "/api/v1/uptime")["items"]
        assert march == {
            "target": "europe", "month": "2026-03", "is_over": False, "minutes": 720, "up": 2, "down": 2, "unknown": 716,
            "uptime": {"low": 2 / 720, "high": 718 / 720}, "credit": {"low": 0.1, "high": 0.5},
        }  # fmt: skip
        said = Page(ask(asked, "/slos").text).said()
        assert "2026-03 europe so far at least 0.28 %, at most 99.72 % unknown: 10 % to 50 % 2 up, 2 down, 716 unknown" in said

    def test_without_counts_no_uptime_is_known(self) -> None:
        asked = self.counted()
        assert reported(asked, "/api/v1/uptime") == {"items": []}
        assert "Nothing is known: no publish was counted by the minute" in Page(ask(asked, "/slos").text).said()

    def test_no_such_objective(self) -> None:
        assert answer("/api/v1/slos/nonsense", 404)["detail"].startswith("no objective is called nonsense; there are ")


class TestReports:
    def test_hot_keys_of_the_newest_day_and_of_any(self, tmp_path: Path) -> None:
        put(tmp_path, Job.HOT_KEYS, OLDER, tables={"keys": [key("old", 0.1)], "subscriptions": []})
        put(tmp_path, Job.HOT_KEYS, tables={"keys": [key("a", 0.9), key("b", 0.95, "r")], "subscriptions": [spread("s")]})
        asked = with_reports(tmp_path)
        newest = reported(asked, "/api/v1/hot-keys")
        assert (newest["report"]["day"], [item["key"] for item in newest["items"]], newest["left_out"]) == (str(DAY), ["b", "a"], 0)
        assert [item["key"] for item in reported(asked, "/api/v1/hot-keys?subscription=s")["items"]] == ["a"]
        assert reported(asked, "/api/v1/hot-keys?limit=1")["left_out"] == 1
        assert [item["key"] for item in reported(asked, f"/api/v1/hot-keys?date={OLDER}")["items"]] == ["old"]

    def test_what_each_job_says_about_a_day(self, tmp_path: Path) -> None:
        put(tmp_path, Job.RETENTION, verdict="FAIL", files_before=7)
        put(tmp_path, Job.RETENTION, OLDER)
        asked = with_reports(tmp_path)
        listed = reported(asked, "/api/v1/reports")
        assert (listed["day"], listed["days"]) == (str(DAY), [str(DAY), str(OLDER)])
        (report,) = listed["items"]
        assert report == {
            "job": "retention",
            "day": str(DAY),
            "verdict": "FAIL",
            "line": "retention: FAIL",
            "finished_at": "2026-11-21T01:02:03Z",
            "duration_s": 7.5,
            "rows": {},
            "numbers": {"files_before": 7},
        }
        assert reported(asked, f"/api/v1/reports?date={OLDER}")["items"][0]["verdict"] == "PASS"
        assert reported(asked, "/api/v1/reports?date=2020-01-01")["items"] == []

    def test_no_report_is_not_an_empty_one(self, tmp_path: Path) -> None:
        asked = with_reports(tmp_path)
        assert reported(asked, "/api/v1/hot-keys", 404)["detail"] == "there is no report on hot keys yet"
        assert (
            reported(asked, "/api/v1/hot-keys?date=2026-01-01", 404)["detail"] == "there is no report on hot keys about 2026-01-01"
        )
        assert reported(asked, "/api/v1/reports") == {"next_cursor": None, "day": None, "items": [], "days": []}
        for path in ("/api/v1/hot-keys", "/api/v1/reports"):
            assert "history.reports" in answer(path, 404)["detail"]
