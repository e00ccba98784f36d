"""The Job that changes the revision of the status store: when Helm runs it, what it reaches, and its command."""

from __future__ import annotations

from typing import Any

import pytest

from prober.cli import main
from tests.commands import Output
from tests.helm.chart import CASES, Values, documents, environment, merged, of_kind, only, pod_templates, values_file
from tests.helm.policies import INTERNET, Peer, lets_in, lets_out
from tests.helm.test_refusals import POSTGRESQL, at

UPGRADE: Values = merged(POSTGRESQL, at("status.job.command", "upgrade"))
DOWNGRADE: Values = merged(POSTGRESQL, at("status.job", {"command": "downgrade", "to": 1}))


def container(values: Values) -> dict[str, Any]:
    (found,) = only(values, "Job", "-store")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_there_is_none_by_default() -> None:
    for values in ({}, POSTGRESQL):
        assert not [found for found in documents(values) if found["metadata"]["name"].endswith("-store")]


def test_helm_runs_it_before_the_pods_change_and_after_the_check() -> None:
    check, job = (only(UPGRADE, "Job", name)["metadata"]["annotations"] for name in ("-check", "-store"))
    policy = only(UPGRADE, "NetworkPolicy", "-store")["metadata"]["annotations"]
    assert job["helm.sh/hook"] == policy["helm.sh/hook"] == "pre-upgrade"
    weights = [int(one.get("helm.sh/hook-weight", 0)) for one in (policy, check, job)]
    assert weights[0] < weights[2] > weights[1]


def test_a_refused_store_fails_it_at_once() -> None:
    job = only(UPGRADE, "Job", "-store")["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["containerName"], rule["onExitCodes"]["values"]) == ("FailJob", "store", [2])
    assert job["backoffLimit"] > 0


@pytest.mark.parametrize("case", ["gke", "operator", "several-probers"])
def test_it_reaches_the_database_and_nobody_reaches_it(case: str) -> None:
    values = merged(CASES[case], at("status.job.command", "upgrade"))
    (labels,) = (
        pod["metadata"]["labels"] for name, pod in pod_templates(values) if name.startswith("Job") and name.endswith("-store")
    )
    assert lets_out(values, labels, Peer(address=INTERNET), values["status"].get("port", 5432))
    assert not lets_out(values, labels, Peer(address=INTERNET), 22)
    assert not lets_in(values, labels, Peer(labels=labels), 8080)
    selectors = [one["spec"]["selector"] for one in of_kind(values, "Service")]
    assert not [one for one in selectors if one.items() <= labels.items()]


def test_a_proxy_of_the_database_runs_beside_it() -> None:
    values = merged(values_file("values-several-probers.yaml"), at("status.job.command", "upgrade"))
    job, prober = only(values, "Job", "-store")["spec"]["template"]["spec"], only(values, "StatefulSet")["spec"]["template"]["spec"]
    assert job["initContainers"] == prober["initContainers"] != []
    assert job["serviceAccountName"] == prober["serviceAccountName"]


def test_certificates_of_the_database_are_mounted() -> None:
    trust: Values = {
        "prober": {
            "extraVolumes": [{"name": "trust", "configMap": {"name": "my-certificates"}}],
            "extraVolumeMounts": [{"name": "trust", "mountPath": "/etc/ssl/mine", "readOnly": True}],
        }
    }
    values = merged(UPGRADE, trust)
    assert container(values)["volumeMounts"] == trust["prober"]["extraVolumeMounts"]
    assert only(values, "Job", "-store")["spec"]["template"]["spec"]["volumes"] == trust["prober"]["extraVolumes"]


def test_the_program_does_what_it_is_called_for(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    for values, after in ((UPGRADE, "empty; now revision 1"), (DOWNGRADE, "revision 1, pinned until `store upgrade`")):
        found = container(values)
        for name, value in environment(found, {"s/url": f"sqlite:///{tmp_path}/status.db"}).items():
            monkeypatch.setenv(name, value)
        assert main(found["args"]) == 0
        assert capsys.readouterr().out.rstrip().endswith(after)
