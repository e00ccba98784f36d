"""The workflow that publishes a release, held against what is in the repository. Nobody runs it here."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.architecture.test_documents import targets
from tests.commands import ROOT
from tests.helm.chart import CASES, CHART, containers, pods
from tests.image.dockerfile import TARGETS
from tests.image.test_dockerfile import BASE

FILE = ROOT / ".github" / "workflows" / "release.yaml"
TEXT = FILE.read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
VERSION = str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def steps(key: str) -> Iterator[dict[str, Any]]:
    """The steps that have this key, of all jobs."""
    return (step for job in JOBS.values() for step in job["steps"] if key in step)


def scripts() -> list[str]:
    return [str(step["run"]) for step in steps("run")]


def build() -> dict[str, Any]:
    """What the step that builds is given."""
    (step,) = (step for step in steps("uses") if step["uses"].startswith("docker/build-push-action@"))
    return dict(step["with"])


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used), used


def test_nobody_gets_more_than_the_job_needs() -> None:
    assert WORKFLOW["permissions"] == {}
    allowed = {"contents": "read", "id-token": "write"}
    for name, job in JOBS.items():
        assert job["permissions"].items() <= allowed.items(), name
        assert ("id-token" in job["permissions"]) == any("cosign" in str(step.get("run")) for step in job["steps"]), name
    assert all(step["with"]["persist-credentials"] is False for step in steps("uses") if "actions/checkout@" in step["uses"])


def test_no_registry_is_written_down_and_no_password_is_an_argument() -> None:
    code = "\n".join(line for line in TEXT.splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"\b[\w-]+\.(io|dev|com|net|org)/", code.replace("image://", ""))
    assert "secrets." not in "\n".join(scripts())
    assert "--password " not in code


def test_it_builds_the_targets_of_the_dockerfile_on_its_base_for_the_tags_of_the_chart() -> None:
    matrix = JOBS["images"]["strategy"]["matrix"]["include"]
    assert {one["target"] for one in matrix} == set(TARGETS)
    assert (ROOT / build()["context"] / build()["file"]).samefile(ROOT / "Dockerfile")
    assert "ARG REVISION" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"base={BASE}\n" in "\n".join(scripts())
    made = {build()["tags"].rpartition("/")[2].replace("${{ matrix.suffix }}", one["suffix"]) for one in matrix}
    pulled = {box["image"].rpartition("/")[2] for _, pod in pods(CASES["production"]) for box in containers(pod)}
    assert {name.replace("${{ steps.named.outputs.version }}", VERSION) for name in made} == pulled


def test_what_it_calls_is_there() -> None:
    script = "\n".join(scripts())
    called = set(re.findall(r"\bmake ([a-z-]+)", script))
    assert called == {"sbom", "chart"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert called <= targets(makefile)
    assert "dist/sbom.json" in makefile
    assert "destination='dist'" in makefile
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "dist/ordering-keys-prober-" in script
    assert yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["name"] == "ordering-keys-prober"


def test_everything_that_is_pushed_is_signed() -> None:
    for name in ("images", "chart"):
        said = "\n".join(str(step.get("run", "")) for step in JOBS[name]["steps"])
        assert re.search(r'cosign sign --yes "\$REGISTRY/\S+@\$\w+"', said, re.IGNORECASE), name
    assert (JOBS["images"]["needs"], JOBS["chart"]["needs"]) == ("test", "images")


@pytest.mark.parametrize("script", scripts())
def test_the_shell_understands_it(script: str) -> None:
    asked = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", script), text=True, capture_output=True, check=False)
    assert (asked.returncode, asked.stderr) == (0, "")


@pytest.mark.parametrize(("tag", "code"), [(f"v{VERSION}", 0), ("v99.0.0", 1), (VERSION, 1)])
def test_a_tag_that_is_not_the_version_is_refused(tag: str, code: int) -> None:
    (script,) = (script for script in scripts() if "GITHUB_REF_NAME" in script and "pyproject.toml" in script)
    asked = subprocess.run(["bash", "-ec", script], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False)
    assert asked.returncode == code
