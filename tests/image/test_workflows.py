"""The workflows, held against what is in the repository. Nothing here runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.test_documents import targets
from tests.commands import ROOT
from tests.helm.chart import CASES, CHART, containers, pods
from tests.image.dockerfile import TARGETS
from tests.image.test_dockerfile import BASE

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.iterdir())
TEXT = (FOLDER / "release.yaml").read_text(encoding="utf-8")
CI: dict[Any, Any] = yaml.safe_load((FOLDER / "ci.yaml").read_text(encoding="utf-8"))
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
VERSION = str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def steps(key: str) -> Iterator[dict[str, Any]]:
    """The steps that have this key, of all jobs."""
    return (step for job in [*JOBS.values(), *CI["jobs"].values()] for step in job.get("steps", []) if key in step)


def scripts() -> list[str]:
    return [str(step["run"]) for step in steps("run")]


def build() -> dict[str, Any]:
    """What the step that builds is given."""
    (step,) = (step for step in steps("uses") if step["uses"].startswith("docker/build-push-action@"))
    return dict(step["with"])


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml"))


@pytest.mark.parametrize(("files", "schema"), [(FILES, "vendor.github-workflows"), (FORMS, "vendor.github-issue-forms")])
def test_workflows_and_issue_forms_follow_their_schemas(files: list[Path], schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    used = [one for file in FILES for one in re.findall(r"uses: (?!\./)(.*)", file.read_text(encoding="utf-8"))]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used), used


def test_no_job_gets_more_permissions_than_it_needs() -> None:
    assert WORKFLOW["permissions"] == CI["permissions"] == {}
    signs = {"contents": "read", "id-token": "write", "packages": "write"}
    needed = {"images": signs, "chart": signs, "package": {"contents": "read", "id-token": "write"}}
    for name, job in {**JOBS, **CI["jobs"]}.items():
        assert job["permissions"] == needed.get(name, {"contents": "read"}), name
    assert all(step["with"]["persist-credentials"] is False for step in steps("uses") if "actions/checkout@" in step["uses"])


def test_the_registry_follows_from_the_repository_and_no_password_is_an_argument() -> None:
    code = "\n".join(line for line in TEXT.splitlines() if not line.lstrip().startswith("#"))
    assert re.findall(r"\b[\w-]+\.(?:io|dev|com|net|org)/.*", code.replace("image://", "")) == [
        'ghcr.io/${GITHUB_REPOSITORY_OWNER,,}" >> "$GITHUB_OUTPUT"'
    ]
    assert {job["env"]["REGISTRY"] for job in (JOBS["images"], JOBS["chart"])} == {"${{ needs.version.outputs.registry }}"}
    assert "secrets." not in code
    assert "--password " not in code


def test_continuous_integration_runs_the_checks_and_the_tests_for_changes_and_releases() -> None:
    assert CI[True].keys() == {"push", "pull_request", "workflow_call"}  # YAML reads `on` as true
    (job,) = CI["jobs"].values()
    assert [step["run"] for step in job["steps"] if step.get("run", "").startswith("make")] == ["make check", "make test"]
    assert min(job["strategy"]["matrix"]["python"], key=lambda one: int(one[2:])) == "3.11"
    assert JOBS["test"]["uses"] == "./.github/workflows/ci.yaml"


def test_it_builds_the_targets_of_the_dockerfile_on_its_base_for_the_tags_of_the_chart() -> None:
    matrix = JOBS["images"]["strategy"]["matrix"]["include"]
    assert {one["target"] for one in matrix} == set(TARGETS)
    assert (ROOT / build()["context"] / build()["file"]).samefile(ROOT / "Dockerfile")
    assert "ARG REVISION" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"base={BASE}\n" in "\n".join(scripts())
    assert build()["platforms"] == "linux/amd64,linux/arm64"
    assert (build()["sbom"], build()["provenance"], build()["push"]) == (True, "mode=max", True)
    made = {build()["tags"].rpartition("/")[2].replace("${{ matrix.suffix }}", one["suffix"]) for one in matrix}
    installed = [CASES["production"], {"history": {"volume": {"size": "1Gi"}}, "jobs": {"mode": "cronjob"}}]
    pulled = {box["image"].rpartition("/")[2] for values in installed for _, pod in pods(values) for box in containers(pod)}
    assert {name.replace("${{ needs.version.outputs.version }}", VERSION) for name in made} == pulled


def test_what_it_calls_is_there() -> None:
    script = "\n".join(scripts())
    called = set(re.findall(r"\bmake ([a-z-]+)", script))
    assert called == {"check", "test", "sbom", "chart", "package", "gcs-connector"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert called <= targets(makefile)
    assert "dist/sbom.json" in makefile
    assert "destination='dist'" in makefile
    assert (ROOT / ".ci" / "get-tools").exists()
    assert "hatchling build --target wheel --directory dist" in makefile
    assert "dist/ordering-keys-prober-" in script
    assert yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["name"] == "ordering-keys-prober"


def test_everything_that_is_pushed_is_signed() -> None:
    for name in ("images", "chart"):
        said = "\n".join(str(step.get("run", "")) for step in JOBS[name]["steps"])
        assert re.search(r'cosign sign --yes "\$REGISTRY/\S+@\$\w+"', said, re.IGNORECASE), name
    assert {name: job.get("needs") for name, job in JOBS.items() if name not in ("version", "test")} == {
        "images": ["version", "test"],
        "chart": ["version", "images"],
        "package": ["version", "test"],
    }


def test_the_published_chart_pulls_the_published_images(tmp_path: Path) -> None:
    (line,) = (line.strip() for script in scripts() for line in script.splitlines() if "sed -i" in line)
    copy = tmp_path / "helm" / CHART.name
    copy.mkdir(parents=True)
    shutil.copy(CHART / "values.yaml", copy)
    subprocess.run(["bash", "-ec", line], cwd=tmp_path, env={**os.environ, "REGISTRY": "registry.example.com/owner"}, check=True)
    before, after = (yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8")) for folder in (CHART, copy))
    assert after == {**before, "image": {**before["image"], "registry": "registry.example.com/owner"}}


def test_the_package_may_be_published() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not any(classifier.startswith("Private") for classifier in project["classifiers"])
    assert JOBS["package"]["environment"] == "release"


@pytest.mark.parametrize("script", scripts())
def test_the_shell_understands_it(script: str) -> None:
    asked = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", script), text=True, capture_output=True, check=False)
    assert (asked.returncode, asked.stderr) == (0, "")


@pytest.mark.parametrize(("tag", "code"), [(f"v{VERSION}", 0), ("v99.0.0", 1), (VERSION, 1)])
def test_a_tag_that_is_not_the_version_is_refused(tag: str, code: int) -> None:
    (script,) = (script for script in scripts() if "GITHUB_REF_NAME" in script and "pyproject.toml" in script)
    asked = subprocess.run(["bash", "-ec", script], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False)
    assert asked.returncode == code
