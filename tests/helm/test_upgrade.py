"""An upgrade replaces no pod without a reason, and what Kubernetes would refuse is refused before, with the way out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

import helm_python as helm
import pytest
import yaml

from tests.commands import ROOT
from tests.helm.chart import CASES, CHART, NAMESPACE, RELEASE, Document, Values, documents, merged, only
from tests.helm.cluster import rendered_for
from tests.helm.test_refusals import at

NAME = f"{RELEASE}-ordering-keys-prober"
SIZE, CLASS = "prober.persistence.size", "prober.persistence.storageClassName"


@pytest.fixture(scope="module")
def bumped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[helm.Chart]:
    """The chart with another version of its own, and the same program."""
    folder = tmp_path_factory.mktemp("bumped") / "ordering-keys-prober"
    shutil.copytree(CHART, folder)
    about = folder / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version: .*$", "version: 99.0.0", about.read_text(encoding="utf-8")), encoding="utf-8")
    with helm.Chart.load(folder) as chart:
        yield chart


def templates(found: Iterable[Document]) -> dict[str, Any]:
    """What a controller compares to know whether to replace pods, by object."""
    return {one["metadata"]["name"]: one["spec"] for one in found if one and one["kind"] in {"StatefulSet", "Deployment"}}


NO_FILES: Values = {"rules": {"enabled": False}, "dashboards": {"enabled": False}}
"""Most of a rendering, and no pod has anything of it."""


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_new_version_of_the_chart_alone_replaces_no_pod(case: str, bumped: helm.Chart) -> None:
    texts = bumped.render(merged(CASES[case], NO_FILES), name=RELEASE, namespace=NAMESPACE)
    after = (one for name, text in texts.items() if name.endswith(".yaml") for one in yaml.load_all(text, Loader=yaml.CSafeLoader))
    assert templates(documents(CASES[case])) == templates(after)


def there(values: Values) -> Document:
    """The StatefulSet of an installation with these values, as the cluster gives it back."""
    found = deepcopy(only(values, "StatefulSet"))
    found["metadata"]["namespace"] = NAMESPACE
    return found


def test_the_same_volumes_are_kept() -> None:
    rendered_for({})
    rendered_for({}, there({}))
    rendered_for(at(CLASS, "fast"), there(at(CLASS, "fast")))
    rendered_for(CASES["bare"], there(CASES["bare"]))


def test_a_size_that_kubernetes_writes_in_another_way_is_the_same() -> None:
    rendered_for(at(SIZE, "4096Mi"), there({}))


OTHER = [
    (
        at(SIZE, "8Gi"),
        {},
        "asks for 8Gi of the default class, and the StatefulSet {} has 4Gi of the default class",
    ),
    (
        at(CLASS, "fast"),
        {},
        "asks for 4Gi of class fast, and the StatefulSet {} has 4Gi of the default class",
    ),
    (
        {},
        at(CLASS, "fast"),
        "asks for 4Gi of the default class, and the StatefulSet {} has 4Gi of class fast",
    ),
    (
        at("prober.persistence.enabled", False),
        {},
        "asks for no volume, and the StatefulSet {} has 4Gi of the default class",
    ),
    (
        {},
        at("prober.persistence.enabled", False),
        "asks for 4Gi of the default class, and the StatefulSet {} has no volume",
    ),
]


@pytest.mark.parametrize(("wanted", "installed", "words"), OTHER)
def test_other_volumes_are_refused_with_the_way_out(wanted: Values, installed: Values, words: str) -> None:
    with pytest.raises(helm.HelmReleaseError) as refusal:
        rendered_for(wanted, there(installed))
    assert words.format(NAME) in str(refusal.value)
    way_out = f"kubectl --namespace {NAMESPACE} delete statefulset {NAME} --cascade=orphan"
    assert way_out in str(refusal.value)
    assert "delete statefulset NAME --cascade=orphan" in (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def test_after_the_way_out_the_upgrade_goes_through() -> None:
    rendered_for(at(SIZE, "8Gi"))


def test_another_release_s_volumes_are_nobody_s_business() -> None:
    other = there({})
    other["metadata"]["name"] = "other"
    rendered_for(at(SIZE, "8Gi"), other)


def test_the_refusal_comes_with_the_others() -> None:
    with pytest.raises(helm.HelmReleaseError) as refusal:
        rendered_for(merged(at(SIZE, "8Gi"), at("config.instance", "a")), there({}))
    assert str(refusal.value).count("\n  - ") == 2
