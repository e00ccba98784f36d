"""What holds for every pod of every rendering, whatever the values."""

from __future__ import annotations

import json

import pytest

from api.middleware import HEALTH_PATHS
from tests.helm.chart import CASES, NAMESPACE, containers, documents, of_kind, only, pod_templates, pods
from tests.helm.policies import INTERNET, Peer, lets_in, lets_out

EVERY_CASE = pytest.mark.parametrize("case", sorted(CASES))

LOCKED = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
WITHOUT_A_USER = {"openshift"}
"""Where the platform gives the user."""
OWN_WORD = {"log-shipper": {"readOnlyRootFilesystem": True}}
"""What a container of the user's own says otherwise, and may."""
WRITABLE = {"/tmp", "/scratch", "/var/lib/ordering-prober", "/history", "/objectives"}


@EVERY_CASE
def test_no_pod_runs_as_root_or_holds_a_token(case: str) -> None:
    found = list(pods(CASES[case]))
    assert found
    for name, pod in found:
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, name
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True, name
        if case not in WITHOUT_A_USER:
            assert context["runAsUser"] >= 10000, name
            assert context["runAsGroup"] >= 10000, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}, name
        assert not any("hostPath" in volume for volume in pod.get("volumes", [])), name
    assert all(account["automountServiceAccountToken"] is False for account in of_kind(CASES[case], "ServiceAccount"))


@EVERY_CASE
def test_no_container_may_do_what_it_need_not(case: str) -> None:
    for name, pod in pods(CASES[case]):
        for container in containers(pod):
            context = container["securityContext"]
            assert LOCKED.items() <= {**context, **OWN_WORD.get(container["name"], {})}.items(), name
            assert "runAsUser" not in context, name  # the pod's, or the image's
            assert "add" not in context["capabilities"], name


@EVERY_CASE
def test_every_container_is_limited(case: str) -> None:
    for name, pod in pods(CASES[case]):
        for container in containers(pod):
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name
        bounded = [volume["emptyDir"].get("sizeLimit") for volume in pod.get("volumes", []) if "emptyDir" in volume]
        assert all(bounded), name


@EVERY_CASE
def test_only_known_places_are_writable(case: str) -> None:
    for name, pod in pods(CASES[case]):
        for container in containers(pod):
            mounts = container.get("volumeMounts", [])
            assert {mount["mountPath"] for mount in mounts if not mount.get("readOnly")} <= WRITABLE, name


def test_spark_pods_are_locked_as_the_others() -> None:
    template = only(CASES["spark-operator"], "ScheduledSparkApplication")["spec"]["template"]
    for role in ("driver", "executor"):
        assert template[role]["podSecurityContext"]["runAsNonRoot"] is True
        assert LOCKED.items() <= template[role]["securityContext"].items()
        for container in template[role].get("initContainers", []):
            assert LOCKED.items() <= container["securityContext"].items()


@EVERY_CASE
def test_no_image_is_named_without_a_version(case: str) -> None:
    for name, pod in pods(CASES[case]):
        for container in containers(pod):
            reference = container["image"].rpartition("/")[2]
            assert ":" in reference, name
            assert not reference.endswith(":latest"), name


@EVERY_CASE
def test_no_secret_is_rendered(case: str) -> None:
    assert not of_kind(CASES[case], "Secret")
    for name, pod in pods(CASES[case]):
        for container in containers(pod):
            for variable in container.get("env", []):
                if any(word in variable["name"] for word in ("TOKEN", "STATUS__URL", "PASSWORD")):
                    assert "secretKeyRef" in variable["valueFrom"], name
    assert "postgresql://" not in json.dumps([document for document in documents(CASES[case]) if document["kind"] != "Rules"])


@EVERY_CASE
def test_a_policy_guards_every_pod_unless_it_is_switched_off(case: str) -> None:
    guarded = [document["spec"]["podSelector"]["matchLabels"] for document in of_kind(CASES[case], "NetworkPolicy")]
    if not CASES[case].get("networkPolicy", {}).get("enabled", True):
        assert not guarded
        return
    stranger, port = Peer(address=INTERNET), 6379
    for name, template in pod_templates(CASES[case]):
        labels = template["metadata"]["labels"]
        assert any(selector.items() <= labels.items() for selector in guarded), name
        assert not lets_out(CASES[case], labels, stranger, port), name
        assert not lets_in(CASES[case], labels, stranger, port), name


def test_the_api_and_the_jobs_are_not_who_the_prober_is() -> None:
    accounts = {pod["serviceAccountName"] for name, pod in pods(CASES["production"]) if not name.startswith(("Pod ", "Job "))}
    assert len(accounts) == 3


CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass"}
BY_VALUE = {"argo-cd", "conventions"}
"""Cases whose values name another namespace, or add an object of their own."""


@pytest.mark.parametrize("case", sorted(CASES.keys() - BY_VALUE))
def test_objects_stay_in_the_namespace_of_the_release_and_need_no_rights_but_for_spark(case: str) -> None:
    found = documents(CASES[case])
    assert {document["metadata"].get("namespace", NAMESPACE) for document in found} == {NAMESPACE}
    kinds = {document["kind"] for document in found}
    assert not kinds & CLUSTER_WIDE
    assert case == "spark-operator" or not kinds & {"Role", "RoleBinding"}


@EVERY_CASE
def test_health_is_asked_without_a_token(case: str) -> None:
    for name, pod in pods(CASES[case]):
        for container in pod["containers"]:
            if name.startswith(("StatefulSet", "Deployment")) and container["name"] in {"prober", "api"}:
                probes = ("startupProbe", "livenessProbe", "readinessProbe")
                assert {container[probe]["httpGet"]["path"] for probe in probes} <= HEALTH_PATHS, name
