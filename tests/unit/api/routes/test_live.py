"""The live view: a page that is a snapshot, and a stream of rows until the run ends."""

from __future__ import annotations

import json
import re
from typing import Any

from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.live.feed import VIEWERS_MAX
from tests.unit.api.asking import EUROPE, NOON, US, archive_at, ask, view
from tests.unit.api.pages import Page
from tests.unit.api.watching import GAP, KEY, RUN, end, under_way


def streamed(text: str) -> list[Any]:
    """The data of each server-sent event."""
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def test_without_a_run_the_page_says_so() -> None:
    assert "No such run is under way in this process." in Page(ask(view(EUROPE), "/live").text).said()


def test_the_page_is_a_snapshot_of_the_newest_run() -> None:
    asked = view(EUROPE)
    under_way(asked.feed, "older")
    under_way(asked.feed)
    found = Page(ask(asked, "/live").text)
    assert "Live: ordering on europe (wire)" in found.said()
    assert "1.000 <key> subscriber 2 → 2 ORDER_GAP violation on <key> :" in found.said()
    assert {"#event-5", "#event-7"} <= set(found.values("href"))
    assert {"event-5", "event-7"} <= set(found.values("id"))
    assert next(found.values("data-after")) == "8"


def test_a_run_is_chosen_by_name_or_by_place_and_events_by_key() -> None:
    asked = view(EUROPE, US)
    under_way(asked.feed)
    found = Page(ask(asked, "/live?target=europe&probe=ordering&vantage=wire&part=&key=other").text)
    assert "event-4" in set(found.values("id"))
    assert "event-5" not in set(found.values("id"))
    assert "No such run" in Page(ask(asked, "/live?target=us").text).said()
    elsewhere = Page(ask(asked, "/live?run=none").text)
    assert "No such run" in elsewhere.said()
    assert "runs/none" in set(elsewhere.values("href"))


def test_a_key_that_is_asked_for_is_chosen_although_it_has_no_event() -> None:
    asked = view(EUROPE)
    under_way(asked.feed)
    found = Page(ask(asked, "/live?key=quiet").text)
    assert [given["value"] for name, given in found.elements if name == "option"] == ["", KEY, "other", "quiet"]
    assert [given["value"] for _, given in found.elements if "selected" in given] == ["quiet"]
    assert set(found.values("id")) & {f"event-{number}" for number in range(1, 9)} == {"event-1"}
    assert "The page has the latest 100 on this key." in found.said()


def test_a_finding_leads_to_its_page_once_it_is_stored() -> None:
    asked = view(EUROPE)
    run = under_way(asked.feed)
    assert not {f"runs/{RUN}", f"findings/{RUN}-1"} & set(Page(ask(asked, "/live").text).values("href"))
    end(run)
    assert f"runs/{RUN}" in set(Page(ask(asked, "/live").text).values("href"))
    result = RunResult(
        RUN, "ordering", "europe", "wire", Verdict.FAIL, "ORDER_GAP", NOON - 4.0, 2.0, findings=(RecordedFinding(GAP, 7),)
    )
    assert asked.writer is not None
    asked.writer.ended(EUROPE, result, NOON)
    assert f"findings/{RUN}-1" in set(Page(ask(asked, "/live").text).values("href"))


def test_without_the_store_the_page_of_a_run_that_ended_links_no_finding() -> None:
    asked = view(EUROPE)
    end(under_way(asked.feed))
    asked.archive = archive_at("sqlite:////nowhere/at/all.db")
    assert "1.000 <key> subscriber 2 → 2 ORDER_GAP" in Page(ask(asked, "/live").text).said()


def test_rows_are_streamed_until_the_run_ends() -> None:
    asked = view(EUROPE)
    end(under_way(asked.feed))
    answer = ask(asked, f"/live/events?run={RUN}&after=6")
    assert answer.headers["content-type"].startswith("text/event-stream")
    (sent,) = streamed(answer.text)
    assert sent["is_over"]
    assert 'id="event-7"' in sent["rows"]
    assert 'id="event-6"' not in sent["rows"]
    assert "&lt;key&gt;" in sent["rows"]
    assert "subscriber 2" in sent["parts"]["head"]
    assert sent["parts"]["note"] == ""
    assert "FAIL" in sent["parts"]["state"]
    assert "under way" not in sent["parts"]["others"]
    assert "id: 10\n" in answer.text


def test_a_stream_goes_on_where_the_last_one_ended() -> None:
    asked = view(EUROPE)
    end(under_way(asked.feed))
    (sent,) = streamed(ask(asked, "/live/events", headers={"Last-Event-ID": "9"}).text)
    assert 'id="event-10"' in sent["rows"]
    assert 'id="event-9"' not in sent["rows"]


def test_a_stream_ends_with_the_server() -> None:
    asked = view(EUROPE)
    under_way(asked.feed)
    answer = ask(asked, "/live/events", change=lambda app: setattr(app.state, "is_ending", True))
    assert (answer.status_code, streamed(answer.text)) == (200, [])
    assert asked.feed.viewers == 0


def test_a_stream_of_one_key() -> None:
    asked = view(EUROPE)
    end(under_way(asked.feed))
    (sent,) = streamed(ask(asked, "/live/events?key=other").text)
    assert re.findall(r'id="event-(\d+)"', sent["rows"]) == ["1", "4", "9", "10"]


def test_head_is_answered_at_once_and_takes_no_place_of_a_viewer() -> None:
    asked = view(EUROPE)
    under_way(asked.feed)
    asked.feed.viewers = VIEWERS_MAX
    answer = ask(asked, "/live/events", "HEAD")
    assert (answer.status_code, answer.content, asked.feed.refused) == (200, b"", 0)
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_stream_that_cannot_begin() -> None:
    asked = view(EUROPE)
    assert ask(asked, "/live/events").status_code == 404
    under_way(asked.feed)
    asked.feed.viewers = VIEWERS_MAX
    refused = ask(asked, "/live/events")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
    assert "5 of 5 viewers, 1 refused so far." in Page(ask(asked, "/live").text).said()
