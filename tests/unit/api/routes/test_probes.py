"""Probes and their probe instances, and runs that are asked for over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from prober.config.models import Api
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey, ProbeInstance
from prober.sinks.status.database import Database
from prober.sinks.status.prober_records import ProberRecord
from prober.sinks.status.store import StatusStore
from tests.unit.api.asking import EUROPE, NOON, US, StubView, ask, copy_of, end, view

LIBRARY = ProbeInstance("europe", "ordering", "library", interval_s=10.0)
TOKEN = {"Authorization": "Bearer open sesame"}


def guarded(*instances: ProbeInstance) -> StubView:
    """A service with a token."""
    asked = view(*instances)
    asked.settings = Api(token=SecretStr("open sesame"))
    return asked


def begin(asked: StubView, probe: str = "ordering", order: object = None, headers: dict[str, str] = TOKEN) -> tuple[int, Any]:
    """Asks for runs; what is answered."""
    body = None if order is None else json.dumps(order).encode()
    response = ask(asked, f"/api/v1/probes/{probe}/runs", "POST", {"Content-Type": "application/json"} | headers, body=body)
    return response.status_code, response.json()


def test_probes_with_how_they_stand() -> None:
    asked = view(EUROPE, LIBRARY, US)
    end(asked, EUROPE, Verdict.PASS)
    end(asked, LIBRARY, Verdict.FAIL, reason="STUCK")
    asked.live.under_maintenance(US, "works", NOON)
    ordering, redelivery = ask(asked, "/api/v1/probes").json()["items"]
    assert (ordering["name"], ordering["status"]) == ("ordering", "FAIL")
    assert ordering["guarantee"].startswith("Messages of a key are received in the order")
    assert [(instance["vantage"], instance["status"]) for instance in ordering["probe_instances"]] == [
        ("library", "FAIL"),
        ("wire", "PASS"),
    ]
    assert (redelivery["name"], redelivery["status"]) == ("redelivery", "MAINTENANCE")


def test_one_probe_in_full() -> None:
    asked = view(EUROPE, US)
    end(asked, EUROPE, Verdict.PASS)
    probe = ask(asked, "/api/v1/probes/ordering").json()
    assert probe["status"] == "PASS"
    assert [run["run_id"] for run in probe["probe_instances"][0]["history"]] == ["run-1"]


def test_no_such_probe() -> None:
    response = ask(view(EUROPE, US), "/api/v1/probes/nonsense")
    assert (response.status_code, response.json()["detail"]) == (404, "no probe is called nonsense; there are ordering, redelivery")


def test_probers() -> None:
    (prober,) = ask(view(EUROPE), "/api/v1/probers").json()["items"]
    assert (prober["instance"], prober["version"], prober["silent"]) == ("prober-0", "0.1.0", False)


class TestRunNow:
    def test_begins_a_run_wherever_none_is_under_way(self) -> None:
        asked = guarded(EUROPE, LIBRARY, US)
        asked.refused[LIBRARY.key] = "a run is under way"
        assert begin(asked) == (
            202,
            {
                "probe": "ordering",
                "probe_instances": [
                    {"target": "europe", "vantage": "wire", "part": "", "begun": True, "run_id": "ordering-1", "reason": ""},
                    {
                        "target": "europe",
                        "vantage": "library",
                        "part": "",
                        "begun": False,
                        "run_id": None,
                        "reason": "a run is under way",
                    },
                ],
            },
        )
        assert asked.begun == [EUROPE.key]

    @pytest.mark.parametrize(
        ("order", "begun"),
        [
            ({}, [EUROPE.key, LIBRARY.key]),
            ({"target": "europe"}, [EUROPE.key, LIBRARY.key]),
            ({"vantage": "library"}, [LIBRARY.key]),
            ({"target": "europe", "vantage": "wire"}, [EUROPE.key]),
        ],
    )
    def test_only_where_it_is_asked_for(self, order: dict[str, str], begun: list[InstanceKey]) -> None:
        asked = guarded(EUROPE, LIBRARY, US)
        assert begin(asked, order=order)[0] == 202
        assert asked.begun == begun

    @pytest.mark.parametrize(
        ("probe", "order", "status", "said"),
        [
            ("nonsense", None, 404, "no probe runs as nonsense; there are ordering"),
            ("ordering", {"target": "mars"}, 404, "no probe runs as ordering, mars; there are ordering"),
            ("ordering", {"part": "1/2"}, 404, "no probe runs as ordering, 1/2; there are ordering"),
            ("ordering", {"taget": "europe"}, 400, "taget: there is no such field; /docs lists them"),
            ("ordering", {"target": 3}, 400, "target: Input should be a valid string"),
            ("ordering", ["europe"], 400, "the body: Input should be a valid dictionary"),
        ],
    )
    def test_what_cannot_be_done_begins_nothing(self, probe: str, order: object, status: int, said: str) -> None:
        asked = guarded(EUROPE)
        answered, problem = begin(asked, probe, order)
        assert (answered, problem["detail"][: len(said)]) == (status, said)
        assert asked.begun == []

    def test_only_a_part_of_the_keys(self) -> None:
        instances = [replace(EUROPE, part=f"{number}/2") for number in (1, 2)]
        asked = guarded(*instances)
        assert begin(asked, order={"part": "2/2"})[0] == 202
        assert asked.begun == [instances[1].key]

    @pytest.mark.parametrize(
        ("said", "accepted"),
        [
            ({"Content-Type": "text/plain"}, {"accept": "application/json"}),
            ({"Content-Type": "application/x-www-form-urlencoded"}, {"accept": "application/json"}),
            ({}, {"accept": "application/json"}),
            ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, {"accept-encoding": "identity"}),
        ],
    )
    def test_a_body_that_is_not_json_is_not_read(self, said: dict[str, str], accepted: dict[str, str]) -> None:
        asked = guarded(EUROPE)
        response = ask(asked, "/api/v1/probes/ordering/runs", "POST", TOKEN | said, body=b"{}")
        assert (response.status_code, response.headers["content-type"]) == (415, "application/problem+json")
        assert accepted.items() <= response.headers.items()
        assert asked.begun == []

    @pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
    def test_json_is_read(self, kind: str) -> None:
        asked = guarded(EUROPE)
        said = TOKEN | {"Content-Type": kind, "Content-Encoding": "identity"}
        assert ask(asked, "/api/v1/probes/ordering/runs", "POST", said, body=b"{}").status_code == 202

    def test_where_none_can_begin_it_says_why(self) -> None:
        asked = guarded(EUROPE, LIBRARY)
        asked.refused = {EUROPE.key: "under maintenance: moving house", LIBRARY.key: "a run is under way"}
        status, problem = begin(asked)
        assert (status, problem["title"], problem["detail"]) == (
            409,
            "Conflict",
            "no run has begun: europe/wire: under maintenance: moving house; europe/library: a run is under way",
        )
        assert asked.begun == []

    def test_of_many_instances_only_some_are_named(self) -> None:
        instances = [replace(EUROPE, part=f"{number}/12") for number in range(1, 13)]
        asked = guarded(*instances)
        asked.refused = {instance.key: "a run is under way" for instance in instances}
        _, problem = begin(asked)
        assert problem["detail"].endswith("europe/wire/10/12: a run is under way; and 2 more")

    def test_the_refusal_is_documented(self) -> None:
        answers = ask(view(EUROPE), "/openapi.json").json()["paths"]["/api/v1/probes/{name}/runs"]["post"]["responses"]
        assert "No run has begun" in answers["409"]["description"]
        assert "application/problem+json" in answers["409"]["content"]

    def test_an_instance_of_another_prober(self) -> None:
        """Another process probes it, which this one cannot order about."""
        asked = guarded(EUROPE)
        url = copy_of("empty")
        asked.write_to(url)
        other = view(US)
        database = Database(url)
        StatusStore(database).heartbeat(ProberRecord("prober-1", "0.1.0", NOON - 60.0, NOON), other.snapshot().probe_instances)
        database.close()
        status, problem = begin(asked, "redelivery")
        assert (status, problem["detail"]) == (
            409,
            "this process does not probe there; ask a prober that does (those that report: prober-0, prober-1)",
        )
        assert asked.begun == []
