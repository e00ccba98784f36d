"""Alerts and dashboards as the chart ships them: complete, with addresses, of the right objectives, and of one release only."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import helm_python as helm
import pytest
import yaml

from prober.cli import main
from tests.helm.chart import (
    CASES,
    CHART,
    LINKS,
    NAMESPACE,
    Values,
    boards_of,
    chart,
    documents,
    merged,
    of_kind,
    packaged,
    rules_of,
)

RULES: Values = {"rules": {"enabled": True}}
DASHBOARDS: Values = {"dashboards": {"enabled": True}}
OBJECTIVES: Values = {"config": {"slos": {"order": {"objective": "99.9%", "window": "28d"}, "affinity": False}}}
ANNOTATIONS_MAX = 262_144
"""Bytes of all annotations of an object, into which a client-side `kubectl apply` writes the whole object."""
EVERY_CASE = pytest.mark.parametrize("case", sorted(CASES))


def refusal(values: Values, of: helm.Chart | None = None) -> str:
    """What the chart says instead of rendering."""
    with pytest.raises(helm.HelmRenderError) as refused:
        (of or chart()).render(values, name="okp", namespace=NAMESPACE)
    return str(refused.value)


# --- addresses -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["dashboards", "pages"])
def test_rules_without_links_are_refused(missing: str) -> None:
    text = refusal(merged(LINKS, RULES, {"links": {missing: ""}}))
    assert f"rules.enabled needs links.{missing}: the address of " in text
    assert text.count("\n  - ") == 1


def test_dashboards_without_links_are_refused() -> None:
    assert "dashboards.enabled needs links.pages: " in refusal(merged(LINKS, DASHBOARDS, {"links": {"pages": ""}}))


def test_runbooks_are_those_of_the_service_or_your_own() -> None:
    own = documents(merged(LINKS, RULES, DASHBOARDS, {"links": {"runbooks": ""}}))
    assert "https://p.example.com/runbooks/PubsubProberDown.md" in str(own)
    assert "https://example.com/runbooks" not in str(own)
    assert "https://example.com/runbooks/PubsubProberDown.md" in str(documents(merged(LINKS, RULES)))


def test_dashboards_need_no_address_of_grafana() -> None:
    assert boards_of(documents(merged(LINKS, DASHBOARDS, {"links": {"dashboards": ""}})))


@EVERY_CASE
def test_every_link_of_an_alert_is_an_absolute_address(case: str) -> None:
    for rule in rules_of(documents(CASES[case])):
        for name, url in rule.get("annotations", {}).items():
            assert not name.endswith("_url") or url.startswith("https://"), (rule["alert"], url)


@EVERY_CASE
def test_no_alert_and_no_dashboard_leads_to_the_machine_of_its_reader(case: str) -> None:
    for document in documents(CASES[case]):
        if "Rule" in document["kind"] or document["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "dashboards":
            assert not re.search(r"localhost|127\.0\.0\.1|VAR_|__inputs", json.dumps(document)), document["metadata"]["name"]


@pytest.mark.parametrize("case", ["production", "canary", "staging"])
def test_an_environment_links_to_its_own_status_page(case: str) -> None:
    pages = {
        variable["query"]
        for board in boards_of(documents(CASES[case])).values()
        for variable in board["templating"]["list"]
        if variable["name"] == "status_page"
    }
    assert pages == {CASES[case]["links"]["pages"]}
    assert len({CASES[name]["links"]["pages"] for name in ("production", "canary", "staging", "test")}) == 4


def test_a_slash_at_the_end_of_an_address_is_not_doubled() -> None:
    slashed = {"links": {name: f"{url}/" for name, url in LINKS["links"].items()}}
    assert documents(merged(slashed, RULES, DASHBOARDS)) == documents(merged(LINKS, RULES, DASHBOARDS))


# --- objectives ----------------------------------------------------------------------------------------------------------------


def made(folder: Path, slos: Values, *options: str) -> Values:
    """Values with the rules of a configuration, as the command writes them and `--set-file` reads them."""
    config = folder / "prober.yaml"
    config.write_text(yaml.safe_dump(slos["config"]), encoding="utf-8")
    assert main(["alerts", "--config", str(config), "--directory", str(folder), *options]) == 0
    return {"rules": {"objectives": (folder / "objectives.rules.yaml").read_text(encoding="utf-8")}}


def test_thirty_objectives_fit_into_the_annotation_of_kubectl_apply(tmp_path: Path) -> None:
    slos = {f"fast_{number}": {"indicator": "end_to_end_latency", "objective": "99%", "threshold": "250ms"} for number in range(16)}
    wanted: Values = {"config": {"slos": slos}}
    found = of_kind(merged(LINKS, RULES, wanted, made(tmp_path, wanted)), "PrometheusRule")
    names = {one["metadata"]["name"] for one in found}
    assert len(names) == len(found)
    assert sum("-slo-" in name for name in names) == 30
    assert max(len(json.dumps(one)) for one in found) < ANNOTATIONS_MAX


def test_objectives_without_their_rules_are_refused() -> None:
    text = refusal(merged(LINKS, RULES, OBJECTIVES))
    assert "the chart's own rules were made for other objectives than config.slos (different: affinity, order)" in text
    assert "`ordering-prober alerts --config prober.yaml --directory out`" in text
    assert "--set-file rules.objectives=out/objectives.rules.yaml" in text


def test_objectives_with_their_rules_are_not(tmp_path: Path) -> None:
    found = documents(merged(LINKS, RULES, OBJECTIVES, made(tmp_path, OBJECTIVES)))
    recorded = {rule["labels"]["slo"] for rule in rules_of(found) if "slo" in rule.get("labels", {})}
    assert "order" in recorded
    assert "affinity" not in recorded
    assert any("> 13.44" in rule["expr"] for rule in rules_of(found))


def test_rules_of_other_objectives_are_refused(tmp_path: Path) -> None:
    rules = made(tmp_path, OBJECTIVES)
    for slos, name in (
        ({}, "affinity, order"),
        ({"order": {"objective": "99.9%", "window": "30d"}, "affinity": False}, "order"),
        ({"order": {"objective": "99.9%", "window": "28d"}}, "affinity"),
        ({"order": {"objective": "99.9%", "window": "28d"}, "affinity": False, "more": {"indicator": "order"}}, "more"),
    ):
        text = refusal(merged(LINKS, RULES, {"config": {"slos": slos}}, rules))
        assert f"rules.objectives was made for other objectives than config.slos (different: {name})" in text


@pytest.mark.parametrize(
    "slos",
    [{"affinity": False, "order": {"objective": 0.999}}, {"publish_latency": {"threshold": "250ms", "labels": {"a": "<&>é"}}}],
)
def test_objectives_are_compared_by_value(tmp_path: Path, slos: Values) -> None:
    own = {"config": {"slos": slos}}
    assert documents(merged(LINKS, RULES, own, made(tmp_path, own)))


def test_rules_that_do_not_say_what_they_were_made_from_are_refused() -> None:
    text = refusal(merged(LINKS, RULES, {"rules": {"objectives": "groups: []"}}))
    assert "rules.objectives does not say which objectives its rules are for" in text


def test_objectives_in_the_environment_are_refused() -> None:
    env = [{"name": "ORDERING_PROBER_SLOS__ORDER__OBJECTIVE", "value": "99%"}]
    assert "extraEnv sets ORDERING_PROBER_SLOS__ORDER__OBJECTIVE: write objectives into config.slos" in refusal(
        merged(LINKS, RULES, {"prober": {"extraEnv": env}})
    )


def test_without_rules_objectives_are_free() -> None:
    assert documents(OBJECTIVES)


# --- files that are not there --------------------------------------------------------------------------------------------------


def _without_links(folder: Path) -> Path:
    """The chart as a tool leaves it that passes over links."""
    target = folder / "chart"
    shutil.copytree(CHART, target, ignore=shutil.ignore_patterns("alerts", "dashboards"))
    return target


def _links_as_text(folder: Path) -> Path:
    """The chart as a tool unpacks it that knows no links, such as many for zip files: a link is a small file with its address."""
    target = _without_links(folder)
    for name in ("alerts", "dashboards"):
        (target / name).write_text(f"../../{name}", encoding="utf-8")
    return target


def _zipped(folder: Path) -> Path:
    """What Python's zipfile makes of a zip file that has links as git writes them."""
    with zipfile.ZipFile(folder / "chart.zip", "w") as archive:
        for path in sorted(CHART.rglob("*")):
            name = str(path.relative_to(CHART.parent))
            if path.is_symlink():
                info = zipfile.ZipInfo(name)
                info.external_attr = 0o120777 << 16
                archive.writestr(info, str(path.readlink()))
            elif path.is_file():
                archive.write(path, name)
    with zipfile.ZipFile(folder / "chart.zip") as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked" / CHART.name


@pytest.mark.parametrize("broken", [_without_links, _links_as_text, _zipped])
def test_a_chart_without_its_files_is_refused(broken: Callable[[Path], Path], tmp_path: Path) -> None:
    text = refusal(merged(LINKS, RULES, DASHBOARDS), helm.Chart.load(broken(tmp_path)))
    lines = [line for line in text.splitlines() if line.startswith("  - ")]
    assert len(lines) == 2
    for folder in ("alerts", "dashboards"):
        (line,) = (line for line in lines if f"the folder {folder} is not in this chart: it is a link in the repository" in line)
        assert "make chart" in line


def test_links_that_lead_nowhere_are_one_clear_error(tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "chart", symlinks=True)
    with pytest.raises(helm.HelmError, match="alerts"):
        helm.Chart.load(tmp_path / "chart")


def test_the_archive_renders_what_the_folder_renders(tmp_path: Path) -> None:
    values = merged(LINKS, RULES, DASHBOARDS)
    assert helm.Chart.load(packaged(tmp_path)).render(values, name="okp", namespace=NAMESPACE) == chart().render(
        values, name="okp", namespace=NAMESPACE
    )


def test_without_alerts_and_dashboards_nothing_is_missed(tmp_path: Path) -> None:
    assert helm.Chart.load(_without_links(tmp_path)).render({}, name="okp", namespace=NAMESPACE)
