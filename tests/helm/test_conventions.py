"""Values that other charts have too: each arrives where users of those charts expect it."""

from __future__ import annotations

from typing import Any

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
