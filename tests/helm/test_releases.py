"""Two releases of the chart: in one namespace, under one Prometheus, in one Grafana, neither takes anything from the other."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path

import promql_parser as promql
import pytest
import yaml

from prober.config.models import Sharding
from tests.alerts.reading import selectors_in
from tests.alerts.tools import said
from tests.commands import ROOT
from tests.helm.chart import CASES, LINKS, Document, Values, boards_of, documents, merged, rules_of
from tests.helm.test_refusals import POSTGRESQL, at

RULES: Values = {"rules": {"enabled": True}}
DASHBOARDS: Values = {"dashboards": {"enabled": True}}

LONG = "pubsub-ordering-probers-of-the-messaging-team"


def identities(found: list[Document]) -> set[tuple[str, str]]:
    """What may exist once in a namespace."""
    return {(one["kind"], one["metadata"]["name"]) for one in found}


@pytest.mark.parametrize("names", [("okp", "other"), (f"{LONG}-1", f"{LONG}-2")])
@pytest.mark.parametrize("case", ["gke", "operator", "production", "one-node", "spark-operator"])
def test_two_releases_in_a_namespace_share_nothing(case: str, names: tuple[str, str]) -> None:
    one, other = (documents(CASES[case], name) for name in names)
    assert len(one) == len(other)
    assert identities(one) & identities(other) == set()
    selected = [json.dumps(found["spec"]["selector"], sort_keys=True) for found in one if "selector" in found.get("spec", {})]
    assert not {
        json.dumps(found["spec"]["selector"], sort_keys=True) for found in other if "selector" in found.get("spec", {})
    } & set(selected)


PLACES = [(("okp", "a"), ("other", "a")), (("okp", "a"), ("okp", "b"))]
SHARDED = merged(POSTGRESQL, at("prober.replicas", 2))


def group(name: str, namespace: str) -> str:
    """Who shares the work of a release."""
    (config,) = {one["data"]["prober.yaml"] for one in documents(SHARDED, name, namespace) if "prober.yaml" in one.get("data", {})}
    return str(yaml.safe_load(config)["sharding"]["group"])


@pytest.mark.parametrize("places", [*PLACES, (("c-ordering-keys-prober", "a-b"), ("b-c-ordering-keys-prober", "a"))])
def test_two_releases_do_not_share_work(places: tuple[tuple[str, str], tuple[str, str]]) -> None:
    """Not even on one database, whatever their names."""
    one, other = (group(*place) for place in places)
    assert one != other


@pytest.mark.parametrize(("name", "namespace"), [("okp", "n" * 63), (LONG, "probing"), ("okp", "n" * 29)])
def test_a_group_is_a_name_whatever_is_joined(name: str, namespace: str) -> None:
    Sharding.model_validate({"group": group(name, namespace)})


@pytest.mark.parametrize("places", PLACES)
def test_two_releases_share_a_grafana(places: tuple[tuple[str, str], tuple[str, str]]) -> None:
    one, other = (boards_of(documents(merged(LINKS, DASHBOARDS), *place)) for place in places)
    assert len(one) == len(other) == 8
    assert one.keys() & other.keys() == set()  # the sidecar puts all into one folder
    for key in ("uid", "title"):
        assert not {board[key] for board in one.values()} & {board[key] for board in other.values()}
    for board in one.values():
        assert len(board["uid"]) <= 40
        uids = {found["uid"] for found in one.values()}
        assert set(re.findall(r"\(d/([a-z0-9-]+)\)", json.dumps(board))) <= uids


def test_alerts_lead_to_the_dashboards_of_their_release() -> None:
    found = documents(merged(LINKS, RULES, DASHBOARDS), "okp")
    uids = {board["uid"] for board in boards_of(found).values()}
    linked = {rule["annotations"]["dashboard_url"].split("/d/")[1].split("?")[0] for rule in rules_of(found) if "alert" in rule}
    assert linked <= uids
    assert len(linked) > 4


def test_the_uids_of_the_documentation_can_be_kept() -> None:
    uids = {
        board["uid"] for board in boards_of(documents(merged(LINKS, DASHBOARDS, {"dashboards": {"uidPrefix": "okp"}}))).values()
    }
    assert uids == {json.loads(path.read_text(encoding="utf-8"))["uid"] for path in ROOT.glob("dashboards/*.json")}


def jobs_of(expr: str) -> set[str]:
    """By which job each selector of an expression chooses; what Prometheus says about itself is not ours."""
    found = set()
    for selector in selectors_in(promql.parse(expr)):
        if not selector.name.startswith("prometheus_"):
            (job,) = {one.value for one in selector.matchers.matchers if one.name == "job"}
            found.add(job)
    return found


@pytest.mark.parametrize("job", ["", "mine"])
def test_rules_look_at_the_series_of_their_release_only(job: str) -> None:
    values = merged(LINKS, RULES, {"scrape": {"job": job}, "podMonitoring": {"enabled": True}})
    name = job or "okp-ordering-keys-prober"
    for rule in rules_of(documents(values, "okp")):
        assert jobs_of(rule["expr"]) <= {name, f"{name}-api", f"{name}(-api)?"}, rule
        assert ("record" in rule) <= (rule.get("labels", {}).get("job") == name)
        assert "ordering-keys-prober " not in rule.get("annotations", {}).get("description", "").replace(f"{name} ", "")


def test_that_is_all_that_is_different_about_the_rules() -> None:
    """Without the matchers of the job a rendered expression is the one of alerts/."""
    committed = [
        rule
        for path in sorted(ROOT.glob("alerts/*.rules.yaml"))
        for group in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["groups"]
        for rule in group["rules"]
    ]
    shipped = rules_of(documents(merged(LINKS, RULES, {"scrape": {"job": "ordering-keys-prober"}}), "okp"))
    assert len(shipped) == len(committed)
    matcher = 'job=~"ordering-keys-prober(-api)?"'
    for rule, wanted in zip(shipped, committed, strict=True):
        text = rule["expr"].replace(f"{{{matcher}}}", "").replace(f"{matcher}, ", "")
        assert (text, rule.get("for"), rule.get("record"), rule.get("alert")) == (
            wanted["expr"],
            wanted.get("for"),
            wanted.get("record"),
            wanted.get("alert"),
        )
        promql.parse(rule["expr"])


def test_a_release_for_drills_looks_for_its_own_drills() -> None:
    found = documents(CASES["drills"], "okp")
    (alert,) = (rule for rule in rules_of(found) if rule.get("alert") == "PubsubProberDrillFinding")
    (job,) = (
        one["spec"]["podMetricsEndpoints"][0]["relabelings"][0]["replacement"] for one in found if one["kind"] == "PodMonitor"
    )
    assert jobs_of(alert["expr"]) == {f"{job}(-api)?"} == {"drills(-api)?"}


def test_dashboards_lead_to_those_of_their_release() -> None:
    one, other = (boards_of(documents(merged(LINKS, DASHBOARDS), name)) for name in ("okp", "other"))
    for board in one.values():
        (link,) = (link for link in board["links"] if link["type"] == "dashboards")
        assert all(set(link["tags"]) <= set(there["tags"]) for there in one.values())
        assert not any(set(link["tags"]) <= set(there["tags"]) for there in other.values())


def test_dashboards_begin_with_the_probers_of_their_release() -> None:
    for board in boards_of(documents(merged(LINKS, DASHBOARDS), "okp")).values():
        (job,) = (one for one in board["templating"]["list"] if one["name"] == "job")
        assert job["current"]["value"] == ["okp-ordering-keys-prober"]


# --- one Prometheus ----------------------------------------------------------------------------------------------------------


def loaded(names: tuple[str, ...], alerts: tuple[str, ...], folder: Path) -> list[str]:
    """The rules of releases about the objective `order` as files, each of these alerts labelled with its release."""
    paths = []
    for name in names:
        for one in documents(merged(LINKS, RULES), name):
            if one["kind"] == "PrometheusRule":
                groups = deepcopy(one["spec"]["groups"])
                for group in groups:
                    group["rules"] = [rule for rule in group["rules"] if concerns_order(rule, alerts)]
                    for rule in group["rules"]:
                        if "alert" in rule:
                            rule["labels"]["release"] = name
                path = folder / f"{one['metadata']['name']}.yaml"
                path.write_text(json.dumps({"groups": groups}), encoding="utf-8")  # JSON is YAML
                paths.append(str(path))
    return paths


def concerns_order(rule: Document, alerts: tuple[str, ...]) -> bool:
    """Whether it is one of these alerts, or a record, of this objective or of none."""
    return rule.get("alert", alerts[0]) in alerts and rule.get("labels", {}).get("slo", "order") == "order"


def labelled(release_name: str, **more: str) -> str:
    """The labels of a series of a release; both probe a target of the same name."""
    place = {"job": f"{release_name}-ordering-keys-prober", "instance": "a", "target": "t", "environment": "e", "region": "r"}
    return "{" + ", ".join(f'{name}="{value}"' for name, value in (place | more).items()) + "}"


def test_what_one_release_sees_pages_once_and_is_read_off_its_own_series(tmp_path: Path) -> None:
    series = {}
    for name, bad in (("one", "0+10x120"), ("other", "0x120")):
        series[f"pubsub_prober_order_checks_total{labelled(name, subscription='s', result='bad')}"] = bad
        series[f"pubsub_prober_order_checks_total{labelled(name, subscription='s', result='good')}"] = "0+1000x120"
        found = labelled(name, subscription="s", kind="ORDER_GAP", status="violation")
        series[f"pubsub_prober_findings_total{found}"] = bad
        series[f"pubsub_prober_start_timestamp_seconds{labelled(name)}"] = "0x120"
    alerts = ("PubsubErrorBudgetBurn", "PubsubOrderViolated")
    chosen = f'alertname=~"{"|".join(alerts)}", severity="critical", alertstate="firing"'
    fires = [
        {
            "expr": f"count by (alertname, release) (ALERTS{{{chosen}}})",
            "eval_time": "1h30m",
            "exp_samples": [{"labels": f'{{alertname="{alert}", release="one"}}', "value": 1} for alert in alerts],
        },
        {
            "expr": 'max by (job) (slo:pubsub_prober_bad:increase1h{slo="order"}) > bool 0',
            "eval_time": "1h30m",
            "exp_samples": [
                {"labels": '{job="one-ordering-keys-prober"}', "value": 1},
                {"labels": '{job="other-ordering-keys-prober"}', "value": 0},
            ],
        },
    ]
    story = {
        "rule_files": loaded(("one", "other"), alerts, tmp_path),
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": fires,
            }
        ],
    }
    (tmp_path / "story.yaml").write_text(json.dumps(story), encoding="utf-8")
    code, words = said("promtool", "test", "rules", tmp_path / "story.yaml")
    assert code == 0, words
