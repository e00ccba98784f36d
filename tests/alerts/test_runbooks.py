"""The runbooks: one for each alert, all with the same sections, and their metrics, operations and commands exist."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from api.app import create_app
from prober.cli import main
from tests.alerts.reading import FROM_PROMETHEUS, recorded, scraped, selectors
from tests.alerts.stories import NAMES, WRITTEN
from tests.commands import ROOT, RUNBOOKS
from tests.unit.api.asking import view

SECTIONS = ["First look", "Actions", "Silence"]
FOLDER = RUNBOOKS
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md") if path.stem != "README"}
NEVER_SILENCED = {"PubsubProberWatchdog", "PubsubProberDrillFinding"}


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert PAGES.keys() == NAMES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_runbook_has_its_sections(name: str) -> None:
    page = PAGES[name]
    assert re.match(rf"# {name}\n\n> .+\.\n\n(?:[^#\n].*\n)+\n## ", page), "meaning and impact"
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == SECTIONS
    sections = re.split(r"^## .+$", page, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections)
    assert re.match(r"\n\n```sh\nkubectl exec POD -- ordering-prober [^\n]+\n```\n\n\S", sections[0]), (
        "one command that works in the pod"
    )


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_alert_fills_in_its_runbook(name: str) -> None:
    """Every placeholder for a label in the first command of a runbook is a label of its alert, and in the alert's address."""
    (first,) = re.findall(r"^## First look\n\n```sh\n(.+)\n```", PAGES[name], re.MULTILINE)
    for alert in (alert for alert in WRITTEN if alert["alert"] == name):
        given = dict(parse_qsl(urlsplit(alert["annotations"]["runbook_url"]).query))
        assert given == {label: f"{{{{ $labels.{label} | urlquery }}}}" for label in given}
        for word in re.findall(r"\b[A-Z_]{2,}\b", first):
            assert word in {"POD", "FILE", "STUCK"} or word.lower() in given, word


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_metrics_that_a_runbook_prints_exist(name: str) -> None:
    for text in re.findall(r"ordering-prober status metrics --metric (\S+)", PAGES[name]):
        assert any(text in metric for metric in scraped() | FROM_PROMETHEUS), text


@pytest.mark.parametrize("name", sorted(PAGES))
def test_what_a_runbook_queries_exists(name: str) -> None:
    known = scraped() | recorded() | FROM_PROMETHEUS
    for block in re.findall(r"```promql\n(.*?)```", PAGES[name], re.DOTALL):
        for metric, labels in selectors(block):
            assert labels <= known[metric], block


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_silence_names_its_alert(name: str) -> None:
    silences = re.findall(r"amtool silence add (.+)", PAGES[name])
    assert len(silences) == (0 if name in NEVER_SILENCED else 1)
    for silence in silences:
        assert f"alertname={name}" in silence
        assert "--duration=" in silence
        assert "--comment=" in silence


def test_the_page_about_alerts_lists_them_with_their_severities() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| ([^|]+) \|", page, re.MULTILINE)
    listed = {name: set(severities.split(", ")) for name, linked, severities in rows if name == linked}
    assert len(listed) == len(rows)
    assert listed == {name: {one["labels"]["severity"] for one in WRITTEN if one["alert"] == name} for name in NAMES}


def test_the_addresses_in_runbooks_exist() -> None:
    service = view()
    operations = create_app(service, service.archive, service.settings).openapi()["paths"]
    routes = {*operations, "/", "/incidents", "/comparisons", "/findings/{id}", "/slos/{name}"}
    addresses = {address for page in PAGES.values() for address in re.findall(r"\$PROBER(/[\w/?&=-]*)", page)}
    assert len(addresses) > 5
    for address in addresses:
        parts = urlsplit(address)
        (route, *_) = (route for route in routes if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", route), parts.path))
        known = {parameter["name"] for parameter in operations.get(route, {}).get("get", {}).get("parameters", ())}
        assert {name for name, _ in parse_qsl(parts.query)} <= known, address


def test_the_commands_that_runbooks_tell_people_to_call_exist(capsys: pytest.CaptureFixture[str]) -> None:
    called = {call for page in PAGES.values() for call in re.findall(r"ordering-prober ([a-z]+(?: show| check)?)", page)}
    assert len(called) > 3
    for call in sorted(called):
        assert main([*call.split(), "--help"]) == 0, call
    capsys.readouterr()
