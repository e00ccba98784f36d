"""Values that other charts have too: each arrives where users of those charts expect it."""

from __future__ import annotations

from typing import Any

import helm_python as helm
import pytest

from tests.helm.chart import CASES, Values, containers, documents, merged, of_kind, only, pods, rendered
from tests.helm.test_refusals import at

CASE = CASES["conventions"]


def main_pods() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The pods of prober, API and jobs, each with its settings."""
    found = dict(pods(CASE))
    names = {"prober": "StatefulSet okp-prober", "api": "Deployment okp-prober-api", "jobs": "CronJob okp-prober-nightly"}
    return [(found[name], CASE[component]) for component, name in names.items()]


def test_every_object_has_the_common_labels_and_annotations() -> None:
    for one in documents(CASE):
        assert one["metadata"]["annotations"]["example.com/owner"] == "messaging", one["metadata"]["name"]
    labelled = [one for one in documents(CASE) if one["metadata"]["name"] != "okp-extra"]
    assert {one["metadata"]["labels"]["team"] for one in labelled} == {"messaging"}
    assert {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in labelled} == {"prober"}


def test_every_image_comes_from_the_registry_of_all() -> None:
    images = {container["image"] for _, pod in pods(CASE) for container in containers(pod)}
    assert images == {"mirror.example.com/ordering-keys-prober:0.1.0", "mirror.example.com/ordering-keys-prober:0.1.0-jobs"}


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_image_of_the_chart_comes_from_the_registry_of_the_prober(case: str) -> None:
    """Those of prober, API, jobs, checks and tests: only containers that the user adds name images of their own."""
    values = merged(CASES[case], at("image.registry", "own.example.com/probers/"))
    found = {container["image"] for _, pod in pods(values) for container in containers(pod)}
    ours = {image for image in found if "/ordering-keys-prober:" in image}
    mirrored = values.get("global", {}).get("imageRegistry")
    assert {image.rpartition("/")[0] for image in ours} == {mirrored or "own.example.com/probers"}
    assert found - ours == {box["image"] for part in ("prober", "api", "jobs") for box in added(values.get(part, {}))}


def added(settings: Values) -> list[dict[str, Any]]:
    """The containers that the user adds to a component."""
    return [*settings.get("extraInitContainers", []), *settings.get("extraContainers", [])]


def test_the_jobs_may_have_a_registry_of_their_own() -> None:
    values = merged(CASES["production"], at("jobs.image.registry", "jobs.example.com"))
    (nightly,) = only(values, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert nightly["image"].startswith("jobs.example.com/ordering-keys-prober:")


def test_the_notes_say_that_nodes_must_have_an_image_without_a_registry() -> None:
    def notes(values: Values) -> str:
        return rendered(values)["ordering-keys-prober/templates/NOTES.txt"]

    assert "The image ordering-keys-prober:0.1.0 has no registry" in notes({})
    assert "has no registry" not in notes(CASES["production"])
    assert "has no registry" not in notes(CASE)


def test_workloads_have_annotations() -> None:
    for kind in ("StatefulSet", "Deployment", "CronJob"):
        assert only(CASE, kind)["metadata"]["annotations"]["example.com/reload"] == "true"


def test_probes_keep_what_is_not_replaced() -> None:
    for pod, settings in main_pods()[:2]:
        (own,) = pod["containers"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert own[probe].items() >= settings[probe].items()
            assert own[probe]["httpGet"]["port"] == "http"


def test_no_container_security_context_leaves_the_restricted_profile() -> None:
    for _, pod in pods(CASE):
        for container in containers(pod):
            context = container["securityContext"]
            assert context["seLinuxOptions"] == {"level": "s0:c1,c2"}
            assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (False, {"drop": ["ALL"]})
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    refused: list[Values] = [
        {"privileged": True},
        {"capabilities": {}},
        {"seccompProfile": {"type": "Unconfined"}},
        {"runAsUser": 0},
    ]
    for wrong in refused:
        with pytest.raises(helm.HelmValuesError):
            rendered(at("containerSecurityContext", wrong))


def test_jobs_have_the_limits_of_the_values() -> None:
    cron = only(CASE, "CronJob")["spec"]
    jobs = {**cron, **cron["jobTemplate"]["spec"]}
    for field in ("backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "startingDeadlineSeconds"):
        assert jobs[field] == CASE["jobs"][field]
    assert (cron["successfulJobsHistoryLimit"], cron["failedJobsHistoryLimit"]) == (1, 1)


def test_services_have_labels_and_address_families() -> None:
    services = [only(CASE, "Service", name) for name in ("okp-prober", "okp-prober-prober")]
    for service in services:
        assert service["spec"]["ipFamilies"] == ["IPv6", "IPv4"]
        assert service["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    assert services[0]["metadata"]["labels"]["tier"] == "web"
    assert "ipFamilies" not in only({}, "Service", "-prober-prober")["spec"]


def test_routes_have_paths() -> None:
    (path,) = only(CASE, "Ingress")["spec"]["rules"][0]["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/*", "ImplementationSpecific")
    route = only(CASE, "HTTPRoute")
    assert route["metadata"]["annotations"]["a"] == "b"
    (rule,) = route["spec"]["rules"]
    assert (rule["matches"], rule["timeouts"]) == (CASE["httpRoute"]["matches"], CASE["httpRoute"]["timeouts"])


def test_scaling_and_the_end_of_volumes_are_passed_through() -> None:
    assert only(CASE, "HorizontalPodAutoscaler")["spec"]["behavior"] == CASE["api"]["autoscaling"]["behavior"]
    retention = only(CASE, "StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert retention == CASE["prober"]["persistence"]["retentionPolicy"]


def test_rules_and_dashboards_may_be_in_another_namespace() -> None:
    for one in of_kind(CASE, "PrometheusRule", "GrafanaDashboard"):
        assert one["metadata"]["namespace"] == "monitoring"
    boards = {one["metadata"]["name"]: one for one in of_kind(CASE, "ConfigMap") if "-dashboard-" in one["metadata"]["name"]}
    operated = of_kind(CASE, "GrafanaDashboard")
    assert len(operated) == len(boards) > 0
    for one in operated:
        reference, board = one["spec"]["configMapRef"], boards[one["metadata"]["name"]]
        assert one["spec"]["instanceSelector"] == CASE["dashboards"]["grafanaOperator"]["instanceSelector"]
        assert one["spec"]["folder"] == "Pub/Sub"
        assert (reference["name"], board["metadata"]["namespace"]) == (board["metadata"]["name"], "monitoring")
        assert reference["key"] in board["data"]


@pytest.mark.parametrize("field", ["schedulerName", "runtimeClassName", "hostAliases", "dnsConfig"])
def test_fields_of_a_pod_are_passed_through(field: str) -> None:
    for pod, settings in main_pods():
        assert pod[field] == settings[field]


def test_arguments_and_sources_of_variables_are_passed_through() -> None:
    for pod, settings in main_pods():
        (own,) = pod["containers"]
        assert own["envFrom"] == settings["envFrom"]
        assert set(settings["extraArgs"]) <= set(own["args"])
    (check,) = only(CASE, "Job")["spec"]["template"]["spec"]["containers"]
    assert check["envFrom"] == CASE["prober"]["envFrom"]


def test_volume_claims_have_annotations() -> None:
    (template,) = only(CASE, "StatefulSet")["spec"]["volumeClaimTemplates"]
    for claim in (template, only(CASE, "PersistentVolumeClaim")):
        assert claim["metadata"]["annotations"]["example.com/backup"] == "daily"


def test_a_budget_may_say_how_many_stay() -> None:
    budgets = [one["spec"] for one in of_kind(CASE, "PodDisruptionBudget")]
    assert [(one["minAvailable"], "maxUnavailable" in one) for one in budgets] == [(1, False)] * 2


def test_a_monitor_may_be_in_another_namespace() -> None:
    for monitor in of_kind(CASE, "ServiceMonitor"):
        assert monitor["metadata"]["namespace"] == "monitoring"
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["probing"]}
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"insecureSkipVerify": True})
        assert endpoint["relabelings"][1:] == CASE["scrape"]["relabelings"]


def test_further_objects_are_rendered_as_templates() -> None:
    assert only(CASE, "ConfigMap", "okp-extra")["data"] == {"a": "b"}
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-text'}"
    assert only(at("extraObjects", [text]), "ConfigMap", "okp-text")
