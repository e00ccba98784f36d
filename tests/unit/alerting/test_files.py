"""The rules that are written follow from the objectives alone; `ordering-prober alerts` says when files are out of date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prober.alerting import findings, objectives
from prober.alerting.catalogue import groups_by_file, rule_files
from prober.alerting.objectives import sli_queries
from prober.alerting.options import Options
from prober.alerting.promql import aggregate, percent, prom_duration, prom_number, selector, series
from prober.alerting.rules import AlertingRule, RecordingRule, RuleGroup
from prober.cli import main
from prober.config.loading import load
from prober.core.findings import Kind, Status
from prober.core.kinds import KINDS
from prober.sinks.metrics import families
from prober.slo.counts import BREACHES
from prober.slo.indicators import MEANINGS, Indicator
from prober.slo.objectives import DAY_S, Objective

NAMES = ["objectives.rules.yaml", "prober.rules.yaml", "service.rules.yaml"]


def order(target: float = 0.9999, days: float = 30, **labels: str) -> Objective:
    return Objective("order", Indicator.ORDER, target, days * DAY_S, labels=labels)


def burns(objective: Objective) -> list[AlertingRule]:
    (group,) = objectives.objective_groups([objective])
    return [rule for rule in group.rules if isinstance(rule, AlertingRule) and rule.name == "PubsubErrorBudgetBurn"]


def recordings(objective: Objective) -> dict[str, str]:
    (group,) = objectives.objective_groups([objective])
    return {rule.name: rule.expression for rule in group.rules if isinstance(rule, RecordingRule)}


def factors(objective: Objective) -> list[str]:
    """The factor of each long window."""
    found = [re.findall(r"burn_rate:ratio\w+\{[^}]*\} > (\S+)", alert.expression) for alert in burns(objective)]
    return [factor for pairs in found for factor in pairs[::2]]


def windows(alert: AlertingRule) -> list[str]:
    return re.findall(r"burn_rate:ratio(\w+)\{", alert.expression)


@pytest.mark.parametrize(
    ("days", "expected"),
    [(30, ["14.4", "6", "3", "1"]), (28, ["13.44", "5.6", "2.8", "0.933333"]), (7, ["3.36", "1.4", "0.7", "0.233333"])],
)
def test_factors_follow_from_the_period(days: int, expected: list[str]) -> None:
    assert factors(order(days=days)) == expected


def test_windows_come_in_pairs_and_one_alert_has_all_of_its_severity() -> None:
    reported = [(str(alert.severity), windows(alert)) for alert in burns(order())]
    assert reported == [("critical", ["1h", "5m", "6h", "30m"]), ("warning", ["1d", "2h", "3d", "6h"])]


def test_what_the_service_does_not_guarantee_wakes_nobody() -> None:
    affinity = Objective("mine", Indicator.AFFINITY, 0.99, 30 * DAY_S)
    reported = [(str(alert.severity), windows(alert)) for alert in burns(affinity)]
    assert reported == [("warning", ["1h", "5m", "6h", "30m"]), ("info", ["1d", "2h", "3d", "6h"])]


def test_a_pair_of_windows_that_could_never_fire_is_not_written() -> None:
    assert [windows(alert) for alert in burns(order(0.9))] == [["6h", "30m"], ["1d", "2h", "3d", "6h"]]


def test_one_bad_thing_needs_this_many_others() -> None:
    found = [re.findall(r">= (\d+)$", alert.expression, re.MULTILINE) for alert in burns(order())]
    assert found == [["695", "1667"], ["3334", "10001"]]


def test_the_period_is_a_window() -> None:
    names = recordings(order(days=28))
    assert "slo:pubsub_prober_bad:increase28d" in names
    assert names["slo:pubsub_prober_budget_remaining:ratio"] == '1 - slo:pubsub_prober_budget_spent:ratio{slo="order"}'
    covered = 'slo:pubsub_prober_period_covered:ratio{slo="order"}'
    assert names["slo:pubsub_prober_budget_spent:ratio"] == f'slo:pubsub_prober_burn_rate:ratio28d{{slo="order"}} * {covered}'
    assert names["slo:pubsub_prober_period:seconds"] == "vector(2419200)"


def test_long_windows_add_up_recorded_hours() -> None:
    written = recordings(order())["slo:pubsub_prober_bad:increase3d"]
    assert written == 'sum_over_time(slo:pubsub_prober_bad:increase1h{slo="order"}[3d:5m]) / 12'


@pytest.mark.parametrize("indicator", Indicator)
def test_every_indicator_is_counted_from_its_metrics(indicator: Indicator) -> None:
    threshold_s = 2.5 if MEANINGS[indicator].thresholded else None
    numbers = sli_queries(Objective("x", indicator, 0.99, 30 * DAY_S, threshold_s), "5m")
    assert numbers.bad != numbers.decided
    for expression in (numbers.bad, numbers.decided):
        assert "target, environment, region" in expression
        assert "[5m" in expression
        assert not re.search(r'[|"]undecided[|"]', expression)
    if threshold_s is not None:
        assert "2.5" in numbers.bad


def test_labels_of_an_objective_go_to_its_alerts_and_never_replace_ours() -> None:
    for alert in burns(order(team="broker", slo="other", severity="none")):
        assert alert.labels["team"] == "broker"
        assert alert.labels["slo"] == "order"
    text = rule_files([order(team="broker", severity="none", owner="me")])["objectives.rules.yaml"]
    assert "team: broker" in text
    assert "severity: none" not in text
    assert "owner: me" not in text


def test_every_kind_of_finding_has_its_alert() -> None:
    groups = (findings.finding_group(Options()),)
    written = [
        rule.expression
        for group in groups
        for rule in group.rules
        if isinstance(rule, AlertingRule) and "_findings:new" in rule.expression
    ]
    for kind in Kind:
        named = [expression for expression in written if re.search(rf"[\"|]{kind}[\"|]", expression)]
        assert len(named) == (Status.VIOLATION in KINDS[kind].statuses), kind  # a deadline's passing has one alert for all kinds
    assert {kind for kinds in BREACHES.values() for kind in kinds} <= set(Kind)


def test_the_age_that_is_old_is_that_of_the_objective() -> None:
    strict = [Objective(f"a{limit}", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, 30 * DAY_S, limit) for limit in (45.0, 30.0)]
    assert _rising(strict).count(") > 30\n") == 1
    assert _rising([]).count(") > 60\n") == 1


def _rising(objectives: list[Objective]) -> str:
    (rule,) = findings.age_group(objectives).rules
    return str(rule.expression)


def test_options_reach_every_alert() -> None:
    options = Options("https://runbooks.example.com", "https://grafana.example.com", "https://prober.example.com", "okp", 120.0)
    texts = rule_files([order()], options)
    for text in texts.values():
        alerts = text.count("- alert:")
        assert text.count("runbook_url: https://runbooks.example.com/Pubsub") == alerts
        assert text.count("dashboard_url: https://grafana.example.com/d/okp-") == alerts
    assert texts["service.rules.yaml"].count("status_url: https://prober.example.com/findings?") == 8
    assert "subscription:pubsub_prober_findings:new2m" in texts["service.rules.yaml"]
    assert 'up{job="okp"}' in texts["prober.rules.yaml"]


def test_the_same_objectives_give_the_same_text() -> None:
    objectives = load(None, {}).objectives
    assert rule_files(objectives) == rule_files(objectives)


def test_names_of_groups_are_distinct() -> None:
    groups: list[RuleGroup] = [
        group for groups in groups_by_file(load(None, {}).objectives, Options()).values() for group in groups
    ]
    assert len({group.name for group in groups}) == len(groups)


def test_a_label_that_a_family_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="has no label kind"):
        series(families.ORDER_CHECKS, kind="ORDER_GAP")
    with pytest.raises(ValueError, match="has no label le"):
        series(families.PUBLISH_LATENCY, "_count", le="1.0")
    with pytest.raises(ValueError, match="is no histogram"):
        series(families.ORDER_CHECKS, "_bucket")
    with pytest.raises(ValueError, match="is a histogram"):
        series(families.PUBLISH_LATENCY)
    with pytest.raises(ValueError, match="has no label job"):  # which Prometheus replaces by its own
        series(families.JOB_LAST_SUCCESS, job="nightly")


def test_how_things_are_written() -> None:
    assert selector("x", ("a", "b"), 'c="0"', b=("2", "1"), a=("3",)) == 'x{c="0",b=~"1|2",a="3"}'
    assert [aggregate("x"), aggregate("x", ("a", "b"), "max"), aggregate("x", "${by:csv}")] == [
        "sum(x)",
        "max by (a, b) (x)",
        "sum by (${by:csv}) (x)",
    ]
    assert [prom_number(value) for value in (14.4, 6.0, 28 / 30, 1 - 0.9999, 2592000.0)] == [
        "14.4",
        "6",
        "0.933333",
        "0.0001",
        "2592000",
    ]
    assert [percent(share) for share in (0.9995, 0.02, 0.1, 0.9)] == ["99.95 %", "2 %", "10 %", "90 %"]
    assert [prom_duration(seconds) for seconds in (90, 3600, 86400, 93600)] == ["1m30s", "1h", "1d", "1d2h"]


def test_it_writes_what_it_then_finds_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new"
    assert main(["alerts", "--directory", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert {path.name: path.read_text() for path in folder.iterdir()} == rule_files(load(None, {}).objectives)
    assert main(["alerts", "--directory", str(folder), "--check"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_a_file_that_is_not_up_to_date_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path)]) == 0
    stale = tmp_path / NAMES[0]
    stale.write_text(stale.read_text().replace("14.4", "14"))
    before = stale.read_text()
    assert main(["alerts", "--directory", str(tmp_path), "--check"]) == 2
    assert capsys.readouterr().err.strip() == (f"ordering-prober: {stale}: is out of date; write it again without --check")
    assert stale.read_text() == before


def test_a_file_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path), "--check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be read" in line


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["alerts", "--directory", str(tmp_path / "file" / "rules")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written" in line


def test_the_configuration_decides_about_objectives_and_the_options_about_addresses(tmp_path: Path) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  order: {indicator: order, objective: 99.9%, window: 28d}\n")
    options = ["--runbooks", "https://r.example.com/", "--dashboards", "https://g.example.com", "--pages", "https://p.example.com"]
    command = ["alerts", "--config", str(config), "--directory", str(tmp_path), *options, "--scrape-job", "okp", "--news", "2m"]
    assert main(command) == 0
    text = "".join((tmp_path / name).read_text() for name in NAMES)
    assert "> 13.44" in text
    assert "https://r.example.com/PubsubOrderViolated.md" in text
    assert "https://g.example.com/d/okp-ordering" in text
    assert "https://p.example.com/findings?" in text
    assert 'up{job="okp"}' in text
    assert "pubsub_prober_findings:new2m" in text


def test_the_rules_name_the_objectives_that_they_were_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  affinity: false\n  order: {objective: 99.9%, window: 28d}\n")
    monkeypatch.setenv("ORDERING_PROBER_SLOS__ORDER__WINDOW", "7d")
    assert main(["alerts", "--config", str(config), "--directory", str(tmp_path)]) == 0
    said = {name: (tmp_path / name).read_text().splitlines()[1] for name in NAMES}
    assert said.pop("objectives.rules.yaml") == '# slos: {"affinity": false, "order": {"objective": "99.9%", "window": "7d"}}'
    assert set(said.values()) == {"groups:"}


def test_no_other_file_depends_on_objectives(tmp_path: Path) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  order: {objective: 99%, window: 7d}\n  oldest_unacked_message_age: {threshold: 30s}\n")
    for folder, options in (("default", []), ("own", ["--config", str(config)])):
        assert main(["alerts", "--directory", str(tmp_path / folder), *options]) == 0
    different = {name for name in NAMES if (tmp_path / "default" / name).read_text() != (tmp_path / "own" / name).read_text()}
    assert different == {"objectives.rules.yaml"}


@pytest.mark.parametrize("arguments", [["--news", "soon"], ["--config", "missing.yaml"]])
def test_wrong_usage_is_one_line(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path), *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
