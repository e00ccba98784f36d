"""Incidents over HTTP: lists, one of them, the feed, and that somebody knows."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest
from pydantic import SecretStr

from api.query_parameters import IncidentParameters
from api.routes.incidents import TEXT_LENGTH_MAX, incident_feed, updated_at
from prober.config.models import Api
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.incidents import Acknowledgement
from prober.sinks.status.database import Database
from prober.sinks.status.listings import Page as ListPage
from prober.sinks.status.store import StatusStore
from tests.unit.api.asking import NOON, StubView, archive_at, ask, copy_of
from tests.unit.api.kept import answer, full_view
from tests.unit.api.pages import Page
from tests.unit.sinks.status.examples import START, close_due

STUCK = "/api/v1/incidents/run-3-loss"
FEED = "/api/v1/incidents.atom"
ATOM = "{http://www.w3.org/2005/Atom}"
TOKEN = {"Authorization": "Bearer open-sesame", "Content-Type": "application/json"}


def guarded() -> StubView:
    asked = full_view()
    asked.settings = Api(token=SecretStr("open-sesame"))
    return asked


def acknowledge(asked: StubView, body: dict[str, Any], path: str = STUCK, headers: dict[str, str] = TOKEN) -> Any:
    return ask(asked, f"{path}/acknowledge", "POST", headers, body=json.dumps(body).encode())


def test_what_it_says() -> None:
    assert answer(STUCK) == {
        "incident_id": "run-3-loss",
        "title": "Confirmed messages are not delivered on us",
        "target": "us",
        "symptom": "loss",
        "status": "FAIL",
        "first_at": "2026-01-02T03:06:07Z",
        "last_at": "2026-01-02T03:06:07Z",
        "closes_at": "2026-03-01T12:10:00Z",
        "closed_at": None,
        "affected": [{"probe": "affinity", "vantage": "wire", "part": "", "kinds": {"STUCK": 1}}],
        "findings": 1,
        "runs": 1,
        "runs_total": 1,
        "unsent": 0,
        "runbook": "PubsubDeliveryOverdue",
        "exemplar": "run-3-1",
        "exemplar_is_proven": True,
        "acknowledged": None,
        "raised_at": "2026-01-02T03:06:07Z",
        "first_acknowledged_at": None,
        "findings_link": "/api/v1/findings?incident=run-3-loss",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["run-4-order", "run-3-loss", "run-2-redelivery"]),
        ("?open=true&target=us", ["run-3-loss"]),
        ("?open=false", []),
        ("?symptom=loss", ["run-3-loss"]),
        ("?until=2026-01-02T03:06:00Z", ["run-2-redelivery"]),
    ],
)
def test_filters(query: str, found: list[str]) -> None:
    assert [one["incident_id"] for one in answer(f"/api/v1/incidents{query}")["items"]] == found


def test_what_is_not_there() -> None:
    assert "no incident is called none" in answer("/api/v1/incidents/none", 404)["detail"]
    assert acknowledge(guarded(), {"by": "ada"}, "/api/v1/incidents/none").status_code == 404


class TestAcknowledging:
    def test_it_is_kept_and_shown(self) -> None:
        asked = guarded()
        said = acknowledge(asked, {"by": "ada", "note": "known <b>", "until": "2099-03-01T18:00:00+01:00"})
        assert said.status_code == 200
        kept = ask(asked, STUCK).json()["acknowledged"]
        assert kept == said.json()["acknowledged"]
        assert (kept["by"], kept["note"], kept["until"]) == ("ada", "known <b>", "2099-03-01T17:00:00Z")
        shown = Page(ask(asked, "/incidents/run-3-loss").text).said()
        assert "Acknowledged by ada , " in shown
        assert "until 2099-03-01 17:00:00 UTC : known <b>" in shown
        assert "until 2099-03-01 17:00:00 UTC : known <b>" in Page(ask(asked, "/").text).said()

    def test_the_next_word_takes_its_place(self) -> None:
        asked = guarded()
        acknowledge(asked, {"by": "ada", "note": "one"})
        acknowledge(asked, {"by": "bob"})
        kept = ask(asked, STUCK).json()["acknowledged"]
        assert (kept["by"], kept["note"], kept["until"]) == ("bob", "", None)

    def test_the_first_one_counts(self) -> None:
        asked = guarded()
        for by in ("ada", "bob"):
            acknowledge(asked, {"by": by})
        kept = ask(asked, STUCK).json()
        assert kept["first_acknowledged_at"] < kept["acknowledged"]["at"]
        assert "after it was raised" in Page(ask(asked, "/incidents/run-3-loss").text).said()

    def test_how_many_were_acknowledged_in_time(self) -> None:
        """The incidents of the store are two months old."""
        asked = guarded()
        assert ask(asked, "/api/v1/acknowledgements").json() == {
            "within_s": 300.0, "period_s": 2592000.0, "ratio": None, "median_s": None,
            **dict.fromkeys(("in_time", "late", "pending", "ended", "left_out"), 0),
        }  # fmt: skip
        asked.now = START + 600.0
        found = ask(asked, "/api/v1/acknowledgements").json()
        assert (found["late"], found["ratio"]) == (3, 0.0)
        assert (
            "0 of 3 incidents of the last 30 d acknowledged within 5 min. Each outage" in Page(ask(asked, "/incidents").text).said()
        )

    def test_it_needs_the_token(self) -> None:
        assert acknowledge(full_view(), {"by": "ada"}).status_code == 403
        assert acknowledge(guarded(), {"by": "ada"}, headers={"Content-Type": "application/json"}).status_code == 401

    def test_it_ends_by_itself_and_a_time_that_has_passed_takes_it_back(self) -> None:
        asked = guarded()
        acknowledge(asked, {"by": "ada", "until": "2026-01-02T04:00:00Z"})
        assert "Was acknowledged by ada , " in Page(ask(asked, "/incidents/run-3-loss").text).said()
        start = Page(ask(asked, "/").text).said()
        assert "Was acknowledged by ada , " in start
        assert start.lower().count("acknowledged by ada") == 1, "the box at the top does not say it any more"

    def test_nothing_but_what_is_shown_heeds_it(self) -> None:
        asked = guarded()
        before = ask(asked, "/api/v1/status").json()
        acknowledge(asked, {"by": "ada"})
        after = ask(asked, "/api/v1/status").json()
        assert (after["verdict"], after["slos"]) == (before["verdict"], before["slos"])
        assert ask(asked, STUCK).json()["closed_at"] is None

    @pytest.mark.parametrize("until", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
    def test_every_time_that_is_taken_can_be_shown(self, until: str) -> None:
        asked = guarded()
        assert acknowledge(asked, {"by": "ada", "until": until}).status_code == 200
        for path in ("/", "/incidents", "/incidents/run-3-loss", STUCK, FEED):
            assert ask(asked, path).status_code == 200

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"by": ""},
            {"by": "a", "note": "x" * 1001},
            {"by": "a", "until": "2026-03-01T18:00:00"},
            {"by": "a", "x": 1},
            *({"by": "a", "note": f"b{sign}"} for sign in "\0\n\r\x1b\x7f\x85\u2028\u202e\u2066"),
            {"by": "a\nb"},
        ],
    )
    def test_what_is_refused(self, body: dict[str, Any]) -> None:
        assert acknowledge(guarded(), body).status_code == 400


class TestPage:
    def test_the_proof_stands_on_it(self) -> None:
        """Nobody has to look for it."""
        found = Page(ask(full_view(), "/incidents/run-2-redelivery").text)
        assert "Pub/Sub delivered message 4 to A right after message 2 and skipped message 3" in found.said()
        assert "Message 3 should have been redelivered between message 2 and message 4; it was not." in found.said()
        (finding,) = {link.split("/")[-2] for link in found.values("href") if link.endswith("/trace")}
        assert {f"../api/v1/findings/{finding}/trace", f"../api/v1/findings/{finding}/bundle"} <= set(found.values("href"))
        assert "svg" in {tag for tag, attributes in found.elements if attributes.get("role") == "img"}

    def test_where_there_is_no_drawing_it_is_said(self) -> None:
        said = Page(ask(full_view(), "/incidents/run-3-loss").text).said()
        assert "Observed events Something was wrong. Key k , affinity on us (wire), found " in said
        assert "its evidence cannot be read: " in said

    def test_the_command_on_it_acknowledges(self) -> None:
        asked = guarded()
        found = Page(ask(asked, "/incidents/run-3-loss").text)
        command = shlex.split(found.text[found.text.index("curl -X POST") :].partition("\n $TOKEN")[0].replace("\\\n", ""))
        address = "".join(command[command.index("-d") + 2 :][:1]).strip()
        assert address == "http://prober/api/v1/incidents/run-3-loss/acknowledge"
        said = json.loads(command[command.index("-d") + 1])
        assert acknowledge(asked, said, address.removeprefix("http://prober").removesuffix("/acknowledge")).status_code == 200
        kept = ask(asked, STUCK).json()["acknowledged"]
        assert (kept["by"], kept["until"]) == ("YOUR NAME", "2026-03-01T20:00:00Z")
        assert "Acknowledge again" in Page(ask(asked, "/incidents/run-3-loss").text).said()

    def test_where_nothing_can_be_changed_it_is_said(self) -> None:
        said = Page(ask(full_view(), "/incidents/run-3-loss").text).said()
        assert "Acknowledging needs a token" in said
        assert "curl" not in said


def feed_of(asked: StubView, query: str = "") -> Element:
    response = ask(asked, FEED + query)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/atom+xml"
    return fromstring(response.content)


def entries_of(feed: Element) -> dict[str, Element]:
    """The entries by the page that they link."""
    return {str(one.find(f"{ATOM}link[@rel='alternate']").get("href")): one for one in feed.iterfind(f"{ATOM}entry")}  # type: ignore[union-attr]


def text_of(entry: Element, tag: str) -> str:
    return str(entry.findtext(ATOM + tag))


class TestFeed:
    def test_it_has_what_atom_asks_for(self) -> None:
        """RFC 4287, sections 4.1.1 and 4.1.2: each once, ids as absolute addresses, times with a zone, one author for all."""
        feed = feed_of(full_view())
        assert feed.tag == f"{ATOM}feed"
        assert feed.findtext(f"{ATOM}author/{ATOM}name") == "ordering-keys-prober"
        every = [feed, *feed.iterfind(f"{ATOM}entry")]
        for one in every:
            for tag in ("id", "title", "updated"):
                assert len(one.findall(ATOM + tag)) == 1
            assert text_of(one, "id").startswith("urn:uuid:")
            assert datetime.fromisoformat(text_of(one, "updated")).tzinfo is not None
        assert len({text_of(one, "id") for one in every}) == len(every) == 4
        assert text_of(feed, "updated") == max(text_of(one, "updated") for one in every[1:])
        assert [(link.get("rel"), link.get("href")) for link in feed.iterfind(f"{ATOM}link")] == [
            ("self", "incidents.atom"),
            ("alternate", "../../incidents"),
        ]

    def test_an_entry_is_an_incident(self) -> None:
        entry = entries_of(feed_of(full_view()))["../../incidents/run-2-redelivery"]
        assert text_of(entry, "title") == "Open: Redeliveries skip messages on europe"
        assert text_of(entry, "published") == text_of(entry, "updated") == "2026-01-02T03:05:07Z"
        assert [one.get("term") for one in entry.iterfind(f"{ATOM}category")] == ["open", "redelivery", "FAIL", "REDELIVERY_SKIP"]
        content = text_of(entry, "content")
        assert "skip messages on europe since 2026-01-02 03:05:07 UTC: 1 finding in 1 of " in content
        assert "Affected: ordering (wire). It closes by 2026-03-01 12:10 UTC if not seen again." in content
        trace = entry.find(f"{ATOM}link[@rel='related']")
        assert trace is not None
        assert ask(full_view(), f"/api/v1/{trace.get('href')}").status_code == 200

    def test_ids_stay_and_what_happens_is_an_update(self) -> None:
        asked = guarded()
        before = entries_of(feed_of(asked))["../../incidents/run-3-loss"]
        acknowledge(asked, {"by": "ada", "note": "<b>&]]>", "until": "2099-01-01T00:00:00Z"})
        known = entries_of(feed_of(asked))["../../incidents/run-3-loss"]
        assert text_of(known, "id") == text_of(before, "id")
        assert text_of(known, "title").startswith("Acknowledged: ")
        assert text_of(known, "updated") > text_of(before, "updated")
        assert "Acknowledged by ada until 2099-01-01 00:00:00 UTC: <b>&]]>" in text_of(known, "content")
        database = Database(str(asked.archive.queries.database))
        close_due(StatusStore(database), NOON + 9_000.0)
        database.close()
        over = entries_of(feed_of(asked))["../../incidents/run-3-loss"]
        assert text_of(over, "id") == text_of(before, "id")
        assert text_of(over, "title").startswith("Closed: ")
        assert "closed" in {one.get("term") for one in over.iterfind(f"{ATOM}category")}
        assert "It closed 2026-03-01 12:10 UTC." in text_of(over, "content")

    @pytest.mark.parametrize(
        ("said_at", "until", "now", "updated"), [(20.0, 30.0, 25.0, 20.0), (20.0, 30.0, 30.0, 30.0), (20.0, 5.0, 30.0, 20.0)]
    )
    def test_the_end_of_an_acknowledgement_is_an_update(self, said_at: float, until: float, now: float, updated: float) -> None:
        incident = full_view().archive.queries.open_incidents()[0]
        known = replace(incident, first_at=10.0, acknowledged=Acknowledgement(said_at, "ada", "", until))
        assert updated_at(known, now) == updated
        assert updated_at(replace(known, closed_at=40.0), now) == 40.0

    def test_filters_and_pages_are_those_of_the_list(self) -> None:
        feed = feed_of(full_view(), "?target=europe&open=true&limit=1")
        assert list(entries_of(feed)) == ["../../incidents/run-4-order"]
        links = {link.get("rel"): str(link.get("href")) for link in feed.iterfind(f"{ATOM}link")}
        assert links["self"] == "incidents.atom?limit=1&target=europe&open=true"
        assert links["alternate"] == "../../incidents?target=europe&open=true"
        following = feed_of(full_view(), links["next"].removeprefix("incidents.atom"))
        assert list(entries_of(following)) == ["../../incidents/run-2-redelivery"]
        assert text_of(following, "id") == text_of(feed, "id") != text_of(feed_of(full_view()), "id")
        nothing = feed_of(full_view(), "?open=false")
        assert (entries_of(nothing), text_of(nothing, "updated")) == ({}, "1970-01-01T00:00:00Z")
        for wrong in ("?symptm=loss", "?symptom=NONSENSE", "?limit=501", "?open=true&open=true", "?cursor=none"):
            assert ask(full_view(), FEED + wrong).status_code == 400

    def test_who_has_it_is_notified(self) -> None:
        asked = full_view()
        tag = ask(asked, FEED).headers["etag"]
        assert ask(asked, FEED, headers={"If-None-Match": tag}).status_code == 304
        assert ask(asked, FEED, "HEAD").headers["etag"] == tag

    def test_two_deployments_have_two_feeds_and_one_always_the_same(self) -> None:
        other = replace(full_view(), archive=archive_at(copy_of("empty")))
        assert text_of(feed_of(other), "id") != text_of(feed_of(full_view()), "id") == text_of(feed_of(full_view()), "id")

    def test_whatever_is_in_it_it_can_be_parsed(self) -> None:
        """Also what the API would refuse, and what no XML may have."""
        incident = full_view().archive.queries.open_incidents()[0]
        hostile = "\0\x1b\ud800\uffff]]><script>&amp;\u202e\"'" + "x" * 9_999
        instance = InstanceKey(hostile, hostile, hostile, hostile)
        known = replace(
            incident, target=hostile, affected={instance: Counter()}, acknowledged=Acknowledgement(1.0, hostile, hostile, None)
        )
        asked = IncidentParameters(target="\0<&'\"")
        feed = fromstring(incident_feed(ListPage((known,), "a&b"), asked, 2.0, "store"))
        (entry,) = feed.iterfind(f"{ATOM}entry")
        assert "]]><script>&amp;" in text_of(entry, "title")
        assert len(text_of(entry, "content")) <= TEXT_LENGTH_MAX

    def test_the_list_links_it_with_its_filter(self) -> None:
        found = Page(ask(full_view(), "/incidents?target=europe&limit=2").text)
        (link,) = (one for tag, one in found.elements if tag == "link" and one["rel"] == "alternate")
        assert link == {
            "rel": "alternate",
            "type": "application/atom+xml",
            "title": "Incidents",
            "href": "api/v1/incidents.atom?target=europe",
        }
        assert ask(full_view(), f"/{link['href']}").status_code == 200


def test_the_page_links_the_runbook_where_it_is() -> None:
    asked = full_view()
    asked.settings = Api(runbooks="https://example.com/runbooks/")
    assert any(
        link.startswith("https://example.com/runbooks/PubsubDeliveryOverdue.md?target=")
        for link in Page(ask(asked, "/").text).values("href")
    )
