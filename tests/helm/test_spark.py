"""The nightly jobs as the Spark operator runs them: the driver may make executors, and its pods are like all others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helm.chart import CASES, Values, documents, merged, of_kind, only
from tests.helm.test_platform import EXTRAS
from tests.helm.test_refusals import at
from tests.helm.validation import KUBERNETES, complaints

OPERATOR = CASES["spark-operator"]
PODS = ("driver", "executor")
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
LABEL_MAX = 63
DIGITS_OF_A_RUN = "-1234567890123456789"
"""What the operator puts after the name of each run: nanoseconds."""


def application(values: Values) -> dict[str, Any]:
    """What each night's application is made of."""
    return dict(only(values, "ScheduledSparkApplication")["spec"]["template"])


def mounted(pod: dict[str, Any]) -> dict[str, str]:
    """The volumes that Spark's container mounts, by where."""
    return {mount["mountPath"]: mount["name"] for mount in pod["volumeMounts"]}


# --- making executors --------------------------------------------------------------------------------------------------------


def test_the_driver_may_make_executors() -> None:
    role, binding = only(OPERATOR, "Role"), only(OPERATOR, "RoleBinding")
    (rule,) = role["rules"]
    assert rule["apiGroups"] == [""]
    assert set(rule["resources"]) == {"pods", "services", "configmaps", "persistentvolumeclaims"}
    assert set(rule["verbs"]) == {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": application(OPERATOR)["driver"]["serviceAccount"], "namespace": "probing"}


def test_only_the_driver_holds_a_token() -> None:
    spec = application(OPERATOR)
    assert TOKEN_FOLDER not in mounted(spec["executor"])
    (volume,) = (one for one in spec["volumes"] if one["name"] == mounted(spec["driver"])[TOKEN_FOLDER])
    files = [
        item["path"]
        for source in volume["projected"]["sources"]
        for item in (source.get("configMap") or source.get("downwardAPI") or {"items": [source["serviceAccountToken"]]})["items"]
    ]
    assert sorted(files) == ["ca.crt", "namespace", "token"]
    assert all(account["automountServiceAccountToken"] is False for account in of_kind(OPERATOR, "ServiceAccount"))


def test_the_role_goes_to_the_account_that_is_named() -> None:
    own = merged(OPERATOR, at("serviceAccounts.jobs", {"create": False, "name": "spark"}))
    assert application(own)["driver"]["serviceAccount"] == only(own, "RoleBinding")["subjects"][0]["name"] == "spark"


def test_where_roles_are_made_by_others_none_is_rendered() -> None:
    assert not of_kind(merged(OPERATOR, at("jobs.spark.rbac.create", False)), "Role", "RoleBinding")


@pytest.mark.parametrize("case", sorted(CASES.keys() - {"spark-operator"}))
def test_nobody_else_needs_a_role(case: str) -> None:
    assert not of_kind(CASES[case], "Role", "RoleBinding")


# --- image and scratch space ---------------------------------------------------------------------------------------------------


def test_its_image_is_by_default_that_of_the_jobs() -> None:
    values = merged(OPERATOR, at("image.registry", "r.example.com"), at("jobs.spark.image", ""))
    assert application(values)["image"] == "r.example.com/ordering-keys-prober:0.1.0-jobs"
    in_a_bucket = merged(values, {"history": {"location": "gs://b/h", "reports": "gs://b/r"}})
    assert application(in_a_bucket)["image"] == "r.example.com/ordering-keys-prober:0.1.0-jobs-gcs"


def test_each_executor_claims_scratch_space_of_the_class_that_is_named() -> None:
    values = merged(OPERATOR, at("jobs.scratch", {"size": "50Gi", "storageClassName": "fast"}))
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1"
    assert application(values)["sparkConf"] == OPERATOR["jobs"]["sparkConf"] | {
        f"{volume}.options.claimName": "OnDemand",
        f"{volume}.options.storageClass": "fast",
        f"{volume}.options.sizeLimit": "50Gi",
        f"{volume}.mount.path": "/scratch",
        f"{volume}.mount.readOnly": "false",
    }
    assert application(OPERATOR)["sparkConf"] == OPERATOR["jobs"]["sparkConf"]
    assert "persistentvolumeclaims" in only(values, "Role")["rules"][0]["resources"]


# --- pods --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", PODS)
def test_what_containers_mount_is_in_the_pod(role: str) -> None:
    """The operator's webhook adds a volume to a pod only if Spark's container mounts it, whatever init containers mount."""
    spec = application(merged(OPERATOR, {"jobs": EXTRAS}))
    there = set(mounted(spec[role]).values())
    assert there <= {volume["name"] for volume in spec["volumes"]}
    for container in spec[role]["initContainers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= there


@pytest.mark.parametrize("role", PODS)
def test_what_is_added_to_jobs_is_in_its_pods(role: str) -> None:
    spec = application(merged(OPERATOR, {"jobs": EXTRAS}))
    assert {"name": "extra", "emptyDir": {"sizeLimit": "1Mi"}} in spec["volumes"]
    assert {"name": "extra", "mountPath": "/extra"} in spec[role]["volumeMounts"]
    assert {"name": "EXTRA", "value": "1"} in spec[role]["env"]
    before = spec[role]["initContainers"][-1]
    assert before["name"] == "before"
    assert before["securityContext"]["readOnlyRootFilesystem"] is True


PLACED: Values = {
    "podAnnotations": {"example.com/owner": "messaging"},
    "priorityClassName": "batch",
    "nodeSelector": {"pool": "spark"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}


@pytest.mark.parametrize("role", PODS)
def test_pods_run_where_jobs_are_to_run(role: str) -> None:
    values = merged(OPERATOR, {"jobs": PLACED, "imagePullSecrets": [{"name": "registry"}]})
    spec = application(values)
    assert spec["imagePullSecrets"] == ["registry"]
    assert spec[role]["annotations"] == PLACED["podAnnotations"]
    assert {key: spec[role][key] for key in PLACED if key != "podAnnotations"} == {
        key: value for key, value in PLACED.items() if key != "podAnnotations"
    }
    assert complaints(documents(values), KUBERNETES[-1]) == []


@pytest.mark.parametrize("name", ["p", "p" * 35, "p" * 36, "probers-of-the-messaging-platform-of-us1"])
def test_the_name_of_a_run_fits_into_a_label(name: str) -> None:
    found = only(merged(OPERATOR, {"fullnameOverride": name}), "ScheduledSparkApplication")["metadata"]["name"]
    assert len(found + DIGITS_OF_A_RUN) <= LABEL_MAX
    assert found.endswith("-nightly")
