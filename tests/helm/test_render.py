"""Whatever values are shipped: Helm renders them without complaint, and Kubernetes knows every field of what comes out."""

from __future__ import annotations

import json
import tarfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import ROOT
from tests.helm.chart import CASES, LINKS, documents, linted, merged, of_kind, only, packaged, rendered
from tests.helm.validation import KUBERNETES, SCHEMAS, complaints
from tests.nightly import nightly_but

EVERY_CASE = pytest.mark.parametrize("case", sorted(CASES))


@pytest.mark.parametrize("version", nightly_but(KUBERNETES[-1:], KUBERNETES))
@pytest.mark.parametrize("case", nightly_but(("conventions", "gke", "production"), sorted(CASES)))
def test_helm_lints_it_without_a_complaint(case: str, version: str) -> None:
    assert linted(CASES[case], f"v{version}") == []


@pytest.mark.parametrize("version", nightly_but((KUBERNETES[0], KUBERNETES[-1]), KUBERNETES))
@EVERY_CASE
def test_kubernetes_knows_every_field(case: str, version: str) -> None:
    found = documents(CASES[case])
    assert len(found) > 4
    assert complaints(found, version) == []


@EVERY_CASE
def test_every_object_has_a_name_of_its_own(case: str) -> None:
    names = [(document["kind"], document["metadata"]["name"]) for document in documents(CASES[case])]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)


@EVERY_CASE
def test_services_and_policies_find_pods(case: str) -> None:
    found = documents(CASES[case])
    labelled = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in found
        if document["kind"] in {"StatefulSet", "Deployment"}
    ]
    for document in found:
        if document["kind"] in {"Service", "PodDisruptionBudget", "PodMonitor", "PodMonitoring"}:
            selector = document["spec"]["selector"]
            wanted = dict(selector.get("matchLabels", selector))
            wanted.pop("statefulset.kubernetes.io/pod-name", None)
            assert any(wanted.items() <= labels.items() for labels in labelled), document["metadata"]["name"]


@EVERY_CASE
def test_each_pod_is_scraped_once_by_each_kind_of_monitor(case: str) -> None:
    services = [document["metadata"]["labels"] for document in of_kind(CASES[case], "Service")]
    for monitor in of_kind(CASES[case], "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert sum(wanted <= labels.items() for labels in services) == 1


def test_the_cases_render_every_kind_and_every_template() -> None:
    used = {name for values in CASES.values() for name, text in rendered(values).items() if text.strip()}
    assert used == set(rendered(CASES["default"])) | set(rendered(CASES["gke"]))
    kinds = {document["kind"] for values in CASES.values() for document in documents(values)}
    assert {path.stem for path in SCHEMAS.glob("*.json")} <= {kind.lower() for kind in kinds}


def test_a_misspelled_field_is_noticed() -> None:
    found = deepcopy(only(CASES["default"], "StatefulSet"))
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["securityContext"]["readOnlyRootFileSystem"] = container["securityContext"].pop("readOnlyRootFilesystem")
    assert len(complaints([found], KUBERNETES[0])) == 1


@pytest.mark.parametrize(
    "kind",
    [
        "ServiceMonitor",
        "PodMonitor",
        "PrometheusRule",
        "PodMonitoring",
        "Rules",
        "HTTPRoute",
        "HealthCheckPolicy",
        "GrafanaDashboard",
    ],
)
def test_a_misspelled_field_of_a_custom_resource_is_noticed(kind: str) -> None:
    found = deepcopy(next(document for values in CASES.values() for document in of_kind(values, kind)))
    found["spec"]["intervall"] = "30s"
    assert len(complaints([found], KUBERNETES[0])) == 1


@pytest.mark.parametrize("case", ["default", "gke"])
def test_probers_may_be_scaled_to_zero(case: str) -> None:
    values = merged(CASES[case], {"prober": {"replicas": 0}})
    found = documents(values)
    assert only(values, "StatefulSet")["spec"]["replicas"] == 0
    assert not [one for one in of_kind(values, "PodDisruptionBudget") if not one["metadata"]["name"].endswith("-api")]
    assert not [one for one in found if one["kind"] in {"Service", "HTTPRoute"} and "-push" in one["metadata"]["name"]]
    assert complaints(found, KUBERNETES[0]) == []


# --- rules and dashboards --------------------------------------------------------------------------------------------------


def test_rules_and_dashboards_are_those_of_the_repository_and_nothing_else_is_packaged(tmp_path: Path) -> None:
    top = "ordering-keys-prober/"
    with tarfile.open(packaged(tmp_path)) as archive:
        files = {
            member.name.removeprefix(top): content.read()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    shared = {name for name in files if name.startswith(("alerts/", "dashboards/"))}
    there = [*ROOT.glob("alerts/*.rules.yaml"), *ROOT.glob("dashboards/*.json")]
    assert shared == {str(path.relative_to(ROOT)) for path in there}
    assert all(files[str(path.relative_to(ROOT))] == path.read_bytes() for path in there)
    assert not any(name.startswith("ci/") for name in files)


def test_each_objective_and_each_other_rule_file_becomes_a_resource() -> None:
    wanted: dict[str, list[tuple[str, str, int]]] = {}
    for path in ROOT.glob("alerts/*.rules.yaml"):
        subject = path.name.partition(".")[0]
        for group in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["groups"]:
            own = group["name"].removeprefix("pubsub-prober-").replace("_", "-")
            name = own if subject == "objectives" else subject
            wanted.setdefault(f"okp-ordering-keys-prober-{name}", []).append(
                (group["name"], group["interval"], len(group["rules"]))
            )
    found = of_kind(merged(LINKS, {"rules": {"enabled": True}}), "PrometheusRule")
    assert len(found) > 10
    assert wanted == {
        one["metadata"]["name"]: [(group["name"], group["interval"], len(group["rules"])) for group in one["spec"]["groups"]]
        for one in found
    }


def test_objectives_of_ones_own_take_the_place_of_the_default_ones() -> None:
    groups = only(CASES["operator"], "PrometheusRule", "-own")["spec"]["groups"]
    assert [group["name"] for group in groups] == ["own"]
    address = groups[0]["rules"][0]["annotations"]["dashboard_url"]
    assert address == "https://grafana.example.com/d/x?var-target={{ $labels.target }}"


def test_alerts_point_to_the_addresses_of_the_installation() -> None:
    text = json.dumps(of_kind(CASES["gke"], "Rules"))
    assert "localhost" not in text
    assert "docs/runbooks" not in text
    assert "https://example.com/runbooks/PubsubProberDown.md" in text
    assert "https://grafana.example.com/d/" in text


def test_dashboards_reach_grafana_with_nothing_but_their_release_put_in() -> None:
    values = merged(LINKS, {"dashboards": {"enabled": True, "uidPrefix": "okp"}})
    found = [document for document in of_kind(values, "ConfigMap") if "grafana_dashboard" in document["metadata"]["labels"]]
    shown: dict[str, Any] = {name: json.loads(text) for document in found for name, text in document["data"].items()}
    assert set(shown) == {f"okp-{path.name}" for path in ROOT.glob("dashboards/*.json")}
    for name, board in shown.items():
        wanted = json.loads((ROOT / "dashboards" / name.removeprefix("okp-")).read_text(encoding="utf-8"))
        assert board["title"] == f"{wanted['title']} (okp-ordering-keys-prober, probing)"
        assert board.keys() == wanted.keys() - {"__inputs"}
        assert {key: board[key] for key in ("panels", "annotations", "uid", "editable")} == {
            key: wanted[key] for key in ("panels", "annotations", "uid", "editable")
        }
        assert len(json.dumps(board)) < 2**20


def test_the_scrape_is_called_what_the_rules_look_for() -> None:
    rules = json.dumps(only(CASES["operator"], "PrometheusRule", "-prober")).replace('\\"', '"')
    (relabeling,) = only(CASES["operator"], "ServiceMonitor", "-prober")["spec"]["endpoints"][0]["relabelings"]
    assert relabeling["targetLabel"] == "job"
    assert f'up{{job="{relabeling["replacement"]}"}}' in rules
    assert any(document["metadata"]["name"] == relabeling["replacement"] for document in of_kind(CASES["gke"], "PodMonitoring"))
