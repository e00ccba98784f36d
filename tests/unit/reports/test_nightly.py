"""What the reports of the nightly jobs say becomes metrics, and what nobody knows does not become good."""

from __future__ import annotations

from datetime import date
from math import nan
from pathlib import Path
from typing import Any

import pytest

from prober.config.loading import load
from prober.core.kinds import CAN_FAIL
from prober.reports.reader import NightlyReports
from prober.sinks.history.store import HistoryError
from prober.sinks.metrics import Metrics
from prober.sinks.metrics.label_values import Job
from tests.unit.reports.test_reader import DAY, key, put
from tests.unit.sinks.metrics.scraping import samples

NEXT_DAY = date(2026, 11, 21)


def broken(
    kind: str, *, also_online: int = 0, only_now: int = 0, online_unknown: int = 0, status: str = "violation"
) -> dict[str, Any]:
    return {"kind": kind, "status": status, "also_online": also_online, "only_now": only_now, "online_unknown": online_unknown}


def about(*findings: dict[str, Any], verified: int = 1, crashes: int = 0) -> dict[str, Any]:
    """What a report of `reverify` says about a target."""
    return {"verified": verified, "crashes": crashes, "broken": findings}


class Watching:
    """A prober of the targets `prod` and `idle` that looks at the reports in a folder."""

    def __init__(self, folder: Path) -> None:
        targets = [f"{{name: {name}, endpoint: embedded, environment: test}}" for name in ("prod", "idle")]
        (folder / "prober.yaml").write_text(f"targets: [{', '.join(targets)}]\n")
        self.folder, self.metrics = folder / "reports", Metrics(environments=["test"])
        self._reports = NightlyReports(load(folder / "prober.yaml", {}), self.metrics.health)

    def reported(self, family: str, label: str, target: str = "prod") -> dict[str, float]:
        """What the metrics say about a target after another look."""
        self._reports.look(str(self.folder))
        found = [one for one in samples(self.metrics) if one.name == f"pubsub_prober_{family}" and one.labels["target"] == target]
        return {one.labels[label]: one.value for one in found}

    def reverified(self, target: str = "prod") -> dict[str, float]:
        """The same about what later verification found, without what is 0."""
        reported = self.reported("reverified_findings", "kind", target)
        assert not reported or reported.keys() == set(CAN_FAIL)
        return {kind: value for kind, value in reported.items() if value != 0}

    def put(self, day: date = DAY, **by_target: dict[str, Any]) -> None:
        """A report of `reverify`."""
        put(self.folder, Job.REVERIFY, day, by_target=by_target)


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    return Watching(tmp_path)


UNKNOWN = pytest.approx(dict.fromkeys(CAN_FAIL, nan), nan_ok=True)


def test_without_a_report_nothing_is_said(watching: Watching) -> None:
    assert watching.reported("reverified_findings", "kind") == {}
    assert watching.reported("hot_keys", "class") == {}


def test_what_was_found_only_when_verified_again_or_perhaps_only_then_is_reported(watching: Watching) -> None:
    watching.put(prod=about(broken("ORDER_GAP", also_online=5, only_now=2, online_unknown=1), broken("STUCK", also_online=3)))
    assert watching.reverified() == {"ORDER_GAP": 3}


def test_statuses_of_a_kind_are_counted_together(watching: Watching) -> None:
    watching.put(prod=about(broken("STUCK", only_now=1), broken("STUCK", only_now=1, status="liveness")))
    assert watching.reverified() == {"STUCK": 2}


def test_the_newest_report_counts(watching: Watching) -> None:
    watching.put(prod=about(broken("ORDER_GAP", only_now=2)))
    assert watching.reverified() == {"ORDER_GAP": 2}
    watching.put(NEXT_DAY, prod=about())
    assert watching.reverified() == {}


@pytest.mark.parametrize("said", [about(verified=0), about(crashes=1)])
def test_where_nothing_was_verified_or_the_checker_failed_nothing_is_not_0(watching: Watching, said: dict[str, Any]) -> None:
    watching.put(prod=said)
    assert watching.reported("reverified_findings", "kind") == UNKNOWN


def test_what_was_found_counts_although_the_checker_failed_elsewhere(watching: Watching) -> None:
    watching.put(prod=about(broken("ORDER_GAP", only_now=1), crashes=1))
    reported = watching.reported("reverified_findings", "kind")
    assert reported.pop("ORDER_GAP") == 1
    assert reported == pytest.approx(dict.fromkeys(reported, nan), nan_ok=True)


def test_nothing_is_known_of_a_target_that_the_report_does_not_name(watching: Watching) -> None:
    watching.put(prod=about())
    assert watching.reported("reverified_findings", "kind", "idle") == UNKNOWN


@pytest.mark.parametrize(
    "numbers",
    [{}, {"by_target": []}, {"by_target": {"prod": {}}}, {"by_target": {"prod": about(broken("A_KIND_OF_LATER", only_now=1))}}],
)
def test_a_report_that_does_not_say_it_says_nothing(watching: Watching, numbers: dict[str, Any]) -> None:
    put(watching.folder, Job.REVERIFY, **numbers)
    assert watching.reported("reverified_findings", "kind") == {}


def test_when_the_report_is_gone_what_it_said_is_known_no_more(watching: Watching) -> None:
    watching.put(prod=about(broken("ORDER_GAP", only_now=2)))
    assert watching.reverified() == {"ORDER_GAP": 2}
    (watching.folder / Job.REVERIFY / f"date={DAY}" / "summary.json").unlink()
    assert watching.reported("reverified_findings", "kind") == UNKNOWN


def test_while_the_reports_cannot_be_reached_what_they_said_stays(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    watching.put(prod=about(broken("ORDER_GAP", only_now=2)))
    assert watching.reverified() == {"ORDER_GAP": 2}

    def unreachable(*_: object) -> None:
        raise HistoryError("no such bucket")

    monkeypatch.setattr("prober.reports.reader.ReportReader.latest_day", unreachable)
    with pytest.raises(HistoryError):
        watching.reverified()
    found = [one.value for one in samples(watching.metrics) if one.labels.get("kind") == "ORDER_GAP"]
    assert 2 in found


def test_hot_keys_are_counted_by_class(watching: Watching) -> None:
    put(watching.folder, Job.HOT_KEYS, tables={"keys": [key("a", 0.9), key("b", 0.8)], "subscriptions": []})
    assert watching.reported("hot_keys", "class") == {"stalled": 0, "throughput-bound": 0, "consumer-bound": 0, "skewed": 2}
