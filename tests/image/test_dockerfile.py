"""What holds for the images by their Dockerfile alone."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest

from tests.commands import ROOT
from tests.helm.chart import CHART
from tests.image.dockerfile import STAGES, TARGETS, TEXT, said

BASE = "python:3.13-slim-trixie"
EVERY_TARGET = pytest.mark.parametrize("target", TARGETS)


def test_everything_is_built_on_one_base_of_a_known_version() -> None:
    outside = {stage.base for stage in STAGES.values()} - set(STAGES)
    assert outside == {BASE, "scratch"}
    assert "latest" not in TEXT


def test_the_service_is_what_is_built_unless_a_target_is_named() -> None:
    assert list(STAGES)[-1] == "service"


def test_nothing_is_fetched_but_packages() -> None:
    words = {word for stage in STAGES.values() for word, _ in stage.instructions}
    assert "ADD" not in words
    run = [line for stage in STAGES.values() for line in stage.of("RUN")]
    assert not any(re.search(r"https?://|\b(curl|wget|git)\b", line) for line in run)


def test_packages_are_pinned_by_hash() -> None:
    installs = [
        command for stage in STAGES.values() for line in stage.of("RUN") for command in line.split("&&") if " install " in command
    ]
    of_python = [command for command in installs if "pip" in command]
    assert len(of_python) == 5
    assert all("--require-hashes" in command or "--no-index" in command for command in of_python)
    assert all("--no-deps" in command for command in of_python)
    assert all("--only-binary :all:" in command or "--no-index" in command for command in of_python)


@EVERY_TARGET
def test_it_runs_as_a_numbered_user(target: str) -> None:
    assert said(STAGES[target], "USER") == ["10001:10001"]


@EVERY_TARGET
def test_no_tool_that_builds_or_installs_is_in_the_image(target: str) -> None:
    final = [*said(STAGES[target], "RUN"), *said(STAGES[target], "COPY")]
    assert not any(re.search(r"build-essential|\bgcc\b|/build/tools|-dev\b", line) for line in final)
    (system,) = [line.split()[0].removeprefix("--from=") for line in said(STAGES[target], "COPY") if line.endswith(" / /")]
    assert STAGES[system].of("RUN")[-1].endswith("sh /build/strip && rm -rf /build")
    assert [line for line in said(STAGES[target], "COPY") if "--from" not in line] == []


@EVERY_TARGET
def test_it_is_built_from_scratch_so_that_what_is_removed_is_in_no_layer(target: str) -> None:
    stage = STAGES[target]
    while stage.base in STAGES:
        stage = STAGES[stage.base]
    assert stage.base == "scratch"


@EVERY_TARGET
def test_labels_tell_what_it_is(target: str) -> None:
    (labels,) = said(STAGES[target], "LABEL")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{name}=" in labels
    assert f'image.version="{project["version"]}"' in labels
    assert f'image.licenses="{project["license"]}"' in labels


def test_health_is_asked_without_a_tool_that_is_not_there() -> None:
    (check,) = STAGES["service"].of("HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")


def test_versions_of_python_agree() -> None:
    version = re.fullmatch(r"python:(\d+\.\d+)-slim-trixie", BASE)
    assert version is not None
    named = set(re.findall(r"python(\d+\.\d+)/", TEXT + (CHART / "values.yaml").read_text(encoding="utf-8")))
    assert named == {version[1]}


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    wanted = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    copied = {part for stage in STAGES.values() for line in stage.of("COPY") if "--from" not in line for part in line.split()[:-1]}
    assert {Path(name).parts[0] for name in copied} == {Path(name).parts[0] for name in wanted}
    assert "image/strip" in copied
    assert all((ROOT / name).exists() for name in copied)


def test_the_entry_points_are_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert json.loads(STAGES["service"].of("ENTRYPOINT")[0]) == list(scripts)
    assert json.loads(STAGES["jobs"].of("ENTRYPOINT")[0]) == ["python", "-m", "spark_jobs.container"]


def test_the_connector_is_that_of_the_hadoop_in_spark_and_the_build_looks_for_its_class() -> None:
    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    assert f"HADOOP_VERSION := {version}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    with zipfile.ZipFile(client) as jar:
        assert "org/apache/hadoop/util/FindClass.class" in jar.namelist()
        defaults = ElementTree.fromstring(jar.read("core-default.xml"))
    known = {each.findtext("name"): each.findtext("value") for each in defaults.iter("property")}
    assert known["fs.gs.auth.type"] == "COMPUTE_ENGINE"  # Workload Identity on GKE; elsewhere docs/deploy.md sets another
    (check,) = STAGES["jobs-gcs"].of("RUN")
    assert json.loads(check)[-3:] == ["org.apache.hadoop.util.FindClass", "create", known["fs.gs.impl"]]


def test_no_secret_is_built_in() -> None:
    assert not re.search(r"(?i)token|password|secret", TEXT)


def test_the_file_is_in_the_repository() -> None:
    ignored = subprocess.run(["git", "check-ignore", "Dockerfile", ".dockerignore"], cwd=ROOT, capture_output=True, check=False)
    assert ignored.stdout == b""
