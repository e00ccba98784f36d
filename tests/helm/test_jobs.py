"""The nightly jobs as Kubernetes runs them: on the cores of their pod, with one version of Spark, failed only if no work was done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import spark_jobs.__main__ as command
from spark_jobs.work import Exit, JobOutcome
from tests.commands import ROOT
from tests.helm.chart import CASES, CHART, Values, environment, merged, only, rendered
from tests.helm.test_refusals import BUCKET, at

CRONJOB = merged(BUCKET, at("jobs.mode", "cronjob"))


def job(values: Values) -> dict[str, Any]:
    """What makes the pods of the night."""
    return dict(only(values, "CronJob")["spec"]["jobTemplate"]["spec"])


def nightly(values: Values) -> tuple[list[str], dict[str, Any]]:
    """The arguments of the container as it gets them, and the container."""
    (container,) = job(values)["template"]["spec"]["containers"]
    variables = environment(container, {})
    return [re.sub(r"\$\((\w+)\)", lambda name: variables[name[1]], argument) for argument in container["args"]], container


# --- a violated guarantee is a result --------------------------------------------------------------------------------------------


def exit_codes(outcome: Exit, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """What the program ends with when its job ended so."""
    monkeypatch.setattr(command, "_carried_out", lambda _: JobOutcome(outcome, f"nightly: {outcome.name}"))
    return command.main(arguments)


@pytest.mark.parametrize("outcome", [Exit.PASS, Exit.FAIL])
def test_a_violated_guarantee_is_no_failed_job(
    outcome: Exit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubernetes sees success: no alert about failed Jobs, nothing is done again. The line and the reports say what was found."""
    for arguments in (
        nightly(CRONJOB)[0],
        only(CASES["spark-operator"], "ScheduledSparkApplication")["spec"]["template"]["arguments"],
    ):
        assert exit_codes(outcome, arguments, monkeypatch) == Exit.PASS
        assert capsys.readouterr().out == f"nightly: {outcome.name}\n"


def test_a_job_that_came_to_nothing_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_codes(Exit.UNKNOWN, nightly(CRONJOB)[0], monkeypatch) == Exit.UNKNOWN
    assert job(CRONJOB)["backoffLimit"] > 0


def test_wrong_usage_is_not_done_again() -> None:
    (rule,) = job(CRONJOB)["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {"containerName": nightly(CRONJOB)[1]["name"], "operator": "In", "values": [Exit.USAGE]}


# --- cores -------------------------------------------------------------------------------------------------------------------

CORES = [
    ({"requests": {"cpu": "2"}}, "local[2]"),
    ({"requests": {"cpu": "1500m"}}, "local[2]"),
    ({"requests": {"cpu": "500m"}}, "local[1]"),
    ({"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}, "local[4]"),
    ({"requests": {"cpu": None}, "limits": {"cpu": "3"}}, "local[3]"),
]


@pytest.mark.parametrize(("resources", "master"), CORES)
def test_spark_has_the_cores_of_its_pod(resources: Values, master: str) -> None:
    arguments, _ = nightly(merged(CRONJOB, {"jobs": {"resources": resources}}))
    assert arguments[arguments.index("--master") + 1] == master


# --- scratch space -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [{}, {"storageClassName": "fast"}])
def test_spark_writes_to_a_volume_that_lives_as_long_as_its_pod(storage: Values) -> None:
    values = merged(CRONJOB, at("jobs.scratch", storage))
    _, container = nightly(values)
    place = environment(container, {})["SPARK_LOCAL_DIRS"]
    (name,) = (mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == place)
    (volume,) = (one for one in job(values)["template"]["spec"]["volumes"] if one["name"] == name)
    claim = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert claim == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}} | storage
    for kind in ("requests", "limits"):
        assert "ephemeral-storage" in container["resources"][kind]


# --- what Spark needs to read a bucket ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "tag"), [({"location": "gs://b/h"}, "0.1.0-jobs-gcs"), ({"location": "s3://b/h"}, "0.1.0-jobs")]
)
def test_the_image_of_the_jobs_can_read_a_bucket_of_cloud_storage(history: Values, tag: str) -> None:
    _, container = nightly(merged(CRONJOB, {"history": history}))
    assert container["image"] == f"ordering-keys-prober:{tag}"


def test_the_notes_say_what_the_image_lacks() -> None:
    def notes(values: Values) -> str:
        return rendered(merged(CRONJOB, at("history.location", "s3://b/h"), values))["ordering-keys-prober/templates/NOTES.txt"]

    assert "Spark needs the package hadoop-aws to read s3://b/h." in notes({})
    assert "Spark needs" not in notes(at("history.location", "gs://b/h"))
    assert "Spark needs" not in notes(at("jobs.sparkConf", {"spark.jars": "/a.jar"}))
    assert "Spark needs" not in notes(at("jobs.mode", "none"))


# --- one version of Spark ----------------------------------------------------------------------------------------------------


def test_versions_of_spark_and_python_agree() -> None:
    """Of the image, by what it installs; of the development environment; and of the Spark application."""
    locked = {
        re.findall(r"(?m)^pyspark==(\S+)", (ROOT / "constraints" / f"{name}.txt").read_text(encoding="utf-8"))[0]
        for name in ("jobs", "dev")
    }
    spark = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["jobs"]["spark"]
    assert {spark["version"]} == locked
    assert only(CASES["spark-operator"], "ScheduledSparkApplication")["spec"]["template"]["sparkVersion"] == spark["version"]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "-r /build/constraints/jobs.txt" in dockerfile
    pythons = set(re.findall(r"FROM python:(\d+\.\d+)", dockerfile)) | set(re.findall(r"lib/python(\d+\.\d+)/", dockerfile))
    assert pythons == {Path(spark["mainApplicationFile"]).parts[-4].removeprefix("python")}
