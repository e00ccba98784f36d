"""What the charts show, as numbers: the same bins and slices, for what is asked, and nothing where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from prober.core.verdict import Verdict
from prober.slo.indicators import Indicator
from tests.unit.api.asking import EUROPE, NOON, US, StubView, ask, end, view
from tests.unit.api.kept import full_view

PATHS = ("/api/v1/probes/ordering/series", "/api/v1/slos/order/series")


def series(asked: StubView, path: str, status: int = 200) -> Any:
    response = ask(asked, path)
    assert response.status_code == status, response.text
    return response.json()


def measured() -> StubView:
    asked = view(EUROPE, US)
    end(asked, EUROPE, Verdict.PASS, at=NOON - 600.0)
    return asked


def test_durations_of_a_probe() -> None:
    said = series(measured(), f"{PATHS[0]}?range=1h")
    (instance,) = said["probe_instances"]
    (point,) = instance["points"]
    assert (said["range"], said["bin_s"], instance["target"], point["runs"]) == ("1h", 15.0, "europe", 1)
    assert set(point["durations"]) == {name for name, count in point["known"].items() if count}


def test_counts_of_an_objective() -> None:
    said = series(measured(), f"{PATHS[1]}?range=1h")
    assert (said["range"], said["slice_s"], [one["target"] for one in said["targets"]]) == ("1h", 300, ["europe"])
    (counted,) = said["targets"][0]["slices"]
    assert counted["good"] + counted["bad"] + counted["undecided"] > 0


def test_of_what_nobody_measured_there_is_nothing() -> None:
    asked = view(EUROPE)
    assert series(asked, PATHS[0])["probe_instances"][0]["points"] == []
    assert series(asked, PATHS[1])["targets"] == []


@pytest.mark.parametrize(("query", "status"), [("?vantage=wire&part=", 200), ("?target=us", 404), ("?range=2h", 400)])
def test_only_what_is_asked_for(query: str, status: int) -> None:
    series(measured(), f"{PATHS[0]}{query}", status)


def test_what_does_not_exist() -> None:
    assert "no probe runs as none" in series(full_view(), "/api/v1/probes/none/series", 404)["detail"]
    assert "no objective is called none" in series(full_view(), "/api/v1/slos/none/series", 404)["detail"]


def test_every_indicator_of_the_charts_is_reported() -> None:
    (instance,) = series(measured(), PATHS[0])["probe_instances"]
    assert set(instance["points"][0]["known"]) == {
        Indicator.PUBLISH_LATENCY,
        Indicator.END_TO_END_LATENCY,
        Indicator.OLDEST_UNACKED_MESSAGE_AGE,
    }
