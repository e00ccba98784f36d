"""Lists: filters, pages, and what a list says of its next page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.asking import ask
from tests.unit.api.kept import RUNS, SLASHED, answer, full_view
from tests.unit.sinks.status.examples import START


def at(seconds: float) -> str:
    """A time after the first run, as a client writes it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"2026-01-02T03:{4 + minutes + (5 + rest) // 60:02}:{(5 + rest) % 60:02}Z"


def names(path: str) -> list[str]:
    """What a list has, by name."""
    return [item.get("finding_id") or item["run_id"] for item in answer(path)["items"]]


def walk(path: str) -> list[Any]:
    """Every item of a list, page after page, by the links that it gives."""
    items: list[Any] = []
    address: str | None = path
    while address is not None:
        response = ask(full_view(), address)
        assert response.status_code == 200, response.text
        page = response.json()
        items += page["items"]
        link = response.links.get("next")
        assert (link is None) == (page["next_cursor"] is None)
        address = None if link is None else path.partition("?")[0] + link["url"]
    return items


class TestRuns:
    def test_the_newest_comes_first(self) -> None:
        assert names("/api/v1/runs") == [f"run-{number}" for number in range(RUNS, 0, -1)]

    def test_a_run_as_it_is_listed(self) -> None:
        (run,) = [item for item in answer("/api/v1/runs")["items"] if item["run_id"] == "run-2"]
        assert run == {
            "run_id": "run-2",
            "probe": "ordering",
            "target": "europe",
            "vantage": "wire",
            "part": "",
            "environment": "test",
            "region": "local",
            "verdict": "FAIL",
            "reason": "",
            "started_at": "2026-01-02T03:05:05Z",
            "ended_at": "2026-01-02T03:05:07Z",
            "duration_s": 2.0,
            "seed": 7,
            "topic": "topic",
            "subscription": "s",
            "internal_error": False,
            "instance": "prober-0",
        }

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("verdict=FAIL", [4, 3, 2]),
            ("vantage=library&verdict=FAIL", [4]),
            (f"since={at(300)}", [7, 6]),
            (f"until={at(60)}", [1]),
            (f"since={at(60)}&until={at(180)}", [3, 2]),
            ("since=2026-01-02T04:04:05%2B01:00&until=2026-01-02t03:04:06z", [1]),
            ("instance=prober-0&limit=2", [7, 6]),
        ],
    )
    def test_filters(self, query: str, found: list[int]) -> None:
        assert names(f"/api/v1/runs?{query}") == [f"run-{number}" for number in found]

    def test_pages_make_up_the_list(self) -> None:
        for limit in (1, 2, 3, RUNS, RUNS + 1):
            pages = walk(f"/api/v1/runs?limit={limit}")
            assert pages == answer("/api/v1/runs")["items"]
        assert [item["run_id"] for item in walk("/api/v1/runs?limit=1&verdict=FAIL")] == ["run-4", "run-3", "run-2"]

    def test_one_run(self) -> None:
        run = answer("/api/v1/runs/run-2")
        assert run["findings"] == [{"kind": "REDELIVERY_SKIP", "status": "violation", "count": 1}]
        assert run["findings_omitted"] == 0
        assert run["counters"]["deliveries_first"] == 4
        assert run["prober"] == {
            "instance": "prober-0",
            "version": "1.2.3",
            "started_at": "2026-01-02T03:04:05Z",
            "clock_offset_s": 0.0,
            "events": 16,
            "verified": None,
            "unverified_because": "",
        }

    def test_what_its_probe_measured_is_in_the_answer_and_on_its_page(self) -> None:
        assert answer("/api/v1/runs/run-7")["figures"] == {"backlog_begins_bytes_per_second": 712_345.6}
        assert answer("/api/v1/runs/run-2")["figures"] == {}
        assert "<dt>backlog begins</dt><dd>712,346 bytes/s</dd>" in ask(full_view(), "/runs/run-7").text
        assert ">Measurements<" not in ask(full_view(), "/runs/run-2").text

    def test_no_such_run(self) -> None:
        detail = answer("/api/v1/runs/run-99", 404)["detail"]
        assert detail == "no run is called run-99; it may not have ended, have ended under maintenance, or not be kept any more"


class TestFindings:
    def test_the_newest_comes_first(self) -> None:
        assert names("/api/v1/findings") == ["run-7-1", "run-4-2", "run-4-1", "run-3-1", "run-2-1"]

    @pytest.mark.parametrize(
        ("params", "found"),
        [
            ({"kind": "STUCK"}, ["run-3-1"]),
            ({"key": SLASHED}, ["run-4-2", "run-4-1"]),
            ({"run": "run-4"}, ["run-4-2", "run-4-1"]),
            ({"open": "true"}, ["run-4-2", "run-4-1", "run-3-1", "run-2-1"]),
            ({"open": "false"}, ["run-7-1"]),
            ({"incident": "run-4-order"}, ["run-4-2", "run-4-1"]),
            ({"since": at(180)}, ["run-7-1", "run-4-2", "run-4-1"]),
            ({"until": at(180)}, ["run-3-1", "run-2-1"]),
            ({"key": ""}, []),
            ({"vantage": "wire", "probe": "ordering"}, ["run-7-1", "run-2-1"]),
            ({"instance": "prober-0", "limit": "1"}, ["run-7-1"]),
        ],
    )
    def test_filters(self, params: dict[str, str], found: list[str]) -> None:
        query = "&".join(f"{name}={_quoted(value)}" for name, value in params.items())
        assert names(f"/api/v1/findings?{query}") == found

    def test_pages_make_up_the_list(self) -> None:
        assert walk("/api/v1/findings?limit=2") == answer("/api/v1/findings")["items"]
        found = walk(f"/api/v1/findings?limit=1&key={_quoted(SLASHED)}")
        assert [item["finding_id"] for item in found] == ["run-4-2", "run-4-1"]


class TestWrongQuestions:
    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("/api/v1/runs?verdict=pass", "verdict: Input should be 'PASS', 'FAIL' or 'UNKNOWN'"),
            ("/api/v1/findings?status=bad", "status: Input should be 'violation', 'liveness', 'indeterminate' or 'info'"),
            ("/api/v1/findings?knid=STUCK", "knid: there is no such parameter; /docs lists them"),
            ("/api/v1/status?at=now", "at: there is no such parameter; /docs lists them"),
            ("/api/v1/runs/run-1?x=1", "x: there is no such parameter; /docs lists them"),
            ("/api/v1/runs?probe=a&probe=b", "probe: give it once"),
            ("/api/v1/runs?probe=", "probe: String should have at least 1 character"),
            ("/api/v1/runs?limit=0", "limit: Input should be greater than or equal to 1"),
            ("/api/v1/runs?limit=501", "limit: Input should be less than or equal to 500"),
            ("/api/v1/runs?since=2026-01-01", "since: write a time with its zone, like 2026-03-01T12:00:00Z"),
            ("/api/v1/runs?since=2026-01-01T00:00:00", "since: write a time with its zone"),
            ("/api/v1/runs?since=1767225600", "since: write a time with its zone"),
            ("/api/v1/runs?since=2026-01-01T00:00:00+01:00", "since: write a time with its zone"),
            ("/api/v1/runs?until=2026-13-01T00:00:00Z", "until: Input should be a valid datetime"),
            ("/api/v1/findings?open=perhaps", "open: Input should be a valid boolean"),
            ("/api/v1/reports?date=yesterday", "date: write a day like 2026-02-28"),
            ("/api/v1/keys", "key: Field required"),
        ],
    )
    def test_they_are_refused_and_reported_why(self, path: str, said: str) -> None:
        assert answer(path, 400)["detail"].startswith(said)

    def test_a_cursor_belongs_to_its_list_and_filter(self) -> None:
        cursor = answer("/api/v1/runs?limit=1")["next_cursor"]
        assert names(f"/api/v1/runs?limit=1&cursor={cursor}") == ["run-6"]
        for path in (f"/api/v1/runs?probe=ordering&cursor={cursor}", f"/api/v1/findings?cursor={cursor}"):
            assert answer(path, 400)["detail"] == "the cursor belongs to another list or filter: begin without a cursor"


def _quoted(value: str) -> str:
    return "".join(f"%{byte:02X}" for byte in value.encode())


def test_the_clock_of_these_tests() -> None:
    assert START == 1_767_323_045.0
    assert at(0) == "2026-01-02T03:04:05Z"
