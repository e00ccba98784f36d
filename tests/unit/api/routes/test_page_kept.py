"""The pages of what is kept: findings, runs, keys, hot keys, objectives; what is not there, cannot be asked, or cannot be reached."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from api import charts
from api.charts import TimeRange
from api.query_parameters import ChartParameters
from prober.core.findings import Kind, Status
from prober.reports.reader import ReportReader
from prober.sinks.status.database import StoreUnavailable
from prober.sinks.status.over_time import OverTime
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry
from tests.browser.looking import PAGES
from tests.browser.world import ORDERS, World
from tests.streams import HOSTILE
from tests.unit.api.asking import client_of
from tests.unit.api.pages import Page
from tests.unit.api.standing import standing

ROOT = Path(__file__).parents[4]
VIOLATION = PAGES["violation"]


def get(world: World, path: str) -> httpx.Response:
    async def asking(app: FastAPI) -> httpx.Response:
        async with client_of(app) as client:
            return await client.get(path)

    with standing(world.view) as app:
        response = asyncio.run(asking(app))
    assert world.view.errors == []
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return response


def page(world: World, path: str, status: int = 200) -> Page:
    response = get(world, path)
    assert response.status_code == status
    return Page(response.text)


class TestFinding:
    def test_everything_that_is_needed_to_believe_it(self, world: World) -> None:
        said = page(world, VIOLATION).said()
        for words in (
            "REDELIVERY_SKIP violation Pub/Sub delivered message 4 to A right after message 2",
            " UTC , open Incident Redeliveries skip messages on europe , since",
            "violation: no legal behaviour of the service explains what was observed",
            "4 times on this key, 3 of them open",
            "Message 3 should have been redelivered between message 2 and message 4; it was not.",
            "10 events, taken from 17. Verified again, they alone give the same finding.",
            "ordering-prober verify --explain redelivery-europe-wire-089-1.jsonl",
            "Does the subscription have a dead-letter policy?",
            "all of its 17 events",
            "prober-0, version 1.4.0, started 2026-03-01 03:00:00 UTC",
            "delivery_delay_max_s 5, clock_error_s 0, one record per message id (no publish times were recorded)",
            "X <-- wrong",
        ):
            assert words in said

    def test_what_is_linked(self, world: World) -> None:
        links = set(page(world, VIOLATION).values("href"))
        api = "../api/v1/findings/redelivery-europe-wire-089-1"
        assert {api, f"{api}/trace", f"{api}/diagram.svg", "../runs/redelivery-europe-wire-089", f"../keys?key={ORDERS}"} <= links

    def test_one_that_is_closed(self, world: World) -> None:
        assert "over since 2026-03-01 11:41:" in page(world, "/findings/redelivery-europe-wire-011-1").said()

    def test_one_that_is_not_certain(self, world: World) -> None:
        found = page(world, PAGES["indeterminate"])
        assert "indeterminate: a legal explanation exists" in found.said()
        assert "It does not fail a run." in found.said()
        assert "../static/unknown.svg" in found.values("href")

    def test_what_a_publisher_did_and_the_run_that_observed_it(self, world: World) -> None:
        record = world.view.archive.queries.finding("ordering-t55-1")
        run = world.view.archive.queries.run("ordering-t55")
        assert record is not None
        assert run is not None
        swap = replace(record, finding_id="seen-1", run_id="seen", kind=Kind.PUBLISHED_OUT_OF_ORDER, status=Status.INFO)
        counters = {"deliveries_unrecorded": 353, "keys": 40}
        seen = replace(run, run_id="seen", probe="observe", counters=counters)
        world.store.record([Entry(seen, (swap,))])
        assert "Pub/Sub kept its guarantee: look at the publisher." in page(world, "/findings/seen-1").said()
        said = page(world, "/runs/seen").said()
        assert "PUBLISHED_OUT_OF_ORDER info" in said
        assert "The checker verified whether 353 messages on 40 ordering keys came in order" in said
        assert "Checks" not in said
        assert "PUBLISHED_OUT_OF_ORDER info" in page(world, "/findings?status=info").said()

    def test_one_without_evidence_says_why(self, world: World) -> None:
        entry_id = "ordering-t55-1"
        record = world.view.archive.queries.finding(entry_id)
        run = world.view.archive.queries.run("ordering-t55")
        assert record is not None
        assert run is not None
        lone = replace(record, finding_id="lone-1", run_id="lone", evidence=None, unproven_because="the store was too busy")
        verified = replace(run.prober, verified=5, unverified_because="the prober's process paused for 3 s")
        world.store.record([Entry(replace(run, run_id="lone", prober=verified), (lone,))])
        said = page(world, "/findings/lone-1").said()
        assert "There is no drawing the store was too busy" in said
        assert "Verify it yourself" not in said
        assert "only the first 5 of 21 events: the prober's process paused for 3 s" in said


class TestLists:
    def test_findings_are_filtered(self, world: World) -> None:
        said = page(world, "/findings?kind=PUSH_OVERLAP&status=violation&target=&open=&key=").said()
        assert said.count("PUSH_OVERLAP violation") == 1
        assert "No finding agrees with this." in page(world, "/findings?key=nothing").said()

    def test_the_next_page_keeps_the_filter(self, world: World) -> None:
        found = page(world, "/findings?status=violation&open=false&limit=5")
        older = next(link for link in found.values("href") if "cursor=" in link)
        assert older.startswith("findings?limit=5&status=violation&open=false&cursor=")
        assert page(world, f"/{older}").said().count("violation") > 5

    def test_runs_are_filtered(self, world: World) -> None:
        said = page(world, "/runs?verdict=FAIL&probe=redelivery").said()
        assert "redelivery-europe-wire-089 FAIL REDELIVERY_SKIP" in said
        assert "No run agrees with this." in page(world, "/runs?target=mars").said()

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("/findings?kind=NONSENSE", "kind: Input should be 'ORDER_GAP'"),
            ("/findings?knid=STUCK", "knid: "),
            ("/findings?cursor=nonsense", "the cursor is none of ours"),
            ("/findings?limit=100000", "limit: "),
            ("/runs?since=yesterday", "since: write a time with its zone"),
            ("/hot-keys?date=tomorrow", "date: write a day like"),
            ("/findings?key=%00", ""),
        ],
    )
    def test_what_cannot_be_asked_is_said(self, world: World, path: str, reason: str) -> None:
        said = page(world, path, 400 if reason else 200).said()
        assert reason in said


class TestOthers:
    def test_a_run(self, world: World) -> None:
        said = page(world, PAGES["run"]).said()
        assert "Run redelivery-europe-wire-089 FAIL REDELIVERY_SKIP" in said
        assert "publish_latency \u2013 \u2013 \u2013 1" in said
        observed = (
            "Pub/Sub delivered message 4 to A right after message 2 and skipped message 3, "
            "which should have been redelivered in between."
        )
        assert f"REDELIVERY_SKIP violation {observed} key orders-1042 · redelivery on europe (wire) 2026-03-01 11:59:1" in said

    def test_a_run_lists_its_opportunities_to_see_a_violation(self, world: World) -> None:
        said = page(world, PAGES["run"]).said()
        assert "Opportunities for violations first deliveries behind another message of the key" in said
        assert "deliveries while the key was held and another subscriber was there 0" in said

    def test_a_key(self, world: World) -> None:
        said = page(world, PAGES["key"]).said()
        assert "REDELIVERY_SKIP violation" in said
        assert "stalled score 100 %" in said
        assert "No finding on this key is stored." in page(world, "/keys?key=none").said()
        assert "It is not among the hot keys of 2026-02-28, of which 4 are not listed." in page(world, "/keys?key=none").said()
        assert "Enter a key" in page(world, "/keys").said()

    def test_names_from_outside_are_only_text(self, world: World) -> None:
        for path in (PAGES["hostile"], PAGES["hostile key"], PAGES["hot keys"], "/findings", f"/keys?key={quote(HOSTILE)}"):
            found = page(world, path)
            assert [attributes for tag, attributes in found.elements if tag == "script" and "src" not in attributes] == []
            assert not any(name.startswith("on") or name == "style" for _, attributes in found.elements for name in attributes)

    def test_hot_keys(self, world: World) -> None:
        said = page(world, "/hot-keys").said()
        assert "Hot keys of 2026-02-28" in said
        assert "tenant-7 throughput-bound score 92 % · 31 % of the messages of its topic Split this key" in said
        assert "peak 846 kB/s" in said
        assert "age max 22 min" in said
        assert "4 further hot keys not shown" in said
        assert "Hot keys of 2026-02-27" in page(world, "/hot-keys?date=2026-02-27").said()
        assert "There is no report about 2026-01-01." in page(world, "/hot-keys?date=2026-01-01", 404).said()

    def test_an_objective(self, world: World) -> None:
        said = page(world, PAGES["objective"]).said()
        assert "99.9 % over 30 d. A redelivery is bad if it skipped messages" in said
        assert "1 h: burn rate 17, fires above 14: fires (page)" in said
        assert "1 h 10,620 180 0 17 1 d 18 h" in said
        assert "key orders-1042 540 (75 %) key 12 others 180 (25 %)" in said
        assert "../runbooks/PubsubErrorBudgetBurn?slo=" in "".join(page(world, PAGES["objective"]).values("href"))
        assert "runbooks/PubsubErrorBudgetBurn" not in "".join(page(world, PAGES["unknown objective"]).values("href"))

    def test_every_objective(self, world: World) -> None:
        found = page(world, "/slos")
        said = found.said()
        assert "redelivery 99.9 % over 30 d A redelivery is bad if it skipped messages" in said
        assert "proven europe 2.3 % of the budget spent an alert fires proven us nothing spent" in said
        assert "unknown asia, staging nothing counted proven europe, us nothing spent" in said
        assert {f"slos/{one.name}" for one in world.view.archive.objectives} <= set(found.values("href"))

    def test_every_probe_leads_to_each_of_its_instances(self, world: World) -> None:
        found = page(world, "/probes")
        links = sorted(link for link in found.values("href") if link.startswith("probes/"))
        assert len(links) == len(set(links)) == 7
        for link in links:
            assert "Newest runs" in page(world, f"/{link}").said(), link
        assert sorted(
            link.removeprefix("../") for link in page(world, "/probes/ordering").values("href") if "?target=" in link
        ) == [link for link in links if link.startswith("probes/ordering?")]

    def test_a_probe_on_a_target(self, world: World) -> None:
        said = page(world, PAGES["probe at a target"]).said()
        for words in (
            "redelivery on europe (wire) FAIL for 2 min REDELIVERY_SKIP When a message is redelivered",
            "Schedule every 1m Target europe · production · europe-west1",
            "Open incidents Redeliveries skip messages on europe",
            "End-to-end latency end-to-end latency: p99",
            "Objectives that it counts for redelivery proven 2.3 % of the budget spent",
            "Newest runs Run Verdict Began Took Where redelivery-europe-wire-089 FAIL REDELIVERY_SKIP",
            "All findings here",
        ):
            assert words in said
        assert "There is no such probe, or it does not run there;" in page(world, "/probes/ordering?target=mars", 404).said()
        assert "targt: " in page(world, "/probes/ordering?targt=mars", 400).said()

    @pytest.mark.parametrize(
        ("path", "bar", "shapes"),
        [
            ("/slos/redelivery", "budget", ["frame", "spent"]),
            ("/slos/order", "budget", ["frame"]),
            ("/slos/stalled_keys", "budget nothing", ["frame"]),
        ],
    )
    def test_bars_of_budgets_differ_by_their_shape(self, world: World, path: str, bar: str, shapes: list[str]) -> None:
        classes = [named.get("class", "") for tag, named in page(world, path).elements if tag in {"svg", "rect", "path"}]
        after = classes[classes.index(bar) + 1 :]
        assert list(takewhile({"frame", "spent", "over", "mark"}.__contains__, after)) == shapes

    @pytest.mark.parametrize(("left", "filled"), [(0.999999, "2"), (0.5, "60"), (0.0001, "118"), (0.0, "120"), (-3.0, "120")])
    def test_a_little_spent_shows_and_so_does_a_little_left(self, left: float, filled: str) -> None:
        assert charts.filled(left, 120) == filled

    @pytest.mark.parametrize(
        ("path", "others"),
        [("/slos/redelivery?", ""), (f"{PAGES['probe at a target']}&", "target=europe&vantage=wire&part=&")],
    )
    def test_charts_reach_as_far_back_as_is_asked(self, world: World, path: str, others: str) -> None:
        def chosen(query: str = "") -> tuple[list[str], str]:
            found = page(world, (path + query).rstrip("?&"))
            current = [named["href"] for _, named in found.elements if named.get("aria-current") == "true"]
            return current, found.said()

        (usual,), said = chosen()
        assert usual.startswith(f"?{others}range=6h#")
        assert "he last 6 h. " in said
        (asked,), said = chosen("range=7d")
        assert asked.startswith(f"?{others}range=7d#")
        assert "he last 7 d. " in said
        assert "range: Input should be '1h', '6h', '24h', '7d' or '90d'." in page(world, f"{path}range=1y", 400).said()
        assert "ranges: there is no such parameter" in page(world, f"{path}ranges=7d", 400).said()

    def test_the_timeline_reaches_back_a_day_or_as_far_as_is_asked(self, world: World) -> None:
        assert "The last 1 d (UTC) 18:00 1 Mar 06:00 12:00" in page(world, "/").said()
        assert "The last 90 d (UTC)" in page(world, "/?range=90d").said()

    def test_a_young_service_shows_its_first_hour(self, world: World) -> None:
        snapshot = world.view.snapshot()
        young = replace(snapshot, probers=tuple(replace(one, started_at=snapshot.at - 240.0) for one in snapshot.probers))
        assert ChartParameters().span(snapshot).reach is TimeRange.HOURS
        assert ChartParameters().span(young).reach is TimeRange.HOUR
        assert ChartParameters(range=TimeRange.DAY).span(young).reach is TimeRange.DAY

    def test_an_objective_over_time(self, world: World) -> None:
        labels = list(page(world, PAGES["objective"]).values("aria-label"))
        assert "share of bad ones: at most 1.7 %, at 2026-03-01 11:55:00 UTC" in labels
        assert "share of bad ones: none was bad" in labels
        assert "share of bad ones: nothing was decided" in page(world, PAGES["unknown objective"]).said()

    def test_an_objective_of_which_nothing_was_counted(self, world: World) -> None:
        said = page(world, PAGES["unknown objective"]).said()
        assert "europe unknown" in said
        assert "1 h: burn rate unknown, fires above 14: unknown, too little was decided" in said

    def test_the_status_page_shows_what_is_kept(self, world: World) -> None:
        found = page(world, "/")
        said = found.said()
        assert "UNKNOWN. it passed" not in said
        assert "SILENT prober-2 version 1.4.0" in said
        assert "orders-1042 stalled score 100 %" in said
        assert "90 runs: 4 FAIL, 86 PASS" in found.values("aria-label")
        assert "FAIL Redeliveries skip messages" in said
        assert "findings/redelivery-europe-wire-087-1" in found.values("href")

    @pytest.mark.parametrize("path", ["/findings/none", "/runs/none", "/slos/none", "/findings/%00", "/runs/%F0%9F%92%A9"])
    def test_what_is_not_there(self, world: World, path: str) -> None:
        found = page(world, path, 404)
        assert "Not here No " in found.said()
        assert " is called " in found.said()
        assert "../" in found.values("href")


class TestOutages:
    def test_without_a_place_for_reports(self, world: World) -> None:
        archive = world.view.archive
        world.view.archive = replace(archive, reports=None)
        try:
            assert "It is not configured where the nightly jobs put their reports" in page(world, "/").said()
            assert "It is not configured where" in page(world, "/hot-keys").said()
            assert "Unknown: there is no report of the nightly job." in page(world, PAGES["key"]).said()
        finally:
            world.view.archive = archive

    def test_without_a_report(self, world: World, tmp_path: Path) -> None:
        archive = world.view.archive
        world.view.archive = replace(archive, reports=ReportReader(str(tmp_path)))
        try:
            assert "There is no report yet." in page(world, "/").said()
            assert "There is no report yet: the nightly job hot-keys" in page(world, "/hot-keys").said()
            assert "There is no report of the nightly job slo-burn" in page(world, PAGES["objective"]).said()
        finally:
            world.view.archive = archive

    def test_a_store_that_cannot_be_asked(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise StoreUnavailable("the database is locked")

        for name in ("runs", "run", "findings", "finding", "findings_of_key", "counts", "probe_instances", "probers"):
            monkeypatch.setattr(StatusQueries, name, fail)
        monkeypatch.setattr(OverTime, "verdicts", fail)
        said = page(world, "/").said()
        assert "Problems of the prober" in said
        assert "Runs are unknown: the status store cannot be asked at the moment." in said
        for path in (VIOLATION, "/findings", "/runs", PAGES["run"], PAGES["key"], PAGES["objective"]):
            response = get(world, path)
            assert (response.status_code, response.headers["retry-after"]) == (503, "5")
            assert "The status store cannot be reached at the moment." in Page(response.text).said()
            assert "locked" not in response.text
