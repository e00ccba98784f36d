"""What the pods get is what the program takes: the configuration, the environment, the arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from prober.cli import main
from prober.config.following import FOLLOWED
from prober.config.loading import VARIABLE_PREFIX, load
from prober.config.models import Config
from spark_jobs.work import Exit, read_objectives
from tests.commands import ROOT
from tests.helm.chart import CASES, CONFIG, Values, configuration, containers, documents, environment, merged, only, pods, rendered
from tests.helm.test_refusals import BUCKET, at

EVERY_CASE = pytest.mark.parametrize("case", sorted(CASES))
MOUNTED = f"/etc/ordering-prober/{CONFIG}"
POSTGRESQL = "postgresql://prober:planted@db.example.com/prober"


class AnySecret(dict[str, str]):
    """Every Secret there could be; a URL where one is needed."""

    def __missing__(self, name: str) -> str:
        return POSTGRESQL if name.endswith(("url", "database")) else "token"


def of_component(values: Values, component: str) -> dict[str, Any]:
    """The container of this name."""
    (found,) = (container for _, pod in pods(values) for container in containers(pod) if container["name"] == component)
    return found


def loaded(values: Values, component: str, folder: Path) -> Config:
    """The configuration as a component loads it, of its file and its environment."""
    path = folder / CONFIG
    path.write_text(configuration(values), encoding="utf-8")
    return load(path, environment(of_component(values, component), AnySecret()))


@EVERY_CASE
def test_every_configuration_is_accepted(case: str, tmp_path: Path) -> None:
    config = loaded(CASES[case], "prober", tmp_path)
    assert config.api.host == "0.0.0.0"
    assert config.instance == "okp-0"
    if CASES[case].get("api", {}).get("enabled"):
        assert loaded(CASES[case], "api", tmp_path).status == config.status


@EVERY_CASE
def test_ports_are_those_that_the_program_listens_on(case: str, tmp_path: Path) -> None:
    config = loaded(CASES[case], "prober", tmp_path)
    ports = {port["name"]: port["containerPort"] for port in of_component(CASES[case], "prober")["ports"]}
    assert ports.pop("http") == config.api.port
    assert ports.pop("pages", None) == config.drills.port
    assert ports.pop("push", 0) == config.push.port
    assert ports == {}


@EVERY_CASE
def test_what_is_written_is_written_to_mounted_places(case: str, tmp_path: Path) -> None:
    config, container = loaded(CASES[case], "prober", tmp_path), of_component(CASES[case], "prober")
    writable = tuple(mount["mountPath"] + "/" for mount in container["volumeMounts"] if not mount.get("readOnly"))
    paths = [config.history.spool, config.history.location, config.history.reports]
    url = config.status.url.get_secret_value()
    paths += [url.removeprefix("sqlite:///")] if url.startswith("sqlite") else []
    assert all(path.startswith(writable) for path in paths if path is not None and "://" not in path)


def test_several_probers_share_their_work(tmp_path: Path) -> None:
    group = loaded(CASES["gke"], "prober", tmp_path).sharding.group
    assert group is not None
    assert group.startswith("probing-okp-ordering-keys-prober-")
    assert loaded(CASES["default"], "prober", tmp_path).sharding.group is None


def test_reports_are_shown_whoever_makes_them(tmp_path: Path) -> None:
    """The nightly jobs may run elsewhere, such as on Dataproc: the API reads their reports all the same."""
    assert BUCKET.get("jobs") is None
    assert loaded(BUCKET, "prober", tmp_path).history.reports == BUCKET["history"]["reports"]


def test_each_pod_has_its_own_name() -> None:
    variables = environment(of_component(CASES["gke"], "prober"), AnySecret(), "okp-ordering-keys-prober-1")
    assert variables["ORDERING_PROBER_INSTANCE"] == "okp-ordering-keys-prober-1"


def test_only_what_a_running_process_cannot_take_over_makes_other_pods() -> None:
    def checksum(values: Values) -> str:
        return str(only(values, "StatefulSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    one = CASES["gke"]
    assert checksum(one) != checksum(merged(one, {"config": {"history": {"retention": "15d"}}}))
    assert checksum(one) == checksum(merged(one, {"service": {"port": 81}}))
    windows = [{"from": "2026-12-24T18:00:00Z", "to": "2026-12-25T06:00:00Z", "region": "europe-west1"}]
    followed: Values = {
        "targets": [{"name": "another", "project": "another", "endpoint": "europe-west1", "environment": "staging"}],
        "probes": {"ordering": {"keys": 11}},
        "slos": {"fast": {"indicator": "publish_latency", "objective": "90%", "threshold": "250ms"}},
        "maintenance": windows,
        "budget": {"usd_per_month": 240},
        "comparisons": [],
    }
    assert followed.keys() == FOLLOWED
    one = CASES["default"]  # which ships no rules of its own objectives
    for name, section in followed.items():
        changed = merged(one, {"config": {name: section}})
        assert checksum(one) == checksum(changed), name
        assert configuration(one) != configuration(changed), name


def test_the_configuration_is_mounted_so_that_a_change_arrives() -> None:
    """Kubernetes never changes what is mounted with a subPath."""
    for component in ("prober", "api"):
        (mount,) = (one for one in of_component(CASES["gke"], component)["volumeMounts"] if one["name"] == "config")
        assert "subPath" not in mount


def test_a_pod_is_given_the_time_that_stopping_takes() -> None:
    assert only(CASES["default"], "StatefulSet")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 60
    assert only(CASES["gke"], "StatefulSet")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 90


@EVERY_CASE
def test_variables_of_the_prober_are_keys_of_its_configuration(case: str, tmp_path: Path) -> None:
    for _, pod in pods(CASES[case]):
        for container in containers(pod):
            variables = environment(container, AnySecret())
            load(None, {name: value for name, value in variables.items() if name.startswith(VARIABLE_PREFIX)})


@pytest.mark.parametrize("component", ["prober", "api"])
def test_the_program_knows_its_command_and_options(component: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, option, path = of_component(CASES["gke"], component)["args"]
    assert main([command, "--help"]) == 0
    assert option in capsys.readouterr().out.split()
    assert path == MOUNTED


@pytest.mark.parametrize(
    ("mistake", "code", "words"),
    [({}, 0, ""), ({"probes": {"orderingg": {}}}, 2, "did you mean ordering?"), ({"targets": [{"nmae": "a"}]}, 2, "nmae")],
)
def test_a_mistake_in_the_configuration_fails_the_job_before_an_upgrade(
    mistake: Values, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = merged(CASES["default"], {"config": mistake})
    job, hook = only(values, "Job"), only(values, "ConfigMap", "-check")
    assert {one["metadata"]["annotations"]["helm.sh/hook"] for one in (job, hook)} == {"pre-install,pre-upgrade"}
    assert int(hook["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0  # it is there before the Job
    pod = job["spec"]["template"]["spec"]
    assert job["spec"]["backoffLimit"] == 0
    assert pod["volumes"] == [{"name": "config", "configMap": {"name": hook["metadata"]["name"]}}]
    path = tmp_path / CONFIG
    path.write_text(hook["data"][CONFIG], encoding="utf-8")
    (check,) = pod["containers"]
    for name, value in environment(check, AnySecret()).items():
        monkeypatch.setenv(name, value)
    assert main([argument.replace(MOUNTED, str(path)) for argument in check["args"]]) == code
    assert words in capsys.readouterr().err


def test_the_objectives_are_written_as_the_jobs_read_them(tmp_path: Path) -> None:
    config, written = tmp_path / CONFIG, tmp_path / "objectives.json"
    config.write_text(configuration(CASES["operator"]), encoding="utf-8")
    shell, option, line = of_component(CASES["operator"], "objectives")["command"]
    line = line.replace(MOUNTED, str(config)).replace("/objectives/objectives.json", str(written))
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run([shell, option, line], cwd=ROOT, check=True, env=os.environ | {"PATH": programs})
    assert "fast" in {objective.name for objective in read_objectives(str(written))}


@pytest.mark.parametrize("case", ["gke", "one-node"])
def test_the_jobs_know_their_arguments(case: str) -> None:
    command = [sys.executable, "-m", "spark_jobs", *of_component(CASES[case], "nightly")["args"]]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert asked.returncode == Exit.USAGE
    assert "/objectives/objectives.json" in asked.stdout + asked.stderr  # which is not there: all else was understood
    assert "--help" not in asked.stderr
    assert len((asked.stdout + asked.stderr).splitlines()) == 1


def test_spark_on_a_cluster_gets_the_same_arguments_with_locations_as_it_reads_them() -> None:
    application = only(CASES["spark-operator"], "ScheduledSparkApplication")["spec"]["template"]
    assert application["arguments"][:5] == ["nightly", "--history", "s3a://bucket/history", "--reports", "s3a://bucket/reports"]
    module = application["mainApplicationFile"].partition("/site-packages/")[2]
    assert (ROOT / module).exists()


def test_settings_of_spark_are_a_file_that_spark_reads() -> None:
    settings = {"spark.hadoop.fs.gs.auth.type": "APPLICATION_DEFAULT", "spark.sql.shuffle.partitions": "4"}
    values = merged(CASES["gke"], at("jobs.sparkConf", settings))
    spark = only(values, "ConfigMap", "-spark")["data"]["spark-defaults.conf"]
    assert dict(line.split(" ", 1) for line in spark.split("\n") if line) == settings
    assert environment(of_component(values, "nightly"), AnySecret())["SPARK_CONF_DIR"] == "/etc/spark"


def test_what_mounts_a_volume_of_one_node_is_on_that_node() -> None:
    for name, pod in pods(CASES["one-node"]):
        if name.startswith("CronJob"):
            (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "prober"


# --- environments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment_name", ["test", "staging", "canary", "production"])
def test_every_target_of_an_environment_says_so(environment_name: str, tmp_path: Path) -> None:
    config = loaded(CASES[environment_name], "prober", tmp_path)
    assert {target.environment for target in config.targets} == {environment_name}


@pytest.mark.parametrize("environment_name", ["staging", "canary"])
def test_an_environment_differs_from_production_in_what_is_probed_and_who_is_woken_only(environment_name: str) -> None:
    production, other = CASES["production"], CASES[environment_name]
    different = {key for key in production | other if production.get(key) != other.get(key)}
    assert different <= {"config", "prober", "history", "rules", "links"}
    assert {key for key, value in other["config"].items() if production["config"][key] != value} == {"targets"}
    assert {key for key, value in other["prober"].items() if production["prober"].get(key) != value} == {"replicas"}


def test_nobody_is_woken_by_test_or_staging() -> None:
    for name in ("test", "staging"):
        assert not [document for document in documents(CASES[name]) if "Rule" in document["kind"]]


def test_notes_say_where_the_page_is() -> None:
    notes = {case: rendered(CASES[case])["ordering-keys-prober/templates/NOTES.txt"] for case in ("default", "gke", "operator")}
    assert "port-forward service/okp-ordering-keys-prober 8080:80" in notes["default"]
    assert "https://prober.example.com/" in notes["gke"]
    assert "open to everybody" in notes["operator"]
    assert "open to everybody" not in notes["gke"]


def test_notes_say_which_projects_must_let_the_prober_read_cloud_monitoring() -> None:
    def notes(values: Values) -> str:
        return rendered(values)["ordering-keys-prober/templates/NOTES.txt"]

    own = [{"name": f"projects/{name}"} for name in ("shop/subscriptions/a", "shop/subscriptions/b", "ads/subscriptions/c")]
    assert "roles/monitoring.viewer on projects/shop, projects/ads;" in notes({"config": {"monitoring": {"subscriptions": own}}})
    assert "roles/monitoring.viewer" not in notes({"config": {"monitoring": {"every": "2m"}}})
    rules = [{"project": "shop", "matching": ".*"}, {"labels": {"team": "a"}}]
    found = notes({"config": {"monitoring": {"discover": rules}}})
    assert "(roles/pubsub.viewer) and roles/monitoring.viewer on projects/shop, the project of its target;" in found


def test_the_chart_is_of_the_version_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    about = yaml.safe_load((ROOT / "helm" / "ordering-keys-prober" / "Chart.yaml").read_text(encoding="utf-8"))
    assert f'version = "{about["appVersion"]}"' in project
    assert os.path.islink(ROOT / "helm" / "ordering-keys-prober" / "alerts")
