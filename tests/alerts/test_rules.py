"""The committed rule files: they are what the objectives ask for, they are sound, and they name nothing that does not exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from prober.alerting.options import PAGES
from prober.alerting.rules import AlertBasis, Owner, Severity
from tests.alerts.reading import FROM_PROMETHEUS, labels_of, recorded, scraped, selectors
from tests.alerts.stories import ALERTS, EPOCH, PATHS, RULES, WRITTEN, distinguished, in_story_time
from tests.alerts.tools import said


def test_promtool_has_nothing_to_say() -> None:
    code, words = said("promtool", "check", "rules", "--lint=all", "--lint-fatal", *PATHS)
    assert code == 0, words
    assert words.count("SUCCESS") == len(PATHS)


def test_promtool_would_say_it(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(PATHS[0].read_text(encoding="utf-8").replace("increase(", "increase((", 1), encoding="utf-8")
    assert said("promtool", "check", "rules", path)[0] != 0


# --- conventions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alert", WRITTEN, ids=distinguished)
def test_an_alert_is_written_by_the_conventions(alert: dict[str, Any]) -> None:
    name, labels, annotations = alert["alert"], alert["labels"], alert["annotations"]
    prefix = "Pubsub(Prober|(?=TargetBlind))" if labels["owner"] == Owner.PROBER else "Pubsub(?!Prober)"
    assert re.fullmatch(f"{prefix}([A-Z][a-z]+)+", name)
    assert labels["severity"] in set(Severity)
    assert (labels["severity"] == Severity.NONE) == (name in {"PubsubProberWatchdog", "PubsubProberDrillFinding"})
    assert ("evidence" in labels) == (labels["owner"] != Owner.PROBER)
    assert labels.get("evidence", AlertBasis.PROOF) in set(AlertBasis)
    assert annotations["summary"].endswith(".")
    assert annotations["description"].removesuffix("{{ end }}").endswith(".")
    assert annotations["runbook_url"].partition("?")[0] == f"{PAGES}/runbooks/{name}.md"
    assert "/d/okp-" in annotations["dashboard_url"]
    assert annotations.get("status_url", "").startswith(f"{PAGES}/findings?") == (labels.get("evidence") == AlertBasis.PROOF)


def test_no_alert_is_distinguished_by_key() -> None:
    for alert in WRITTEN:
        grouped = re.findall(r"by \(([^)]*)\)", alert["expr"])
        assert not {"key", "ordering_key", "message_id"} & {label.strip() for labels in grouped for label in labels.split(",")}


WITHOUT_VALUE = {
    "PubsubCandidateWorse",
    "PubsubProberAbsent",
    "PubsubProberApiDown",
    "PubsubProberConfigRefused",
    "PubsubProberDown-warning",
    "PubsubProberDrillFailed",
    "PubsubProberJobNeverSucceeded",
    "PubsubProberOwnSubscriptionUnreadable",
    "PubsubProberRecordingsMissing",
    "PubsubProberRunsMissing",
    "PubsubProberSeriesVanished",
    "PubsubProberStatusStoreDown",
    "PubsubProberWatchdog",
    "PubsubServiceDelaysOwnSubscription",
}
"""Their expressions have values without a meaning, such as 0 or 1."""


@pytest.mark.parametrize("alert", WRITTEN, ids=distinguished)
def test_no_two_alerts_have_the_same_summary(alert: dict[str, Any]) -> None:
    """The label `indicator` follows from `slo`."""
    named = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    assert (labels_of(alert["expr"]) | alert["labels"].keys() & {"slo"}) - {"indicator"} <= named
    valueless = {alert["alert"], f"{alert['alert']}-{alert['labels']['severity']}"} & WITHOUT_VALUE
    assert bool(valueless) == ("$value" not in alert["annotations"]["summary"])


def test_the_labels_of_an_expression_are_read_off_it() -> None:
    assert labels_of('sum by (probe) (up) or up{job="x"} == 0') == {"probe", "instance"}
    assert labels_of("sum by (le) (up) * on (job) group_right () group by (job, target) (up)") == {"job", "target"}
    assert labels_of("time() - max_over_time(up[5m]) > 3 unless on (job) sum(up)") == {"job", "instance"}


def test_rules_read_no_clock_but_those_that_stories_set() -> None:
    for rule in RULES:
        assert not re.search(r"\b(minute|hour|month|year|day_of_\w+|days_in_month)\(|@", rule["expr"])
        assert in_story_time(rule["expr"]).count(f" + {EPOCH})") == len(re.findall(r"\btime\(|\btimestamp\(", rule["expr"]))


def test_no_rule_compares_the_start_of_a_prober_with_the_clock_of_prometheus() -> None:
    """A prober that started with a wrong clock would be young for hours, or never."""
    assert not [rule for rule in RULES if re.search(r"time\(\) - \w*start_timestamp", rule["expr"])]


@pytest.mark.parametrize("alert", WRITTEN, ids=distinguished)
def test_what_a_template_names_is_there(alert: dict[str, Any]) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
    known = {label for labels in re.findall(r"by \(([^)]*)\)", alert["expr"]) for label in labels.split(", ")}
    if "slo:" in alert["expr"]:
        known |= {"target", "environment", "region", "slo", "indicator"}
    if "up{" in alert["expr"]:
        known |= {"job", "instance"}
    assert named <= known


# --- metrics -----------------------------------------------------------------------------------------------------------------


def test_every_metric_in_every_rule_exists_with_those_labels() -> None:
    known = scraped() | recorded() | FROM_PROMETHEUS
    read = [one for rule in RULES for one in selectors(rule["expr"])]
    assert len(read) > len(PATHS)
    assert [(name, labels) for name, labels in read if not labels <= known.get(name, set()) or name not in known] == []


def test_a_metric_that_does_not_exist_would_be_noticed() -> None:
    expression = 'sum by (x) (increase(a_total{b="c"}[5m])) / max(last_over_time(d[1h] offset 5m)) > 1 unless on () (e == 1)'
    assert sorted(selectors(expression)) == [("a_total", {"b"}), ("d", set()), ("e", set())]


def test_every_recorded_series_is_distinct() -> None:
    series = [(rule["record"], tuple(sorted(rule.get("labels", {}).items()))) for rule in RULES if "record" in rule]
    assert len(set(series)) == len(series)


def test_the_example_for_prometheus_is_sound_and_loads_the_rules() -> None:
    code, words = said("promtool", "check", "config", ALERTS / "prometheus.example.yaml")
    assert code == 0, words
    assert f"{len(PATHS)} rule files found" in words
